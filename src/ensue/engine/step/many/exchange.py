"""The state of one rule under one key on its way into a cell, and out of it.

In comes an instance of a rule that ran by itself, or was restored from a snapshot; out goes a cell
with the same state, and the other way round. So rules join a group and leave it at any time, and a
snapshot of a group is a snapshot of its rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.engine.core.instances.ecl import EclRunner
from ensue.engine.core.instances.filters import QuickWindow, TabledFilter
from ensue.engine.core.jit import FAR
from ensue.engine.core.packed import DUE, LAST_READ, NEXT_DUE
from ensue.engine.core.rule_table import RuleTable
from ensue.engine.core.window_table import ALWAYS, OrderedState
from ensue.engine.step.many.cells import Cells
from ensue.engine.step.many.key_state import KeyState
from ensue.lang.syntax import TimerPort
from ensue.machine.stepping import NOW

Runner = TabledFilter | QuickWindow | EclRunner


class Exchange:
    """The cells of one rule: its number, the number of its shape, and its timer ports."""

    def __init__(self, cells: Cells, rule: int, shape: int, timers: Sequence[TimerPort]) -> None:
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

    def take_in(self, instance: Runner, state: KeyState) -> None:
        """Give the rule a cell in which it stands as its instance does, unless at its start."""
        cells = self._cells
        if isinstance(instance, QuickWindow):
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
            for place, noted in enumerate(instance.places[: facts.place_count]):
                if noted is None or not instance.is_active(facts.bound_states[place]):
                    continue
                number, what = noted
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

    def _due_times(self, instance: Runner) -> list[int]:
        """When each timer of the shape is due, of this rule."""
        timers = self._table.timers
        due = [instance.timers_due[port.name] for port in self._timers]
        timeouts = instance.timeouts if isinstance(instance, EclRunner) else {}
        return due + [timeouts.get(timer.state, FAR) for timer in timers.timeouts]

    # --- out of a cell ----------------------------------------------------------------------------

    def take_out(self, instance: Runner, state: KeyState) -> None:
        """Put an instance of the rule, which is at its start, to where the rule stands."""
        cell = int(state.where[self._rule])
        words = self._cells.of(cell) if cell else [0]
        at = self._cells.tables.state_of(self._shape, words[0])
        if isinstance(at, OrderedState):
            assert isinstance(instance, QuickWindow)
            first = self._cells.tables.fixed_width(self._shape)
            instance.active = {
                each: NOW if register == ALWAYS else words[first + register]
                for each, register in at.registers.items()
            }
        else:
            assert isinstance(instance, TabledFilter | EclRunner)
            instance.row = instance.rows.row_of(at.active)
        if cell:
            self._take_out_bound(instance, state, words)
            self._take_out_timers(instance, words)

    def _take_out_bound(self, instance: Runner, state: KeyState, words: list[int]) -> None:
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

    def _take_out_timers(self, instance: Runner, words: list[int]) -> None:
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
