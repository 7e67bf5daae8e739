"""ECL by the paper's correlation machines: states, transitions, clear sets, priorities.

In comes an ECL expression; out comes a machine of numbered modules, each with a state `s` for
success and `f` for failure, leaves with a state `w` for waiting, and internal transitions in the
order of their priority (inner before outer, success before failure). A step moves every waiting
leaf that takes the event, then lets internal transitions run to rest. The guards of `modes` take
the event before the current mode does, which makes `modes` the one place where a step has stages;
a stage is named by a path, one digit for each `modes` around it: 0 for a guard, 1 for a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ensue.lang.syntax import (
    Constant,
    Ecl,
    Fail,
    Group,
    Holds,
    Modes,
    PortRef,
    Push,
    Round,
    Timeout,
    Unless,
)

State = tuple[int, str]
Leaf = PortRef | Holds | Constant | Timeout


@dataclass(frozen=True)
class Transition:
    """Enabled when each set of `enabling` has an active state; then clears, and makes active.

    A transition that ends a round of a module names it in `rounds_of`: one with `last` may be
    taken only if that was the last round, one without only if it was not.
    """

    enabling: tuple[frozenset[State], ...]
    clear: frozenset[State]
    target: frozenset[State]
    emits: str | None = None
    rounds_of: int | None = None
    last: bool = False


@dataclass
class Module:
    """What stands for one subexpression; `number` grows from the inside out, left to right."""

    number: int
    path: str
    states: frozenset[State]
    initial: frozenset[State]
    transitions: tuple[Transition, ...] = ()
    entries: tuple[Transition, ...] = ()
    leaf: Leaf | None = None
    bound: int | None = None

    @property
    def success(self) -> State:
        return (self.number, "s")

    @property
    def failure(self) -> State:
        return (self.number, "f")


@dataclass
class Machine:
    """The modules of an expression, inner ones first. The last is the whole expression."""

    output: str
    modules: list[Module] = field(default_factory=list)

    def add(
        self,
        path: str,
        parts: Sequence[Module],
        initial: frozenset[State],
        *,
        leaf: Leaf | None = None,
        bound: int | None = None,
    ) -> Module:
        number = len(self.modules)
        own = frozenset({(number, "s"), (number, "f"), (number, "w")})
        states = own.union(*(part.states for part in parts))
        initial = initial or frozenset({(number, "w")})
        module = Module(number, path, states, initial, leaf=leaf, bound=bound)
        self.modules.append(module)
        return module

    def build(self, node: Ecl, path: str = "") -> Module:
        if isinstance(node, PortRef | Holds | Constant | Timeout):
            return self.add(path, [], frozenset(), leaf=node)
        if isinstance(node, Group):
            return self.build_group(node.kind, [self.build(p, path) for p in node.parts], path)
        if isinstance(node, Unless):
            body, stop = self.build(node.body, path), self.build(node.stop, path)
            module = self.add(path, [body, stop], body.initial | stop.initial)
            inside = body.states | stop.states
            module.transitions = (
                goes(inside, module.success, {body.success}),
                goes(inside, module.failure, {body.failure, stop.success}),
            )
            return module
        if isinstance(node, Modes):
            return self.build_modes(node, path)
        body = self.build(node.body, path)
        bound = node.bound if isinstance(node, Round) else None
        module = self.add(path, [body], body.initial, bound=bound)
        if isinstance(node, Fail):
            module.transitions = (
                goes(body.states, module.success, {body.failure}),
                goes(body.states, module.failure, {body.success}),
            )
        elif isinstance(node, Push):
            module.transitions = (
                goes(body.states, module.success, {body.success}, emits=node.type or self.output),
                goes(body.states, module.failure, {body.failure}),
            )
        else:
            module.transitions = rounds(node.kind, module, body)
        return module

    def build_group(self, kind: str, parts: Sequence[Module], path: str) -> Module:
        together = frozenset[State]().union(*(part.initial for part in parts))
        initial = parts[0].initial if kind == "sequential" else together
        module = self.add(path, parts, initial)
        inside = frozenset[State]().union(*(part.states for part in parts))
        successes = [part.success for part in parts]
        failures = [part.failure for part in parts]
        if kind == "accumulate":
            module.transitions = (
                goes(inside, module.success, *({each} for each in successes)),
                goes(inside, module.failure, set(failures)),
            )
        elif kind == "select":
            module.transitions = (
                goes(inside, module.success, set(successes)),
                goes(inside, module.failure, *({each} for each in failures)),
            )
        elif kind == "select*":
            module.transitions = (
                goes(inside, module.success, set(successes)),
                goes(inside, module.failure, set(failures)),
            )
        elif kind == "sequential":
            links = [
                Transition((frozenset({one.success}),), one.states, following.initial)
                for one, following in pairwise(parts)
            ]
            ends = [
                goes(inside, module.success, {successes[-1]}),
                goes(inside, module.failure, set(failures)),
            ]
            module.transitions = (*links, *ends)
        return module

    def build_modes(self, node: Modes, path: str) -> Module:
        guards = [self.build(mode.guard, path + "0") for mode in node.modes]
        bodies = [self.build(mode.body, path + "1") for mode in node.modes]
        inside = frozenset[State]().union(*(part.states for part in [*guards, *bodies]))

        def entered(number: int) -> frozenset[State]:
            others = (g.initial for i, g in enumerate(guards) if i != number)
            return bodies[number].initial.union(*others)

        module = self.add(path, [*guards, *bodies], entered(0))
        module.entries = tuple(
            Transition((frozenset({guard.success}),), inside, entered(number))
            for number, guard in enumerate(guards)
        )
        return module


def goes(
    clear: frozenset[State], to: State, *enabling: set[State], emits: str | None = None
) -> Transition:
    return Transition(tuple(frozenset(each) for each in enabling), clear, frozenset({to}), emits)


def rounds(kind: str, module: Module, body: Module) -> tuple[Transition, ...]:
    """What ends a round begins the next one, unless it was the last or the kind says otherwise."""
    again = {
        "repeat": {body.success, body.failure},
        "persist": {body.failure},
        "loop": {body.success},
    }[kind]
    after_the_last = module.failure if kind == "persist" else module.success
    enabling = (frozenset(again),)
    number = module.number
    transitions = [
        Transition(enabling, body.states, frozenset({after_the_last}), None, number, True),
        Transition(enabling, body.states, body.initial, None, number, False),
    ]
    if kind == "persist":
        transitions.insert(0, goes(body.states, module.success, {body.success}))
    if kind == "loop":
        transitions.append(goes(body.states, module.failure, {body.failure}))
    return tuple(transitions)


class MachineRun:
    """The active states of one machine, since when, and how many rounds each module has begun."""

    def __init__(self, machine: Machine, now: int) -> None:
        self.machine = machine
        self.step_number = 0
        # A state that became active in a step does not take the event of that step.
        self.since: dict[State, int] = {}
        self.due: dict[State, int] = {}
        self.rounds: dict[int, int] = {}
        self.emitted: list[tuple[int, str]] = []
        self.activate(machine.modules[-1].initial, now)

    @property
    def finished(self) -> bool:
        top = self.machine.modules[-1]
        return top.success in self.since or top.failure in self.since

    def activate(self, states: frozenset[State], now: int) -> None:
        for state in states:
            self.since[state] = self.step_number
            leaf = self.machine.modules[state[0]].leaf
            if isinstance(leaf, Timeout) and state[1] == "w":
                self.due[state] = now + leaf.after.microseconds

    def clear(self, states: frozenset[State]) -> None:
        for state in states:
            self.since.pop(state, None)
            self.due.pop(state, None)
            if state[1] == "s":
                self.rounds.pop(state[0], None)

    def next_due(self) -> int | None:
        return min(self.due.values(), default=None)

    def read(self, takes: Callable[[Leaf], bool], now: int) -> list[str]:
        """An event comes: the types that it makes the machine put out, in order."""

        def taken(_: State, leaf: Leaf) -> bool:
            return not isinstance(leaf, Timeout) and takes(leaf)

        return self.step(taken, now)

    def ring(self, now: int) -> list[str]:
        """The clock stands at `now`: every timeout that is due fires."""

        def taken(state: State, _: Leaf) -> bool:
            return self.due.get(state) == now

        return self.step(taken, now)

    def step(self, taken: Callable[[State, Leaf], bool], now: int) -> list[str]:
        self.step_number += 1
        self.emitted = []
        if not self.finished:
            self.stage("", taken, now)
        return [type_name for _, type_name in sorted(self.emitted)]

    def stage(self, path: str, taken: Callable[[State, Leaf], bool], now: int) -> None:
        here = [module for module in self.machine.modules if module.path == path]
        moving = []
        for module in here:
            state = (module.number, "w")
            waited = self.since.get(state, self.step_number) < self.step_number
            if module.leaf is not None and waited and taken(state, module.leaf):
                moving.append(module)
        for module in moving:
            self.clear(frozenset({(module.number, "w")}))
            self.activate(frozenset({module.success}), now)
        if any(module.entries for module in here):
            self.stage(path + "0", taken, now)
            for module in here:
                self.take_first(module.number, module.entries, now)
            self.stage(path + "1", taken, now)
        while any(self.take_first(module.number, module.transitions, now) for module in here):
            pass

    def take_first(self, number: int, transitions: Sequence[Transition], now: int) -> bool:
        """Take the first transition that is enabled; say whether there was one."""
        for transition in transitions:
            if self.enabled(transition):
                if transition.rounds_of is not None:
                    done = self.rounds.get(number, 0) + 1
                    self.rounds[number] = done
                if transition.emits is not None:
                    self.emitted.append((number, transition.emits))
                self.clear(transition.clear)
                self.activate(transition.target, now)
                return True
        return False

    def enabled(self, transition: Transition) -> bool:
        if not all(any(state in self.since for state in each) for each in transition.enabling):
            return False
        if transition.rounds_of is None:
            return True
        bound = self.machine.modules[transition.rounds_of].bound
        done = self.rounds.get(transition.rounds_of, 0) + 1
        return transition.last == (bound is not None and done >= bound)
