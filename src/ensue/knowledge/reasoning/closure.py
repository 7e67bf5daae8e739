"""Everything that follows from an ontology by the rules of OWL 2 RL.

In comes a graph, out go its facts together with all that they entail. The reasoner `reasonable`
does the bulk; the rules that it lacks are in `rules`, and the two take turns until nothing new
follows. An ontology that contradicts itself is refused here, with every contradiction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import reasonable
from rdflib.term import Node, URIRef

from ensue.errors import OntologyError
from ensue.knowledge.reasoning.contradictions import contradictions
from ensue.knowledge.reasoning.rules import consequences
from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.reasoning.vocabulary import (
    INVERSE_FUNCTIONAL,
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    TRANSITIVE,
    Triple,
)

# `reasonable` 0.4 takes any two subjects of an inverse functional property for the same, whatever
# their values, so it sees another name in place of the class of these properties.
_HIDDEN = URIRef("urn:ensue:inverse-functional")

MOST_STATEMENTS = 1_000_000
"""How many statements may follow from hierarchies, and from what is the same or transitive."""

MOST_NAMED = 20
"""How many contradictions a message lists."""


def entailed(triples: Iterable[Triple], show: Callable[[Node], str] = str) -> Triples:
    """The closure of the triples. Raises `OntologyError` if they contradict each other."""
    facts = Triples(triples)
    _refuse_too_many(facts, show)
    reasoner = reasonable.PyReasoner()
    new: Iterable[Triple] = list(facts)
    while new:
        reasoner.from_graph([_replaced(each, INVERSE_FUNCTIONAL, _HIDDEN) for each in new])
        known = reasoner.reason()
        facts.add_all(_replaced(each, _HIDDEN, INVERSE_FUNCTIONAL) for each in known)
        new = consequences(facts)
        facts.add_all(new)
    found = contradictions(facts, show)
    if found:
        more = len(found) - MOST_NAMED
        raise OntologyError(
            [
                "the ontology contradicts itself, so that everything would follow from it; "
                "correct one side of each",
                *found[:MOST_NAMED],
                *([f"and {more:,} more"] if more > 0 else []),
            ]
        )
    return facts


def _refuse_too_many(facts: Triples, show: Callable[[Node], str]) -> None:
    """Raises `OntologyError` if hierarchies alone make more statements than are allowed.

    They are counted before the reasoner begins, which cannot be stopped.
    """
    left = MOST_STATEMENTS
    for predicate in (SUB_CLASS, SUB_PROPERTY, SAME, *facts.members(TRANSITIVE)):
        for start in [*facts.by_subject(predicate)]:
            seen = {start}
            waiting = [start]
            while waiting:
                node = waiting.pop()
                beside = facts.objects(node, predicate)
                if predicate == SAME:
                    beside = beside | facts.subjects(predicate, node)
                new = beside - seen
                seen |= new
                waiting += new
                left -= len(new)
                if left < 0:
                    raise OntologyError(
                        [
                            f"more than {MOST_STATEMENTS:,} statements follow from the ontology, by"
                            f" `{show(predicate)}` and others, and so many are allowed: leave out"
                            " what no rule asks for, or long chains and circles"
                        ]
                    )


def _replaced(triple: Triple, old: URIRef, new: URIRef) -> Triple:
    subject, predicate, value = triple
    if value == old or subject == old:
        return new if subject == old else subject, predicate, new if value == old else value
    return triple
