"""Codes and closures against the facts that they are made from."""

from __future__ import annotations

from random import Random

import pytest
from rdflib import OWL, RDF, RDFS, Graph, URIRef
from rdflib.term import Node

from ensue.knowledge.classification import classify
from ensue.knowledge.reasoning.closure import entailed
from ensue.knowledge.reasoning.triples import Triples
from tests.knowledge.random_ontologies import HOME, iri, random_ontology


def _is_a(facts: Triples, narrow: Node, wide: Node) -> bool:
    """The definition: the same, below as a class or property, or an instance."""
    return narrow == wide or any(
        (narrow, predicate, wide) in facts
        for predicate in (RDFS.subClassOf, RDFS.subPropertyOf, RDF.type, OWL.sameAs)
    )


def _is_same(facts: Triples, one: Node, other: Node) -> bool:
    return one == other or any(
        (one, predicate, other) in facts
        for predicate in (OWL.equivalentClass, OWL.equivalentProperty, OWL.sameAs)
    )


@pytest.mark.parametrize("seed", range(30))
def test_codes_answer_as_the_facts_do(seed: int) -> None:
    random = Random(seed)
    facts = entailed(random_ontology(random, random.randint(5, 25)))

    made = classify(facts)

    own = [(code, each) for code, each in enumerate(made.concepts) if each.startswith(HOME)]
    for narrow, x in own:
        for wide, y in own:
            assert (narrow in made.below[wide]) == _is_a(facts, x, y)
            assert (wide in made.above[narrow]) == _is_a(facts, x, y)
            assert (narrow in made.same[wide]) == _is_same(facts, x, y)


def test_instances_of_an_instance_are_not_more_specific() -> None:
    graph = Graph()
    graph.add((iri("Fido"), RDF.type, iri("Dog")))
    graph.add((iri("Dog"), RDF.type, iri("Species")))

    made = classify(entailed(graph))
    code = {each: number for number, each in enumerate(made.concepts)}

    assert code[iri("Fido")] in made.below[code[iri("Dog")]]
    assert code[iri("Dog")] in made.below[code[iri("Species")]]
    assert code[iri("Fido")] not in made.below[code[iri("Species")]]


def test_what_is_below_a_class_of_a_tree_is_one_run_of_codes() -> None:
    graph = Graph()
    for number in range(1, 200):
        graph.add((iri(f"c{number}"), RDFS.subClassOf, iri(f"c{(number - 1) // 3}")))

    made = classify(entailed(graph))

    for number, each in enumerate(made.concepts):
        if each.startswith(HOME):
            # `owl:Nothing` is below every class, and is no part of the tree.
            runs = list(made.below[number].bounds[::2])
            nothing = made.concepts.index(URIRef(OWL.Nothing))
            assert len([start for start in runs if start != nothing]) == 1


def test_concepts_that_are_the_same_have_codes_side_by_side() -> None:
    graph = Graph()
    for letter in "abc":
        graph.add((iri(letter), RDFS.subClassOf, iri("top")))
    graph.add((iri("a"), OWL.equivalentClass, iri("c")))

    made = classify(entailed(graph))

    assert len(made.same[made.concepts.index(iri("a"))].bounds) == 2
