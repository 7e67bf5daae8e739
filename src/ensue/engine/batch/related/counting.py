"""Stretches of ports and their aggregates over batches: what `stretches` needs around it.

In come the numbers, keys and candidates of a batch; out goes which candidates trigger, what the
first events are, and what each aggregate comes to. Values stand in the store beside their events:
numbers as they are, values of `distinct` as small numbers of their own. A real sum has as many
limbs as the values so far need. What the loops cannot count (values that are no finite numbers, or
of another kind than declared) raises `LeavesColumnsError` before anything has changed.

The module is long because one layout of registers serves reading, saving and widening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.related import conditions, port_aggregates, stretches
from ensue.engine.batch.related.conditions import MOST_LIMBS
from ensue.engine.batch.related.port_aggregates import EventStore
from ensue.engine.batch.related.sums import Powers, Tallies, put_back, tallies_in
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import IntegerNumbers, Numbers, Rows, taller
from ensue.engine.core.relating.condition import MOST_REGISTERS, Condition
from ensue.engine.core.relating.form import AskedAggregate, ChainForm
from ensue.engine.core.relating.tallies import SavedTallies
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
"""The number of limbs that holds any sum of integers."""
_WITH_EVENTS = (conditions.LEAST, conditions.GREATEST, conditions.FIRST, conditions.LAST)
"""The aggregates whose register has the event that their value is of."""
_SMALLEST_TABLE = 1 << 10
_FEWEST_TRIGGERS = 1 << 10


class LeavesColumnsError(Exception):
    """A rule cannot go on in columns; the text says why. Nothing has been read."""


@dataclass(frozen=True)
class FoundTriggers:
    """Triggers: which candidates; the first event of each place; the aggregates, by number."""

    candidates: Rows
    firsts: npt.NDArray[np.int64]
    aggregates: Sequence[Column]


@dataclass
class _Values:
    """How the values of one aggregate become numbers of 64 bits."""

    asked: AskedAggregate
    powers: Powers = field(default_factory=Powers)
    texts: TextNumbers = field(default_factory=TextNumbers)
    numbers: IntegerNumbers = field(default_factory=IntegerNumbers)


class Counting:
    """The stretches and aggregates of one rule, under all keys.

    `bit_of` gives the bit of a port, `column` the values of a name for readings by number.
    """

    def __init__(
        self, form: ChainForm, bit_of: Callable[[str], int], column: Callable[[Parts, Rows], Column]
    ) -> None:
        self._form = form
        self._bit_of = bit_of
        self._column = column
        self._values = [_Values(each) for each in form.aggregates]
        self._distinct = [
            n for n, each in enumerate(form.aggregates) if each.function == "DISTINCT"
        ]
        named = [n for n, each in enumerate(form.aggregates) if each.function != "COUNT"]
        queued = [n for n in named if form.aggregates[n].function not in ("SUM", "AVG")]
        self._valued = {number: place for place, number in enumerate(named)}
        self._queued = {number: place for place, number in enumerate(queued)}
        self._whole = np.zeros(MOST_REGISTERS, np.int64)
        self._real = np.zeros(MOST_REGISTERS, np.float64)
        condition = form.condition or Condition((), ())
        self._steps = np.array(condition.steps, np.int64).reshape(-1, 4)
        self._integers = np.array(condition.integers, np.int64)
        self._reals = np.array(condition.reals, np.float64)
        self._digits = np.zeros(MOST_LIMBS, np.uint64)
        self.clear()

    # --- the store ------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """How many numbers an event has."""
        return port_aggregates.VALUES + len(self._valued) + 2 * len(self._queued)

    def clear(self) -> None:
        """Hold nothing."""
        self._table = np.zeros((_SMALLEST_TABLE, 2), np.int64)
        self._used = np.zeros(1, np.int64)
        for each in self._values:
            each.texts, each.numbers = TextNumbers(), IntegerNumbers()
        self._lay_out()
        self.held = np.zeros((0, self._width), np.int64)

    def _lay_out(self) -> None:
        """Where everything stands in the registers of a key."""
        form = self._form
        counted = form.counted
        self._has_pointers = form.bind == "first" or len(form.groups) > 1
        at = port_aggregates.POINTERS + (len(form.places) if self._has_pointers else 0)
        ports = []
        for port in counted:
            group = next(n for n, group in enumerate(form.groups) if port in group)
            ports.append([self._bit_of(port), group, at])
            at += port_aggregates.PER_PORT
        rows: list[list[int]] = []
        for each in self._values:
            asked, powers = each.asked, each.powers
            is_real = asked.kind == "real" and asked.function not in ("COUNT", "DISTINCT")
            limbs = 0
            if asked.function in ("SUM", "AVG"):
                limbs = powers.limbs if is_real else _WHOLE_LIMBS
            counts_for = counted.index(asked.port)
            count_at = ports[counts_for][2] + port_aggregates.COUNTED
            kind = _KINDS[asked.function]
            value = port_aggregates.VALUES + self._valued.get(len(rows), 0)
            queue = port_aggregates.VALUES + len(self._valued) + 2 * self._queued.get(len(rows), 0)
            rows.append(
                [kind, int(is_real), at, count_at, limbs, powers.low, counts_for, value, queue]
            )
            at += 2 + limbs
        self._ports = np.array(ports, np.int64).reshape(-1, 3)
        self._aggregates = np.array(rows, np.int64).reshape(-1, conditions.COLUMNS)
        self._width = at

    def check(self, numbers: Rows, letters: Any) -> None:
        """See whether readings can be counted; raises `LeavesColumnsError`.

        Where the sums need more limbs the caller has to let all events be read again, which
        `is_outgrown` says.
        """
        condition = self._form.condition
        for (port, *path), kind in (condition.names if condition else {}).items():
            self._column_of(port, tuple(path), kind, numbers, letters)
        self._columns = [
            self._column_of(each.asked.port, each.asked.name, each.asked.kind, numbers, letters)
            if each.asked.name
            else Column("integer", np.zeros(numbers.size, np.int64))
            for each in self._values
        ]
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

    def _column_of(self, port: str, name: Parts, kind: str, numbers: Rows, letters: Any) -> Column:
        """The values of a name for the events of a port; missing for all other events."""
        bit = np.uint64(self._bit_of(port))
        is_here = (letters >> bit & np.uint64(1)).astype(np.bool_)
        if is_here.all():
            return _checked(self._column(name, numbers), name, kind)
        zeros = np.zeros(numbers.size, np.float64 if kind == "real" else np.int64)
        if not is_here.any():
            return Column(kind, zeros, ~is_here)
        here = np.flatnonzero(is_here)
        column = _checked(self._column(name, numbers[here]), name, kind)
        missing = ~is_here
        missing[here] = column.missing_mask()
        if kind == "string":
            places = np.zeros(numbers.size, np.int64)
            places[here] = np.arange(here.size)
            return Column(kind, column.take(places).values, missing)
        zeros[here] = column.values
        return Column(kind, zeros, missing)

    def fill_in(self, rows: npt.NDArray[np.int64]) -> None:
        """Write the values of readings, which have been checked, to their rows."""
        present: Any = np.int64(0)
        for number, place in self._valued.items():
            each, column = self._values[number], self._columns[number]
            rows[:, port_aggregates.VALUES + place] = self._as_numbers(number, each, column)
            bit = np.int64(1 << number)
            present = present | (bit if column.missing is None else ~column.missing * bit)
        rows[:, port_aggregates.PRESENT] = present
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
        events: EventStore,
        keys: Numbers,
        number: int,
        candidates: Rows,
        starts: Rows,
        floors: Rows,
        operands: tuple[Any, Any] | None,
    ) -> FoundTriggers:
        """Let the readings from `number` on count.

        Without operands they are read again: nothing triggers.
        """
        form, count = self._form, len(self._values)
        known, errors = operands or (np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_))
        program = stretches.Program(
            self._steps,
            self._integers,
            self._reals, known, known.view(np.float64), errors,
            self._whole, self._real, self._digits,
        )  # fmt: skip
        rule = self._stretches()
        room = self._room(max(_FEWEST_TRIGGERS, candidates.size // 8))
        given = stretches.CountedEvents(keys, number, candidates, starts, operands is None)
        at = done = fired = 0
        while True:
            store = self._store(events)
            reached = stretches.CandidatesReached(at, done, fired)
            at, done, fired, lacks = stretches.read_stretches(
                given, reached, rule, store, self.held, floors, program, room
            )
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
        return FoundTriggers(room.candidates[:fired], room.slots[:fired], columns)

    def _store(self, events: EventStore) -> port_aggregates.StoreArrays:
        rows = events.rows
        return port_aggregates.StoreArrays(
            rows, rows.view(np.float64), self._table, self._used, events.base
        )

    def _stretches(self) -> port_aggregates.Stretches:
        form = self._form
        unless = sum(1 << self._bit_of(port) for port in form.unless)
        begins = np.cumsum([0, *(len(group) for group in form.groups)])
        return port_aggregates.Stretches(
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

    def _room(self, size: int) -> stretches.TriggerArrays:
        values = np.zeros((size, len(self._values)), np.int64)
        return stretches.TriggerArrays(
            np.zeros(size, np.int64),
            np.zeros((size, len(self._form.places)), np.int64),
            values,
            np.zeros((size, len(self._values)), np.float64),
            np.zeros((size, len(self._values)), np.bool_),
        )

    def _taller_room(self, room: stretches.TriggerArrays) -> stretches.TriggerArrays:
        size = 2 * len(room.candidates)
        return stretches.TriggerArrays(*(taller(each, size) for each in room))

    def _more_values(self) -> None:
        """A table of values that is at most a quarter full of what counts."""
        ports = [self._aggregates[n, conditions.PORT] for n in self._distinct]
        lows = np.array([self._ports[port, 2] for port in ports], np.int64)
        size = len(self._table)
        while True:
            table = np.zeros((size, 2), np.int64)
            used = port_aggregates.place_values(self._table, self.held, lows, table)
            if 4 * used <= size:
                break
            size *= 2
        self._table, self._used[0] = table, used

    # --- what is remembered ---------------------------------------------------------------------

    def first_that_counts(self, events: EventStore, time: int) -> int:
        """The number of the first event that counts from a time on; 0 if none does."""
        store = self._store(events)
        return int(stretches.age_all(self.held, time, self._stretches(), store))

    def remembered(self, events: EventStore, oldest: int | None) -> tuple[Rows, Rows]:
        """The readings that keys remember, each with its key, keys and readings in order."""
        since = -FAR if oldest is None else oldest
        # An event is read under one key.
        keys, rows = np.empty(len(events), np.int64), np.empty(len(events), np.int64)
        count = stretches.list_remembered(self.held, events.rows, events.base, since, keys, rows)
        return keys[:count], rows[:count]

    def kept(self) -> tuple[Rows, Rows]:
        """The readings that a rule without a window goes by, besides its latest matches.

        They are in no order, each with its key: the first ones of ports and places, and those
        whose values aggregates have.
        """
        registers = [at + port_aggregates.LOW for _, _, at in self._ports]
        registers += [
            row[conditions.OWN] for row in self._aggregates if row[conditions.KIND] in _WITH_EVENTS
        ]
        if self._has_pointers:
            first = port_aggregates.POINTERS
            registers += range(first, first + len(self._form.places))
        found = self.held[:, registers]
        keys, columns = np.nonzero(found)
        return keys, found[keys, columns]

    def has_counted(self) -> npt.NDArray[np.bool_]:
        """For each key, whether any event counts."""
        at = self._ports[:, 2] + port_aggregates.COUNTED
        return np.asarray(self.held[:, at].any(axis=1))

    # --- what does not follow from readings -------------------------------------------------------

    def tallies(self) -> Tallies:
        """Counts and sums of all keys."""
        return tallies_in(self.held, self._ports, self._aggregates)

    def put_back(self, tallies: Tallies) -> None:
        """Go on from counts and sums of keys; what they are of has been read again."""
        put_back(tallies, self.held, self._ports, self._aggregates)

    def take_in(self, saved: Mapping[int, SavedTallies]) -> None:
        """Go on from the tallies of some keys, for which `widen_for` has made room."""
        tallies = self.tallies()
        for key, each in saved.items():
            tallies.take_in(key, each, self._form)
        self.put_back(tallies)

    def widen_for(self, saved: Iterable[SavedTallies]) -> None:
        """Have room for sums that were saved. Raises `LeavesColumnsError`, `ValueError`."""
        numbers = [n for n, each in enumerate(self._values) if each.asked.function == "SUM"]
        for tallies in saved:
            if not tallies.fit(self._form.counted, numbers):
                raise ValueError
            for number, each in tallies.sums.items():
                values = self._values[number]
                is_real = values.asked.kind == "real"
                if each.fault or (each.whole if is_real else each.reals or each.fraction):
                    raise LeavesColumnsError("it sums values that are not what was declared")
                if each.fraction:
                    values.powers = values.powers.holding(
                        each.power, each.power + each.numerator.bit_length()
                    )


def _checked(column: Column, name: Parts, kind: str) -> Column:
    """A column of a kind, with finite numbers only. Raises `LeavesColumnsError`."""
    if column.kind == "object":
        column = column_of(column.to_list())
    if column.missing is not None and column.missing.all():
        if kind == "string":
            return Column(kind, pa.array([""] * len(column), pa.string()), column.missing)
        zeros = np.zeros(len(column), np.float64 if kind == "real" else np.int64)
        return Column(kind, zeros, column.missing)
    if column.kind != kind:
        raise LeavesColumnsError(f"`{'.'.join(name)}` is not what was declared")
    if kind == "real":
        there = column.values if column.missing is None else column.values[~column.missing]
        if not np.isfinite(there).all():
            raise LeavesColumnsError(f"`{'.'.join(name)}` is no finite number")
    return column
