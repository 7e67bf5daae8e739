"""The cells of many rules, each of which is visited by the events that it reads.

In come the row lists of a batch (`row_lists`), keys and times; out go firings, a limited number at
a time. Rows that are in the same lists have one *combination*. For each combination it is worked
out once which rules read it, and by which *letter*: a bit for each port of the rule that the event
matches. An event goes through the cells of these rules only. Events are read key by key, so that
the cells of a key stay in the cache; firings are put in the order of the stream afterwards
(`output.firings`). Where rules have timers, an alarm waits until an event visits its cell, or until
the end of the rows that go through at once.

The actions of all rules have one numbering (`GroupTables`): ports are named by their numbers, so
that equal statements of different rules are one. A slot of a timer port holds a time and not a
reading, and the name of the port says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import read_only
from ensue.engine.batch.many import row_lists
from ensue.engine.batch.many.row_lists import RowNumbers
from ensue.engine.batch.output import firings
from ensue.engine.batch.output.firings import Firings
from ensue.engine.batch.output.remembered import TIMER_PORT
from ensue.engine.core.cell_drivers import advance, visit, visit_timed
from ensue.engine.core.cell_step import DONE, LACKS_ROOM, Reached, VisitedEvents, Visits
from ensue.engine.core.cells import Cells, FiringRoom
from ensue.engine.core.effects import Action, PushedOutput, Sent, TriggerShape
from ensue.engine.core.numbering import Instants, Numbers, Rows, taller
from ensue.engine.core.packed import SLOTS, PackedTables
from ensue.engine.core.rule_table import EVENTS_A_MOVE, Patience, RuleTable
from ensue.engine.sizes import sizes
from ensue.lang.derived.renaming import numbered_ports, with_ports
from ensue.lang.syntax import Correlation, PushNew, TimerPort


class GroupTables(PackedTables):
    """Tables of many rules, whose actions have one numbering; `alike` has a rule of each shape."""

    def __init__(
        self,
        tables: Sequence[RuleTable],
        shape_of: Sequence[int],
        windows: Sequence[int | None],
        durations: Sequence[Sequence[int]],
        event_ports: Sequence[int],
        alike: Sequence[Correlation],
    ) -> None:
        self.actions: list[Action] = [()]
        """Every action by its number; 0 puts out nothing."""
        self._number_of: dict[Action, int] = {(): 0}
        self._numbers: list[dict[int, int]] = [{0: 0} for _ in tables]
        self._names = [numbered_ports(each) | _numbered_timers(each) for each in alike]
        super().__init__(tables, shape_of, windows, durations, event_ports)

    def _action(self, shape: int, action: int) -> int:
        """The number of a table's action in the numbering of all tables."""
        numbers = self._numbers[shape]
        if action not in numbers:
            table = self.tables[shape]
            named = tuple(self._by_number(shape, push) for push in table.actions[action])
            if named not in self._number_of:
                self._number_of[named] = len(self.actions)
                self.actions.append(named)
            numbers[action] = self._number_of[named]
        return numbers[action]

    def _by_number(self, shape: int, push: PushedOutput) -> PushedOutput:
        """An output with numbers for the names of its ports, and slots for their places."""
        names, slot_of = self._names[shape], self.tables[shape].slot_of
        bound = sorted(
            (names[port], tuple(slot_of[place] for place in places))
            for port, places in push.shape.bound
        )
        what: Any = push.what
        if isinstance(what, Sent):
            what = Sent(names[what.port], with_ports(what.extensions, names))
        elif isinstance(what, PushNew):
            what = with_ports(what, names)
        return PushedOutput(TriggerShape(push.shape.labels, tuple(bound)), what)


def _numbered_timers(correlation: Correlation) -> dict[str, str]:
    return {
        port.name: f"{TIMER_PORT}{number}"
        for number, port in enumerate(correlation.ports)
        if isinstance(port, TimerPort)
    }


MOST_VISITS = 1 << 24
"""Past so many visits of all combinations, fewer combinations are kept."""
_SHARED_MOVES = 8
"""A move serves all rules of a shape: where there are several, there may be so many more."""


class Combinations:
    """The combinations of row lists that occur, and which rules each combination visits.

    `lists` has the row list of each rule and port; a number past all lists stands for no port.
    """

    def __init__(self, lists: npt.NDArray[np.int64], list_count: int) -> None:
        rules, ports = lists.shape
        order = np.argsort(lists.ravel(), kind="stable")
        counts = np.bincount(lists.ravel(), minlength=list_count)
        self._reader_from = np.r_[0, np.cumsum(counts)].astype(np.int64)
        self._readers = np.column_stack([order // ports, order % ports])
        self._letters = np.zeros(rules, np.uint8)
        self._words = -(-list_count // 64)
        self.most = sizes().most_combinations
        self._count = 0
        self.visits = Visits(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))
        self._forget(rules)

    def _forget(self, visits: int) -> None:
        """Begin anew, with room for as many combinations as fit if each has so many visits."""
        self._room = max(sizes().fewest_combinations, min(self.most, MOST_VISITS // max(1, visits)))
        self._count = self._listed = 0
        self._slots = np.zeros(1 << (2 * self._room).bit_length(), np.int32)
        self._known = np.zeros((self._room, self._words), np.uint64)
        self._hashes = np.zeros(self._room, np.uint64)
        begins = np.zeros(self._room + 1, np.int64)
        self.visits = Visits(begins, self.visits.rules, self.visits.letters)

    def mark(self, lists: Sequence[RowNumbers], rows: int) -> Any:
        """For each row, the lists that it is in, as bits."""
        marks = np.zeros((rows, self._words), np.uint64)
        for number, each in enumerate(lists):
            row_lists.mark_rows(marks, each, number)
        return marks

    def number(self, marks: Any, first: int, out: Numbers) -> int:
        """Number the rows from `first` on, as far as there is room; returns how far that was."""
        if self._count == self._room:
            self._forget(-(-int(self.visits.begins[self._count]) // self._count))
        end, self._count = row_lists.number_marks(
            marks, first, out, self._slots, self._known, self._hashes, self._count
        )
        while self._listed < self._count:
            self._listed = row_lists.list_visits(
                self._known, self._listed, self._count, self._reader_from, self._readers,
                self._letters, self.visits,
            )  # fmt: skip
            if self._listed < self._count:
                begins, rules, letters = self.visits
                room = 2 * (int(begins[self._listed]) + len(self._letters))
                self.visits = Visits(begins, taller(rules, room), taller(letters, room))
        return int(end)

    def count_without_key(
        self, numbers: Numbers, keys: Numbers, first: int, end: int, counts: Any
    ) -> None:
        """Count for each rule the rows that it would read, if they had a key."""
        begins, rules, _ = self.visits
        row_lists.count_without_key(numbers, keys, first, end, begins, rules, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFirings(Firings):
    """Firings in the order of the stream; `at` is -1 for a firing that an alarm has caused.

    `times` are the times of triggers; for alarms, `last_read` has the last event of the key.
    """

    times: Instants
    last_read: Rows
    keys: Rows


class VisitedCells:
    """The cells of a group of rules, and the drivers that take events through them.

    `lists` has the row list of each rule and port; a number past all lists stands for no port.
    """

    def __init__(self, tables: GroupTables, lists: npt.NDArray[np.int64], list_count: int) -> None:
        self.tables = tables
        self.cells = Cells(tables)
        self.table_states = sizes().table_states
        self.most_numbers = sizes().numbers_in_cells
        self.impatient: set[int] = set()
        """The rules whose tables keep growing, or all if there are too many keys."""
        self.latest: int | None = None
        """The last moment that was read."""
        self._rules = len(lists)
        self._lists, self._list_count = lists, list_count
        self._combinations = Combinations(lists, list_count)
        self._visit = visit_timed if tables.has_timers else visit
        counts = np.bincount(tables.shape_of)
        self._patience = [
            Patience(sizes().free_moves * min(_SHARED_MOVES, int(count))) for count in counts
        ]
        self._asked = np.zeros(3, np.int64)
        self._key_count = 0
        self._rows_at_once = sizes().first_rows

    @property
    def has_room(self) -> bool:
        """Whether there can be a cell of each rule for every key that is numbered."""
        return self._rules == 1 or self._key_count * self.cells.stride <= self.most_numbers

    def grow(self, key_count: int) -> None:
        """Have a cell of each rule for every key, if there is room for that."""
        self._key_count = max(self._key_count, key_count)
        if self.has_room:
            self.cells.grow(key_count)

    def read(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: Instants,
        key_count: int,
        before: int,
        without: Any,
        clock: int | None,
    ) -> Iterator[tuple[Firings, int]]:
        """What fires, and up to which row; ends early where rules become `impatient`.

        `without` counts for each rule the rows that it would read, if they had a key. After the
        rows the clock goes on.
        """
        self.grow(key_count)
        known, count = self._combinations, len(keys)
        times = read_only(times)
        if not self.has_room:
            self.impatient = set(range(self._rules))
            return
        marks = known.mark(lists, count)
        numbers = np.empty(count, np.int32)
        at = 0
        while at < count:
            end = known.number(marks, at, numbers)
            known.count_without_key(numbers, keys, at, end, without)
            while at < end:
                begin, at = at, min(end, at + self._rows_at_once)
                firings = self._read_rows(numbers, keys, times, slice(begin, at), before)
                self.latest = int(times[at - 1])
                yield firings, at
                if self.impatient:
                    return
        if clock is not None and self.tables.has_timers and self.cells.earliest <= clock:
            room = self._room()
            fired = self._advance(clock, room, 0)
            if fired:
                self.latest = clock if self.latest is None else max(self.latest, clock)
                yield self._in_order(room, fired, times[:0], 0), count

    def _room(self) -> FiringRoom:
        size = max(sizes().firings_at_once, 2 * self._rules)
        return FiringRoom(size, int(self.tables.facts[:, SLOTS].max()), self.tables.has_timers)

    def _read_rows(
        self, numbers: Numbers, keys: Numbers, times: Instants, rows: slice, before: int
    ) -> Firings:
        """The firings of a slice of the rows."""
        order = by_key(keys[rows], self.cells.key_room) + rows.start
        events = VisitedEvents(order, numbers, keys, times, before)
        room = self._room()
        at = done = fired = 0
        made = self.tables.moves_made
        while True:
            at, done, lacking, fired = self._visit(
                events, Reached(at, done, fired), self._combinations.visits,
                self.tables.arrays, self.cells.arrays, self._asked, room.arrays,
            )  # fmt: skip
            if lacking == DONE:
                break
            self._mend(lacking, room)
        if self.tables.has_timers:
            fired = self._advance(int(times[rows.stop - 1]), room, fired)
        self._adapt(rows.stop - rows.start, fired, self.tables.moves_made - made)
        return self._in_order(room, fired, times[rows], rows.start)

    def _advance(self, clock: int, room: FiringRoom, fired: int) -> int:
        """Fire what is due up to a time under all keys; how many firings there are by then."""
        if self.cells.earliest > clock:
            return fired
        key = 0
        while True:
            key, lacking, fired = advance(
                clock, key, self.cells.key_room, self.tables.arrays, self.cells.arrays,
                self._asked, room.arrays, fired,
            )  # fmt: skip
            if lacking == DONE:
                return fired
            self._mend(lacking, room)

    def _mend(self, lacking: int, room: FiringRoom) -> None:
        """Provide what a driver has stopped at: room for firings, or a move of a table."""
        if lacking == LACKS_ROOM:
            room.grow()
        else:
            self.tables.fill(*self._asked.tolist())
            self.cells.fit()

    def _adapt(self, rows: int, fired: int, made: int) -> None:
        """Choose how many rows go through at once; find the tables that have grown too much."""
        if made * EVENTS_A_MOVE > rows or fired > sizes().firings_at_once:
            self._rows_at_once = max(sizes().fewest_rows, self._rows_at_once // 2)
        elif 2 * fired < sizes().firings_at_once:
            self._rows_at_once = min(sizes().most_rows, self._rows_at_once * 2)
        for shape, (table, patience) in enumerate(
            zip(self.tables.tables, self._patience, strict=True)
        ):
            patience.events += rows
            if patience.is_over(table, 0) or len(table.known) > self.table_states:
                self.impatient |= set(np.flatnonzero(self.tables.shape_of == shape).tolist())

    def _in_order(self, room: FiringRoom, fired: int, times: Instants, first: int) -> Firings:
        """The firings in the order of the stream; the rows read begin with `first`."""
        held = room.arrays
        alarms = _alarms_in_order(room, fired) if self.tables.has_timers else np.empty(0, np.int64)
        order = np.asarray(
            firings.order_firings(held.rows, fired, read_only(times), first, alarms, held.when)
        )
        rules, rows, actions, slots = firings.take_firings(
            order, held.rules, held.rows, held.actions, held.slots
        )
        table = self.tables.actions
        if not self.tables.has_timers:
            return Firings(rows, actions, slots, table, rules)
        when = held.when[order]
        return TimedFirings(
            rows, actions, slots, table, rules,
            times=when[:, 0], last_read=when[:, 1], keys=when[:, 2],
        )  # fmt: skip

    def stop(self, rule: int) -> None:
        """Leave a rule out from now on."""
        self.impatient.discard(rule)
        self.cells.of(rule).clear()
        self.tables.stop(rule)
        self.cells.fit()
        self._lists[rule] = self._list_count
        self._combinations = Combinations(self._lists, self._list_count)


def _alarms_in_order(room: FiringRoom, fired: int) -> Rows:
    """The firings of alarms by time, then by rule, then by the last event of their key."""
    held = room.arrays
    alarms = np.flatnonzero(held.rows[:fired] < 0)
    times, last_read = held.when[alarms, 0], held.when[alarms, 1]
    return np.asarray(alarms[np.lexsort((last_read, held.rules[alarms], times))])


def by_key(keys: Numbers, count: int) -> Rows:
    """The rows in the order of their keys; rows of one key keep their order."""
    if count > 4 * len(keys):
        return np.argsort(keys, kind="stable")
    order, _ = row_lists.rows_by_code(keys, count)
    return np.asarray(order, np.int64)
