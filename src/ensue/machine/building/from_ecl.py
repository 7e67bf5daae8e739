"""ECL to correlation machines, bottom-up from modules.

A module is a machine with two states that say how it ended: `success` and `failure`. Each operator
below joins the modules of its parts; the transitions of the parts stand before its own, and its
success before its failure. What a module has set is cleared when it has ended.
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
from ensue.machine.building.counting import Counter
from ensue.machine.building.growth import Growth
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
"""From how many modes on entering one is several transitions, so that a thousand stay cheap."""


@dataclass(frozen=True, slots=True)
class Module:
    """`inside` holds every state of the module, its two ends included."""

    initial: frozenset[State]
    success: State
    failure: State
    inside: frozenset[State]


def machine_of_ecl(
    correlation: EclCorrelation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
    many_modes: int = MANY_MODES,
) -> Machine:
    growth = Growth(limits.states)
    top = _Modules(growth, many_modes).of(correlation.body)
    return Machine(tuple(growth.names), top.initial, tuple(growth.transitions), tuple(growth.atoms))


class _Modules:
    def __init__(self, growth: Growth, many_modes: int) -> None:
        self._growth = growth
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
                self._growth.add(
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
                self._growth.add([[inner.failure]], clear=inner.inside, target=[module.success])
                self._growth.add([[inner.success]], clear=inner.inside, target=[module.failure])
                return module
            case Push(type_name, body):
                inner = self.of(body)
                module = self._around(f"push {type_name or ''}".strip(), [inner], inner.initial)
                self._growth.add(
                    [[inner.success]],
                    clear=inner.inside,
                    target=[module.success],
                    effect=Emit(type_name),
                )
                self._growth.add([[inner.failure]], clear=inner.inside, target=[module.failure])
                return module
            case Round():
                return self._round(x)
            case Modes():
                return self._modes(x)
            case _:
                assert_never(x)

    def _event(self, name: str, atom: Atom) -> Module:
        module = self._module(name)
        self._growth.add(
            [module.initial],
            input=self._growth.atom(atom),
            clear=module.initial,
            target=[module.success],
        )
        return module

    def _module(self, name: str) -> Module:
        """A module that waits in one state."""
        waiting = self._growth.state(f"wait {name}")
        return self._around(name, [], {waiting}, {waiting})

    def _around(
        self,
        name: str,
        parts: Iterable[Module],
        initial: Iterable[State],
        own: Iterable[State] = (),
    ) -> Module:
        success, failure = self._growth.state(f"{name} ✓"), self._growth.state(f"{name} ✗")
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
            self._growth.add(success, clear=inside, target=[module.success])
            self._growth.add(failure, clear=inside, target=[module.failure])
        return module

    def _sequential(self, expressions: tuple[Ecl, ...]) -> Module:
        """The end of each part starts the next part, so that one part is active at a time."""
        growth = self._growth
        first, parts, ends = len(growth.transitions), [], []
        for expression in expressions:
            parts.append(self.of(expression))
            ends.append(len(growth.transitions))
        inside = growth.transitions[first:]
        del growth.transitions[first:]
        module = self._around("sequential", parts, parts[0].initial)
        begin = 0
        for part, following, end in zip_longest(parts, parts[1:], ends):
            growth.transitions += inside[begin : end - first]
            begin = end - first
            then = following.initial if following else [module.success]
            growth.add([[part.success]], clear=part.inside, target=then)
            growth.add([[part.failure]], clear=part.inside, target=[module.failure])
        return module

    def _unless(self, body: Module, stop: Module) -> Module:
        module = self._around("do-unless", [body, stop], body.initial | stop.initial)
        inside = body.inside | stop.inside
        self._growth.add([[body.success]], clear=inside, target=[module.success])
        self._growth.add([[body.failure, stop.success]], clear=inside, target=[module.failure])
        return module

    def _round(self, x: Round) -> Module:
        inner = self.of(x.body)
        counter = Counter(self._growth, x.kind, x.bound or 1)
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
            self._growth.add([done], clear=everything, target=[end])
        if x.bound is None:
            self._growth.add([again], clear=inner.inside, target=inner.initial)
            return module
        self._growth.add([again, *counter.last], clear=everything, target=[over])
        for step in counter.steps:
            self._growth.add(
                [again, *step.enabling],
                clear=inner.inside | step.clear,
                target=inner.initial | step.target,
            )
        return module

    def _modes(self, x: Modes) -> Module:
        """Guards, then the entries, then the bodies: a guard takes an event first."""
        growth = self._growth
        guards = [self.of(mode.guard) for mode in x.modes]
        entries_from = len(growth.transitions)
        bodies = [self.of(mode.body) for mode in x.modes]
        later = growth.transitions[entries_from:]
        del growth.transitions[entries_from:]

        def entered(number: int) -> frozenset[State]:
            others = [guard.initial for n, guard in enumerate(guards) if n != number]
            return bodies[number].initial.union(*others)

        module = self._around("modes", [*guards, *bodies], entered(0))
        everything = module.inside - {module.success, module.failure}
        if len(guards) < self._many_modes:
            for number, guard in enumerate(guards):
                growth.add([[guard.success]], clear=everything, target=entered(number))
        else:
            self._enter_by_turns(guards, bodies, everything)
        growth.transitions += later
        return module

    def _enter_by_turns(
        self, guards: list[Module], bodies: list[Module], everything: frozenset[State]
    ) -> None:
        """The transitions of all modes in sets that are not each as large as all modes together.

        If a guard has succeeded, all is cleared and every guard armed; the first one that has then
        enters its mode, and is disarmed. In the end it is forgotten which guards have succeeded.
        """
        growth = self._growth
        succeeded = frozenset(guard.success for guard in guards)
        entering = growth.state("enter a mode")
        armed = frozenset({entering}).union(*(guard.initial for guard in guards))
        growth.add([succeeded], clear=everything - succeeded, target=armed)
        for guard, body in zip(guards, bodies, strict=True):
            growth.add(
                [[guard.success], [entering]],
                clear=guard.initial | {entering},
                target=body.initial,
            )
        growth.add([succeeded], clear=succeeded)
