"""What follows from an ontology, against the judge `owlrl` on random ontologies and by hand."""

from __future__ import annotations

from random import Random

import pytest
from rdflib import Graph

from ensue.errors import OntologyError
from ensue.knowledge.reasoning.closure import entailed
from ensue.knowledge.reasoning.vocabulary import SAME, TYPE
from ensue.knowledge.sources import Text, read
from tests.knowledge.random_ontologies import iri, judged, named, random_ontology

HEAD = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def graph_of(text: str) -> Graph:
    return read([Text(HEAD + text)]).graph


@pytest.mark.parametrize("seed", range(40))
def test_names_are_related_as_the_judge_says(seed: int) -> None:
    random = Random(seed)
    graph = random_ontology(random, random.randint(5, 25))

    truth, _ = judged(graph)

    assert named(entailed(graph)) == truth


@pytest.mark.parametrize("seed", range(30))
def test_contradictions_of_the_judge_are_refused(seed: int) -> None:
    random = Random(seed)
    graph = random_ontology(random, random.randint(4, 14), contradicting=True)
    _, errors = judged(graph)

    try:
        entailed(graph)
        found: tuple[str, ...] = ()
    except OntologyError as error:
        found = error.problems[1:]

    # The judge reads one member of each place of a list, also where two are the same.
    assert bool(errors) == any("all different" not in each for each in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":a owl:differentFrom :a .", ":a and :a are both the same and different"),
        (
            "[] a owl:AllDifferent ; owl:members ( :a :b ) . :a owl:sameAs :b .",
            "are both the same and all different",
        ),
        (":p a owl:IrreflexiveProperty . :a :p :a .", "irreflexive :p to itself"),
        (":p a owl:AsymmetricProperty . :a :p :b . :b :p :a .", "asymmetric :p in both directions"),
        (":p owl:propertyDisjointWith :q . :a :p :b ; :q :b .", "which are disjoint"),
        (
            "[] a owl:AllDisjointProperties ; owl:members ( :p :q ) . :a :p :b ; :q :b .",
            "which are disjoint",
        ),
        (
            "[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b . "
            ":a :p :b .",
            ":a :p :b is both said and denied",
        ),
        (":a a owl:Nothing .", ":a is a member of owl:Nothing"),
        (":C owl:complementOf :D . :a a :C, :D .", "which are disjoint"),
        (":C owl:disjointWith :D . :a a :C, :D .", ":a is in :C and in :D, which are disjoint"),
        (
            "[] a owl:AllDisjointClasses ; owl:members ( :C :D ) . :a a :C, :D .",
            "which are disjoint",
        ),
        (
            ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] . :a a :C ; :p :b .",
            ":a may have no :p and has :b",
        ),
        (
            ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; "
            "owl:onClass :D ] . :a a :C ; :p :b . :b a :D .",
            ":a may have no :p and has :b",
        ),
        (':a :p "many"^^xsd:integer .', "many, a value of :p, is not of its own datatype"),
        (":p rdfs:range xsd:string . :a :p 5 .", "5, a value of :p, is outside of its range"),
        (":p rdfs:range xsd:byte . :a :p 300 .", "300, a value of :p, is outside of its range"),
    ],
)
def test_contradiction_is_refused_with_the_names_of_what_contradicts(text: str, said: str) -> None:
    with pytest.raises(OntologyError) as caught:
        entailed(graph_of(text), lambda node: str(node).replace("http://example.org/", ":"))

    assert "contradicts itself" in caught.value.problems[0]
    text_of_all = str(caught.value).replace("http://www.w3.org/2002/07/owl#", "owl:")
    assert said in text_of_all


@pytest.mark.parametrize(
    "text",
    [
        ":p rdfs:range xsd:integer . :a :p 5.0 .",
        ":p rdfs:range xsd:nonNegativeInteger . :a :p 0 .",
        ":p rdfs:range :MyType . :a :p 'x' .",
        ":C owl:disjointWith :D . :a a :C . :b a :D .",
        ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] . :a :p :b .",
        "[] a owl:AllDifferent ; owl:members ( :a :b ) .",
    ],
)
def test_what_only_looks_like_a_contradiction_is_none(text: str) -> None:
    assert len(entailed(graph_of(text))) > 0


def test_members_with_equal_keys_are_the_same_and_members_without_are_not() -> None:
    facts = entailed(
        graph_of(
            ":Host owl:hasKey ( :ip :port ) . :a a :Host ; :ip '1' ; :port 2 . "
            ":b a :Host ; :ip '1' ; :port 2, 3 . :c a :Host ; :ip '1' . :d a :Host ."
        )
    )

    same = {(x, y) for x, y in facts.pairs(SAME) if x != y}
    assert same == {(iri("a"), iri("b")), (iri("b"), iri("a"))}


def test_subjects_of_an_inverse_functional_property_with_unlike_values_are_not_the_same() -> None:
    facts = entailed(
        graph_of(":id a owl:InverseFunctionalProperty . :a :id :x . :b :id :y . :c :id :y .")
    )

    same = {(x, y) for x, y in facts.pairs(SAME) if x != y}
    assert same == {(iri("b"), iri("c")), (iri("c"), iri("b"))}


def test_broken_list_is_no_list() -> None:
    facts = entailed(
        graph_of(
            ":C owl:oneOf [ <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> :a ] . :b a :D ."
        )
    )

    assert (iri("a"), TYPE, iri("C")) not in facts
    assert (iri("b"), TYPE, iri("D")) in facts


@pytest.mark.parametrize(
    "statements",
    [
        "".join(f":C{n} rdfs:subClassOf :C{(n + 1) % 1200} . " for n in range(1200)),
        "".join(f":i{n} owl:sameAs :i{n + 1} . " for n in range(1200)),
        ":p a owl:TransitiveProperty . " + "".join(f":i{n} :p :i{n + 1} . " for n in range(1500)),
    ],
    ids=["classes in a circle", "a chain of what is the same", "a transitive chain"],
)
def test_more_statements_than_are_allowed_are_refused_before_any_is_made(statements: str) -> None:
    with pytest.raises(OntologyError, match="more than 1,000,000 statements follow from the onto"):
        entailed(graph_of(statements))
