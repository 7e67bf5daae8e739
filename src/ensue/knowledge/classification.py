"""A code for every concept, and for each concept the codes that are more specific.

In come facts that are closed under reasoning. Classes, properties and individuals that have a name
get a number each, in the order of a walk over the hierarchy that goes down before it goes on, so
that what lies below a concept is mostly one run of numbers; where something has several parents it
stands below one, and the others have a run more (Agrawal, Borgida and Jagadish, 1989).

A concept is more specific than another if it is a subclass or subproperty of it, an instance of
it, or the same; instances of an instance are not. Everything but the names is known here only as
a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from rdflib.term import Node, URIRef

from ensue.knowledge.codes import CodeSet
from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.reasoning.vocabulary import (
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    NOTHING,
    ONTOLOGY,
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    THING,
    TYPE,
    VOCABULARIES,
)


@dataclass(frozen=True)
class Classification:
    """`concepts` are in the order of their codes; `below[code]` is what `IS_A` that concept."""

    concepts: tuple[URIRef, ...]
    below: tuple[CodeSet, ...]
    above: tuple[CodeSet, ...]
    same: tuple[CodeSet, ...]


def classify(facts: Triples) -> Classification:
    found = _concepts(facts)
    pairs = _hierarchy(facts, found)
    ordered = _in_order(found, pairs)
    codes: Mapping[Node, int] = {concept: code for code, concept in enumerate(ordered)}
    below: list[set[int]] = [{code} for code in range(len(ordered))]
    above: list[set[int]] = [{code} for code in range(len(ordered))]
    same: list[set[int]] = [{code} for code in range(len(ordered))]
    for narrow, wide in pairs:
        below[codes[wide]].add(codes[narrow])
        above[codes[narrow]].add(codes[wide])
    for predicate in (EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, SAME):
        for one, other in facts.pairs(predicate):
            if one in codes and other in codes:
                same[codes[one]].add(codes[other])
                same[codes[other]].add(codes[one])
    return Classification(
        tuple(ordered),
        tuple(map(CodeSet.of, below)),
        tuple(map(CodeSet.of, above)),
        tuple(map(CodeSet.of, same)),
    )


def is_concept(node: Node) -> bool:
    """A name that an ontology gives to something, `owl:Thing` and `owl:Nothing` included."""
    return isinstance(node, URIRef) and (
        node in (THING, NOTHING) or not str(node).startswith(VOCABULARIES)
    )


def _hierarchy(facts: Triples, concepts: Set[URIRef]) -> list[tuple[Node, Node]]:
    """All pairs of a more specific and a less specific concept, those by type included."""
    predicates = (SUB_CLASS, SUB_PROPERTY, SAME, TYPE, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY)
    pairs = [
        (narrow, wide)
        for predicate in predicates
        for narrow, wide in facts.pairs(predicate)
        if narrow in concepts and wide in concepts
    ]
    classes = {each for pair in facts.pairs(SUB_CLASS) for each in pair}
    classes |= {wide for _, wide in facts.pairs(TYPE)}
    pairs += [(each, THING) for each in classes & concepts]
    pairs += [(NOTHING, each) for each in classes & concepts]
    return pairs


def _concepts(facts: Triples) -> set[URIRef]:
    # Headers of ontologies are named too, and are no concepts.
    headers = facts.members(ONTOLOGY)
    found = {
        node
        for node in facts.nodes
        if isinstance(node, URIRef) and is_concept(node) and node not in headers
    }
    return found | {THING, NOTHING}


def _in_order(found: Set[URIRef], pairs: Sequence[tuple[Node, Node]]) -> list[URIRef]:
    """The concepts in depth-first order: each behind its nearest parent."""
    parents = _nearest_parents(found, pairs)
    children: dict[URIRef | None, list[URIRef]] = defaultdict(list)
    for concept in sorted(found):
        children[parents.get(concept)].append(concept)
    ordered: list[URIRef] = []
    waiting = children[None][::-1]
    while waiting:
        concept = waiting.pop()
        ordered.append(concept)
        waiting += children[concept][::-1]
    return ordered


def _nearest_parents(
    concepts: Set[URIRef], pairs: Sequence[tuple[Node, Node]]
) -> dict[URIRef, URIRef]:
    """For each concept its deepest parent: the parent with the most concepts above it.

    Concepts that are the same have each other above them: the first by name stands for all.
    """
    above: dict[Node, set[Node]] = defaultdict(set)
    for narrow, wide in pairs:
        if narrow != wide:
            above[narrow].add(wide)
    parents = {}
    for concept in concepts - {NOTHING}:
        wider = above[concept]
        same = {each for each in wider if concept in above[each]}
        first = min({concept, *same}, key=str)
        if first != concept:
            parents[concept] = first
        elif wider - same:
            parents[concept] = max(wider - same, key=lambda each: (len(above[each]), str(each)))
    return {concept: URIRef(str(parent)) for concept, parent in parents.items()}
