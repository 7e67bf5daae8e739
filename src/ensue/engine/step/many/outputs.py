"""The outputs of rules in cells that have fired.

In come the firings of one event, in the order of the library, or of an alarm; out come events in
the same order. An action is split into parts, each with its own labels and bound ports, and each
part has a builder (`core.instances.firing`), which rules of one shape share.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from ensue.engine.core.effects import Emitted, PushedOutput, Sent
from ensue.engine.core.instances.firing import Moment, NumberedEvent, OutputBuilder
from ensue.engine.step.many.cells import StepTables
from ensue.engine.step.many.kernels import FIRED
from ensue.engine.step.many.key_state import CellFiring, KeyState
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation, PushNew, PushPort, TimerPort


class ActionPart:
    """A part of an action: its builder, and where a firing has what its ports are bound to."""

    def __init__(
        self, builder: OutputBuilder, places: Sequence[tuple[bool, Sequence[int]]], first: bool
    ) -> None:
        """`places` says for each port whether it is a timer, and the port's places."""
        self._builder = builder
        self._at = [(is_timer, [FIRED + each for each in held]) for is_timer, held in places]
        self._choose = min if first else max

    def emit(
        self,
        made: list[Event],
        names: tuple[str, str],
        state: KeyState,
        moment: Moment,
        firing: CellFiring,
        number: int,
    ) -> int:
        """Add the outputs of a firing, the first of which gets the number after this one."""
        events = state.events
        bound: list[NumberedEvent] = []
        for is_timer, at in self._at:
            what = firing[at[0]] if len(at) == 1 else self._choose([firing[each] for each in at])
            bound.append((what, what if is_timer else events[what]))
        return self._builder.emit(made, names, state, moment, bound, number)


class GroupOutputs:
    """Builds the outputs of a group; `names` has the name and the source of each rule."""

    def __init__(self, tables: StepTables) -> None:
        self.names: list[tuple[str, str]] = []
        self._tables = tables
        self._types: TypeSystem | None = None
        self._parts: dict[int, Sequence[ActionPart]] = {}

    def set_rules(self, names: Sequence[str], types: TypeSystem) -> None:
        self.names = [(name, f"ensue/{name}") for name in names]
        if types is not self._types:
            self._types = types
            self._parts = {}

    def emit(
        self,
        state: KeyState,
        firings: Sequence[CellFiring],
        moment: Moment,
        made: list[Event],
    ) -> None:
        """Add the outputs of firings under one key at one moment."""
        counts = state.counts(*moment)
        for firing in firings:
            rule, action = firing[0], firing[1]
            number = counts.get(rule, 0)
            for part in self._parts.get(action) or self._parts_of(action):
                number = part.emit(made, self.names[rule], state, moment, firing, number)
            counts[rule] = number

    def _parts_of(self, action: int) -> Sequence[ActionPart]:
        shape, pushes = self._tables.actions[action]
        correlation = self._tables.examples[shape]
        timers = {port.name for port in correlation.ports if isinstance(port, TimerPort)}
        first = isinstance(correlation, FilterCorrelation) and correlation.clauses.bind == "first"
        assert self._types is not None, "a group that fires has rules"
        parts = []
        for of, alike in groupby(pushes, attrgetter("shape")):
            ports = [port for port, _ in of.bound]
            statements = [_statement(push) for push in alike]
            builder = OutputBuilder(correlation, self._types, of.labels, ports, statements)
            if builder.count:
                places = [(port in timers, held) for port, held in of.bound]
                parts.append(ActionPart(builder, places, first))
        self._parts[action] = parts
        return parts


def _statement(push: PushedOutput) -> PushPort | PushNew | str:
    match push.what:
        case Sent(port, extensions):
            return PushPort(port, extensions=extensions)
        case Emitted(type_name):
            return type_name
        case statement:
            return statement
