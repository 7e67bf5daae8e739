"""The effects of an event on a correlation, worked out once for all events that match alike.

Which cases run, which statements, what they abort and whether that completes a branch: all of this
follows from the state of the machine and from the ports that the event matches, never from the
values in the event. So the transformer runs once, over ports that are bound to placeholders, and
its outputs are recorded as an `Action`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ensue.engine.outputs import Outputs, Transformer, Trigger
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.lang.syntax import EclCorrelation, Extension, FilterCorrelation, PushNew, PushPort
from ensue.machine.determinise import SETTLE, MachineMove, MachineTable, TableState
from ensue.machine.model import Bind, Emit, Machine, Timer
from ensue.machine.stepping import Fired


@dataclass(frozen=True, slots=True)
class TriggerShape:
    """How a branch has triggered: its active labels, and for each bound port its bound places."""

    labels: str
    bound: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """`push a`: the event that is bound to a port is sent on, with further extensions."""

    port: str
    extensions: tuple[Extension, ...] = ()


@dataclass(frozen=True, slots=True)
class Emitted:
    """An ECL output: an event of a type, without data."""

    type: str


@dataclass(frozen=True, slots=True)
class PushedOutput:
    """One output of an action: how its branch has triggered, and what is put out."""

    shape: TriggerShape
    what: Sent | PushNew | Emitted


Action = tuple[PushedOutput, ...]
"""What is put out, in its order."""

NO_SHAPE = TriggerShape("", ())


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a table: the next state, the places that are bound, and the outputs."""

    to: TableState
    binds: frozenset[int]
    action: Action
    triggers: bool
    started: tuple[Timer, ...] = ()
    """The timeouts that run from here on."""


class _OutputRecorder:
    """Takes the place of `Outputs`, and records which outputs a transformer asks it for."""

    def __init__(self) -> None:
        self.pushes: list[PushedOutput] = []
        self.shapes: list[TriggerShape] = []

    def trigger(self, shape: TriggerShape) -> Trigger:
        # The ports are bound to events that only say which port they stand for.
        self.shapes.append(shape)
        bound = {port: Reading(0, frozenset(), Event(port, "", "", 0)) for port, _ in shape.bound}
        labels = frozenset(shape.labels.split(",")) if shape.labels else frozenset()
        return Trigger(len(self.shapes) - 1, "", labels, bound)

    def forward(self, trigger: Trigger, event: Event, statement: PushPort) -> Event:
        sent = Sent(event.id, statement.extensions)
        self.pushes.append(PushedOutput(self.shapes[trigger.time], sent))
        return event

    def build(self, trigger: Trigger, statement: PushNew) -> Event:
        self.pushes.append(PushedOutput(self.shapes[trigger.time], statement))
        return Event("", "", "", 0)


class FilterActions:
    """The actions of a filter on a table."""

    def __init__(self, correlation: FilterCorrelation, machine: Machine) -> None:
        self._correlation = correlation
        self._machine = machine
        self._ports = {place: port for b in machine.branches for place, port, _ in b.places}

    def entry(
        self, table: MachineTable, state: TableState | None, atoms: frozenset[int]
    ) -> TableEntry:
        """The entry for an event; `state` is None for the event that starts a key."""
        given: Any = ("atoms", atoms)
        move = None if state is None else table.move(state, given)
        if move is not None and not any(isinstance(each, Fired) for each in move.effects):
            # Nothing is triggered, so there is nothing for the transformer.
            return TableEntry(move.to, _bound(move), (), False)
        recorder = _OutputRecorder()
        labels = _TableLabels(table, state or table.first)
        transformer = Transformer(self._correlation, cast(Outputs, recorder), labels)
        if state is None:
            transformer.begin(recorder.trigger(NO_SHAPE))
        binds: set[int] = set()
        triggers = False
        while True:
            if move is None:
                move = table.move(labels.state, given)
            labels.state = move.to
            binds |= _bound(move)
            fired = [each for each in move.effects if isinstance(each, Fired)]
            triggers = triggers or bool(fired)
            labels.changed = False
            for each in fired:
                transformer.transform(recorder.trigger(self.shape(each.labels, each.places)))
            if not fired or not labels.changed:
                break
            given, move = SETTLE, None
        return TableEntry(labels.state, frozenset(binds), tuple(recorder.pushes), triggers)

    def shape(self, labels: Iterable[str], places: Iterable[int]) -> TriggerShape:
        by_port: dict[str, list[int]] = {}
        for place in dict.fromkeys(places):
            by_port.setdefault(self._ports[place], []).append(place)
        bound = tuple((port, tuple(each)) for port, each in by_port.items())
        return TriggerShape(",".join(sorted(set(labels))), bound)


def _bound(move: MachineMove) -> frozenset[int]:
    return frozenset(each.place for each in move.effects if isinstance(each, Bind))


class EclActions:
    """The actions of an ECL expression on a table."""

    def __init__(self, correlation: EclCorrelation) -> None:
        self._output = correlation.output

    def entry(
        self,
        table: MachineTable,
        state: TableState | None,
        atoms: frozenset[int],
        due: frozenset[int] = frozenset(),
    ) -> TableEntry:
        """The entry for an event, or for timeouts that are due."""
        move = table.move(state or table.first, ("due", due) if due else ("atoms", atoms))
        pushes = tuple(
            PushedOutput(NO_SHAPE, Emitted(each.type or self._output))
            for each in move.effects
            if isinstance(each, Emit)
        )
        started = move.started if state else (*table.first_timers, *move.started)
        return TableEntry(move.to, frozenset(), pushes, bool(pushes), started)


class _TableLabels:
    """The labels of a key that is in a state of a table."""

    def __init__(self, table: MachineTable, state: TableState) -> None:
        self.state = state
        self.changed = False
        self._table = table
        self._aborted: Mapping[str, int] = {
            each.label: each.requires for each in table.machine.switches if each.kind == "revive"
        }

    def is_aborted(self, label: str) -> bool:
        return label in self._aborted and self._aborted[label] in self.state.active

    def abort(self, label: str) -> None:
        self._switch("abort", label)

    def revive(self, label: str) -> None:
        self._switch("revive", label)

    def _switch(self, kind: str, label: str) -> None:
        self.changed = True
        self.state = self._table.move(self.state, (kind, label)).to
