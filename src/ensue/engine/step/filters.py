"""Filters on their machines: on a table, or stepped directly where there is a window.

Both take the moments of `ensue.engine.reference.filters`: the event, then the transformers of the
branches that fired, then whatever those have completed by aborting.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs, Trigger
from ensue.engine.ports import Reading
from ensue.engine.step.atoms import atoms_of
from ensue.engine.transformer import Transformer
from ensue.events.event import Event
from ensue.lang.syntax import FilterCorrelation, TimerPort
from ensue.machine.determinise import Input, Table
from ensue.machine.model import Bind, Emit, Machine, State, Switch
from ensue.machine.stepping import NOW, Fired, Stepper

NOTHING: frozenset[int] = frozenset()


class FilterRunner(Instance):
    """What table and window have in common: places, triggers, and the transformer's rounds."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        machine: Machine,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(number, timers, outputs, started)
        self._machine = machine
        self._first = correlation.clauses.bind == "first"
        self._ports = {place: port for b in machine.branches for place, port, _ in b.places}
        self._aborted = {s.label: s.requires for s in machine.switches if s.kind == "revive"}
        self._places: dict[int, tuple[int, Reading]] = {}
        self._read = 0
        self._changed = False
        self._transformer = Transformer(correlation, outputs, self)

    @abstractmethod
    def take(self, atoms: frozenset[int], time: int) -> Iterable[Emit | Bind | Fired]:
        """Take an event (or, without atoms, what the transformers have changed)."""

    @abstractmethod
    def is_active(self, state: State) -> bool: ...

    @abstractmethod
    def switch(self, kind: str, label: str) -> None: ...

    def start(self, first: Reading) -> list[Event]:
        return self._transformer.begin(Trigger(first.time, first.event_id))

    def read(self, reading: Reading) -> list[Event]:
        self._read += 1
        made: list[Event] = []
        atoms = atoms_of(self._machine, reading)
        while fired := self._fired(self.take(atoms, reading.time), reading):
            self.triggered(reading.time)
            self._changed = False
            for trigger in fired:
                made += self._transformer.transform(trigger)
            if not self._changed:
                break
            atoms = NOTHING
        return made

    def _fired(self, effects: Iterable[Emit | Bind | Fired], reading: Reading) -> list[Trigger]:
        triggers = []
        for effect in effects:
            if isinstance(effect, Bind):
                self._places[effect.place] = (self._read, reading)
            elif isinstance(effect, Fired):
                bound = self._bound(effect.places)
                triggers.append(Trigger(reading.time, reading.event_id, effect.labels, bound))
        return triggers

    def _bound(self, places: Iterable[int]) -> dict[str, Reading]:
        """The last (or first) over the places of each port, in the order of reading."""
        found: dict[str, tuple[int, Reading]] = {}
        for place in places:
            port, (at, reading) = self._ports[place], self._places[place]
            if port not in found or (at < found[port][0]) == self._first:
                found[port] = (at, reading)
        ordered = sorted(found.items(), key=lambda each: each[1][0])
        return {port: reading for port, (_, reading) in ordered}

    def is_aborted(self, label: str) -> bool:
        return label in self._aborted and self.is_active(self._aborted[label])

    def abort(self, label: str) -> None:
        self._changed = True
        self.switch("abort", label)

    def revive(self, label: str) -> None:
        self._changed = True
        self.switch("revive", label)


class TabledFilter(FilterRunner):
    """A filter without a window, on its table."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        table: Table,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(correlation, table.machine, number, timers, outputs, started)
        self._table = table
        self._state = table.first

    def take(self, atoms: frozenset[int], time: int) -> Iterable[Emit | Bind | Fired]:  # noqa: ARG002
        return self._move(("atoms", atoms))

    def is_active(self, state: State) -> bool:
        return state in self._state.active

    def switch(self, kind: str, label: str) -> None:
        self._move((kind, label))

    def _move(self, given: Input) -> Iterable[Emit | Bind | Fired]:
        move = self._table.move(self._state, given)
        self._state = move.to
        return move.effects


class WindowedFilter(FilterRunner):
    """A filter with a window: its states carry the start of what they stand for."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        stepper: Stepper,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(correlation, stepper.machine, number, timers, outputs, started)
        self._stepper = stepper
        self._active, _ = stepper.begin()
        self._switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in stepper.machine.switches
        }

    def take(self, atoms: frozenset[int], time: int) -> Iterable[Emit | Bind | Fired]:
        return self._stepper.take(self._active, atoms, now=time).effects

    def is_active(self, state: State) -> bool:
        return state in self._active

    def switch(self, kind: str, label: str) -> None:
        switch = self._switches[kind, label]
        if switch.requires in self._active:
            for state in switch.clear:
                self._active.pop(state, None)
            self._active.update(dict.fromkeys(switch.target, NOW))
