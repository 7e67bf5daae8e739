"""A mistake in the text is named where it is, in a person's words, and hides no other."""

from __future__ import annotations

import re

import pytest

from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source


def findings(text: str) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    """The names of the definitions that were read, and what was found."""
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    return tuple(each.name for each in tree.definitions), diagnostics.in_order()


# Each: the wrong definition, the column of the mistake, what was expected, and the hint.
MISTAKES = [
    ("A correlaton X (A a) a {}", 3, "`correlation` or `ecl`", "did you mean `correlation`?"),
    ("eventype B {}", 10, "`correlation` or `ecl`", "did you mean `eventtype`?"),
    ("hello world", 7, "`correlation` or `ecl`", "a definition begins with `eventtype`"),
    ("eventtype {}", 11, "a name", None),
    ("eventtype B { attribute short x }", 33, "`,`, `;` or `=`", "an attribute ends with `;`"),
    ("eventtype B { short x; }", 15, "`attribute`, `public` or `}`", "write `attribute short x;`"),
    ("eventtype B { attribute int x; }", 25, "a type such as", "write `attribute long x;`"),
    ("A correlation X (A a) a -> a {}", 25, "an operator such as `+` or `;`", "write `a ; a`"),
    ("A correlation X (A a) a => a {}", 25, "an operator such as `+` or `;`", "write `a ; a`"),
    ("A correlation X (A a) a && a {}", 25, "an operator such as", "write `a + a`"),
    ("A correlation X (A a) a and a {}", 25, "an operator such as", "write `a + a`"),
    ("A correlation X (A a) a or a {}", 25, "an operator such as", "write `a | a`"),
    ("A correlation X (A a) a, a {}", 24, "`within` or `{`", "write `a ; a`"),
    ("A correlation X (A a) a wihin 5 s {}", 25, "`within`", "did you mean `within`?"),
    ("A correlation X (A a) a within 10 {}", 32, "a duration such as `10 s`", "ms, s, min, h or d"),
    ("A correlation X (A a) a bind middle {}", 30, "`first`, `last` or `latest`", None),
    ("A correlation X (A a) (a + a { }", 30, "`)`", "`(` in line 2, column 23 is not closed"),
    ("A correlation X (A a) a { case true: push a;", 25, "`case` or `}`", "close it with `}`"),
    ("A correlation X (A a) a { pussh a; }", 27, "a statement such as", "did you mean `push`?"),
    ("A correlation X (A a) l:a { case l && l: }", 37, "a name", "labels are joined by"),
    ("A correlation X (A a) l:a { case l || l: }", 37, "a name", "labels are joined by"),
    ("A correlation X (A a where x == 3) a {}", 31, "a value", "compared by a single `=`"),
    ("A correlation X (A a where x && y) a {}", 30, "an operator", "joined by `AND` and `OR`"),
    ("A correlation X (A a where !x) a {}", 28, "a value", "negated by `NOT`"),
    ("A correlation X () a {}", 18, "`deadline`, `every` or a name", None),
    ("A ecl X (A a) { acumulate { a } }", 27, "`}`", "did you mean `accumulate`?"),
    ("A ecl X (A a) { repeat a }", 24, "`(` or `{`", None),
    ("A ecl X (A a) { }", 17, "an expression such as a port", None),
    ("A ecl X (A a) { do { a } }", 26, "`unless`", None),
]


@pytest.mark.parametrize(("wrong", "column", "expected", "hint"), MISTAKES)
def test_a_mistake_is_placed_explained_and_hides_no_other_definition(
    wrong: str, column: int, expected: str, hint: str | None
) -> None:
    names, found = findings(f"eventtype First {{}}\n{wrong}\neventtype Last {{}}\n")

    assert [each.code for each in found] == ["syntax"]
    assert (found[0].line, found[0].column) == (2, column)
    assert expected in found[0].message
    assert (hint is None) or hint in (found[0].hint or "")
    assert names == ("First", "Last")


@pytest.mark.parametrize("wrong", [each[0] for each in MISTAKES])
def test_no_message_shows_the_inside_of_the_grammar(wrong: str) -> None:
    _, found = findings(wrong)

    shown = re.sub(r"\b(AND|NOT)\b", "", f"{found[0].message} {found[0].hint}")
    assert not re.search(r"\b[A-Z]{3,}|__|\\b", shown), shown


def test_every_definition_with_a_mistake_is_reported() -> None:
    names, found = findings(
        "eventtype A { attribute }\neventtype B {}\nA correlation X (A a) a + {}\n"
        "A ecl Y (A a) { repeat { a }\nA correlation Z (A a) a {}\nA ecl W (A a) { b c }\n"
    )

    assert [each.line for each in found] == [1, 3, 4, 6]
    assert names == ("B", "Z")


def test_an_open_bracket_does_not_swallow_the_next_definition() -> None:
    names, found = findings("A correlation X (A a) ((a { case true: push a;\neventtype B {}\n")

    assert names == ("B",)
    assert len(found) == 1


def test_a_text_that_is_not_closed_is_named_at_its_quote() -> None:
    names, found = findings('A correlation X (A a from "gps) a {}\neventtype B {}\n')

    assert (found[0].line, found[0].column) == (1, 27)
    assert found[0].hint == 'close it with `"`'
    assert names == ("B",)


def test_a_comment_that_is_not_closed_is_named_where_it_opens() -> None:
    names, found = findings("eventtype A {}\n  /* and so on\neventtype B {}\n")

    assert (found[0].line, found[0].column) == (2, 3)
    assert found[0].hint == "close it with `*/`"
    assert names == ("A",)


def test_every_mistake_in_the_cases_of_a_rule_is_reported() -> None:
    _, found = findings(
        "A correlation X (A a) l:a\n{\n    case l push a;\n    case true: push a else;\n"
        "    abort l;\n    case l & : push a;\n}\n"
    )

    assert [each.line for each in found] == [3, 4, 5, 6]


def test_every_mistake_in_the_operands_of_an_expression_is_reported() -> None:
    _, found = findings(
        "A ecl X (A a)\n{\n    sequential {\n        accumulate { a a },\n        timeout(5m),\n"
        "        do { <x == 3> } unless { a b },\n        repeat(x y) { a }\n    }\n}\n"
    )

    assert [each.line for each in found] == [4, 5, 6, 6, 7]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("eventtype B = com.acme.b { attribute long n; }", 'eventtype B = "com.acme.b"'),
        ("eventtype B : com.acme.A {}", 'eventtype A = "com.acme.A"'),
        ("A correlation X (A a) a { case true: push new com.acme.A {}; }", '= "com.acme.A"'),
    ],
)
def test_a_type_with_dots_is_answered_wherever_it_stands(wrong: str, hint: str) -> None:
    _, found = findings(f"eventtype A {{}}\n{wrong}\n")

    assert hint in (found[0].hint or "")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("a where v > 3 { case true: push a; }", "`A a where v > 3`"),
        ("(a where v IN (1, 2)) ; b { case true: push a; }", "`A a where v IN (1, 2)`"),
        ("a where v > 3 within 5 s { case true: push a; }", "`A a where v > 3`"),
    ],
)
def test_a_condition_behind_a_port_is_put_where_the_port_is(wrong: str, hint: str) -> None:
    _, found = findings(
        f"eventtype A {{ attribute long v; }}\nA correlation X (A a, A b) {wrong}\n"
    )

    assert (found[0].hint or "").endswith(f"stands at its port: {hint}")


def test_a_file_that_is_no_library_gives_a_bounded_number_of_messages() -> None:
    _, found = findings("eventtype " * 5_000)

    assert len(found) == 100


def test_what_is_left_of_a_broken_definition_is_not_reported_again() -> None:
    _, found = findings("A correlation X (A a) a{n m} {}\n")

    assert len(found) == 1


def test_of_a_very_long_line_only_what_is_around_the_mistake_is_shown() -> None:
    _, (found,) = findings("eventtype A {} " * 10_000 + "eventtype" + " " * 10_000)
    shown = str(found).splitlines()

    assert found.column == 150_009
    assert max(map(len, shown)) < 400
    assert shown[1][shown[2].index("^")] == "e"
