"""Terms of bags, histories and ontologies: their text, their places, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import LibraryError
from ensue.events.event import Event
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions import Comparison, Expression, Literal, Name
from ensue.lang.expressions.evaluation import evaluate, holds
from ensue.lang.expressions.terms import CONCEPT_TESTS, RELATIONS, Concept, ConceptBag
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    ConceptTerm,
    During,
    Has,
    IsA,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
    TemporalTerm,
)
from ensue.lang.source import Source

from .trees import expressions, instants, names, texts

A1 = Comparison(Name(("a",)), (("=", Literal(1)),))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("start AFTER(10 s) (a = 1)", After("start", 10_000_000, A1)),
        ("END after(2 s, 3 times)(a = 1)", After("end", 2_000_000, A1, 3)),
        ("start AFTER (a = 1)", After("start", None, A1)),
        ("start AFTER(3 TIMES) (a = 1)", After("start", None, A1, 3)),
        ("end BEFORE(1.5 ms) (a = 1)", Before("end", 1_500, A1)),
        ("start DURING (a = 1)", During("start", A1)),
        ("start DURING(2 TIMES) (a = 1)", During("start", A1, 2)),
        ("start MEETS (a = 1)", Related("MEETS", A1, "start")),
        ("overlapped_by (a = 1)", Related("OVERLAPPED_BY", A1)),
        ("AFTER (a = 1)", Related("AFTER", A1)),
        ("x.y FILTER(>) (a = 1)", Compared(Name(("x", "y")), ">", None, A1)),
        ("x FILTER(<>, 5) (a = 1)", Compared(Name(("x",)), "!=", 5, A1)),
        ("x FILTER(is_a, 5) (a = 1)", Compared(Name(("x",)), "IS_A", 5, A1)),
        ("w IS_A Red", IsA(Name(("w",)), Concept("Red"))),
        ("w SUBSUMES wine:Red", Subsumes(Name(("w",)), Concept("wine:Red"))),
        ("w same_as 'http://x/#R'", SameAs(Name(("w",)), Concept("http://x/#R"))),
        (
            "w IS_A (Red, wine:White)",
            IsA(Name(("w",)), ConceptBag("ANY", (Concept("Red"), Concept("wine:White")))),
        ),
        ("w IS_A only (Red)", IsA(Name(("w",)), ConceptBag("ONLY", (Concept("Red"),)))),
        (
            "ONTPROP<net:causes>(type) = linkDown",
            OntologyProperty("net:causes", Name(("type",)), "=", Concept("linkDown")),
        ),
        (
            "ontprop < size > (x) >= -3",
            OntologyProperty("size", Name(("x",)), ">=", Literal(-3)),
        ),
        ("tags HAS any ('a', -1.5)", Has(Name(("tags",)), "ANY", (Literal("a"), Literal(-1.5)))),
    ],
)
def test_a_term_is_read_and_printed_so_that_it_reads_the_same(text: str, tree: Expression) -> None:
    read = parse_expression(text)

    assert read == tree
    assert hash(read) == hash(tree)
    assert parse_expression(print_expression(read)) == tree


def test_words_of_terms_are_names_elsewhere() -> None:
    text = "start > 3 AND after = filter AND has < during AND ontprop < 5 AND any = is_a"

    assert print_expression(parse_expression(text)) == text


counts = st.integers(1, 1_000_000_000)
limits = st.none() | st.integers(1, 10**15)
references: Any = st.sampled_from(["start", "end"])
concepts = st.sampled_from(["Red", "w:Red", "http://x/#a b", "x.y", "it's", "a:b:c", "1", ""]).map(
    Concept
)
quantifiers: Any = st.sampled_from(["ANY", "ALL", "ONLY"])
bags = concepts | st.builds(
    ConceptBag, quantifiers, st.lists(concepts, min_size=1, max_size=3).map(tuple)
)
constants = st.builds(
    Literal,
    st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | instants,
)
named = st.sampled_from(["Red", "w:Red"]).map(Concept)
properties = st.sampled_from(["causes", "net:causes", "http://x/#causes"])
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
tests = st.sampled_from(CONCEPT_TESTS)
terms: st.SearchStrategy[Any] = st.one_of(
    st.builds(After, references, limits, expressions, counts),
    st.builds(Before, references, limits, expressions, counts),
    st.builds(During, references, expressions, counts),
    st.builds(Related, st.sampled_from(RELATIONS), expressions, st.none()),
    st.builds(Related, st.sampled_from(["MEETS", "STARTED_BY"]), expressions, references),
    st.builds(Compared, names, comparisons | tests, st.none() | counts, expressions),
    st.builds(IsA, names, bags),
    st.builds(Subsumes, names, bags),
    st.builds(SameAs, names, bags),
    st.builds(OntologyProperty, properties, names, tests, bags),
    st.builds(OntologyProperty, properties, names, st.sampled_from(["=", "!="]), named),
    st.builds(OntologyProperty, properties, names, comparisons, constants),
    st.builds(Has, names, quantifiers, st.lists(constants, min_size=1, max_size=3).map(tuple)),
)


@given(terms)
def test_reading_what_was_printed_gives_the_same_term(term: Expression) -> None:
    assert parse_expression(print_expression(term)) == term


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("middle AFTER(1 s) (a)", 1, "write `start` or `end`"),
        ("x.start MEETS (a)", 1, "write `start` or `end`"),
        ("start AFTER(0 s) (a)", 13, "the duration is zero"),
        ("start AFTER(1 s, 0 TIMES) (a)", 18, "a count is from 1"),
        ("x FILTER(=, 0) (a)", 13, "a count is from 1"),
        ("start AFTER(10) (a)", 17, "give the duration a unit"),
        ("start AFTER(10 s)", 18, "expected `(`"),
        ("x FILTER(+) (a)", 10, "expected `IS_A`, `SUBSUMES` or `SAME_AS` or a comparison"),
        ("w IS_A 3", 8, "a name with a prefix"),
        ("tags HAS ('a')", 10, "`ANY`, `ALL` or `ONLY`"),
        ("ONTPROP<p>(x) < Red", 1, "`<` compares values, and `Red` is a concept"),
        ("start AFTER(1 s) (2024-02-30T00:00:00Z < x)", 19, "is no RFC 3339 time"),
    ],
)
def test_a_mistake_is_placed_and_says_what_could_stand_there(
    text: str, column: int, said: str
) -> None:
    with pytest.raises(LibraryError) as caught:
        parse_expression(text)

    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.column == column
    assert said in str(diagnostic)


def test_terms_inside_terms_count_as_nesting() -> None:
    deep = "x"
    for _ in range(101):
        deep = f"start AFTER(1 s) ({deep})"

    with pytest.raises(LibraryError) as caught:
        parse_expression(deep)

    assert caught.value.diagnostics[0].code == "limit-nesting"


def event(**data: object) -> Event:
    return Event(id="1", source="s", type="T", time=0, data=data)


@pytest.mark.parametrize(
    ("text", "bag", "expected"),
    [
        ("b HAS ANY ('x', 3)", ["x"], True),
        ("b HAS ANY ('x', 3)", [3.0], True),
        ("b HAS ANY ('x', 3)", "3", True),
        ("b HAS ANY ('x', 3)", ["y", 4, None], False),
        ("b HAS ANY ('x', 3)", [], False),
        ("b HAS ALL ('x', 3)", ["x", 3, "y"], True),
        ("b HAS ALL ('x', 3)", ["x"], False),
        ("b HAS ONLY ('x', 3)", ["x", 3, "x"], True),
        ("b HAS ONLY ('x', 3)", ["x", None], False),
        ("b HAS ONLY ('x', 3)", [], False),
        ("NOT b HAS ANY ('x')", [], True),
        ("NOT b HAS ANY ('x')", {"x": 1}, False),
        ("NOT b HAS ANY ('x')", None, False),
    ],
)
def test_a_bag_is_asked(text: str, bag: object, expected: bool) -> None:
    assert holds(parse_expression(text), event(b=bag)) is expected


class _Answers:
    def lookup(self, parts: tuple[str, ...]) -> Any:
        return len(parts)

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        return isinstance(term, After)


def test_a_scope_answers_terms() -> None:
    assert holds(parse_expression("start AFTER(1 s) (x) AND NOT w IS_A Red"), _Answers())


def test_a_term_without_anything_to_ask_is_in_error() -> None:
    asked = parse_expression("NOT start AFTER(1 s) (x)")
    known = parse_expression("NOT w IS_A Red")

    assert evaluate(asked, _scope(event())).errors == {"missingHistory"}
    assert evaluate(known, _scope(event())).errors == {"missingOntology"}


def _scope(given: Event) -> Any:
    from ensue.lang.expressions.scopes import EventScope

    return EventScope(given)


def test_a_library_reads_terms_and_check_says_what_they_need() -> None:
    from ensue.lang.checker import check
    from ensue.lang.parsing.parser import parse_tree

    text = """
    eventtype A { attribute long n; }
    A correlation Rule (A a where start AFTER(1 s) (anything = 3) AND n IS_A Red) a
    { case true: push a; }
    """
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    check(tree, diagnostics)

    assert {(each.code, each.severity) for each in diagnostics.found} == {
        ("needs-history", "warning"),
        ("needs-ontology", "warning"),
    }


def test_mistakes_in_terms_of_a_library_are_all_reported() -> None:
    from ensue.lang.parsing.parser import parse_tree

    text = "A correlation R (A a where x AFTER(0 s) (y) AND z FILTER(=, 0) (w)) a { }"
    diagnostics = Diagnostics(Source.of(text))
    parse_tree(diagnostics.source, diagnostics)

    found = {each.code for each in diagnostics.found}
    assert found == {"no-such-reference", "bad-duration", "bad-count"}
