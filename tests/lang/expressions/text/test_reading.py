"""What a text becomes: nodes, their places, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from ensue.errors import LibraryError
from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.source import Span

A, B, C = Name(("a",)), Name(("b",)), Name(("c",))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a AND b or c", Logic((A, B, C), ("AND", "OR"))),
        ("(a AND b) or c", Logic((Logic((A, B), ("AND",)), C), ("OR",))),
        ("a - b + c", Arithmetic(A, (("-", B), ("+", C)))),
        ("a - b * c", Arithmetic(A, (("-", Arithmetic(B, (("*", C),))),))),
        ("a <> b", Comparison(A, (("!=", B),))),
        ("NOT a = b", Comparison(Not(A), (("=", B),))),
        ("NOT a LIKE 'x'", Like(Not(A), "x")),
        ("a NOT LIKE 'x'", Like(A, "x", True)),
        ("a not in (b, c)", In(A, (B, C), True)),
        ("-5", Negate(Literal(5))),
        ("- -5", Negate(Negate(Literal(5)))),
        ("exists a.b", Exists(Name(("a", "b")))),
        ("concat()", Call("CONCAT")),
        ("length((a))", Call("LENGTH", (A,))),
        ("nothing", Name(("nothing",))),
        ("tRue", Literal(True)),
        ("1", Literal(1)),
        ("1.0", Literal(1.0)),
        ("1e3", Literal(1000.0)),
        ("9223372036854775808", Literal(2**63)),
        ("2024-01-01T01:00:00+01:00", Literal(datetime(2024, 1, 1, tzinfo=UTC))),
    ],
)
def test_text_becomes_tree(text: str, tree: object) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'it\'s'", "it's"),
        (r'"it\'s"', r"it\'s"),
        (r'"a\"b"', 'a"b'),
        (r"'a\\b'", r"a\b"),
        (r"'a\%b\n'", r"a\%b\n"),
    ],
)
def test_a_backslash_escapes_only_the_quote_and_itself(text: str, value: str) -> None:
    assert parse_expression(text) == Literal(value)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("  a + b ", 2, 7),
        ("- a", 0, 3),
        ("( a )", 0, 5),
        ("f( a )", 0, 6),
        ("a IN (b, c )", 0, 12),
        ("EXISTS a . b", 0, 12),
        ("(a) = b", 0, 7),
    ],
)
def test_a_node_knows_its_place_from_its_first_sign_to_its_last(
    text: str, start: int, end: int
) -> None:
    assert parse_expression(text).span == Span(start, end)


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("a +", 4, "expected a value"),
        ("a b", 3, "expected an operator or the end"),
        ("(a", 3, "expected `)`"),
        ("f(1 2)", 5, "expected an operator or `)` or `,`"),
        ("a LIKE 3", 8, "expected a string"),
        ("a NOT b", 7, "expected `LIKE` or `IN`"),
        ("a = 'b", 5, "this string does not end"),
        ("a @ b", 3, "`@` is no sign"),
        ("", 1, "expected a value"),
        ("2024-02-30T00:00:00Z", 1, "is no RFC 3339 time"),
    ],
)
def test_a_mistake_is_placed_and_says_what_could_stand_there(
    text: str, column: int, said: str
) -> None:
    with pytest.raises(LibraryError) as caught:
        parse_expression(text, "rule")

    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("rule", 1, column)
    assert said in str(diagnostic)
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == (diagnostic,)


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 100_000 + "a",
        "-" * 100_000 + "1",
        "NOT -" * 50_000 + "1",
        "a" + " LIKE 'x'" * 10_000,
        "f(" * 10_000 + ")" * 10_000,
        "(1 + " * 10_000 + "1" + ")" * 10_000,
    ],
    ids=["not", "minus", "both", "like", "call", "sum"],
)
def test_deep_nesting_is_a_diagnostic(text: str) -> None:
    with pytest.raises(LibraryError) as caught:
        parse_expression(text)

    assert [each.code for each in caught.value.diagnostics] == ["limit-nesting"]


def test_a_hundred_levels_are_allowed_and_one_more_is_not() -> None:
    parse_expression("NOT " * 99 + "a")

    with pytest.raises(LibraryError) as caught:
        parse_expression("NOT " * 100 + "a")
    assert caught.value.diagnostics[0].column == 401


def test_brackets_that_group_nothing_cost_no_level() -> None:
    assert parse_expression("(" * 5_000 + "a" + ")" * 5_000) == A


def test_a_number_of_any_length_is_read() -> None:
    tree = parse_expression("9" * 10_000)

    assert isinstance(tree, Literal)
    assert isinstance(tree.value, int)
    assert tree.value > 2**63


def test_trees_are_evaluated_and_printed_without_loading_the_parser() -> None:
    code = (
        "import sys, ensue.lang.expressions.evaluation, ensue.lang.expressions.text.printing, "
        "ensue.lang.expressions.checking.kinds, ensue.lang.expressions.text.reading; "
        "assert 'lark' not in sys.modules"
    )
    # A package above may load what it likes, so that only this room is looked at.
    alone = f"import types, sys; m = types.ModuleType('ensue'); m.__path__ = {_path()!r}; "
    subprocess.run([sys.executable, "-c", f"{alone}sys.modules['ensue'] = m; {code}"], check=True)


def _path() -> list[str]:
    import ensue

    return list(ensue.__path__)
