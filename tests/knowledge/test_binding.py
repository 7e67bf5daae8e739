"""Concept terms bound to an ontology: against their definition, as plain CESQL, and reloaded."""

from __future__ import annotations

import gc
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rdflib import Graph, Literal

from ensue.errors import OntologyError
from ensue.events.event import Event
from ensue.knowledge import SAMPLES, Ontology
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.asking import AskingScope, concept_holds
from ensue.lang.expressions.binding import bound, plain
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import BoundTerm, Expression, Not
from ensue.lang.source import Source
from tests.knowledge.random_ontologies import HOME, iri, random_ontology
from tests.knowledge.random_terms import random_term, random_value


def _random_ontology(random: Random) -> tuple[Ontology, list[str], list[str]]:
    """An ontology with constants too, its concepts, and its properties."""
    graph = Graph()
    graph += random_ontology(random, random.randint(5, 25))
    for number in range(4):
        for value in random.sample([1, 2, 2.5, "x", "y", True], 2):
            graph.add((iri(f"i{number}"), iri("size"), Literal(value)))
    ontology = Ontology.load(graph)
    concepts = [each for each in ontology.snapshot.concepts if each.startswith(HOME)]
    return ontology, concepts, [each for each in concepts if ontology.knows_property(each)]


def _event(value: Any) -> Event:
    data = {} if value is None else {"thing": value}
    return Event(id="1", source="s", type="t", time=0, data=data)


@pytest.mark.parametrize("seed", range(40))
def test_bound_term_answers_as_its_definition(seed: int) -> None:
    random = Random(seed)
    ontology, concepts, properties = _random_ontology(random)
    for _ in range(60):
        term = random_term(random, concepts, properties)
        test = ontology.bound(term)
        for _ in range(6):
            value = random_value(random, concepts)

            assert test.holds(value) == concept_holds(term, value, ontology.snapshot)


@pytest.mark.parametrize("seed", range(15))
def test_bound_term_its_plain_form_and_the_asking_scope_agree(seed: int) -> None:
    """Also under NOT, and where the attribute is missing."""
    random = Random(seed)
    ontology, concepts, properties = _random_ontology(random)
    for _ in range(30):
        term = random_term(random, concepts, properties)
        live = BoundTerm(term, ontology.bound(term))
        for shown in (term, _negated(term)):
            tied = bound(shown, ontology, Diagnostics(Source.of("")))
            as_bag = plain(tied, lambda _: False)
            as_text = plain(tied, lambda _: True)
            for _ in range(6):
                value = random_value(random, concepts)
                event = _event(value)
                expected = holds(shown, AskingScope(event, ontology=ontology.snapshot))

                assert holds(tied, event) == expected
                assert holds(as_bag, event) == expected
                if isinstance(value, str):
                    assert holds(as_text, event) == expected
        assert not holds(_negated(live), _event(None))


def _negated(x: Expression) -> Expression:
    return Not(x)


def test_bound_tree_prints_as_it_was_written() -> None:
    wine = Ontology.load(SAMPLES / "wine.ttl")
    text = (
        "a < 8 AND start AFTER(10 s) (wine IS_A wine:RedWine) "
        "OR ONTPROP<hasColor>(b) = Red AND NOT b SUBSUMES ALL (Barolo, wine:Claret)"
    )
    read = parse_expression(text)

    tied = bound(read, wine, Diagnostics(Source.of(text)))

    assert print_expression(tied) == print_expression(read)
    assert tied != read
    assert bound(tied, wine, Diagnostics(Source.of(text))) == tied


def test_every_unknown_name_is_reported_where_it_stands() -> None:
    wine = Ontology.load(SAMPLES / "wine.ttl")
    text = "b IS_A wine:Barollo AND ONTPROP<hasColour>(b) = Rot OR b IS_A Claret"
    diagnostics = Diagnostics(Source.of(text, "<filter>"))

    bound(parse_expression(text), wine, diagnostics)

    said = [str(each).splitlines()[0] for each in diagnostics.in_order()]
    assert said == [
        "<filter>:1:1: error: the ontology has no concept `wine:Barollo`; did you mean "
        "`wine:Barolo`? [unknown-concept]",
        "<filter>:1:25: error: the ontology has no property `hasColour`; did you mean "
        "`wine:hasColor`? [unknown-concept]",
        "<filter>:1:25: error: the ontology has no concept `Rot`; none of its 70 "
        "is spelled like it [unknown-concept]",
    ]


WITH_DOG = """
@prefix : <http://example.org/animals#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Dog rdfs:subClassOf :Animal . :Stone a rdfs:Class .
"""


def _animals(path: Path) -> Ontology:
    path.write_text(WITH_DOG)
    return Ontology.load(path)


def test_bound_term_follows_the_ontology(tmp_path: Path) -> None:
    animals = _animals(tmp_path / "a.ttl")
    tied = bound(parse_expression("thing IS_A Animal"), animals, Diagnostics(Source.of("")))
    assert not holds(tied, _event("Stone"))

    (tmp_path / "a.ttl").write_text(WITH_DOG + ":Stone rdfs:subClassOf :Animal .")
    animals.reload()

    assert holds(tied, _event("Stone"))
    assert holds(tied, _event("Dog"))


def test_reload_is_refused_while_a_bound_term_needs_what_is_gone(tmp_path: Path) -> None:
    animals = _animals(tmp_path / "a.ttl")
    tied = bound(parse_expression("thing IS_A Dog"), animals, Diagnostics(Source.of("")))
    (tmp_path / "a.ttl").write_text(WITH_DOG.replace(":Dog", ":Hund"))

    with pytest.raises(OntologyError, match="no concept `Dog`"):
        animals.reload()
    assert holds(tied, _event("Dog"))

    del tied
    gc.collect()
    assert animals.reload() == 2


def test_one_term_has_one_test() -> None:
    wine = Ontology.load(SAMPLES / "wine.ttl")
    one, other = parse_expression("b IS_A Claret"), parse_expression("b  IS_A  Claret")

    tied = [bound(each, wine, Diagnostics(Source.of(""))) for each in (one, other)]

    assert tied[0] == tied[1]
    assert hash(tied[0]) == hash(tied[1])
