"""Ontologies as users hold them: files, questions, columns, reading again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from rdflib import Graph, Literal, URIRef

from ensue.errors import OntologyError
from ensue.knowledge import SAMPLES, Ontology, sources

TURTLE = """
@prefix : <http://example.org/animals#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Dog rdfs:subClassOf :Animal . :fido a :Dog .
"""
XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
         xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
  <rdfs:Class rdf:about="http://example.org/animals#Cat">
    <rdfs:subClassOf rdf:resource="http://example.org/animals#Animal"/>
  </rdfs:Class>
</rdf:RDF>
"""
TRIPLES = (
    "<http://example.org/animals#tom> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    "<http://example.org/animals#Cat> .\n"
)


@pytest.fixture(scope="module")
def wine() -> Ontology:
    return Ontology.load(SAMPLES / "wine.ttl")


def test_files_of_all_formats_are_read_as_one(tmp_path: Path) -> None:
    for name, text in (("a.ttl", TURTLE), ("b.rdf", XML), ("c.nt", TRIPLES)):
        (tmp_path / name).write_text(text)

    animals = Ontology.load(tmp_path / "a.ttl", str(tmp_path / "b.rdf"), tmp_path / "c.nt")

    assert animals.more_specific("Animal") == ["Cat", "Dog", "fido", "tom"]


def test_everything_wrong_with_the_files_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.ttl").write_text("@prefix : <http://x/> .\n:a :b :c .\n:a :b \n")
    (tmp_path / "bad.rdf").write_text("<rdf:RDF\n")
    (tmp_path / "bad.nt").write_text("<a b .\n")
    (tmp_path / "latin.ttl").write_bytes(b"\xff\xfe\xff")

    with pytest.raises(OntologyError) as caught:
        Ontology.load(
            *(tmp_path / name for name in ("bad.ttl", "bad.rdf", "bad.nt", "latin.ttl", "x.doc")),
            tmp_path / "missing.ttl",
        )

    said = [each.replace(str(tmp_path), "") for each in caught.value.problems]
    assert said[0].startswith("`/bad.ttl` is no Turtle: line 3: ")
    assert said[1].startswith("`/bad.rdf` is no RDF/XML: line 1: ")
    assert said[2].startswith("`/bad.nt` is no N-Triples: ")
    assert said[3] == "`/latin.ttl` cannot be read: it is no UTF-8 text"
    assert said[4].startswith("`/x.doc`: the ending does not tell what format it has; known are")
    assert said[5] == "`/missing.ttl` cannot be read: No such file or directory"


def test_no_file_is_refused() -> None:
    with pytest.raises(OntologyError, match="name at least one file"):
        Ontology.load()


def test_wines_are_classified_by_what_is_said_of_them(wine: Ontology) -> None:
    assert wine.is_a("wine:HouseRed", "wine:RedWine")
    assert wine.is_a("Barolo", "Wine")
    assert not wine.is_a("Wine", "Barolo")
    assert not wine.is_a("HouseWhite", "RedWine")
    assert wine.same_as("Claret", "RedBordeaux")
    assert wine.equivalent("Claret") == ["wine:RedBordeaux"]
    assert wine.is_a("TourGriseClaret", "RedBordeaux")
    assert "wine:Nebbiolo" in wine.less_specific("CascinaBellaBarolo")


def test_properties_are_entailed_and_inherited_by_classes(wine: Ontology) -> None:
    assert wine.values("hasColor", "CascinaBellaBarolo") == ["wine:Red"]
    assert wine.values("hasColor", "Barolo") == ["wine:Red"]
    assert wine.values("makes", "Ketten") == ["wine:KettenEiswein", "wine:KettenRiesling"]
    assert wine.values("locatedIn", "Pauillac") == ["wine:Bordeaux", "wine:Europe", "wine:France"]
    assert wine.values("hasDescriptor", "Barolo") == ["wine:Full", "wine:Red"]


def test_classes_pass_a_transitive_property_on() -> None:
    faults = Ontology.parse(
        "@prefix : <http://example.org/faults#> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ":causes a owl:TransitiveProperty ."
        ":If rdfs:subClassOf [ owl:onProperty :causes ; owl:someValuesFrom :Link ] ."
        ":Link rdfs:subClassOf [ owl:onProperty :causes ; owl:someValuesFrom :Tunnel ] ."
    )

    assert faults.values("causes", "If") == ["Link", "Tunnel"]


def test_what_is_no_property_is_refused(wine: Ontology) -> None:
    with pytest.raises(OntologyError, match="`Barolo` is no property"):
        wine.values("Barolo", "Barolo")
    with pytest.raises(OntologyError, match="no property `hasColour`; did you mean `wine:hasColor"):
        wine.values("hasColour", "Barolo")


@pytest.mark.parametrize(
    "make",
    [
        lambda texts: pa.array(texts),
        lambda texts: pa.array(texts).dictionary_encode(),
        lambda texts: pa.chunked_array([texts[:2], texts[2:]]),
        lambda texts: texts,
    ],
    ids=["array", "dictionary", "chunks", "list"],
)
def test_column_is_answered_as_each_of_its_texts(
    wine: Ontology, make: Callable[[list[str | None]], object]
) -> None:
    texts = ["wine:HouseRed", "HouseWhite", None, "beer", "http://example.org/wine#Barolo"]

    codes = wine.codes(make(texts)).tolist()
    found = wine.matches(make(texts), "is_a", "RedWine").to_pylist()

    assert codes == [-1 if t in (None, "beer") else wine.snapshot.names.find(str(t)) for t in texts]
    assert found == [True, False, None, False, True]


def test_changed_file_takes_effect_on_reload(tmp_path: Path) -> None:
    path = tmp_path / "animals.ttl"
    path.write_text(TURTLE)
    animals = Ontology.load(path)
    before = animals.snapshot
    path.write_text(TURTLE + ":Wolf rdfs:subClassOf :Dog .\n")
    assert "Wolf" not in animals

    assert animals.reload() == 2

    assert animals.is_a("Wolf", "Animal")
    assert animals.generation == 2
    assert "Wolf" not in before.names.spellings


def test_reading_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "animals.ttl"
    path.write_text(TURTLE)
    animals = Ontology.load(path)
    path.write_text("no turtle at all")

    with pytest.raises(OntologyError, match="is no Turtle"):
        animals.reload()
    with pytest.raises(OntologyError, match="cannot be read"):
        animals.reload(tmp_path / "other.ttl")

    assert animals.generation == 1
    assert animals.is_a("fido", "Animal")
    path.write_text(TURTLE)
    assert animals.reload() == 2


def test_own_prefixes_win_over_those_of_the_files() -> None:
    animals = Ontology.parse(
        TURTLE, prefixes={"zoo": "http://example.org/animals#", "": "http://other/"}
    )

    assert animals.is_a("zoo:fido", "zoo:Animal")
    assert ":fido" not in animals
    assert animals.prefixes["zoo"] == "http://example.org/animals#"


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "endless.ttl"
    path.symlink_to("/dev/zero")

    with pytest.raises(OntologyError, match="has more than 1,024 KiB"):
        sources.read([path], sources.FileBounds(bytes=1 << 20))


@pytest.mark.parametrize("form", ["ttl", "nt", "xml"])
def test_a_file_of_too_many_statements_is_refused_as_it_is_read(tmp_path: Path, form: str) -> None:
    graph = Graph()
    for number in range(30):
        graph.add((URIRef("urn:x:a"), URIRef("urn:x:b"), Literal(number)))
    path = tmp_path / f"many.{form}"
    graph.serialize(
        path, format={"ttl": "turtle", "nt": "nt", "xml": "xml"}[form], encoding="utf-8"
    )

    assert len(sources.read([path], sources.FileBounds(statements=30)).graph) == 30
    with pytest.raises(OntologyError, match="more than 20 statements, which is the most"):
        sources.read([path], sources.FileBounds(statements=20))
