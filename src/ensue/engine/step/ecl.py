"""ECL on its table."""

from __future__ import annotations

from collections.abc import Sequence

from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs, Trigger
from ensue.engine.ports import Reading
from ensue.engine.step.atoms import atoms_of
from ensue.events.event import Event
from ensue.lang.syntax import EclCorrelation, TimerPort
from ensue.machine.determinise import Input, Table
from ensue.machine.model import Emit, State


class EclRunner(Instance):
    """An ECL correlation under one key."""

    def __init__(
        self,
        correlation: EclCorrelation,
        table: Table,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(number, timers, outputs, started)
        self._output_type = correlation.output
        self._table = table
        self._state = table.first
        self._timeouts: dict[State, int] = {
            timer.state: started + timer.after for timer in table.first_timers
        }

    def start(self, first: Reading) -> list[Event]:  # noqa: ARG002
        return []

    def read(self, reading: Reading) -> list[Event]:
        event_id = reading.event.id if reading.event else None
        atoms = atoms_of(self._table.machine, reading)
        return self._move(("atoms", atoms), reading.time, event_id)

    def next_due(self) -> int | None:
        if not self._state.active:
            return None
        times = [*self._timeouts.values()]
        ports = super().next_due()
        if ports is not None:
            times.append(ports)
        return min(times, default=None)

    def fire(self, time: int) -> list[Event]:
        if super().next_due() == time:
            return super().fire(time)
        due = frozenset(state for state, at in self._timeouts.items() if at <= time)
        return self._move(("due", due), time, None)

    def _move(self, given: Input, time: int, event_id: str | None) -> list[Event]:
        move = self._table.move(self._state, given)
        self._state = move.to
        if self._timeouts or move.started:
            # A timeout that is over is no longer active; one that was started again counts anew.
            self._timeouts = {s: at for s, at in self._timeouts.items() if s in move.to.active}
            for timer in move.started:
                if timer.state in move.to.active:
                    self._timeouts[timer.state] = time + timer.after
        if not move.effects:
            return []
        self.triggered(time)
        trigger = Trigger(time, event_id)
        return [
            self.outputs.create(trigger, effect.type or self._output_type, {})
            for effect in move.effects
            if isinstance(effect, Emit)
        ]
