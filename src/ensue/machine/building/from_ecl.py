"""Machines of ECL expressions, built bottom-up from modules.

A module is the part of a machine for one subexpression. Two of its states say how it has ended:
`success` and `failure`. Each operator joins the modules of its parts; the transitions of the parts
stand before its own, and success stands before failure. When a module has ended, all of its states
are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import assert_never

from ensue.lang.printer import print_ecl
from ensue.lang.syntax import (
    Constant,
    Ecl,
    EclCorrelation,
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
from ensue.machine.building.builder import MachineBuilder
from ensue.machine.building.counting import Counter
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.model import (
    AnyAtom,
    Atom,
    Emit,
    Machine,
    PortAtom,
    PredicateAtom,
    State,
    Timer,
)

MANY_MODES = 16
"""From so many modes on, a mode is entered by several transitions (`_enter_by_turns`)."""


@dataclass(frozen=True, slots=True)
class Module:
    """The states of one subexpression; `inside` has all of them, also `success` and `failure`."""

    initial: frozenset[State]
    success: State
    failure: State
    inside: frozenset[State]


def machine_of_ecl(
    correlation: EclCorrelation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
    many_modes: int = MANY_MODES,
) -> Machine:
    builder = MachineBuilder(limits.states)
    top = _Modules(builder, many_modes).of(correlation.body)
    return Machine(
        tuple(builder.names), top.initial, tuple(builder.transitions), tuple(builder.atoms)
    )


class _Modules:
    """The modules of all subexpressions, built into one machine."""

    def __init__(self, builder: MachineBuilder, many_modes: int) -> None:
        self._builder = builder
        self._many_modes = many_modes

    def of(self, x: Ecl) -> Module:
        match x:
            case PortRef(name):
                return self._event(name, PortAtom(name))
            case Holds(predicate):
                return self._event(print_ecl(x), PredicateAtom(predicate))
            case Constant(value):
                return self._event("true", AnyAtom()) if value else self._module("false")
            case Timeout(after):
                module = self._module(print_ecl(x))
                (waiting,) = module.initial
                timer = Timer(waiting, after.microseconds)
                self._builder.add(
                    [module.initial], input=timer, clear=module.initial, target=[module.success]
                )
                return module
            case Group("sequential", parts):
                return self._sequential(parts)
            case Group(kind, parts):
                return self._group(kind, [self.of(part) for part in parts])
            case Unless(body, stop):
                return self._unless(self.of(body), self.of(stop))
            case Fail(body):
                inner = self.of(body)
                module = self._around("fail", [inner], inner.initial)
                self._builder.add([[inner.failure]], clear=inner.inside, target=[module.success])
                self._builder.add([[inner.success]], clear=inner.inside, target=[module.failure])
                return module
            case Push(type_name, body):
                inner = self.of(body)
                module = self._around(f"push {type_name or ''}".strip(), [inner], inner.initial)
                self._builder.add(
                    [[inner.success]],
                    clear=inner.inside,
                    target=[module.success],
                    effect=Emit(type_name),
                )
                self._builder.add([[inner.failure]], clear=inner.inside, target=[module.failure])
                return module
            case Round():
                return self._round(x)
            case Modes():
                return self._modes(x)
            case _:
                assert_never(x)

    def _event(self, name: str, atom: Atom) -> Module:
        module = self._module(name)
        self._builder.add(
            [module.initial],
            input=self._builder.atom(atom),
            clear=module.initial,
            target=[module.success],
        )
        return module

    def _module(self, name: str) -> Module:
        """A module that waits in one state."""
        waiting = self._builder.state(f"wait {name}")
        return self._around(name, [], {waiting}, {waiting})

    def _around(
        self,
        name: str,
        parts: Iterable[Module],
        initial: Iterable[State],
        own: Iterable[State] = (),
    ) -> Module:
        success, failure = self._builder.state(f"{name} ✓"), self._builder.state(f"{name} ✗")
        inside = {success, failure, *own}.union(*(part.inside for part in parts))
        return Module(frozenset(initial), success, failure, frozenset(inside))

    def _group(self, kind: str, parts: list[Module]) -> Module:
        module = self._around(kind, parts, frozenset().union(*(part.initial for part in parts)))
        all_succeed = [[part.success] for part in parts]
        one_succeeds = [[part.success for part in parts]]
        all_fail = [[part.failure] for part in parts]
        one_fails = [[part.failure for part in parts]]
        ends = {
            "accumulate": (all_succeed, one_fails),
            "select": (one_succeeds, all_fail),
            "select*": (one_succeeds, one_fails),
        }
        if kind in ends:
            inside = frozenset().union(*(part.inside for part in parts))
            success, failure = ends[kind]
            self._builder.add(success, clear=inside, target=[module.success])
            self._builder.add(failure, clear=inside, target=[module.failure])
        return module

    def _sequential(self, expressions: tuple[Ecl, ...]) -> Module:
        """The end of each part starts the next part, so that one part is active at a time."""
        builder = self._builder
        first, parts, ends = len(builder.transitions), [], []
        for expression in expressions:
            parts.append(self.of(expression))
            ends.append(len(builder.transitions))
        inside = builder.transitions[first:]
        del builder.transitions[first:]
        module = self._around("sequential", parts, parts[0].initial)
        begin = 0
        for part, following, end in zip_longest(parts, parts[1:], ends):
            builder.transitions += inside[begin : end - first]
            begin = end - first
            then = following.initial if following else [module.success]
            builder.add([[part.success]], clear=part.inside, target=then)
            builder.add([[part.failure]], clear=part.inside, target=[module.failure])
        return module

    def _unless(self, body: Module, stop: Module) -> Module:
        module = self._around("do-unless", [body, stop], body.initial | stop.initial)
        inside = body.inside | stop.inside
        self._builder.add([[body.success]], clear=inside, target=[module.success])
        self._builder.add([[body.failure, stop.success]], clear=inside, target=[module.failure])
        return module

    def _round(self, x: Round) -> Module:
        inner = self.of(x.body)
        counter = Counter(self._builder, x.kind, x.bound or 1)
        module = self._around(x.kind, [inner], inner.initial | counter.first, counter.states)
        ends = {
            "repeat": ([], [inner.success, inner.failure]),
            "persist": ([inner.success], [inner.failure]),
            "loop": ([inner.failure], [inner.success]),
        }
        done, again = ends[x.kind]
        end = module.failure if x.kind == "loop" else module.success
        over = module.failure if x.kind == "persist" else module.success
        everything = inner.inside | counter.states
        if done:
            self._builder.add([done], clear=everything, target=[end])
        if x.bound is None:
            self._builder.add([again], clear=inner.inside, target=inner.initial)
            return module
        self._builder.add([again, *counter.last], clear=everything, target=[over])
        for step in counter.steps:
            self._builder.add(
                [again, *step.enabling],
                clear=inner.inside | step.clear,
                target=inner.initial | step.target,
            )
        return module

    def _modes(self, x: Modes) -> Module:
        """Guards, then the entries, then the bodies: a guard takes an event first."""
        builder = self._builder
        guards = [self.of(mode.guard) for mode in x.modes]
        entries_from = len(builder.transitions)
        bodies = [self.of(mode.body) for mode in x.modes]
        later = builder.transitions[entries_from:]
        del builder.transitions[entries_from:]

        def entered(number: int) -> frozenset[State]:
            others = [guard.initial for n, guard in enumerate(guards) if n != number]
            return bodies[number].initial.union(*others)

        module = self._around("modes", [*guards, *bodies], entered(0))
        everything = module.inside - {module.success, module.failure}
        if len(guards) < self._many_modes:
            for number, guard in enumerate(guards):
                builder.add([[guard.success]], clear=everything, target=entered(number))
        else:
            self._enter_by_turns(guards, bodies, everything)
        builder.transitions += later
        return module

    def _enter_by_turns(
        self, guards: list[Module], bodies: list[Module], everything: frozenset[State]
    ) -> None:
        """Enter modes by transitions whose sets stay small, however many modes there are.

        The first transition, if some guard has succeeded, clears everything and arms every guard.
        Then the first guard that has succeeded enters its mode and is disarmed. The last transition
        clears the success of all guards.
        """
        builder = self._builder
        succeeded = frozenset(guard.success for guard in guards)
        entering = builder.state("enter a mode")
        armed = frozenset({entering}).union(*(guard.initial for guard in guards))
        builder.add([succeeded], clear=everything - succeeded, target=armed)
        for guard, body in zip(guards, bodies, strict=True):
            builder.add(
                [[guard.success], [entering]],
                clear=guard.initial | {entering},
                target=body.initial,
            )
        builder.add([succeeded], clear=succeeded)
