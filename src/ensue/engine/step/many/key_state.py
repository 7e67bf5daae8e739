"""What a group holds under one key, and the way of one rule's state into its cell and back.

Loops know keys and events by number. `KeyState` has the numbers of a key's cells, the events that
these cells may bind, and how many outputs each rule has put out at the present time, for their ids.

`Exchange` takes an instance of a rule that ran by itself, or was restored from a snapshot, into a
cell with the same state, and the other way round. So rules join a group and leave it at any time,
and a snapshot of a group is a snapshot of its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ensue.engine.core.instances.ecl import EclRunner
from ensue.engine.core.instances.filters import TabledFilter, WindowedFilter
from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import ORIGIN, OrderedState
from ensue.engine.core.packed import DUE, LAST_READ, NEXT_DUE
from ensue.engine.core.rule_table import RuleTable
from ensue.engine.ports import key_text
from ensue.engine.step.many.cells import GroupCells
from ensue.events.event import Event
from ensue.lang.syntax import TimerPort
from ensue.machine.stepping import NOW

FEWEST_EVENTS = 32
"""How many events a key keeps before it pays to look for events that are no longer bound."""

CellFiring = Sequence[int]
"""The number of a rule, its action, and what is bound in each place (`kernels`)."""

OutputCounts = dict[int, int]
"""How much each rule has put out, by its number."""


class KeyState:
    """A key of a group. `where` has the number of each rule's cell, 0 for a rule at its start.

    `events` has, by their numbers, events that may be bound in a cell. `emitted` counts what rules
    have put out at `time`, by trigger.
    """

    __slots__ = (
        "emitted",
        "events",
        "key",
        "key_text",
        "most_events",
        "number",
        "time",
        "where",
    )

    def __init__(self, key: FastKey, number: int, rules: int) -> None:
        self.key = whole_key(key)
        self.key_text = key_text(self.key)
        self.number = number
        self.where = np.zeros(rules, np.uint32)
        self.events: dict[int, Event] = {}
        self.most_events = FEWEST_EVENTS
        self.time: int | None = None
        self.emitted: dict[str, OutputCounts] = {}

    def keep(self, number: int, event: Event) -> None:
        """Keep an event of an instance in place of its id."""
        known = self.events.get(number)
        if known is None or known.type == "":
            self.events[number] = event

    def forget_unbound(self, is_bound: Callable[[Any, Any], Any]) -> None:
        """Keep only the events that are bound in some cell."""
        numbers = np.sort(np.fromiter(self.events, np.int64, len(self.events)))
        kept = numbers[is_bound(self.where, numbers)].tolist()
        events = self.events
        self.events = {number: events[number] for number in kept}
        self.most_events = max(FEWEST_EVENTS, 4 * len(kept))

    def counts(self, time: int, trigger: str) -> OutputCounts:
        """How much rules have put out at a trigger so far, to be counted on."""
        if self.time != time:
            self.time = time
            self.emitted = {}
        return self.emitted.setdefault(trigger, {})

    def emitted_by(self, rule: int) -> dict[str, int]:
        """How much one rule has put out at `time`, by trigger."""
        return {trigger: n for trigger, by in self.emitted.items() if (n := by.get(rule, 0))}

    def renumber(self, numbers: Any, rules: int) -> None:
        """Give rules other numbers, by their old numbers; -1 for rules that are gone."""
        before = self.where
        self.where = np.zeros(rules, np.uint32)
        stays = numbers >= 0
        self.where[numbers[stays]] = before[stays]
        self.emitted = {
            trigger: {int(numbers[rule]): n for rule, n in by.items() if numbers[rule] >= 0}
            for trigger, by in self.emitted.items()
        }


CellRunner = TabledFilter | WindowedFilter | EclRunner


class Exchange:
    """The cells of one rule: its number, the number of its shape, and its timer ports."""

    def __init__(
        self, cells: GroupCells, rule: int, shape: int, timers: Sequence[TimerPort]
    ) -> None:
        self._cells = cells
        self._rule = rule
        self._shape = shape
        self._timers = timers

    @property
    def _table(self) -> RuleTable:
        return self._cells.tables.tables[self._shape]

    @property
    def _timed_at(self) -> int:
        return 1 + self._table.slots

    # --- into a cell ------------------------------------------------------------------------------

    def take_in(self, instance: CellRunner, state: KeyState) -> None:
        """Give the rule a cell in which it stands as its instance does, unless at its start."""
        cells = self._cells
        if isinstance(instance, WindowedFilter):
            at, times = cells.tables.number_of_starts(self._shape, instance.active)
        else:
            at, times = cells.tables.number_of(self._shape, instance.row.active), []
        if at == 0:
            return
        cells.fit()
        cell, words = cells.new(self._rule, state.number)
        state.where[self._rule] = cell
        first = cells.tables.fixed_width(self._shape)
        words[0], words[first : first + len(times)] = at, times
        if not isinstance(instance, EclRunner):
            facts = instance.facts
            for place, numbered in enumerate(instance.places):
                if numbered is None or not instance.is_active(facts.bound_states[place]):
                    continue
                number, what = numbered
                if isinstance(what, int):
                    words[1 + place] = what
                else:
                    words[1 + place] = number
                    state.keep(number, what)
        due = self._due_times(instance)
        if due:
            running, timed = self._table.running(at), self._timed_at
            runs = (each for timer, each in enumerate(due) if running >> timer & 1)
            words[timed + NEXT_DUE] = min(runs, default=FAR)
            words[timed + LAST_READ] = instance.last_read
            words[timed + DUE : timed + DUE + len(due)] = due

    def _due_times(self, instance: CellRunner) -> list[int]:
        """When each timer of the shape is due, of this rule."""
        timers = self._table.timers
        due = [instance.timers_due[port.name] for port in self._timers]
        timeouts = instance.timeouts if isinstance(instance, EclRunner) else {}
        return due + [timeouts.get(timer.state, FAR) for timer in timers.timeouts]

    # --- out of a cell ----------------------------------------------------------------------------

    def take_out(self, instance: CellRunner, state: KeyState) -> None:
        """Put an instance of the rule, which is at its start, to where the rule stands."""
        cell = int(state.where[self._rule])
        words = self._cells.of(cell) if cell else [0]
        at = self._cells.tables.state_of(self._shape, words[0])
        if isinstance(at, OrderedState):
            assert isinstance(instance, WindowedFilter)
            first = self._cells.tables.fixed_width(self._shape)
            instance.active = {
                each: NOW if register == ORIGIN else words[first + register]
                for each, register in at.registers.items()
            }
        else:
            assert isinstance(instance, TabledFilter | EclRunner)
            instance.row = instance.rows.row_of(at.active)
        if cell:
            self._take_out_bound(instance, state, words)
            self._take_out_timers(instance, words)

    def _take_out_bound(self, instance: CellRunner, state: KeyState, words: list[int]) -> None:
        if isinstance(instance, EclRunner):
            return
        facts, clocks = instance.facts, {port.name for port in self._timers}
        held = {
            place: words[1 + place]
            for place, bound in facts.bound_states.items()
            if instance.is_active(bound)
        }
        fired = sorted({time for place, time in held.items() if facts.ports[place] in clocks})
        for place, what in held.items():
            if facts.ports[place] in clocks:
                # A firing has no number of its own: those of a port are told apart by their times.
                instance.places[place] = (fired.index(what), what)
            else:
                instance.places[place] = (what, state.events[what])

    def _take_out_timers(self, instance: CellRunner, words: list[int]) -> None:
        timers, timed = self._table.timers, self._timed_at
        if not len(timers):
            return
        instance.last_read = words[timed + LAST_READ]
        due = words[timed + DUE :]
        instance.timers_due = {port.name: due[n] for n, port in enumerate(self._timers)}
        if isinstance(instance, EclRunner):
            running = self._table.running(words[0])
            instance.timeouts = {
                timer.state: due[n]
                for n, timer in enumerate(timers.timeouts, len(self._timers))
                if running >> n & 1
            }
