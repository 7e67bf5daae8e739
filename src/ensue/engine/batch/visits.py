"""The states of many rules with windows, each of which is visited by the events that it reads.

In come the lists that the rows of a batch are in (`row_lists`), their keys and their times; out go
firings, a limited number at a time. A rule has a *cell* under each key: its state, and registers
with the times of its starts, as `ordered` has them. Of a combination of lists (`combinations`) it
is worked out once which rules read it, and which letter each of them reads; an event goes through
their cells, and all other rules cost it nothing. The events of one key go one after the other, as
its cells are in the cache then: a key cannot tell, and firings are put in order.

What a port is bound to is not kept for each rule: with labels that are never aborted, a port that
is bound to the last event of its stretch is bound to the last that it wants under its key, whoever
asks. Windows change nothing in that: where the last event has left the window, nothing is bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import firing_kernels, rule_kernels, visit_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.combinations import Combinations
from ensue.engine.batch.correlations import TABLE_STATES
from ensue.engine.batch.last_events import LastEvents
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.texts import read_only
from ensue.engine.batch.visit_tables import VisitTables
from ensue.engine.batch.walks import EVENTS_AN_ENTRY, FREE_ENTRIES, Firings, Patience, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.effects import Action
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.window_table import FIRST_REGISTER, FilledWindow

FIRINGS_AT_ONCE = 1 << 17
FEWEST_ROWS, FIRST_ROWS, MOST_ROWS = 1 << 7, 1 << 12, 1 << 18
"""How many rows go through at once: more of them as long as little fires and tables are full."""
MOST_COMBINATIONS = 1 << 14
MOST_NUMBERS = 1 << 27
"""Past so many numbers in the cells of all keys and rules, most are of rules that nobody is in."""
_SHARED_ENTRIES = 8
"""An entry serves all rules of a shape: where there are several, there may be so many more."""
_MOMENTS_A_WINDOW = 8
_NO_ALARMS, _NO_TIMES = np.empty(0, np.int64), np.empty((0, 3), np.int64)

Instants = npt.NDArray[np.int64]


class VisitedStates:
    """`lists` are those of each rule's ports; those past its ports are of no list."""

    def __init__(self, tables: VisitTables, lists: npt.NDArray[np.int64], list_count: int) -> None:
        self.tables = tables
        self.rules = len(lists)
        self.table_states = TABLE_STATES
        self._combinations = Combinations(lists, list_count, MOST_COMBINATIONS)
        self._last = LastEvents(np.where(lists < list_count, lists, 0), list_count)
        self._cells = np.zeros((0, self.rules, 1 + tables.registers), np.int64)
        self._patience = [
            Patience(FREE_ENTRIES * min(_SHARED_ENTRIES, int(count)))
            for count in np.bincount(tables.shape_of)
        ]
        self.impatient: set[int] = set()
        """The rules whose tables keep growing, or all if there are too many keys: they are better
        off on their own."""
        self.most_numbers = MOST_NUMBERS
        self._is_plain = self._plain_rules()
        self._aside = np.empty((self.rules, 2), np.int64)
        self._key_count = 0
        self._rows_at_once = FIRST_ROWS
        self._latest: int | None = None
        self._moments: list[tuple[int, int]] = []
        """A reading, and a time at which or before which all earlier ones came."""
        self._forget_visits()

    def _plain_rules(self) -> npt.NDArray[np.bool_]:
        """For each rule whether it has no window: it costs less to visit."""
        plain = [not isinstance(each, FilledWindow) for each in self.tables.filled]
        return np.array(plain, np.bool_)[self.tables.shape_of]

    def _forget_visits(self) -> None:
        self._forgotten = self._combinations.forgotten
        self._listed = 0
        self._visit_from = np.zeros(MOST_COMBINATIONS + 1, np.int64)
        self._plain_from = np.zeros(MOST_COMBINATIONS + 1, np.int64)
        self._visited = np.zeros(0, np.int32)
        self._letters = np.zeros(0, np.uint8)

    @property
    def size(self) -> int:
        """How many numbers its cells have."""
        return self._cells.size

    @property
    def places(self) -> int:
        return self._last.last.size

    @property
    def has_room(self) -> bool:
        """Whether there can be a cell of each rule for every key that is numbered."""
        return self._key_count * self.rules * (1 + self.tables.registers) <= self.most_numbers

    def grow(self, key_count: int) -> None:
        """Have a cell of each rule for every key, with all registers; if there is room for that."""
        self._key_count = max(self._key_count, key_count)
        before, rules, width = self._cells.shape
        wanted = 1 + self.tables.registers
        size = before
        if key_count > before and self.has_room:
            size = max(key_count, 2 * before)
        if size > before or wanted > width:
            # Zeros that nobody has written to take no memory.
            cells = np.zeros((size, rules, wanted), np.int64)
            cells[:before, :, :width] = self._cells
            self._cells = cells
        if size > before:
            self._last.grow(size)

    def read(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: Instants,
        key_count: int,
        before: int,
        without: Any,
    ) -> Iterator[tuple[Firings, int]]:
        """What fires, and up to which row; ends early where rules become `impatient`.

        `without` counts for each rule the rows that it would read, if they had a key.
        """
        self.grow(key_count)
        known, count = self._combinations, len(keys)
        times = read_only(times)
        if not self.has_room:
            self.impatient = set(range(self.rules))
            return
        if count:
            self._note_moment(before, int(times[0]))
        marks = known.mark(lists, count)
        numbers = np.empty(count, np.int32)
        at = 0
        while at < count:
            end = known.number(marks, at, numbers)
            self._list_visits()
            gone = (keys[at:end] < 0) & (numbers[at:end] >= 0)
            if gone.any():
                known.count_rules(numbers[at:end][gone], without)
            while at < end:
                begin, at = at, min(end, at + self._rows_at_once)
                firings = self._walk(numbers, keys, times, slice(begin, at), before)
                self._latest = int(times[at - 1])
                yield firings, at
                if self.impatient:
                    return

    def _note_moment(self, before: int, time: int) -> None:
        """Know, now and then, which readings came at a time or before."""
        moments, longest = self._moments, self.tables.longest
        if longest is None:
            return
        if not moments or time - moments[-1][1] > longest // _MOMENTS_A_WINDOW:
            moments.append((before, time))
        while len(moments) > 1 and moments[1][1] < time - longest:
            del moments[0]

    def _list_visits(self) -> None:
        """Know of every combination which rules read it."""
        known = self._combinations
        if self._forgotten != known.forgotten:
            self._forget_visits()
        while True:
            self._listed = visit_kernels.list_visits(
                known.entry_from, known.words, known.letters, known.masks, self._is_plain,
                self._listed, known.count, self._visit_from, self._plain_from,
                self._visited, self._letters,
            )  # fmt: skip
            if self._listed == known.count:
                return
            room = 2 * (int(self._visit_from[self._listed]) + 64 * self.rules)
            self._visited = taller(self._visited, room, 0)
            self._letters = taller(self._letters, room, 0)

    def _walk(
        self, numbers: Numbers, keys: Numbers, times: Instants, rows: slice, before: int
    ) -> Firings:
        """What fires in some rows."""
        known, tables, last = self._combinations, self.tables, self._last
        order = by_key(keys[rows], len(self._cells)) + rows.start
        out = _Fired(max(FIRINGS_AT_ONCE, 2 * self.rules), last.list_of.shape[1])
        at = visit = fired = 0
        made = tables.entries_made
        while True:
            at, visit, fired = visit_kernels.walk_visits(
                order, numbers, keys, times, at, visit,
                self._visit_from, self._plain_from, self._visited, self._letters,
                known.list_from, known.lists, tables.rules, tables.moves, self._cells,
                last.last, last.list_of, last.restored, before,
                out.rules, out.at, out.actions, out.ports, fired, self._is_plain, self._aside,
            )  # fmt: skip
            if at == len(order):
                break
            if visit < 0:
                visit = 0
                out.grow()
            else:
                self._fill(int(order[at]), visit, numbers, keys)
        self._adapt(len(order), fired, tables.entries_made - made)
        in_turn = firing_kernels.order_firings(
            out.at, fired, times[rows], rows.start, _NO_ALARMS, _NO_TIMES
        )
        return out.firings(in_turn, tables.put_out.table)

    def _fill(self, row: int, visit: int, numbers: Numbers, keys: Numbers) -> None:
        """Work out the move that was lacking at a visit."""
        place = int(self._visit_from[numbers[row]]) + visit
        rule = int(self._visited[place])
        self.tables.fill(rule, int(self._cells[keys[row], rule, 0]), int(self._letters[place]))
        self.grow(0)

    def _adapt(self, rows: int, fired: int, made: int) -> None:
        """Choose how many rows go through at once; say whose tables have grown too much."""
        if made * EVENTS_AN_ENTRY > rows or fired > FIRINGS_AT_ONCE:
            self._rows_at_once = max(FEWEST_ROWS, self._rows_at_once // 2)
        elif 2 * fired < FIRINGS_AT_ONCE:
            self._rows_at_once = min(MOST_ROWS, self._rows_at_once * 2)
        for shape, (table, patience) in enumerate(
            zip(self.tables.filled, self._patience, strict=True)
        ):
            patience.events += rows
            if patience.is_over(table, 0) or len(table.known) > self.table_states:
                self.impatient |= set(np.flatnonzero(self.tables.shape_of == shape).tolist())

    # --- one rule at a time -----------------------------------------------------------------------

    def stop(self, rule: int) -> None:
        """Leave a rule out from now on."""
        self.impatient.discard(rule)
        self.tables.stop(rule)
        self._cells[:, rule] = 0

    def walk_of(self, rule: int) -> TableWalk | WindowWalk:
        """The states and places of one rule, on their own, without what has left its window."""
        table, cells = self.tables.table_of(rule), self._cells[:, rule]
        walk: TableWalk | WindowWalk
        if isinstance(table, FilledWindow):
            walk = self._window_walk(table, self.tables.window_of(rule), cells)
        else:
            walk = TableWalk(table)
            walk.grow(max(len(cells), self._key_count))
            walk.states[: len(cells)] = cells[:, 0]
        for place, port in self._ports_of_places(rule):
            walk.places[: len(cells), place] = self._last.of(rule, port)
        return walk

    def _window_walk(self, table: FilledWindow, window: int, cells: Instants) -> WindowWalk:
        walk = WindowWalk(table, window)
        walk.grow(max(len(cells), self._key_count))
        walk.states[: len(cells)] = cells[:, 0]
        end = FIRST_REGISTER + cells.shape[1] - 1
        walk.widen(end)
        walk.registers[: len(cells), FIRST_REGISTER:end] = cells[:, 1:]
        if self._latest is not None:
            walk.drop_expired(self._latest)
        return walk

    def put(self, rule: int, walk: TableWalk | WindowWalk) -> None:
        """Take one rule back, of which some keys were restored. Nothing has been read yet."""
        self.tables.fit(int(self.tables.shape_of[rule]))
        self.grow(len(walk.states))
        cells = self._cells[: len(walk.states), rule]
        cells[:, 0] = walk.states
        if isinstance(walk, WindowWalk):
            held = walk.registers[:, FIRST_REGISTER : FIRST_REGISTER + cells.shape[1] - 1]
            cells[:, 1 : 1 + held.shape[1]] = held
        bound = walk.bound() & (walk.places > 0)
        for place, port in self._ports_of_places(rule):
            readings = np.where(bound[:, place], walk.places[:, place], 0)
            self._last.restore(rule, port, readings)

    def _ports_of_places(self, rule: int) -> list[tuple[int, int]]:
        branches = self.tables.table_of(rule).machine_table.machine.branches
        number, shape = self.tables.put_out.port_number, int(self.tables.shape_of[rule])
        return [(place, number(shape, port)) for b in branches for place, port, _ in b.places]

    def held(self) -> Rows:
        """The readings that some rule may still be bound to, sorted, each once."""
        if self._latest is not None and self.tables.longest is not None:
            edge = self._latest - self.tables.longest
            past = [reading for reading, time in self._moments if time < edge]
            if past:
                self._last.forget_before(past[-1])
        return self._last.held()


def by_key(keys: Numbers, count: int) -> Rows:
    """The rows in the order of their keys, rows of one key in their own."""
    if count > 4 * len(keys):
        return np.argsort(keys, kind="stable")
    order, _ = rule_kernels.rows_by_key(keys, count)
    return np.asarray(order, np.int64)


class _Fired:
    """Arrays that firings are written to."""

    def __init__(self, size: int, ports: int) -> None:
        self.rules = np.empty(size, np.int64)
        self.at = np.empty(size, np.int64)
        self.actions = np.empty(size, np.int64)
        self.ports = np.empty((size, ports), np.int64)

    def grow(self) -> None:
        size = 2 * len(self.at)
        self.rules = taller(self.rules, size, 0)
        self.at = taller(self.at, size, 0)
        self.actions = taller(self.actions, size, 0)
        self.ports = taller(self.ports, size, 0)

    def firings(self, order: Rows, table: Sequence[Action]) -> Firings:
        """Those that are named, in this order."""
        rules, rows, actions, bound = firing_kernels.take_firings(
            order, self.rules, self.at, self.actions, self.ports
        )
        return Firings(rows, actions, bound, table, rules)
