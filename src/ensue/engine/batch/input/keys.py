"""Key values to small numbers, kept across batches.

In come the columns of a `by` clause; out goes a number for each row, -1 where there is no key. A
key of one string, or of one integer, goes through a compiled hash table; any other (several names,
reals, kinds that change from batch to batch) through a Python dictionary over the distinct values
only. Two values are one key if they are equal and of one kind, as in `ensue.engine.ports`. The hash
table of texts numbers types and other names, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from llvmlite import ir
from numba import types

from ensue.engine.batch.input.column import Column, Texts, column_of
from ensue.engine.core.jit import compiled, inlined, lowered
from ensue.engine.core.numbering import (
    EVERYTHING,
    MULTIPLIER,
    IntegerNumbers,
    Numbers,
    Rows,
    mixed_with,
    taller,
)
from ensue.engine.ports import Key, key_text, key_value
from ensue.lang.expressions.evaluation import MISSING


class TextTable(NamedTuple):
    """A hash table of texts; the bytes of text n are `arena[begins[n]:begins[n + 1]]`.

    A slot holds a tag and a number from 1, or 0; `ends` the head and the tail of each text, which
    is all of it up to 16 bytes.
    """

    slots: Any
    ends: Any
    begins: Any
    arena: Any


@lowered
def _word(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Eight bytes of an array as one number, wherever they begin."""
    signature = types.uint64(array, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = builder.gep(held.data, [arguments[1]])
        word = ir.IntType(64)
        pointer = builder.bitcast(at, word.as_pointer())
        return builder.load(pointer, align=1, typ=word)

    return signature, generate


@inlined
def head_of(data: Any, begin: Any, end: Any) -> Any:
    """The first eight bytes of a text, or all of a shorter one."""
    length = end - begin
    if begin + 8 <= data.size:
        # Bytes behind a shorter text are cut off: no loop over bytes whose number is not known.
        head = _word(data, begin)
        return (
            head if length >= 8 else head & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
        )
    packed = np.uint64(0)
    for at in range(length):
        packed |= np.uint64(data[begin + at]) << np.uint64(8 * at)
    return packed


@inlined
def tail_of(data: Any, begin: Any, end: Any) -> Any:
    """The last eight bytes of a text, or nothing of a shorter one."""
    return _word(data, end - 8) if end - begin >= 8 else np.uint64(0)


@inlined
def hash_text(data: Any, begin: Any, end: Any, head: Any, tail: Any) -> Any:
    length = end - begin
    mixed = mixed_with(mixed_with(np.uint64(length) * MULTIPLIER, head), tail)
    if length > 16:
        at = begin + 8
        while at + 8 < end:
            mixed = mixed_with(mixed, _word(data, at))
            at += 8
    return mixed ^ (mixed >> np.uint64(32))


@inlined
def _tag(mixed: Any, length: Any) -> Any:
    """What a slot says of its text besides its number: part of the hash, and the length."""
    known = np.uint64(min(length, 255))
    return (((mixed >> np.uint64(40)) << np.uint64(8)) | known) << np.uint64(32)


@inlined
def _same_middle(data: Any, begin: Any, end: Any, arena: Any, known: Any, known_end: Any) -> Any:
    """Whether two texts with equal heads and tails are equal in between."""
    if known_end - known != end - begin:
        return False
    at = 8
    while begin + at + 8 < end:
        if _word(data, begin + at) != _word(arena, known + at):
            return False
        at += 8
    return True


@compiled
def number_texts(
    texts: Any, rows: Any, out: Any, first: int, table: Any, count: int, grow: bool
) -> Any:
    """Number each text of the rows by a hash table; texts that are new to it get the next number.

    Without `grow` a new text is -1. Stops before a text for which there is no room; `rows` that is
    empty stands for all of `out`.
    """
    data, offsets = texts
    slots, ends_of, begins, arena = table
    mask = np.uint64(slots.size - 1)
    low = np.uint64(0xFFFFFFFF)
    everything = rows.size == 0
    for at in range(first, out.size):
        row = at if everything else rows[at]
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        head = head_of(data, begin, end)
        tail = tail_of(data, begin, end)
        mixed = hash_text(data, begin, end, head, tail)
        tag = _tag(mixed, end - begin)
        slot = mixed & mask
        found = np.int64(-1)
        while slots[slot] != 0:
            held = slots[slot]
            if (held & ~low) == tag:
                number = np.int64(held & low) - 1
                if (
                    ends_of[number, 0] == head
                    and ends_of[number, 1] == tail
                    and (
                        end - begin <= 16
                        or _same_middle(data, begin, end, arena, begins[number], begins[number + 1])
                    )
                ):
                    found = number
                    break
            slot = (slot + np.uint64(1)) & mask
        if found < 0 and grow:
            length = end - begin
            if (
                2 * (count + 1) > slots.size
                or count + 2 > begins.size
                or begins[count] + length > arena.size
            ):
                return at, count
            for place in range(length):
                arena[begins[count] + place] = data[begin + place]
            begins[count + 1] = begins[count] + length
            ends_of[count, 0] = head
            ends_of[count, 1] = tail
            slots[slot] = tag | np.uint64(count + 1)
            found = np.int64(count)
            count += 1
        out[at] = found
    return out.size, count


@compiled
def place_texts(table: Any, count: int) -> None:
    """Fill the empty slots of a larger table with what is known."""
    slots, _, begins, arena = table
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        begin = begins[number]
        end = begins[number + 1]
        head = head_of(arena, begin, end)
        mixed = hash_text(arena, begin, end, head, tail_of(arena, begin, end))
        slot = mixed & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = _tag(mixed, end - begin) | np.uint64(number + 1)


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


class Keys:
    """The keys of one correlation. Without `by` there is one key, of number 0."""

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed
        self._table: TextNumbers | IntegerNumbers | None = None
        self._general: dict[Key, int] | None = None if keyed else {(): 0}

    @property
    def count(self) -> int:
        if self._general is not None:
            return len(self._general)
        return 0 if self._table is None else self._table.count

    def number(self, columns: Sequence[Column], rows: Rows) -> Numbers:
        """The key of each of the rows. `rows` is not empty."""
        if len(columns) == 1 and self._general is None:
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
        assert self._general is not None
        known = self._general
        out = np.empty(len(columns[0]), np.int32)
        for row, values in enumerate(zip(*(each.to_list() for each in columns), strict=True)):
            if any(value is MISSING or isinstance(value, list | dict) for value in values):
                out[row] = -1
            else:
                out[row] = known.setdefault(tuple(key_value(v) for v in values), len(known))
        return out

    def _become_general(self) -> None:
        if self._general is None:
            self._general = {key: number for number, key in enumerate(self.all())}
            self._table = None

    def all(self) -> list[Key]:
        """Every key, by number."""
        if self._general is not None:
            return list(self._general)
        if self._table is None:
            return []
        if isinstance(self._table, TextNumbers):
            return [(key_value(text),) for text in self._table.texts().to_pylist()]
        return [(key_value(value),) for value in self._table.values().tolist()]

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
        """Take in the keys of a snapshot, all texts or all integers; returns their numbers."""
        is_integer = pa.types.is_integer(column.type)
        wanted = IntegerNumbers if is_integer else TextNumbers
        if self._general is None and self._table is None:
            self._table = wanted()
        if isinstance(self._table, IntegerNumbers) and is_integer:
            return self._table.number(np.array(column.to_numpy()))
        if isinstance(self._table, TextNumbers) and not is_integer:
            return self._table.number(column.cast(pa.string()))
        return self._restore_general([(key_value(value),) for value in column.to_pylist()])

    def restore_keys(self, keys: Sequence[Key]) -> Numbers:
        """Take in any keys of a snapshot; returns their numbers."""
        if not keys:
            return np.empty(0, np.int32)
        column = plain_column(keys)
        return self._restore_general(keys) if column is None else self.restore(column)

    def _restore_general(self, keys: Sequence[Key]) -> Numbers:
        self._become_general()
        assert self._general is not None
        known = self._general
        return np.array([known.setdefault(key, len(known)) for key in keys], np.int32)


def plain_column(keys: Sequence[Key]) -> pa.Array | None:
    """Keys as one Arrow column, if each of them is one text, or each is one integer."""
    if any(len(key) != 1 for key in keys):
        return None
    column = column_of([value for ((_, value),) in keys])
    if column.kind not in ("string", "integer"):
        return None
    return column.values if column.kind == "string" else pa.array(column.values)
