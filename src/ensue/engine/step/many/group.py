"""Rules that read by one key and run in cells: one call takes an event through all of them.

In come rules with their shapes (`grouping`); rules of one shape share a packed table. A rule has
a number, its place among the rules of the group in the order of the library. Under a key, a rule
that has left its start has a *cell* (`cells`) with its state, the starts of what it has seen, the
events that are bound and its due times. An event is, to a group, a list of *visits*: the rules that
read it, each with a letter that says which of the rule's ports and predicates it matches. One call
of a compiled loop takes the event through the cells of these rules, and one call fires all alarms
up to a time under any key (`kernels`). The outputs of rules that have fired are for `outputs`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.engine.core.cell_limits import event_atoms
from ensue.engine.core.cell_step import LACKS_MOVE, LACKS_ROOM
from ensue.engine.core.instances.ecl import EclRunner
from ensue.engine.core.instances.filters import TabledFilter, WindowedFilter
from ensue.engine.core.instances.firing import Moment
from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.core.instances.rules import Rule
from ensue.engine.core.jit import FAR
from ensue.engine.counts import Counts
from ensue.engine.outputs import TIMER, Outputs
from ensue.engine.sizes import sizes
from ensue.engine.step.many.cells import GroupCells, StepTables
from ensue.engine.step.many.grouping import AlarmOrder, CellShape
from ensue.engine.step.many.kernels import (
    EVENT_COUNT,
    FIRED,
    FIRED_COUNT,
    LACKING_LETTER,
    LACKING_RULE,
    LACKING_STATE,
    LACKS_CELL,
    SLOT_COUNT,
    fire_until,
    visit,
)
from ensue.engine.step.many.key_state import CellRunner, Exchange, KeyState
from ensue.engine.step.many.outputs import GroupOutputs
from ensue.engine.timing.alarms import Sweeps, longest_wait
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.machine.model import PortAtom, PredicateAtom

Letters = tuple[Any, Any]
"""Numbers of rules, and for each the bits of its letter, as arrays."""


class StepGroup:
    """All rules in cells that read by the keys of these names.

    `outgrown` is called with each shape whose table keeps growing, since its rules are to leave.
    `earliest` is shared by all groups: a time before which none of their alarms is due.
    """

    def __init__(
        self,
        key_names: tuple[str, ...],
        outgrown: Callable[[CellShape], None],
        earliest: array[int],
    ) -> None:
        self.key_names = key_names
        self.keys: dict[FastKey, KeyState] = {}
        self.rules: list[Rule] = []
        self._outgrown = outgrown
        self._tables = StepTables()
        self._cells = GroupCells(self._tables, earliest)
        self._outputs = GroupOutputs(self._tables)
        self._shapes: dict[CellShape, int] = {}
        self._shape_of: list[int] = []
        self._numbers: dict[str, int] = {}
        self._port_bits = np.zeros(0, np.uint32)
        self._fired = np.zeros((FIRED, 0), np.int64)
        self._alarmed = np.zeros((FIRED, 0), np.int64)
        self._states: list[KeyState | None] = []
        self._free_numbers: list[int] = []
        self._sweeps = Sweeps(sizes().keys_before_a_sweep, None)
        self._types: TypeSystem | None = None
        self._start_moves: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def has_timers(self) -> bool:
        return self._cells.alarms is not None

    # --- rules that come and go -------------------------------------------------------------------

    def take(
        self, rules: Mapping[Rule, CellShape], staying: Container[str], types: TypeSystem
    ) -> None:
        """Go on with these rules, in this order; rules that stay keep their cells."""
        known = {rule.name: n for n, rule in enumerate(self.rules) if rule.name in staying}
        new_numbers = np.full(len(self.rules), -1, np.int64)
        for number, rule in enumerate(rules):
            if rule.name in known:
                new_numbers[known[rule.name]] = number
        self._free_cells_of(np.flatnonzero(new_numbers < 0).tolist())
        for rule, shape in rules.items():
            if shape not in self._shapes:
                self._shapes[shape] = self._tables.add_shape(rule)
        self.rules = list(rules)
        longest = longest_wait(rule.correlation for rule in rules)
        self._sweeps = Sweeps(sizes().keys_before_a_sweep, longest)
        self._types = types
        self._numbers = {rule.name: number for number, rule in enumerate(rules)}
        self._shape_of = [self._shapes[shape] for shape in rules.values()]
        self._tables.take_rules(self.rules, self._shape_of)
        self._outputs.set_rules([*self._numbers], types)
        for state in self.keys.values():
            state.renumber(new_numbers, len(self.rules))
        self._cells.renumber(new_numbers)
        self._cells.set_rules([rule.order for rule in rules])
        ports = [len(rule.ports.key_names) for rule in rules]
        self._port_bits = np.array([(1 << count) - 1 for count in ports], np.uint32)
        self._lay_out()
        # Compiled loops are loaded now, and not when the first event waits for its answer.
        self._visit(KeyState((), 0, len(rules)), self.visits_of(()), 0, 0)
        self.fire_until(-FAR, [])
        for rule in rules:
            rule.group = self
            if rule.instances:
                self._take_in(rule)
        self._cells.set_alarms()

    def _free_cells_of(self, rules: Sequence[int]) -> None:
        if rules:
            for state in self.keys.values():
                self._cells.free(state.where, rules)

    def _lay_out(self) -> None:
        """Have room in cells and firings for what the tables need by now."""
        self._cells.fit()
        width = FIRED + int(self._cells.control[SLOT_COUNT])
        if self._fired.shape != (width, len(self.rules)):
            self._fired = np.zeros((width, len(self.rules)), np.int64)
            self._alarmed = np.zeros((width + 3, sizes().alarms_at_once), np.int64)

    def _take_in(self, rule: Rule) -> None:
        """Take over the instances that a rule had by itself."""
        number = self._numbers[rule.name]
        exchange = self._exchange(rule)
        for key, instance in rule.instances.items():
            assert isinstance(instance, TabledFilter | WindowedFilter | EclRunner)
            state = self.keys.get(key) or self._begin(key)
            exchange.take_in(instance, state)
            outputs = instance.made_outputs
            time = None if outputs is None else outputs.time
            if outputs is None or time is None or (state.time or time) > time:
                continue
            for trigger, count in outputs.made.items():
                state.counts(time, trigger)[number] = count
        rule.instances.clear()
        self._lay_out()

    def _exchange(self, rule: Rule) -> Exchange:
        number = self._numbers[rule.name]
        return Exchange(self._cells, number, self._shape_of[number], rule.ports.timers)

    def instances_of(self, rule: Rule) -> dict[FastKey, CellRunner]:
        """The keys of one rule, as it would hold them by itself: for snapshots, and to leave."""
        number, exchange = self._numbers[rule.name], self._exchange(rule)
        assert self._types is not None
        found: dict[FastKey, CellRunner] = {}
        for key, state in self.keys.items():
            emitted = state.emitted_by(number)
            if not emitted and not state.where[number]:
                continue
            outputs = Outputs(rule.name, whole_key(key), bool(self.key_names), self._types)
            if emitted:
                outputs.time, outputs.made = state.time, emitted
            instance = rule.starter(rule.ports.timers, outputs, 0)
            assert isinstance(instance, TabledFilter | WindowedFilter | EclRunner)
            exchange.take_out(instance, state)
            found[key] = instance
        return found

    # --- what events are to its rules -------------------------------------------------------------

    def letter_bits(self, rule: Rule) -> dict[PortAtom | PredicateAtom, int]:
        """The bit of each port and predicate of a rule in its letters."""
        assert rule.machine is not None
        atoms = event_atoms(rule.correlation, rule.machine)
        return {atom: 1 << bit for bit, atom in enumerate(atoms)}

    def number_of(self, rule: Rule) -> int:
        return self._numbers[rule.name]

    def letters_of(self, bits: Mapping[int, int]) -> Letters:
        """Bits of letters by the numbers of rules, as arrays."""
        return np.array([*bits], np.int64), np.array([*bits.values()], np.uint32)

    def visits_of(self, parts: Iterable[Letters]) -> Any:
        """The visits of an event: each rule that a port matches, with the letter of all parts."""
        letters = np.zeros(len(self.rules), np.uint32)
        for numbers, bits in parts:
            letters[numbers] |= bits
        wanting = np.flatnonzero(letters & self._port_bits)
        return wanting.astype(np.uint32) << np.uint32(8) | letters[wanting]

    def is_noop(self, visits: Any) -> bool:
        """Whether no rule leaves its start, or puts something out, when it is visited so."""
        shapes = np.array(self._shape_of, np.int64)
        letters = visits.astype(np.int64) & 255
        asked = np.unique(shapes[visits >> np.uint32(8)] << 8 | letters)
        noop = all(self._start_move(x >> 8, x & 255) == (0, 0) for x in asked.tolist())
        self._lay_out()
        return noop

    def _start_move(self, shape: int, letter: int) -> tuple[int, int]:
        if (shape, letter) not in self._start_moves:
            self._start_moves[shape, letter] = self._tables.start_move(shape, letter)
        return self._start_moves[shape, letter]

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self,
        visits: Any,
        is_noop: bool,
        key: FastKey | None,
        numbered: tuple[int, Event],
        counts: Counts,
        made: list[Event],
    ) -> None:
        """Let the visited rules read an event; adds outputs in the order of the library."""
        if key is None:
            for rule in (visits >> np.uint32(8)).tolist():
                counts.without_key[self.rules[rule].name] += 1
            return
        number, event = numbered
        state = self.keys.get(key)
        if state is None:
            if is_noop:
                return
            if len(self.keys) >= self._sweeps.most_keys or event.time >= self._sweeps.due:
                self.sweep(event.time)
            state = self._begin(key)
        cells = self._cells
        found = visit(
            state.where, state.number, visits, event.time, number,
            cells.arrays, self._fired, cells.alarms,
        )  # fmt: skip
        if found < 0:
            self._provide(found, event.time)
            found = self._visit(state, visits, event.time, number)
        if found == 0:
            return
        state.events[number] = event
        if found > 1:
            firings = self._fired[:, : found >> 1].T.tolist()
            self._outputs.emit(state, firings, Moment(event.time, event.id), made)
        if len(state.events) > state.most_events:
            state.forget_unbound(self._cells.bound)

    def _visit(self, state: KeyState, visits: Any, now: int, number: int) -> int:
        cells = self._cells
        while True:
            found: int = visit(
                state.where, state.number, visits, now, number,
                cells.arrays, self._fired, cells.alarms,
            )  # fmt: skip
            if found >= 0:
                return found
            self._provide(found, now)

    def _provide(self, lacking: int, now: int) -> None:
        """Provide what a loop lacks: a move, a cell, a register, or room for firings."""
        cells = self._cells
        if lacking == LACKS_MOVE:
            rule, state, letter, events = cells.control[
                [LACKING_RULE, LACKING_STATE, LACKING_LETTER, EVENT_COUNT]
            ].tolist()
            shape = self._shape_of[rule]
            self._tables.fill(rule, state, letter)
            cells.refresh()
            if self._tables.outgrows(shape, events):
                self._outgrown(next(each for each, n in self._shapes.items() if n == shape))
        elif lacking == LACKS_CELL:
            if 2 * self._free_expired(now) < cells.room:
                cells.grow()
        else:
            self._lay_out()

    # --- keys -------------------------------------------------------------------------------------

    def _begin(self, key: FastKey) -> KeyState:
        if not self._free_numbers:
            self._free_numbers.append(len(self._states))
            self._states.append(None)
        number = self._free_numbers.pop()
        state = self.keys[key] = KeyState(key, number, len(self.rules))
        self._states[number] = state
        return state

    def _free_expired(self, now: int) -> int:
        """Free the cells that the window has emptied, and return their number."""
        owners = self._cells.free_expired(now)
        for rule, key in owners:
            state = self._states[key]
            assert state is not None, "a key with cells is there"
            state.where[rule] = 0
        return len(owners)

    def sweep(self, now: int) -> None:
        """Drop the keys under which every rule stands as before it started."""
        before = len(self.keys)
        self._free_expired(now)
        idle = [
            (key, state.number)
            for key, state in self.keys.items()
            if (state.time is None or state.time < now) and not state.where.any()
        ]
        for key, number in idle:
            del self.keys[key]
            self._states[number] = None
            self._free_numbers.append(number)
        self._sweeps.done(before, len(self.keys), now)

    # --- alarms -----------------------------------------------------------------------------------

    @property
    def earliest(self) -> int:
        """A time before which none of its alarms is due."""
        return self._cells.earliest

    def next_due(self) -> int | None:
        return self._cells.next_due()

    def fire_until(
        self, limit: int, made: list[Event], orders: list[AlarmOrder] | None = None
    ) -> None:
        """Fire all alarms that are due up to a time; adds outputs, and what orders each of them."""
        cells = self._cells
        if cells.alarms is None:
            return
        while True:
            count: int = fire_until(limit, cells.arrays, self._alarmed, cells.alarms)
            if count > 0:
                self._emit_alarms(self._alarmed[:, :count].T.tolist(), made, orders)
            elif count == LACKS_ROOM:
                cells.control[FIRED_COUNT] = 0
                self._emit_alarms(self._alarmed.T.tolist(), made, orders)
            elif count < 0:
                self._provide(count, limit)
            if count >= 0:
                return

    def _emit_alarms(
        self, firings: Sequence[list[int]], made: list[Event], orders: list[AlarmOrder] | None
    ) -> None:
        for firing in firings:
            rule, (time, key, last) = firing[0], firing[-3:]
            state = self._states[key]
            assert state is not None, "a key with cells is there"
            before = len(made)
            self._outputs.emit(state, [firing], Moment(time, TIMER), made)
            if orders is not None:
                orders += [(time, self.rules[rule].order, last)] * (len(made) - before)
