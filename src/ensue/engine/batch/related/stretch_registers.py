"""Stretches of ports and their aggregates under all keys of a rule: registers, and their layout.

In come the events and candidates of a batch; out goes which candidates trigger, what the first
events are, and what each aggregate comes to. The loops of `stretches` go through the events; here
are the arrays that they read and write. Values stand in the store beside their events
(`aggregated_values`), sums and counts in the registers of their key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Column
from ensue.engine.batch.related import port_aggregates as columns
from ensue.engine.batch.related import stretches
from ensue.engine.batch.related.aggregated_values import SUMS, AggregatedValues
from ensue.engine.batch.related.latest_matches import Candidates, ReadEvents
from ensue.engine.batch.related.port_aggregates import (
    EventStore,
    StoreArrays,
    StretchLayout,
    copy_values,
)
from ensue.engine.batch.related.sums import MOST_LIMBS
from ensue.engine.batch.related.tallies import Tallies, put_back, tallies_in
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Rows, taller
from ensue.engine.core.relating.condition import MOST_REGISTERS, Condition
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.sizes import sizes
from ensue.lang.expressions.names import Parts

_KINDS = {
    "COUNT": columns.COUNT,
    "SUM": columns.SUM,
    "AVG": columns.AVERAGE,
    "DISTINCT": columns.DISTINCT,
    "MIN": columns.LEAST,
    "MAX": columns.GREATEST,
    "FIRST": columns.FIRST,
    "LAST": columns.LAST,
}
_WITH_EVENTS = (columns.LEAST, columns.GREATEST, columns.FIRST, columns.LAST)
"""The aggregates whose register has the event that their value is of."""
_WHOLE_LIMBS = 4
"""The number of limbs that holds any sum of integers."""


@dataclass(frozen=True)
class FoundTriggers:
    """Triggers: which candidates; the first event of each place; the aggregates, by number."""

    candidates: Rows
    firsts: npt.NDArray[np.int64]
    aggregates: Sequence[Column]


class StretchRegisters:
    """The stretches and aggregates of one rule, under all keys.

    `bit_of` gives the bit of a port, `column` the values of a name for readings by number.
    """

    def __init__(
        self, form: ChainForm, bit_of: Callable[[str], int], column: Callable[[Parts, Rows], Column]
    ) -> None:
        self._form = form
        self._bit_of = bit_of
        self.values = AggregatedValues(form, bit_of, column)
        self._has_pointers = form.bind == "first" or len(form.groups) > 1
        condition = form.condition or Condition((), ())
        self._steps = np.array(condition.steps, np.int64).reshape(-1, 4)
        self._integers = np.array(condition.integers, np.int64)
        self._reals = np.array(condition.reals, np.float64)
        self._step_integers = np.zeros(MOST_REGISTERS, np.int64)
        self._step_reals = np.zeros(MOST_REGISTERS, np.float64)
        self._digits = np.zeros(MOST_LIMBS, np.uint64)
        self.clear()

    def clear(self) -> None:
        """Hold nothing; lay the registers out for sums as wide as they have become."""
        self._table = np.zeros((sizes().values_at_first, 2), np.int64)
        self._used = np.zeros(1, np.int64)
        self.values.clear()
        self._ports, after_ports = self._lay_out_ports()
        self._aggregates, width = self._lay_out_aggregates(after_ports)
        self.registers = np.zeros((0, width), np.int64)

    def _lay_out_ports(self) -> tuple[npt.NDArray[np.int64], int]:
        """A row for each port with aggregates, and the first register behind those of ports."""
        form = self._form
        at = columns.POINTERS + (len(form.places) if self._has_pointers else 0)
        ports = []
        for port in form.counted:
            group = next(n for n, group in enumerate(form.groups) if port in group)
            ports.append([self._bit_of(port), group, at])
            at += columns.PER_PORT
        return np.array(ports, np.int64).reshape(-1, 3), at

    def _lay_out_aggregates(self, at: int) -> tuple[npt.NDArray[np.int64], int]:
        """A row for each aggregate, whose registers begin at `at`, and the end of all registers."""
        values, rows = self.values, []
        for number, asked in enumerate(self._form.aggregates):
            powers = values.powers[number]
            is_real = asked.kind == "real" and asked.function not in ("COUNT", "DISTINCT")
            limbs = 0
            if asked.function in SUMS:
                limbs = powers.limbs if is_real else _WHOLE_LIMBS
            port = self._form.counted.index(asked.port)
            counts = self._ports[port, columns.PORT_REGISTERS] + columns.COUNTED
            row = [0] * columns.COLUMNS
            row[columns.KIND], row[columns.REAL] = _KINDS[asked.function], int(is_real)
            row[columns.OWN], row[columns.COUNTS] = at, counts
            row[columns.LIMBS], row[columns.POWER] = limbs, powers.low
            row[columns.PORT] = port
            row[columns.VALUE] = values.value_at.get(number, 0)
            row[columns.QUEUE] = values.queue_at.get(number, 0)
            rows.append(row)
            at += 2 + limbs
        return np.array(rows, np.int64).reshape(-1, columns.COLUMNS), at

    def grow(self, keys: int) -> None:
        if keys > len(self.registers):
            self.registers = taller(self.registers, max(keys, 2 * len(self.registers)))

    # --- reading --------------------------------------------------------------------------------

    def read(
        self,
        store: EventStore,
        events: ReadEvents,
        found: Candidates,
        floors: Rows,
        operands: tuple[Any, Any] | None,
    ) -> FoundTriggers:
        """Take events, whose values are in the store, into the stretches; which candidates trigger.

        Without operands the events are replayed: nothing triggers.
        """
        known, errors = operands or (np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_))
        program = stretches.ConditionProgram(
            self._steps, self._integers, self._reals, known, known.view(np.float64), errors,
            self._step_integers, self._step_reals, self._digits,
        )  # fmt: skip
        layout = self._layout()
        room = self._room(max(sizes().triggers_at_once, found.at.size // 8))
        given = stretches.CountedEvents(
            events.keys, events.number, found.at, found.starts, operands is None
        )
        at = done = fired = 0
        while True:
            reached = stretches.CandidatesReached(at, done, fired)
            at, done, fired, lacks = stretches.read_stretches(
                given, reached, layout, self._arrays(store), self.registers, floors, program, room
            )
            if lacks == stretches.DONE:
                break
            if lacks == stretches.LACKS_ROOM:
                size = 2 * len(room.candidates)
                room = stretches.TriggerArrays(*(taller(each, size) for each in room))
            else:
                self._make_larger_table()
        aggregates = [
            Column(
                each.result,
                (room.reals if each.result == "real" else room.values)[:fired, number],
                room.lacking[:fired, number],
            )
            for number, each in enumerate(self._form.aggregates)
        ]
        return FoundTriggers(room.candidates[:fired], room.slots[:fired], aggregates)

    def _arrays(self, store: EventStore) -> StoreArrays:
        return StoreArrays(
            store.rows, store.rows.view(np.float64), self._table, self._used, store.base
        )

    def _layout(self) -> StretchLayout:
        form = self._form
        begins = np.cumsum([0, *(len(group) for group in form.groups)])
        return StretchLayout(
            begins=begins.astype(np.int64),
            bits=np.array([self._bit_of(port) for port in form.places], np.uint64),
            ports=self._ports,
            aggregates=self._aggregates,
            ends=np.zeros(len(form.groups), np.int64),
            window=FAR if form.window is None else form.window,
            rounds=form.rounds,
            unless=np.uint64(sum(1 << self._bit_of(port) for port in form.unless)),
            has_pointers=self._has_pointers,
            keep_none=form.keep == "none",
            keep_last=form.keep == "last",
            bind_first=form.bind == "first",
        )

    def _room(self, size: int) -> stretches.TriggerArrays:
        aggregates = len(self._form.aggregates)
        return stretches.TriggerArrays(
            candidates=np.zeros(size, np.int64),
            slots=np.zeros((size, len(self._form.places)), np.int64),
            values=np.zeros((size, aggregates), np.int64),
            reals=np.zeros((size, aggregates), np.float64),
            lacking=np.zeros((size, aggregates), np.bool_),
        )

    def _make_larger_table(self) -> None:
        """Make a table of values that is at most a quarter full of what counts."""
        ports = [self._aggregates[number, columns.PORT] for number in self.values.distinct]
        lows = np.array([self._ports[port, columns.PORT_REGISTERS] for port in ports], np.int64)
        size = len(self._table)
        while True:
            table = np.zeros((size, 2), np.int64)
            used = copy_values(self._table, self.registers, lows, table)
            if 4 * used <= size:
                break
            size *= 2
        self._table, self._used[0] = table, used

    # --- what is remembered ---------------------------------------------------------------------

    def first_that_counts(self, store: EventStore, time: int) -> int:
        """The number of the first event that counts from a time on; 0 if none does."""
        arrays = self._arrays(store)
        return int(stretches.expire_all(self.registers, time, self._layout(), arrays))

    def remembered(self, store: EventStore, oldest: int | None) -> tuple[Rows, Rows]:
        """The readings that keys remember, each with its key, keys and readings in order."""
        since = -FAR if oldest is None else oldest
        # An event is read under one key.
        keys, rows = np.empty(len(store), np.int64), np.empty(len(store), np.int64)
        count = stretches.list_remembered(self.registers, store.rows, store.base, since, keys, rows)
        return keys[:count], rows[:count]

    def kept_readings(self) -> tuple[Rows, Rows]:
        """The readings that a rule without a window goes by, besides its latest matches.

        They are in no order, each with its key: the first ones of ports and places, and those
        whose values aggregates have.
        """
        asked = [at + columns.LOW for at in self._ports[:, columns.PORT_REGISTERS]]
        asked += [row[columns.OWN] for row in self._aggregates if row[columns.KIND] in _WITH_EVENTS]
        if self._has_pointers:
            first = columns.POINTERS
            asked += range(first, first + len(self._form.places))
        found = self.registers[:, asked]
        keys, at = np.nonzero(found)
        return keys, found[keys, at]

    def has_counted(self) -> npt.NDArray[np.bool_]:
        """For each key, whether any event counts."""
        at = self._ports[:, columns.PORT_REGISTERS] + columns.COUNTED
        return np.asarray(self.registers[:, at].any(axis=1))

    # --- what does not follow from readings -------------------------------------------------------

    def tallies(self) -> Tallies:
        """Counts and sums of all keys."""
        return tallies_in(self.registers, self._ports, self._aggregates)

    def put_back(self, tallies: Tallies) -> None:
        """Go on from counts and sums of keys; what they are of has been read again."""
        put_back(tallies, self.registers, self._ports, self._aggregates)

    def restore_tallies(self, saved: Mapping[int, SavedTallies]) -> None:
        """Go on from the saved tallies of some keys, for which sums are wide enough."""
        tallies = self.tallies()
        for key, each in saved.items():
            tallies.restore(key, each, self._form)
        self.put_back(tallies)
