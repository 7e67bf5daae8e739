"""The states of many rules with timers, each of which is visited by events and by its own alarms.

`visits` for rules that have due times. A cell has, after the state and the registers of a rule
under a key: when the next of its timers is due, which reading has started it, when each of its
timers is due, and when each timer port has fired last. What a timer does concerns its own cell, so
alarms are fired when a cell is visited next, or when the rows that go through at once are at their
end; then all firings are put in the order of the stream. For each key it is known when the first
alarm of any of its rules is due at the earliest, so that a clock that goes on looks at few cells.

A firing of a timer port is bound by its time, which is all that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import alarm_kernels, firing_kernels
from ensue.engine.batch.alarm_tables import AlarmTables
from ensue.engine.batch.column import Rows
from ensue.engine.batch.last_events import LastEvents
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.texts import read_only
from ensue.engine.batch.timed_walk import TimedWalk
from ensue.engine.batch.visits import FIRINGS_AT_ONCE, Instants, VisitedStates, by_key
from ensue.engine.batch.walks import TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.effects import Action
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.timer_table import FilledTimed
from ensue.engine.core.window_table import FIRST_REGISTER

_EARLIER = 2**61
"""Keys that had started before a snapshot come before all that start after it."""


@dataclass(frozen=True, slots=True)
class AlarmFirings:
    """Firings in the order of the stream. `rows` is -1 for an alarm.

    `times` are those of the trigger, and `starts` say of alarms which key has started first.
    """

    rules: Rows
    rows: Rows
    actions: Rows
    ports: npt.NDArray[np.int64]
    times: Instants
    starts: Rows
    keys: Rows
    table: Sequence[Action]


class AlarmedStates(VisitedStates):
    """`bound_of` says of each rule and port which list it is of, or -1 - n for its timer n."""

    tables: AlarmTables

    def __init__(
        self,
        tables: AlarmTables,
        lists: npt.NDArray[np.int64],
        list_count: int,
        bound_of: npt.NDArray[np.int64],
    ) -> None:
        super().__init__(tables, lists, list_count)
        self._bound_of = bound_of
        self._last = LastEvents(np.maximum(bound_of, 0), list_count)
        self._binds = any(each.places for each in tables.filled)
        if not self._binds:
            # Nobody asks for the last events of lists, so they are not noted either.
            self._bound_of = np.zeros((self.rules, 0), np.int64)
            self._last = LastEvents(self._bound_of, 1)
        self._nearest = np.full(0, FAR, np.int64)
        self._earliest = np.full(1, FAR, np.int64)
        self._asked = np.zeros(3, np.int64)
        self.moments: Callable[[Rows], Instants] = _no_moments
        self.readings: Callable[[Instants], Rows] = _no_moments
        self.grow(0)

    @property
    def _width(self) -> int:
        """A cell: state, registers, next due time, start, due times, last firings of ports."""
        return 1 + self.tables.registers + self._timed_width

    @property
    def _timed_width(self) -> int:
        return 2 + self.tables.after.shape[1] + int(self.tables.timers[:, 1].max())

    @property
    def has_room(self) -> bool:
        return self._key_count * self.rules * self._width <= self.most_numbers

    def grow(self, key_count: int) -> None:
        self._key_count = max(self._key_count, key_count)
        before, rules, width = self._cells.shape
        wanted = self._width
        size = before
        if key_count > before and self.has_room:
            size = max(key_count, 2 * before)
        if size > before or wanted > width:
            cells = np.zeros((size, rules, wanted), np.int64)
            if before:
                timed = self._timed_width
                cells[:before, :, : width - timed] = self._cells[:, :, :-timed]
                cells[:before, :, -timed:] = self._cells[:, :, -timed:]
            self._cells = cells
        if size > before:
            self._last.grow(size)
            self._nearest = taller(self._nearest, size, FAR)

    def next_due(self) -> int | None:
        """When the first timer of any rule is due."""
        if not self._nearest.size:
            return None
        first = int(self._nearest.argmin())
        if self._due_of(slice(first, first + 1))[0] != self._nearest[first]:
            # A timer that was to be the first has been stopped since.
            self._nearest = self._due_of(slice(None))
        nearest = int(self._nearest.min())
        return None if nearest == FAR else nearest

    def _due_of(self, keys: slice) -> Instants:
        """When the first timer of each key is due."""
        due, states = self._cells[keys, :, self._next_at], self._cells[keys, :, 0]
        return np.asarray(np.where(states != 0, due, FAR).min(axis=1))

    @property
    def _next_at(self) -> int:
        return 1 + self.tables.registers

    def read_until(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: Instants,
        key_count: int,
        before: int,
        without: Any,
        clock: int | None,
    ) -> Iterator[tuple[AlarmFirings, int]]:
        """What fires, and up to which row; then the clock goes on, if no rule is `impatient`."""
        for _, read in self.read(lists, keys, times, key_count, before, without):
            yield self._found, read
            if self.impatient:
                return
        if clock is not None and not self.impatient and self._earliest[0] <= clock:
            out = _Alarmed(FIRINGS_AT_ONCE, self._bound_of.shape[1])
            if self._advance(clock, out, 0):
                self._latest = clock if self._latest is None else max(self._latest, clock)
                yield out.in_order(times[:0], 0, self.tables.put_out.table), len(keys)

    def _walk(
        self, numbers: Numbers, keys: Numbers, times: Instants, rows: slice, before: int
    ) -> Any:
        known, tables, last = self._combinations, self.tables, self._last
        order = by_key(keys[rows], len(self._cells)) + rows.start
        out = _Alarmed(max(FIRINGS_AT_ONCE, 2 * self.rules), self._bound_of.shape[1])
        at = visit = fired = 0
        made = tables.entries_made
        while True:
            at, visit, lacking, fired = alarm_kernels.walk_alarmed(
                order, numbers, keys, times, at, visit,
                self._visit_from, self._visited, self._letters, known.list_from, known.lists,
                tables.rules, tables.timers, tables.after, tables.moves, tables.registers,
                self._cells, self._nearest, self._earliest,
                last.last, self._bound_of, last.restored, self._binds, before, self._asked,
                out.rules, out.rows, out.actions, out.ports, out.when, fired,
            )  # fmt: skip
            if at == len(order):
                break
            self._mend(lacking, out)
        fired = self._advance(int(times[rows.stop - 1]), out, fired)
        self._adapt(len(order), fired, tables.entries_made - made)
        self._found = out.in_order(times[rows], rows.start, tables.put_out.table)
        return self._found

    def _advance(self, clock: int, out: _Alarmed, fired: int) -> int:
        """Let the clock go on for all keys; how many firings there are by then."""
        tables, last, key = self.tables, self._last, 0
        out.count = fired
        if self._earliest[0] > clock:
            return fired
        while True:
            key, lacking, fired = alarm_kernels.advance_clock(
                clock, key, len(self._cells),
                tables.rules, tables.timers, tables.after, tables.moves, tables.registers,
                self._cells, self._nearest, self._earliest,
                last.last, self._bound_of, last.restored, self._asked,
                out.rules, out.rows, out.actions, out.ports, out.when, fired,
            )  # fmt: skip
            if lacking == alarm_kernels.DONE:
                out.count = fired
                return fired
            self._mend(lacking, out)

    def _mend(self, lacking: int, out: _Alarmed) -> None:
        if lacking == alarm_kernels.LACKS_ROOM:
            out.grow()
        else:
            self.tables.fill(*self._asked.tolist())
            self.grow(0)

    # --- one rule at a time -----------------------------------------------------------------------

    def walk_of(self, rule: int) -> TimedWalk:
        table, cells = self.tables.table_of(rule), self._cells[:, rule]
        assert isinstance(table, FilledTimed)
        walk = TimedWalk(table, self.tables.window_of(rule))
        walk.grow(max(len(cells), self._key_count))
        here = slice(0, len(cells))
        walk.states[here] = cells[:, 0]
        registers = self._next_at - 1
        walk.widen(FIRST_REGISTER + registers)
        walk.registers[here, FIRST_REGISTER : FIRST_REGISTER + registers] = cells[
            :, 1 : self._next_at
        ]
        if self._latest is not None:
            walk.drop_expired(self._latest)
        timers = len(table.timers)
        due_at = self._next_at + 2
        started = np.flatnonzero(cells[:, 0])
        walk.due[here] = cells[:, due_at : due_at + timers]
        walk.next_due[started] = cells[started, self._next_at]
        walk.numbers[started[np.argsort(cells[started, self._next_at + 1])]] = np.arange(
            len(started)
        )
        walk.started_count = len(started)
        bound = walk.bound()[here]
        for place, port in self._ports_of_places(rule):
            of = int(self._bound_of[rule, port])
            if of >= 0:
                walk.places[here, place] = self._last.of(rule, port)
                continue
            holding = np.flatnonzero(bound[:, place])
            if holding.size:
                fired = cells[holding, self._fired_at - 1 - of]
                walk.places[holding, place] = self.readings(fired)
        return walk

    @property
    def _fired_at(self) -> int:
        return self._next_at + 2 + self.tables.after.shape[1]

    def put(self, rule: int, walk: TableWalk | WindowWalk) -> None:
        assert isinstance(walk, TimedWalk), "what is here has timers"
        self.tables.fit(int(self.tables.shape_of[rule]))
        self.grow(len(walk.states))
        cells = self._cells[: len(walk.states), rule]
        cells[:, 0] = walk.states
        held = walk.registers[:, FIRST_REGISTER : FIRST_REGISTER + self._next_at - 1]
        cells[:, 1 : 1 + held.shape[1]] = held
        cells[:, self._next_at] = walk.next_due
        cells[:, self._next_at + 1] = walk.numbers - _EARLIER
        due_at = self._next_at + 2
        cells[:, due_at : due_at + walk.due.shape[1]] = walk.due
        count = len(walk.states)
        self._nearest[:count] = np.minimum(self._nearest[:count], walk.next_due)
        self._earliest[0] = min(self._earliest[0], int(self._nearest.min(initial=FAR)))
        bound = walk.bound() & (walk.places > 0)
        lately = np.full((count, len(self._bound_of[rule])), -FAR, np.int64)
        for place, port in self._ports_of_places(rule):
            readings = np.where(bound[:, place], walk.places[:, place], 0)
            if self._bound_of[rule, port] >= 0:
                self._last.restore(rule, port, readings)
            elif readings.any():
                # Of several places of a port the last firing counts.
                held = np.flatnonzero(readings)
                fired = self.moments(readings[held])
                lately[held, port] = np.maximum(lately[held, port], fired)
        for port in np.flatnonzero(self._bound_of[rule] < 0).tolist():
            held = np.flatnonzero(lately[:, port] != -FAR)
            cells[held, self._fired_at - 1 - self._bound_of[rule, port]] = lately[held, port]


def _no_moments(readings: Any) -> Any:
    return np.zeros(len(readings), np.int64)


class _Alarmed:
    """Arrays that firings are written to: `when` has the time, the start of the key, the key."""

    def __init__(self, size: int, ports: int) -> None:
        self.count = 0
        self.rules = np.empty(size, np.int64)
        self.rows = np.empty(size, np.int64)
        self.actions = np.empty(size, np.int64)
        self.ports = np.empty((size, ports), np.int64)
        self.when = np.empty((size, 3), np.int64)

    def grow(self) -> None:
        size = 2 * len(self.rows)
        self.rules = taller(self.rules, size, 0)
        self.rows = taller(self.rows, size, 0)
        self.actions = taller(self.actions, size, 0)
        self.ports = taller(self.ports, size, 0)
        self.when = taller(self.when, size, 0)

    def in_order(self, times: Instants, first: int, table: Sequence[Action]) -> AlarmFirings:
        """All of them; the rows that were read begin with `first`, and are of these times."""
        order = self._order(times, first)
        rules, rows, actions, ports = firing_kernels.take_firings(
            order, self.rules, self.rows, self.actions, self.ports
        )
        return AlarmFirings(
            rules,
            rows,
            actions,
            ports,
            self.when[order, 0],
            self.when[order, 1],
            self.when[order, 2],
            table,
        )

    def _order(self, times: Instants, first: int) -> Rows:
        """Alarms by time, rule and start of the key, each before the first row of its time."""
        rows, fired = self.rows, self.count
        alarms, count = firing_kernels.order_alarms(rows, self.rules, self.when, fired)
        if count < 0:
            # Many of one moment, as those of a clock that has moved on far.
            alarms = np.flatnonzero(rows[:fired] < 0)
            times_of, starts = self.when[alarms, 0], self.when[alarms, 1]
            alarms = alarms[np.lexsort((starts, self.rules[alarms], times_of))]
            count = len(alarms)
        order = firing_kernels.order_firings(
            rows, fired, read_only(times), first, alarms[:count], self.when
        )
        return np.asarray(order, np.int64)
