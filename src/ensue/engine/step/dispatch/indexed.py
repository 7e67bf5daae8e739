"""Many predicates of one type that no look-up by a single attribute answers, in one index.

In come predicates with their bits; out goes a function from an event to the bits of those that
hold. It is the index of subscriptions (`ensue.lang.matching`): ranges on both sides, prefixes,
lists and their combinations are found without asking each. Predicates that ask a history or an
ontology stay outside: the run answers these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ensue.events.event import Event
from ensue.lang.expressions import Expression, Like
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.tree import BoundTerm, ConceptTerm, TemporalTerm

MANY_EVALUATED = 3
MANY = {"evaluated": MANY_EVALUATED, "pattern": 25, "plain": 1_000}
"""From how many predicates on the index is quicker than a line for each: a look-up takes some 9 us,
an evaluation 10 to 25, a pattern 0.5 to 1, and a comparison of Python less than a tenth."""


def is_indexable(predicate: Expression) -> bool:
    """Whether the predicate asks for nothing but the event."""
    waiting = [predicate]
    while waiting:
        current = waiting.pop()
        if isinstance(current, TemporalTerm | ConceptTerm | BoundTerm):
            return False
        waiting.extend(parts_of(current))
    return True


def has_pattern(predicate: Expression) -> bool:
    waiting = [predicate]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Like):
            return True
        waiting.extend(parts_of(current))
    return False


def indexed(predicates: Mapping[Expression, int]) -> Callable[[Event], int]:
    """The bits of the predicates that hold of an event."""
    from ensue.lang.matching.index import PredicateIndex

    index = PredicateIndex()
    bits = list(predicates.values())
    for number, predicate in enumerate(predicates):
        index.add(number, predicate)
    match = index.match

    def tests_of(event: Event) -> int:
        tests = 0
        for number in match(event):
            tests |= bits[number]
        return tests

    return tests_of
