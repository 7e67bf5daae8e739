"""The outputs of rules in cells: firings grouped by the function that builds their outputs.

In come the firings of one event, in the order of the library, or of alarms, in the order of the
stream; out come events. An action is split into parts, each with its own labels and bound ports,
and a part has a function that is written for it (`emitting`): rules that put out alike share it,
whatever their shapes. Outputs of several functions are not in the order of the library yet: that is
for the stream, which knows what other rules have put out.

The id of an output counts what its rule has put out at its trigger. Mostly that is nothing; counts
are looked up only where a trigger comes again at the same time, or an action has several parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter

from ensue.engine.core.effects import Emitted, PushedOutput, Sent
from ensue.engine.core.instances.emitting import compile_for_cells
from ensue.engine.core.instances.recipes import recipe_for
from ensue.engine.outputs import TIMER
from ensue.engine.step.many.cells import StepTables
from ensue.engine.step.many.kernels import FIRED
from ensue.engine.step.many.key_state import CellFiring, KeyState
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation, PushNew, PushPort

EmitAll = Callable[..., None]
"""Builds the outputs of firings, each given by its rule and what its ports are bound to
(`compile_for_cells`)."""


@dataclass(frozen=True, slots=True, eq=False)
class ActionPart:
    """A part of an action: the function that builds its outputs, and how many it builds.

    `pick` takes what the function needs from a firing; `columns` says where that is, if no port has
    several places.
    """

    emit: EmitAll
    count: int
    pick: Callable[[CellFiring], CellFiring]
    columns: tuple[int, ...]


class GroupOutputs:
    """Builds the outputs of a group; `names` has the name and the source of each rule."""

    def __init__(self, tables: StepTables) -> None:
        self.names: list[tuple[str, str]] = []
        self._tables = tables
        self._types: TypeSystem | None = None
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[int, tuple[ActionPart, ...]] = {}
        self._only_part: dict[int, ActionPart | None] = {}
        self._known_parts: dict[object, ActionPart] = {}
        self._functions: dict[object, EmitAll] = {}

    def set_rules(self, names: Sequence[str], types: TypeSystem) -> None:
        self.names = [(name, f"ensue/{name}") for name in names]
        if types is not self._types:
            self._types = types
            self._forget()

    def count_of(self, action: int) -> int:
        """How many outputs an action has."""
        return sum(part.count for part in self._parts_of(action))

    # --- at an event ------------------------------------------------------------------------------

    def emit(
        self, state: KeyState, columns: Sequence[list[int]], event: Event, made: list[Event]
    ) -> int:
        """Add the outputs of an event; returns by how many functions, each in order.

        `columns` has the rules that have fired, their actions, and what is bound in each place.
        """
        time, trigger = event.time, event.id
        before = None
        if state.time != time:
            state.begin(time)
        else:
            before = state.counts(time, trigger, self.count_of)
        actions, only_part = columns[1], self._only_part
        for action in actions:
            if action not in only_part:
                self._parts_of(action)
        one = only_part[actions[0]]
        if one is not None and one.columns and actions.count(actions[0]) == len(actions):
            fired = zip(*[columns[each] for each in one.columns], strict=True)
            one.emit(made, fired, self.names, state, time, trigger, before)
            calls = 1
        else:
            calls = self._emit_several(state, list(zip(*columns, strict=True)), event, made)
        state.count(trigger, columns[0], columns[1], self.count_of)
        return calls

    def _emit_several(
        self, state: KeyState, firings: Sequence[CellFiring], event: Event, made: list[Event]
    ) -> int:
        """Outputs where rules have fired with different actions, each of one part."""
        only_part = self._only_part
        by_function: dict[EmitAll, list[CellFiring]] = {}
        for firing in firings:
            part = only_part[firing[1]]
            if part is None:
                return self._emit_parts(state, firings, event, made)
            if part.emit in by_function:
                by_function[part.emit].append(part.pick(firing))
            else:
                by_function[part.emit] = [part.pick(firing)]
        time, trigger = event.time, event.id
        before = state.emitted.get(trigger)
        for emit, fired in by_function.items():
            emit(made, fired, self.names, state, time, trigger, before)
        return len(by_function)

    def _emit_parts(
        self, state: KeyState, firings: Sequence[CellFiring], event: Event, made: list[Event]
    ) -> int:
        """Outputs where actions have several parts: the first parts of all, then the second."""
        time, trigger = event.time, event.id
        turns = max(len(self._parts_of(firing[1])) for firing in firings)
        so_far = dict(state.emitted.get(trigger, {}))
        calls = 0
        for turn in range(turns):
            by_function: dict[tuple[EmitAll, int], list[CellFiring]] = {}
            for firing in firings:
                parts = self._parts[firing[1]]
                if turn < len(parts):
                    part = parts[turn]
                    by_function.setdefault((part.emit, part.count), []).append(part.pick(firing))
            for (emit, count), fired in by_function.items():
                emit(made, fired, self.names, state, time, trigger, so_far)
                for rule, *_ in fired:
                    so_far[rule] = so_far.get(rule, 0) + count
            calls += len(by_function)
        return calls

    # --- at an alarm ------------------------------------------------------------------------------

    def emit_alarm(self, state: KeyState, firing: CellFiring, time: int, made: list[Event]) -> int:
        """Add the outputs of an alarm; returns how many there are."""
        before = state.counts(time, TIMER, self.count_of)
        if before is None:
            before = state.emitted[TIMER] = {}
        rule, action = firing[0], firing[1]
        first = len(made)
        for part in self._parts.get(action) or self._parts_of(action):
            fired = (part.pick(firing),)
            part.emit(made, fired, self.names, state, time, TIMER, before)
            before[rule] = before.get(rule, 0) + part.count
        return len(made) - first

    # --- actions ----------------------------------------------------------------------------------

    def _parts_of(self, action: int) -> tuple[ActionPart, ...]:
        known = self._parts.get(action)
        if known is None:
            _, pushes = self._tables.actions[action]
            parts = [self._part(action, list(each)) for _, each in groupby(pushes, _shape)]
            known = self._parts[action] = tuple(part for part in parts if part.count)
            self._only_part[action] = known[0] if len(known) == 1 else None
        return known

    def _part(self, action: int, pushes: Sequence[PushedOutput]) -> ActionPart:
        correlation = self._tables.examples[self._tables.actions[action][0]]
        places = dict(pushes[0].shape.bound)
        assert self._types is not None, "a group that fires has rules"
        statements = [_statement(push) for push in pushes]
        labels = pushes[0].shape.labels
        recipe = recipe_for(correlation, self._types, labels, tuple(places), statements)
        bound_in = tuple(places[port] for port in recipe.ports)
        first = isinstance(correlation, FilterCorrelation) and correlation.clauses.bind == "first"
        kind = recipe.kind
        if kind not in self._functions:
            self._functions[kind] = compile_for_cells(recipe)
        known = self._known_parts.get((kind, bound_in, first))
        if known is None:
            one_each = all(len(each) == 1 for each in bound_in)
            columns = (0, *(FIRED + place for place, *_ in bound_in)) if one_each else ()
            pick = _picking(bound_in, first)
            known = ActionPart(self._functions[kind], recipe.count, pick, columns)
            self._known_parts[kind, bound_in, first] = known
        return known


def _picking(bound_in: Sequence[Sequence[int]], first: bool) -> Callable[[CellFiring], CellFiring]:
    """Takes from a firing its rule and, for each port, what is bound in the port's places."""
    if not bound_in:
        return itemgetter(slice(0, 1))
    if all(len(each) == 1 for each in bound_in):
        return itemgetter(0, *(FIRED + place for place, *_ in bound_in))
    choose = min if first else max

    def pick(firing: CellFiring) -> CellFiring:
        ports = (choose(firing[FIRED + place] for place in each) for each in bound_in)
        return (firing[0], *ports)

    return pick


_shape = attrgetter("shape")


def _statement(push: PushedOutput) -> PushPort | PushNew | str:
    match push.what:
        case Sent(port, extensions):
            return PushPort(port, extensions=extensions)
        case Emitted(type_name):
            return type_name
        case statement:
            return statement
