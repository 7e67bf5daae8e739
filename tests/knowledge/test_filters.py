"""Filters that ask an ontology: alone, in an index, and over a history, while it changes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from rdflib import Graph, Literal

from ensue.errors import OntologyError, UsageError
from ensue.events.event import Event
from ensue.history import History
from ensue.knowledge import SAMPLES, Ontology
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Expression, Logic, Not
from ensue.subscriptions import Filter, Index, covers
from tests.knowledge.random_ontologies import HOME, iri, random_ontology
from tests.knowledge.random_terms import random_term, random_value


@pytest.fixture(scope="module")
def wine() -> Ontology:
    return Ontology.load(SAMPLES / "wine.ttl")


def _sale(number: int, **data: Any) -> Event:
    return Event(str(number), "shop", "Sale", number * 1_000_000, data)


@pytest.mark.parametrize(
    ("text", "wines"),
    [
        ("B IS_A wine:RedWine", ["HouseRed", "wine:Barolo", "Claret"]),
        ("B IS_A RedWine AND NOT B IS_A Nebbiolo", ["HouseRed", "Claret"]),
        ("ONTPROP<wine:hasColor>(B) = wine:Red", ["HouseRed", "wine:Barolo", "Claret"]),
        ("ONTPROP<wine:hasColor>(B) != wine:Red", ["HouseWhite"]),
        ("ONTPROP<hasDescriptor>(B) IS_A Body", ["wine:Barolo"]),
        ("ONTPROP<vintage>(B) >= 2016", []),
        ("B SUBSUMES wine:TourGriseClaret", ["Claret"]),
        ("B SAME_AS 'http://example.org/wine#RedBordeaux'", ["Claret"]),
        ("B IS_A (WhiteWine, Nebbiolo)", ["HouseWhite", "wine:Barolo"]),
    ],
)
def test_filter_is_asked_with_an_ontology(wine: Ontology, text: str, wines: list[str]) -> None:
    made = Filter.parse(text)
    asked = ["HouseRed", "HouseWhite", "wine:Barolo", "Claret", "beer"]

    found = [each for each in asked if made.matches(_sale(1, B=each), ontology=wine)]

    assert found == sorted(wines, key=asked.index)
    assert str(made) == text.replace("(WhiteWine", "ANY (WhiteWine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("B IS_A wine:Baroloo", "no concept `wine:Baroloo`; did you mean `wine:Barolo`?"),
        ("ONTPROP<hasColour>(B) = Red", "no property `hasColour`; did you mean `wine:hasColor`"),
        ("start AFTER(1 s) (B IS_A Rot)", "no concept `Rot`; none of its 70 is spelled like it"),
    ],
)
def test_unknown_names_are_said_when_a_subscription_is_made(
    wine: Ontology, text: str, said: str
) -> None:
    index = Index(history=History.open("memory:", ontology=wine), ontology=wine)

    with pytest.raises(UsageError) as caught:
        index.add("mine", text)

    assert said in str(caught.value)
    assert len(index) == 0


def _random_filter(random: Random, concepts: list[str], properties: list[str]) -> Expression:
    terms: list[Expression] = []
    for _ in range(random.randint(1, 3)):
        term: Expression = random_term(random, concepts, properties)
        terms.append(Not(term) if random.random() < 0.3 else term)
    if len(terms) == 1:
        return terms[0]
    signs = tuple(random.choice(["AND", "OR", "XOR"]) for _ in terms[1:])
    return Logic(tuple(terms), signs)


@pytest.mark.parametrize("seed", range(12))
def test_index_matches_what_each_filter_matches_before_and_after_a_reload(seed: int) -> None:
    random = Random(seed)
    graphs = [_with_sizes(random_ontology(random, 20), random) for _ in range(2)]
    # What one of them has the other has too, so that no filter is refused.
    everything = graphs[0] + graphs[1]
    concepts = [each for each in Ontology.load(everything).snapshot.concepts if HOME in each]
    for graph in graphs:
        for each in concepts:
            graph.add((iri(each.removeprefix(HOME)), iri("mentioned"), Literal(1)))
    ontology = Ontology.load(graphs[0])
    properties = [
        each
        for each in concepts
        if all(Ontology.load(graph).knows_property(each) for graph in graphs)
    ]
    index = Index(ontology=ontology)
    filters = {}
    for number in range(60):
        text = print_expression(_random_filter(random, concepts, properties))
        filters[number] = Filter.parse(text)
        index.add(number, filters[number])

    for reload in (False, True):
        if reload:
            ontology.reload(graphs[1])
        for number in range(40):
            value = random_value(random, concepts)
            event = _sale(number, **({} if value is None else {"thing": value}))
            expected = [n for n, f in filters.items() if f.matches(event, ontology=ontology)]

            assert index.match(event) == expected


def _with_sizes(graph: Graph, random: Random) -> Graph:
    for number in range(4):
        graph.add((iri(f"i{number}"), iri("size"), Literal(random.choice([1, 2, 2.5]))))
    return graph


def test_history_finds_what_came_before_by_its_meaning(wine: Ontology, tmp_path: Path) -> None:
    for url in ("memory:", f"sqlite:{tmp_path / 'sales.db'}"):
        with History.open(url, ontology=wine) as history:
            for number, name in enumerate(["HouseRed", "HouseWhite", "wine:Barolo", "beer"]):
                history.add(_sale(number, A=number, B=name))
            red = "ONTPROP<hasColor>(B) = Red"
            now = _sale(4, A=1, B="Claret")

            assert [each.id for each in history.find(red)] == ["0", "2"]
            assert history.matches(f"start AFTER(2 s) ({red})", now)
            assert not history.matches(f"start AFTER(1 s) ({red})", now)
            assert history.matches(f"A FILTER(<, 1) ({red})", now)
            assert not history.matches(f"A FILTER(>, 1) ({red})", now)
            assert history.matches("B FILTER(SUBSUMES) (B SAME_AS Claret)", now) is False
            assert history.matches("B FILTER(SUBSUMES) (A = 2)", _sale(5, B="RedWine"))
            assert not history.matches("B FILTER(IS_A) (A = 2)", _sale(5, B="RedWine"))


ANIMALS = """
@prefix : <http://example.org/animals#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Cat a rdfs:Class . :Dog a rdfs:Class . :Stone a rdfs:Class . :Animal a rdfs:Class .
"""
DOGS = ANIMALS + ":Dog rdfs:subClassOf :Animal ."
STONES = ANIMALS + ":Aaa a rdfs:Class . :Aab a :Aaa . :Stone rdfs:subClassOf :Animal ."


def test_history_answers_by_the_ontology_in_force(tmp_path: Path) -> None:
    path = tmp_path / "animals.ttl"
    path.write_text(DOGS)
    animals = Ontology.load(path)
    with History.open("memory:", ontology=animals) as history:
        history.add(_sale(1, B="Stone"))
        assert history.find("B IS_A Animal") == []
        assert not history.matches("start AFTER(9 s) (B IS_A Animal)", _sale(2))

        path.write_text(STONES)
        animals.reload()

        assert len(history.find("B IS_A Animal")) == 1
        assert history.matches("start AFTER(9 s) (B IS_A Animal)", _sale(2))


def test_subscription_keeps_the_concepts_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "animals.ttl"
    path.write_text(DOGS)
    animals = Ontology.load(path)
    index = Index(ontology=animals)
    index.add("dogs", "B IS_A Dog")
    path.write_text(DOGS.replace("Dog", "Hund"))

    with pytest.raises(OntologyError, match="no concept `Dog`"):
        animals.reload()
    assert index.match(_sale(1, B="Dog")) == ["dogs"]

    index.remove("dogs")
    assert animals.reload() == 2


def test_event_is_answered_by_one_reading_while_another_thread_reloads(tmp_path: Path) -> None:
    """Both are animals in no reading; codes of the two readings differ."""
    paths = [tmp_path / "dogs.ttl", tmp_path / "stones.ttl"]
    for path, text in zip(paths, (DOGS, STONES), strict=True):
        path.write_text(text)
    animals = Ontology.load(paths[0])
    index = Index(ontology=animals)
    index.add("both", "a IS_A Animal AND b IS_A Animal")
    index.add("dog", "a IS_A Animal")
    index.add("stone", "b IS_A Animal")
    done = Flag()

    def reload() -> None:
        for number in range(40):
            animals.reload(paths[number % 2])
        done.set()

    thread = Thread(target=reload)
    thread.start()
    found = set()
    while not done.is_set():
        found.add(tuple(index.match(_sale(1, a="Dog", b="Stone"))))
    thread.join()

    assert found <= {("dog",), ("stone",)}


@pytest.mark.parametrize(
    ("general", "special", "answer"),
    [
        ("B IS_A Wine", "B IS_A RedWine", True),
        ("B IS_A RedWine", "B IS_A Wine", None),
        ("B IS_A Wine", "B SAME_AS Claret AND A > 3", True),
        ("B IS_A (RedWine, WhiteWine)", "B IS_A Nebbiolo", True),
        ("B IS_A Wine OR EXISTS A", "A = 1", False),
        ("B IS_A Wine OR EXISTS A", "B IS_A RedWine AND A = 1", True),
        ("NOT B IS_A Wine", "NOT B IS_A Wine AND A = 1", True),
        ("NOT B IS_A RedWine", "NOT B IS_A Wine", True),
    ],
)
def test_filters_cover_each_other_as_the_ontology_says(
    wine: Ontology, general: str, special: str, answer: bool | None
) -> None:
    """A term whose attribute is missing is in error, so that nothing beside it helps."""
    found = covers(general, special, ontology=wine)

    assert found is answer or (answer is None and found is False)
