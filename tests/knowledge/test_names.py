"""How concepts are written in filters and events."""

from __future__ import annotations

import pytest

from ensue.errors import OntologyError
from ensue.knowledge.codes import UNKNOWN
from ensue.knowledge.names import Names

WINE = "http://example.org/wine#"
PAINT = "http://example.org/paint/"
CONCEPTS = [WINE + "Red", WINE + "White", PAINT + "Red", PAINT + "Blue", "urn:x:Green"]
PREFIXES = {"wine": [WINE], "w": [WINE], "paint": [PAINT], "": [PAINT]}


@pytest.fixture
def names() -> Names:
    return Names(CONCEPTS, PREFIXES)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (WINE + "Red", 0),
        (f"<{WINE}Red>", 0),
        ("wine:Red", 0),
        ("w:Red", 0),
        (":Red", 2),
        ("White", 1),
        ("Blue", 3),
        ("Green", 4),
        ("urn:x:Green", 4),
    ],
)
def test_concept_is_found_by_each_spelling(names: Names, text: str, code: int) -> None:
    assert names.find(text) == code
    assert names.code(text) == code


@pytest.mark.parametrize("value", ["Red", "red", "nothing", "", None, 5, 2.5, True, ["White"]])
def test_value_of_an_event_that_is_no_name_has_no_code(names: Names, value: object) -> None:
    assert names.code(value) == UNKNOWN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Red", "`Red` is ambiguous: write `w:Red` or `paint:Red`"),
        ("wine:Wite", "the ontology has no concept `wine:Wite`; did you mean `w:White`?"),
        ("Wite", "the ontology has no concept `Wite`; did you mean `w:White`?"),
        ("white", "the ontology has no concept `white`; did you mean `w:White`?"),
        ("beer:Ale", "the prefix `beer:` is not declared, known are `paint:`, `w:`, `wine:`"),
        ("Xyzzy", "the ontology has no concept `Xyzzy`; none of its 5 is spelled like it"),
    ],
)
def test_name_in_a_filter_that_is_none_is_refused_with_what_could_be_meant(
    names: Names, text: str, said: str
) -> None:
    with pytest.raises(OntologyError) as caught:
        names.find(text)

    assert said.rstrip("?") in str(caught.value)


def test_prefix_with_two_namespaces_is_ambiguous_where_it_matters() -> None:
    names = Names([WINE + "Red", PAINT + "Red", PAINT + "Blue"], {"p": [WINE, PAINT]})

    assert names.find("p:Blue") == 2
    with pytest.raises(OntologyError, match=f"write `<{WINE}Red>` or `<{PAINT}Red>"):
        names.find("p:Red")


def test_all_spellings_of_some_concepts_are_listed(names: Names) -> None:
    assert sorted(names.spelled([1])) == [
        f"<{WINE}White>",
        "White",
        f"{WINE}White",
        "w:White",
        "wine:White",
    ]
