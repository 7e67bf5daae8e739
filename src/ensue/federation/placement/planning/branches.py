"""Branches of a rule that can be placed apart: no event is of two of them, and they share nothing.

In come a rule, and the sites at which events of its ports arise; out go its branches in groups,
each of which is placed as a rule of its own, with a home of its own. Each branch of `||` remembers
and forgets for itself, and an output is numbered by the event that triggered it. So where no event
can be read by two groups, each puts out what the whole rule would. What ties branches together
keeps them at one home: labels that are aborted, timers and timeouts, statements before the first
case, and a port of `unless` that is also matched.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from ensue.lang.derived.parts import ports_in, statements_of
from ensue.lang.derived.relating import has_timeout
from ensue.lang.derived.wiring import rules_named, source_test
from ensue.lang.expressions.tree import Expression, Literal, Logic
from ensue.lang.syntax import (
    Change,
    Correlation,
    EventPort,
    FilterCorrelation,
    TimerPort,
)
from ensue.subscriptions import Filter as Predicate
from ensue.subscriptions import covers

NOTHING = Predicate.parse("FALSE")


def is_impossible(tests: list[Expression]) -> bool:
    """Whether no event can pass all of some tests, as far as that can be told."""
    if Literal(False) in tests:
        return True
    if len(tests) < 2:
        return False
    together = Predicate(Logic(tuple(tests), ("AND",) * (len(tests) - 1)))
    return covers(NOTHING, together) is True


def tests_of(port: EventPort) -> list[Expression]:
    """What a port asks of an event from outside besides its type."""
    source = source_test(port)
    tests = [] if source is None else [source]
    return tests if port.where is None else [*tests, port.where]


def _can_meet(one: EventPort, other: EventPort) -> bool:
    """Whether an event from outside, or of a rule that both name, may pass the tests of both."""
    if not is_impossible([*tests_of(one), *tests_of(other)]):
        return True
    if set(rules_named(one)).isdisjoint(rules_named(other)):
        return False
    return not is_impossible([each.where for each in (one, other) if each.where is not None])


def groups_of(
    rule: Correlation,
    origins: Mapping[str, tuple[str, ...]],
    accepted: Mapping[str, frozenset[str]],
) -> list[tuple[int, ...]]:
    """The numbers of the branches, in groups; one group where the rule stays whole."""
    if not isinstance(rule, FilterCorrelation):
        return [(0,)]
    whole = [tuple(range(len(rule.branches)))]
    if len(rule.branches) == 1 or _is_tied(rule):
        return whole
    ports = {each.name: each for each in rule.ports if isinstance(each, EventPort)}
    read = [[ports[name] for name in set(ports_in([branch]))] for branch in rule.branches]

    def meet(one: EventPort, other: EventPort) -> bool:
        return one is other or (
            not set(origins[one.name]).isdisjoint(origins[other.name])
            and not accepted[one.name].isdisjoint(accepted[other.name])
            and _can_meet(one, other)
        )

    group = list(whole[0])
    for first, second in combinations(group[:], 2):
        if any(meet(one, other) for one in read[first] for other in read[second]):
            group = [group[first] if each == group[second] else each for each in group]
    return [
        tuple(number for number, each in enumerate(group) if each == first)
        for first in dict.fromkeys(group)
    ]


def _is_tied(rule: FilterCorrelation) -> bool:
    """Whether what happens in one branch can be seen in another."""
    voids = {port.name for port in rule.clauses.unless}
    return bool(
        rule.initially
        or has_timeout(rule)
        or any(isinstance(port, TimerPort) for port in rule.ports)
        or any(isinstance(each, Change) for each in statements_of(rule))
        or voids & set(ports_in(rule.branches))
    )
