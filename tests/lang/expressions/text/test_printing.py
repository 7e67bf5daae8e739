"""A tree as text, and the text as the same tree."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given

from ensue.errors import UsageError
from ensue.lang.expressions import Expression, Literal
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from tests.lang.expressions.trees import expressions


@given(expressions)
def test_reading_what_was_printed_gives_the_same_tree(tree: Expression) -> None:
    assert parse_expression(print_expression(tree)) == tree


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a)) and (b = c)", "a AND b = c"),
        ("a and (b or c)", "a AND (b OR c)"),
        ("(a + b) * c", "(a + b) * c"),
        ("a + (b * c)", "a + b * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("not (a like 'x')", "NOT (a LIKE 'x')"),
        ("(not a) like 'x'", "NOT a LIKE 'x'"),
        ('"it\'s"', r"'it\'s'"),
        (r"a like 'x\%\\y'", r"a LIKE 'x\%\y'"),
        ("-(-a)", "--a"),
        ("a <> true", "a != TRUE"),
        ("int( '5' ) in (1,2)", "INT('5') IN (1, 2)"),
        ("2024-01-01T01:00:00.500+01:00 < time", "2024-01-01T00:00:00.5Z < time"),
    ],
)
def test_only_brackets_that_change_the_tree_are_printed(text: str, printed: str) -> None:
    assert print_expression(parse_expression(text)) == printed


@pytest.mark.parametrize(
    "value", [-1, -0.5, -0.0, float("nan"), "two\nlines", datetime(2024, 1, 1)]
)
def test_a_literal_that_no_text_can_name_is_refused(value: object) -> None:
    with pytest.raises(UsageError):
        print_expression(Literal(value))  # type: ignore[arg-type]
