"""Which filter covers which, as often as brokers ask.

Deciding it takes milliseconds, and the same two filters meet at every broker that they pass and at
every change. So answers are remembered for the whole process, by filters and by what the ontology
said at the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ensue.brokers.boxes import are_disjoint
from ensue.brokers.weakening import asks_concepts, without_concepts
from ensue.brokers.witnesses import witnesses_of
from ensue.events.event import Event
from ensue.lang.expressions.asking import as_it_stands
from ensue.lang.expressions.tree import Not
from ensue.subscriptions import Filter, Ontology, covers

MOST_ANSWERS = 1 << 17


class Covering:
    """Questions about pairs of filters, under one ontology or none."""

    def __init__(self, ontology: Ontology | None) -> None:
        self.ontology = ontology

    def surely_covers(self, general: Filter, special: Filter) -> bool:
        """Whether `general` matches whatever `special` does, also where there is an ontology."""
        if self.ontology is None and asks_concepts(general):
            return general == special
        snapshot: Any = as_it_stands(self.ontology)
        return _surely_covers(general, special, snapshot)

    def witnesses(self, filter_: Filter) -> tuple[Event, ...]:
        """Publications that a filter matches; none if none was found."""
        if self.ontology is None and asks_concepts(filter_):
            return ()
        snapshot: Any = as_it_stands(self.ontology)
        return _witnesses(filter_, snapshot)

    def may_match(self, filter_: Filter, event: Event) -> bool:
        if self.ontology is None and asks_concepts(filter_):
            return True
        return filter_.matches(event, ontology=self.ontology)

    def are_apart(self, one: Filter, other: Filter) -> bool:
        """Whether surely no event matches both."""
        if are_disjoint(one.expression, other.expression):
            return True
        # An event that both match is often at hand; looking for a proof takes milliseconds.
        if any(self.may_match(one, each) for each in self.witnesses(other)):
            return False
        return self.surely_covers(_denied(one), other)


@lru_cache(MOST_ANSWERS)
def _surely_covers(general: Filter, special: Filter, ontology: Any) -> bool:
    if ontology is None:
        special = without_concepts(special)
    # A snapshot of an ontology never changes, and is told by its identity.
    return covers(general, special, ontology=ontology) is True


@lru_cache(MOST_ANSWERS)
def _witnesses(filter_: Filter, ontology: Any) -> tuple[Event, ...]:
    return witnesses_of(filter_, ontology)


@lru_cache(MOST_ANSWERS)
def _denied(filter_: Filter) -> Filter:
    return Filter(Not(filter_.expression))
