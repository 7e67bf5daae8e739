"""Key values to small numbers, kept across batches.

In come the columns of a `by` clause; out goes a number for each row, -1 where there is no key. A
key of one string, or of one integer, goes through a compiled hash table; any other (several names,
reals, kinds that change from batch to batch) through a Python dictionary over the distinct values
only. Two values are one key if they are equal and of one kind, as in `ensue.engine.ports`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, Rows, column_of
from ensue.engine.batch.input.texts import Texts
from ensue.engine.batch.kernels.key_numbers import TextTable, number_texts, place_texts
from ensue.engine.core.numbering import EVERYTHING, IntegerNumbers, Numbers, taller
from ensue.engine.ports import Key, key_text
from ensue.lang.expressions.evaluation import MISSING


class TextNumbers:
    """A hash table from texts to numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._table = TextTable(
            np.zeros(1 << 10, np.uint64),
            np.zeros((1 << 9, 2), np.uint64),
            np.zeros((1 << 9) + 1, np.int64),
            np.zeros(1 << 13, np.uint8),
        )

    def number(self, texts: pa.Array, rows: Rows = EVERYTHING, grow: bool = True) -> Numbers:
        out = np.empty(rows.size or len(texts), np.int32)
        if not out.size:
            return out
        given = Texts.of(texts)
        at = 0
        while True:
            at, self.count = number_texts(given, rows, out, at, self._table, self.count, grow)
            if at == out.size:
                return out
            row = rows[at] if rows.size else at
            self._make_room(int(given.offsets[row + 1]) - int(given.offsets[row]))

    def _make_room(self, length: int) -> None:
        slots, ends, begins, arena = self._table
        if 2 * (self.count + 1) > slots.size:
            slots = np.zeros(slots.size * 2, np.uint64)
            place_texts(TextTable(slots, ends, begins, arena), self.count)
        if self.count + 2 > begins.size:
            size = slots.size // 2
            ends, begins = taller(ends, size), taller(begins, size + 1)
        used = int(begins[self.count])
        if used + length > arena.size:
            arena = taller(arena, max(arena.size * 2, used + length))
        self._table = TextTable(slots, ends, begins, arena)

    def held(self) -> Texts:
        """All texts, by number, as they are kept."""
        return Texts.held(self._table.arena, self._table.begins[: self.count + 1])

    def texts(self) -> pa.Array:
        """All texts, by number."""
        begins = self._table.begins[: self.count + 1].copy()
        arena = self._table.arena[: begins[-1]].copy()
        return pa.Array.from_buffers(
            pa.large_string(), self.count, [None, pa.py_buffer(begins), pa.py_buffer(arena)]
        )


class KeyTable(Protocol):
    """One way to number keys."""

    @property
    def count(self) -> int: ...


class Keys:
    """The keys of one correlation. Without `by` there is one key, of number 0."""

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed
        self._table: TextNumbers | IntegerNumbers | None = None
        self._others: dict[Key, int] | None = None if keyed else {(): 0}

    @property
    def count(self) -> int:
        if self._others is not None:
            return len(self._others)
        return 0 if self._table is None else self._table.count

    def number(self, columns: Sequence[Column], rows: Rows) -> Numbers:
        """The key of each of the rows. `rows` is not empty."""
        if len(columns) == 1 and self._others is None:
            numbers = self._number_plain(columns[0], rows)
            if numbers is not None:
                return numbers
        self._become_general()
        return self._number_general([column.take(rows) for column in columns])

    def _number_plain(self, column: Column, rows: Rows) -> Numbers | None:
        wanted: type[TextNumbers] | type[IntegerNumbers]
        if column.kind == "string":
            wanted = TextNumbers
        elif column.kind == "integer":
            wanted = IntegerNumbers
        else:
            return None
        if self._table is None:
            self._table = wanted()
        if not isinstance(self._table, wanted):
            return None
        present, gone = rows, None
        if column.missing is not None:
            gone = column.missing[rows]
            present = rows[~gone] if gone.any() else rows
        if present.size == len(column):
            present = EVERYTHING
        if gone is not None and gone.all():
            return np.full(rows.size, -1, np.int32)
        numbers = self._table.number(column.values, present)
        if gone is None or not gone.any():
            return numbers
        out = np.full(rows.size, -1, np.int32)
        out[~gone] = numbers
        return out

    def _number_general(self, columns: Sequence[Column]) -> Numbers:
        assert self._others is not None
        known = self._others
        out = np.empty(len(columns[0]), np.int32)
        for row, values in enumerate(zip(*(each.to_list() for each in columns), strict=True)):
            if any(value is MISSING or isinstance(value, list | dict) for value in values):
                out[row] = -1
            else:
                out[row] = known.setdefault(tuple(_kinded(v) for v in values), len(known))
        return out

    def _become_general(self) -> None:
        if self._others is None:
            self._others = {key: number for number, key in enumerate(self.all())}
            self._table = None

    def all(self) -> list[Key]:
        """Every key, by number."""
        if self._others is not None:
            return list(self._others)
        if self._table is None:
            return []
        if isinstance(self._table, TextNumbers):
            return [(_kinded(text),) for text in self._table.texts().to_pylist()]
        return [(_kinded(value),) for value in self._table.values().tolist()]

    def texts(self, numbers: npt.NDArray[np.integer[Any]]) -> pa.Array:
        """The `partitionkey` of each of these keys."""
        places = pa.array(numbers)
        if isinstance(self._table, TextNumbers):
            return self._table.texts().take(places).cast(pa.string())
        if isinstance(self._table, IntegerNumbers):
            return pa.array(self._table.values()).take(places).cast(pa.string())
        keys = self.all()
        return pa.array([key_text(keys[number]) for number in numbers.tolist()], pa.string())

    def held_texts(
        self, numbers: npt.NDArray[np.integer[Any]]
    ) -> tuple[Texts, npt.NDArray[np.int64]]:
        """The texts of keys, kept between batches, and for each key the number of its text."""
        if isinstance(self._table, TextNumbers):
            return self._table.held(), numbers.astype(np.int64)
        distinct, places = np.unique(numbers, return_inverse=True)
        return Texts.of(self.texts(distinct)), places

    def values(self, place: int, numbers: npt.NDArray[np.integer[Any]]) -> Column:
        """The value at one place of each of these keys."""
        if isinstance(self._table, TextNumbers):
            return Column("string", self.texts(numbers))
        if isinstance(self._table, IntegerNumbers):
            return Column("integer", self._table.values()[numbers])
        keys = self.all()
        return column_of([keys[number][place][1] for number in numbers.tolist()])

    # --- snapshots --------------------------------------------------------------------------------

    def column(self) -> pa.Array | None:
        """The keys as one Arrow column, if they have such a form."""
        if isinstance(self._table, TextNumbers):
            return self._table.texts()
        if isinstance(self._table, IntegerNumbers):
            return pa.array(self._table.values())
        return None

    def restore(self, column: pa.Array) -> Numbers:
        """Take in the keys of a snapshot; returns their numbers."""
        is_integer = pa.types.is_integer(column.type)
        wanted = IntegerNumbers if is_integer else TextNumbers
        if self._others is None and self._table is None:
            self._table = wanted()
        if isinstance(self._table, IntegerNumbers) and is_integer:
            return self._table.number(np.array(column.to_numpy()))
        if isinstance(self._table, TextNumbers) and not is_integer:
            return self._table.number(column.cast(pa.string()))
        return self.restore_general([(_kinded(value),) for value in column.to_pylist()])

    def restore_general(self, keys: Sequence[Key]) -> Numbers:
        self._become_general()
        assert self._others is not None
        known = self._others
        return np.array([known.setdefault(key, len(known)) for key in keys], np.int32)


def _kinded(value: Any) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "boolean", value
    return ("number" if isinstance(value, int | float) else type(value).__name__), value
