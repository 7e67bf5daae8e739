"""Port predicates that ask an ontology, in every engine, while rules and ontology change."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.knowledge import SAMPLES, Ontology

RULES = """
eventtype Sale { attribute string wine; attribute sequence<string> basket; attribute long n; };
eventtype Empty {};
eventtype Found { attribute string first, second; };

Found correlation RedThenDry (Sale a where wine IS_A wine:RedWine AND n < 8,
                              Sale b where ONTPROP<wine:hasSugar>(wine) = wine:Dry)
    a ; b
{
    case true: push new Found { first = a.wine, second = b.wine };
}

Found correlation Baskets (Sale c where basket IS_A ONLY (WhiteWine, RoseWine),
                           Sale d where NOT basket IS_A ALL (RedWine, WhiteWine),
                           Sale e where ONTPROP<vintage>(wine) > 2015 AND type != 'x')
    c + d + e
{
    case true: push new Found { first = c.wine, second = e.wine };
}

Empty ecl Clarets (Sale a where wine SAME_AS RedBordeaux, Sale z where n >= 0)
{
    repeat { notify { sequential { a, accumulate { z, < ONTPROP<locatedIn>(wine) = Italy > } } } }
}
"""
WINES = [
    *("CascinaBellaBarolo", "wine:ClosDuMoulinPinot", "http://example.org/wine#TourGriseClaret"),
    *("HouseRed", "wine:KettenRiesling", "ClosDuMoulinChablis", "SummerRose", "Claret", "beer"),
]


def _events(count: int, seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    events = []
    for number in range(count):
        data: dict[str, Any] = {"n": random.randrange(10), "wine": None, "basket": None}
        if random.random() < 0.9:
            data["wine"] = random.choice(WINES)
        if random.random() < 0.8:
            data["basket"] = random.sample(WINES, random.randrange(4))
        time = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"
        events.append(
            {"id": str(number), "source": "shop", "type": "Sale", "time": time, "data": data}
        )
    return events


@pytest.fixture(scope="module")
def wine() -> Ontology:
    return Ontology.load(SAMPLES / "wine.ttl")


def _facts(outputs: list[ensue.Event]) -> list[tuple[Any, ...]]:
    return [(each.source, each.time, each.extensions.get("causes"), each.data) for each in outputs]


@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("seed", range(3))
def test_engines_agree_with_the_reference(wine: Ontology, engine: str, seed: int) -> None:
    library = ensue.parse(RULES, ontology=wine)
    events = _events(300, seed)

    expected = _facts(list(library.run(events, engine="reference")))

    assert len(expected) > 20
    assert {each[0] for each in expected} == {
        "ensue/RedThenDry",
        "ensue/Baskets",
        "ensue/Clarets",
    }
    assert _facts(list(library.run(events, engine=engine))) == expected


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
def test_plain_library_and_its_tables_put_out_the_same(wine: Ontology, engine: str) -> None:
    library = ensue.parse(RULES, ontology=wine)
    events = _events(300, 7)
    expected = _facts(list(library.run(events, engine="reference")))

    plain = ensue.parse(str(library.plain()))
    from_tables = ensue.Library.from_tables(library.tables())

    assert "IS_A" not in str(plain)
    assert _facts(list(plain.run(events, engine=engine))) == expected
    assert _facts(list(from_tables.run(events, engine=engine))) == expected


def test_arrow_table_is_correlated_by_concepts(wine: Ontology) -> None:
    library = ensue.parse(RULES, ontology=wine)
    wines = ["HouseRed", "ClosDuMoulinChablis", "HouseRed", "beer", "HouseWhite"]
    table = pa.table(
        {
            "id": [str(each) for each in range(5)],
            "source": ["shop"] * 5,
            "type": ["Sale"] * 5,
            "time": pa.array(range(5), pa.timestamp("s", "UTC")),
            "wine": wines,
            "basket": pa.array([None] * 5, pa.list_(pa.string())),
            "n": [1] * 5,
        }
    )

    out = ensue.correlate(table, library).to_pylist()

    found = [each["causes"] for each in out if each["correlation"] == "RedThenDry"]
    assert found == ["0,1", "2,4"]


def test_library_shows_what_was_written(wine: Ontology) -> None:
    library = ensue.parse(RULES, ontology=wine)

    assert str(library) == str(ensue.parse(RULES))
    assert library.warnings == ()
    assert "needs-ontology" in str(ensue.parse(RULES).warnings[0])


def test_without_an_ontology_a_concept_term_never_holds() -> None:
    library = ensue.parse(RULES)

    assert list(library.run(_events(100, 1))) == []


def test_unknown_concepts_are_located_beside_other_mistakes(wine: Ontology) -> None:
    text = RULES.replace("wine:RedWine AND", "wine:RedWein AND").replace("first = a", "frist = a")

    with pytest.raises(ensue.LibraryError) as caught:
        ensue.parse(text, "rules.cor", ontology=wine)

    said = [str(each) for each in caught.value.diagnostics]
    assert len(said) == 2
    assert said[0].splitlines()[0] == (
        "rules.cor:6:44: error: the ontology has no concept `wine:RedWein`; did you mean "
        "`wine:RedWine`? [unknown-concept]"
    )
    assert "frist" in said[1]


SIMPLE = """
eventtype Seen { attribute string kind; };
Seen correlation Twice (Seen a where kind IS_A Animal, Seen b where kind = 'end') a{2} ; b
{ case true: push b; }
"""
ANIMALS = """
@prefix : <http://example.org/animals#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Dog rdfs:subClassOf :Animal . :Stone a rdfs:Class .
"""


def _seen(kind: str, second: int) -> dict[str, Any]:
    time = f"2026-01-01T00:00:{second:02}Z"
    return {"id": str(second), "source": "s", "type": "Seen", "time": time, "data": {"kind": kind}}


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
def test_run_goes_on_with_its_state_when_the_ontology_changes(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "animals.ttl"
    path.write_text(ANIMALS)
    animals = Ontology.load(path)
    run = ensue.parse(SIMPLE, ontology=animals).start(engine=engine)
    assert run.push(_seen("Dog", 1)) == []
    assert run.push(_seen("Stone", 2)) == []
    assert run.push(_seen("end", 3)) == []

    path.write_text(ANIMALS + ":Stone rdfs:subClassOf :Animal .")
    animals.reload()

    assert run.push(_seen("Stone", 4)) == []
    assert [each.id for each in run.push(_seen("end", 5))] == ["5"]


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
def test_rules_that_come_later_and_resumed_runs_ask_the_ontology_too(
    wine: Ontology, engine: str
) -> None:
    library = ensue.parse(RULES, ontology=wine)
    run = library.start(engine=engine)
    run.add(
        "Found correlation Late (Sale z where wine IS_A wine:WhiteWine) z"
        " { case true: push new Found { first = z.wine }; }"
    )
    events = _events(60, 3)
    for event in events[:30]:
        run.push(event)

    text = run.text
    again = ensue.parse(text, ontology=wine).resume(run.snapshot())
    expected = [output for event in events[30:] for output in run.push(event)]
    found = [output for event in events[30:] for output in again.push(event)]

    assert _facts(found) == _facts(expected)
    assert any(each.source == "ensue/Late" for each in found)
    with pytest.raises(ensue.LibraryError, match="no concept `Whyte`"):
        run.add("Found correlation X (Sale z where wine IS_A Whyte) z { case true: push z; }")
