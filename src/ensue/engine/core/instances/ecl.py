"""ECL correlations on their tables: one instance for each key.

In come readings and firings of timers, as masks of atoms; out go the events that expressions push.
An instance holds its row of the table (`rows`) and when each timeout that is under way is due. What
the operators mean is defined in `ensue.engine.reference.ecl`, and compiled by `ensue.machine`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.engine.core.instances.firing import NumberedEvent
from ensue.engine.core.instances.keys import FastKey, KeyInstance, MachineFacts
from ensue.engine.core.instances.rows import Row, RowMove, RowTable
from ensue.engine.instance import ENDLESS
from ensue.engine.outputs import TIMER, Outputs
from ensue.engine.ports import Reading, mask_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.keys import key_places
from ensue.lang.syntax import EclCorrelation, TimerPort
from ensue.machine.model import Emit, Machine, State

_NO_TIMEOUTS: dict[State, int] = {}


class EclFacts(MachineFacts):
    """What all instances of an ECL correlation share."""

    def __init__(self, correlation: EclCorrelation, machine: Machine, types: TypeSystem) -> None:
        super().__init__(correlation, machine, types)
        self.key_places = key_places(correlation.clauses.by)


class EclRunner(KeyInstance):
    """An ECL correlation under one key. `timeouts` has the due times of timeouts under way."""

    __slots__ = ("facts", "row", "rows", "timeouts")

    def __init__(
        self,
        facts: EclFacts,
        rows: RowTable,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts: EclFacts = facts
        self.rows = rows
        self.row: Row = rows.first
        self.timeouts = (
            {timer.state: started + timer.after for timer in rows.first_timers}
            if rows.first_timers
            else _NO_TIMEOUTS
        )

    def read(self, reading: Reading) -> list[Event]:
        numbered = (0, reading.time if reading.event is None else reading.event)
        return self.step(mask_of(self.facts.machine, reading), reading.time, numbered)

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        """Take an event or the firing of a timer port, by the mask of its atoms."""
        move = self.row.get(mask) or self.rows.move(self.row, mask)
        event_id = numbered[1].id if isinstance(numbered[1], Event) else None
        return self._take(move, time, event_id)

    def next_due(self) -> int | None:
        if not self.row.bits:
            return None
        times = [*self.timeouts.values()]
        ports = super().next_due()
        if ports is not None:
            times.append(ports)
        return min(times, default=None)

    def fire(self, time: int) -> list[Event]:
        if super().next_due() == time:
            return super().fire(time)
        due = [state for state, at in self.timeouts.items() if at <= time]
        return self._take(self.rows.timeout_move(self.row, due), time, None)

    def idle_until(self, port: TimerPort) -> int | None:
        mask = self.facts.timer_mask(port)
        return ENDLESS if mask is not None and self.rows.move(self.row, mask).is_noop else None

    def other_due(self) -> Sequence[int]:
        return [*self.timeouts.values()]

    def is_idle(self, now: int) -> bool:  # noqa: ARG002
        """Whether it stands as at its start, with no timeout under way."""
        return self.row.bits == self.rows.first.bits and not self.timeouts

    def _take(self, move: RowMove, time: int, event_id: str | None) -> list[Event]:
        self.row = move.to
        if self.timeouts or move.started:
            # A timeout that is over is no longer active; one that was started again counts anew.
            active = move.to.bits
            self.timeouts = {s: at for s, at in self.timeouts.items() if active >> s & 1}
            for timer in move.started:
                if active >> timer.state & 1:
                    self.timeouts[timer.state] = time + timer.after
        if not move.effects:
            return []
        self.triggered(time)
        trigger = TIMER if event_id is None else event_id
        output = self.facts.correlation.output
        outputs, places = self.outputs, self.facts.key_places
        made = []
        for effect in move.effects:
            if isinstance(effect, Emit):
                type_name = effect.type or output
                data = outputs.filled(type_name, places)
                provenance = outputs.provenance(trigger, "", "")
                made.append(outputs.make(type_name, data, time, trigger, provenance))
        return made
