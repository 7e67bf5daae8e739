"""Stretches of ports and their aggregates over batches: what `kernels.stretches` needs around it.

In come the numbers, keys and candidates of a batch; out goes which candidates trigger, what the
first events are, and what each aggregate comes to. Values stand in the store beside their events:
numbers as they are, values of `distinct` as small numbers of their own. A real sum has as many
limbs as the values so far need. What the loops cannot count (values that are no finite numbers, or
of another kind than declared) raises `LeavesColumnsError` before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Column, Rows, column_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.kernels import conditions, stretches
from ensue.engine.batch.kernels.exact_sums import LIMB, MANTISSA, MOST_LIMBS
from ensue.engine.batch.related.condition import MOST_REGISTERS
from ensue.engine.batch.related.form import Asked, Form
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import IntegerNumbers, Numbers, taller
from ensue.lang.expressions.names import Parts

_KINDS = {
    "COUNT": conditions.COUNT,
    "SUM": conditions.SUM,
    "AVG": conditions.AVERAGE,
    "DISTINCT": conditions.DISTINCT,
    "MIN": conditions.LEAST,
    "MAX": conditions.GREATEST,
    "FIRST": conditions.FIRST,
    "LAST": conditions.LAST,
}
_WHOLE_LIMBS = 4
"""So many limbs hold any sum of integers."""
_ROOM_FOR_EVENTS = 31
"""So many bits more than its values a sum may have."""
_SMALLEST_TABLE = 1 << 10


class LeavesColumnsError(Exception):
    """A rule cannot go on in columns; the text says why. Nothing has been read."""


@dataclass(frozen=True)
class Found:
    """Triggers: which candidates; the first event of each place; the aggregates, by number."""

    candidates: Rows
    firsts: npt.NDArray[np.int64]
    aggregates: Sequence[Column]


@dataclass
class _Powers:
    """Between which powers of two the reals of an aggregate lie, so far."""

    low: int = 0
    high: int = 0
    is_known: bool = False

    def including(self, reals: npt.NDArray[np.float64]) -> _Powers:
        reals = reals[reals != 0.0]
        if not reals.size:
            return self
        exponents = np.frexp(reals)[1]
        low, high = int(exponents.min()) - MANTISSA, int(exponents.max())
        if self.is_known:
            low, high = min(low, self.low), max(high, self.high)
        return _Powers(low, high, True)

    @property
    def limbs(self) -> int:
        return min(MOST_LIMBS, (self.high - self.low + _ROOM_FOR_EVENTS) // LIMB + 4)


@dataclass
class _Values:
    """How the values of one aggregate become numbers of 64 bits."""

    asked: Asked
    powers: _Powers = field(default_factory=_Powers)
    texts: TextNumbers = field(default_factory=TextNumbers)
    numbers: IntegerNumbers = field(default_factory=IntegerNumbers)


class Counting:
    """`bit_of` has the bit of each port; `column` the values of a name for readings by number."""

    def __init__(
        self, form: Form, bit_of: Callable[[str], int], column: Callable[[Parts, Rows], Column]
    ) -> None:
        self._form = form
        self._bit_of = bit_of
        self._column = column
        self._values = [_Values(each) for each in form.aggregates]
        self._distinct = [
            n for n, each in enumerate(form.aggregates) if each.function == "DISTINCT"
        ]
        self._whole = np.zeros(MOST_REGISTERS, np.int64)
        self._real = np.zeros(MOST_REGISTERS, np.float64)
        self._digits = np.zeros(MOST_LIMBS, np.uint64)
        self.clear(1)

    # --- the store ------------------------------------------------------------------------------

    def clear(self, base: int) -> None:
        """Hold nothing; the next event is stored with the number `base`."""
        count = len(self._values)
        self.base = base
        self._size = 0
        self._nexts = np.zeros(0, np.int64)
        self._held_values = np.zeros((0, count), np.int64)
        self._present = np.zeros((0, count), np.bool_)
        self._after = np.zeros((0, count), np.int64)
        self._before = np.zeros((0, count), np.int64)
        self._table_keys = np.zeros(_SMALLEST_TABLE, np.uint64)
        self._table_rows = np.zeros(_SMALLEST_TABLE, np.int64)
        self._used = np.zeros(1, np.int64)
        for each in self._values:
            each.texts, each.numbers = TextNumbers(), IntegerNumbers()
        self._lay_out()
        self.held = np.zeros((0, self._width), np.int64)

    def _lay_out(self) -> None:
        """Where everything stands in the registers of a key."""
        form = self._form
        counted = list(dict.fromkeys(each.port for each in form.aggregates))
        if form.rounds > 1:
            counted = list(dict.fromkeys([form.places[0], *counted]))
        self._has_pointers = form.bind == "first" or len(form.groups) > 1
        at = stretches.POINTERS + (len(form.places) if self._has_pointers else 0)
        ports = []
        for port in counted:
            group = next(n for n, group in enumerate(form.groups) if port in group)
            ports.append([self._bit_of(port), group, at])
            at += stretches.PER_PORT
        rows = []
        for each in self._values:
            asked, powers = each.asked, each.powers
            is_real = asked.kind == "real" and asked.function not in ("COUNT", "DISTINCT")
            limbs = 0
            if asked.function in ("SUM", "AVG"):
                limbs = powers.limbs if is_real else _WHOLE_LIMBS
            counts_for = counted.index(asked.port)
            count_at = ports[counts_for][2] + stretches.COUNTED
            kind = _KINDS[asked.function]
            rows.append([kind, int(is_real), at, count_at, limbs, powers.low, counts_for])
            at += 2 + limbs
        self._ports = np.array(ports, np.int64).reshape(-1, 3)
        self._aggregates = np.array(rows, np.int64).reshape(-1, stretches.WIDTH_OF_AGGREGATE)
        self._width = at

    def check(self, numbers: Rows) -> None:
        """See whether readings can be counted; raises `LeavesColumnsError`.

        Where the sums need more limbs the caller has to let all events be read again, which
        `is_outgrown` says.
        """
        self._columns = [self._column_of(each, numbers) for each in self._values]
        self._wider = [
            each.powers.including(column.values[~column.missing_mask()])
            if each.asked.function in ("SUM", "AVG") and each.asked.kind == "real"
            else each.powers
            for each, column in zip(self._values, self._columns, strict=True)
        ]

    @property
    def is_outgrown(self) -> bool:
        return any(
            wider.is_known
            and (
                not each.powers.is_known
                or (wider.low, wider.high) != (each.powers.low, each.powers.high)
            )
            for each, wider in zip(self._values, self._wider, strict=True)
        )

    def widen(self) -> None:
        for each, wider in zip(self._values, self._wider, strict=True):
            each.powers = wider

    def _column_of(self, each: _Values, numbers: Rows) -> Column:
        if each.asked.function == "COUNT" and not each.asked.name:
            return Column("integer", np.zeros(numbers.size, np.int64))
        column = self._column(each.asked.name, numbers)
        if column.kind == "object":
            column = column_of(column.to_list())
        if column.missing is not None and column.missing.all():
            empty = np.zeros(numbers.size, np.float64 if each.asked.kind == "real" else np.int64)
            return Column(each.asked.kind, empty, column.missing)
        if column.kind != each.asked.kind:
            raise LeavesColumnsError(f"`{'.'.join(each.asked.name)}` is not what was declared")
        if column.kind == "real" and not np.isfinite(column.values).all():
            there = column.values[~column.missing_mask()]
            if not np.isfinite(there).all():
                raise LeavesColumnsError(f"`{'.'.join(each.asked.name)}` is no finite number")
        return column

    def add(self, numbers: Rows) -> None:
        """Store the values of readings, which have been checked and follow those before."""
        size = self._size + numbers.size
        if size > len(self._nexts):
            room = max(size, 2 * self._size)
            self._nexts = taller(self._nexts, room)
            self._held_values = taller(self._held_values, room)
            self._present = taller(self._present, room, False)
            self._after = taller(self._after, room)
            self._before = taller(self._before, room)
        here = slice(self._size, size)
        for number, (each, column) in enumerate(zip(self._values, self._columns, strict=True)):
            self._held_values[here, number] = self._as_numbers(number, each, column)
            self._present[here, number] = True if column.missing is None else ~column.missing
        self._size = size
        self._columns = []

    def _as_numbers(self, number: int, each: _Values, column: Column) -> Any:
        values = column.values
        if each.asked.function == "DISTINCT":
            if column.missing is not None and column.missing.all():
                return 0
            if column.kind == "string":
                found = each.texts.number(values)
            else:
                # Both zeros are one value.
                plain = (values + 0.0).view(np.int64) if column.kind == "real" else values
                found = each.numbers.number(np.ascontiguousarray(plain).astype(np.int64))
            return found.astype(np.int64) * len(self._distinct) + self._distinct.index(number)
        if column.kind == "real":
            return np.ascontiguousarray(values, np.float64).view(np.int64)
        return values

    # --- reading --------------------------------------------------------------------------------

    def grow(self, keys: int) -> None:
        if keys > len(self.held):
            self.held = taller(self.held, max(keys, 2 * len(self.held)))

    def read(
        self,
        letters: Any,
        times: Any,
        keys: Numbers,
        number: int,
        candidates: Rows,
        starts: Rows,
        floors: Rows,
        operands: tuple[Any, Any] | None,
    ) -> Found:
        """Let the readings from `number` on count; the store of letters begins with the base.

        Without operands they are read again: nothing triggers.
        """
        form, count = self._form, len(self._values)
        steps = form.condition.steps if form.condition else np.zeros((0, 4), np.int64)
        integers = form.condition.integers if form.condition else np.zeros(0, np.int64)
        reals = form.condition.reals if form.condition else np.zeros(0)
        known, errors = operands or (np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_))
        program = stretches.Program(
            steps, integers, reals, known, known.view(np.float64), errors,
            self._whole, self._real, self._digits,
        )  # fmt: skip
        rule = self._stretches()
        room = self._room(max(1024, candidates.size // 8))
        at = done = fired = 0
        while True:
            store = stretches.Store(
                letters, times, self._nexts, self._held_values,
                self._held_values.view(np.float64), self._present, self._after, self._before,
                self._table_keys, self._table_rows, self._used, self.base,
            )  # fmt: skip
            at, done, fired, lacks = stretches.read_stretches(
                keys, at, number, candidates, starts, done, rule, store, self.held, floors,
                program, room, fired, operands is None,
            )  # fmt: skip
            if lacks == stretches.DONE:
                break
            if lacks == stretches.LACKS_ROOM:
                room = self._taller_room(room)
            else:
                self._more_values()
        columns = [
            Column(
                each.result,
                (room.reals if each.result == "real" else room.values)[:fired, number],
                room.lacking[:fired, number],
            )
            for number, each in enumerate(form.aggregates)
        ]
        assert len(columns) == count
        return Found(room.candidates[:fired], room.slots[:fired], columns)

    def _stretches(self) -> stretches.Stretches:
        form = self._form
        unless = sum(1 << self._bit_of(port) for port in form.unless)
        begins = np.cumsum([0, *(len(group) for group in form.groups)])
        return stretches.Stretches(
            begins.astype(np.int64),
            np.array([self._bit_of(port) for port in form.places], np.uint64),
            self._ports,
            self._aggregates,
            np.zeros(len(form.groups), np.int64),
            FAR if form.window is None else form.window,
            form.rounds,
            np.uint64(unless),
            self._has_pointers,
            form.keep == "none",
            form.keep == "last",
            form.bind == "first",
        )

    def _room(self, size: int) -> stretches.Triggered:
        values = np.zeros((size, len(self._values)), np.int64)
        return stretches.Triggered(
            np.zeros(size, np.int64),
            np.zeros((size, len(self._form.places)), np.int64),
            values,
            np.zeros((size, len(self._values)), np.float64),
            np.zeros((size, len(self._values)), np.bool_),
        )

    def _taller_room(self, room: stretches.Triggered) -> stretches.Triggered:
        size = 2 * len(room.candidates)
        return stretches.Triggered(*(taller(each, size) for each in room))

    def _more_values(self) -> None:
        """A table of values that is at most a quarter full of what counts."""
        lows = [int(self._ports[self._aggregates[n, 6], 2]) for n in self._distinct]
        size = self._table_keys.size
        while True:
            keys, rows = np.zeros(size, np.uint64), np.zeros(size, np.int64)
            used = stretches.place_values(
                self._table_keys, self._table_rows, self.held,
                np.array(lows, np.int64), keys, rows,
            )  # fmt: skip
            if 4 * used <= size:
                break
            size *= 2
        self._table_keys, self._table_rows = keys, rows
        self._used[0] = used

    # --- what is remembered ---------------------------------------------------------------------

    def remembered(self, times: Any, oldest: int | None) -> tuple[Rows, Rows]:
        """The readings that keys remember, each with its key, keys and readings in order."""
        heads = self.held[:, stretches.HEAD].copy()
        keys = np.flatnonzero(heads)
        rows = heads[keys]
        every_key, every_row = [], []
        while keys.size:
            every_key.append(keys)
            every_row.append(rows)
            rows = self._nexts[rows - self.base]
            keys, rows = keys[rows != 0], rows[rows != 0]
        none = np.empty(0, np.int64)
        found_keys = np.concatenate(every_key) if every_key else none
        found_rows = np.concatenate(every_row) if every_row else none
        if oldest is not None:
            inside = times[found_rows - self.base] >= oldest
            found_keys, found_rows = found_keys[inside], found_rows[inside]
        order = np.lexsort((found_rows, found_keys))
        return found_keys[order], found_rows[order]
