"""Predicates over columns come out as they do event by event."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.engine.batch.column import Column, column_of
from ensue.engine.batch.predicates import NotInColumnsError, ValueScope, outcomes, values_by_row
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, evaluate
from ensue.lang.expressions.names import Parts
from ensue.lang.expressions.tree import (
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

INSTANT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
NAMES: dict[Parts, Any] = {
    ("i",): st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63), 2**62]),
    ("j",): st.integers(-2, 2),
    ("r",): st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.5]),
    ("s",): st.sampled_from(["", "1", "true", "x", "1.5", "2024-05-06T07:08:09Z", "é"]),
    ("b",): st.booleans(),
    ("t",): st.sampled_from([INSTANT, datetime(1969, 1, 1, tzinfo=UTC)]),
    ("m",): st.sampled_from([1, "x", True, 2.5, [1], 2**64 - 1]),
}
names = st.sampled_from(sorted(NAMES)).map(Name)
constants: list[Any] = [
    0,
    1,
    2,
    2**63 - 1,
    1.5,
    0.0,
    "x",
    "1",
    "true",
    "2024-05-06T07:08:09Z",
    True,
    False,
    INSTANT,
]
literals = st.sampled_from(constants).map(Literal)


def larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def chain(signs: str) -> Any:
        links = st.tuples(st.sampled_from(signs.split()), parts)
        return st.lists(links, min_size=1, max_size=2).map(tuple)

    @st.composite
    def logic(draw: st.DrawFn) -> Expression:
        signs = draw(st.lists(st.sampled_from(["AND", "OR", "XOR"]), min_size=1, max_size=2))
        operands = [draw(parts) for _ in range(len(signs) + 1)]
        return Logic(tuple(operands), tuple(signs))

    return st.one_of(
        st.builds(Not, parts),
        st.builds(Negate, parts),
        st.builds(Comparison, parts, chain("= != < <= > >=")),
        st.builds(Arithmetic, parts, chain("+ - * / %")),
        st.builds(Like, parts, st.sampled_from(["%", "1%", "_"]), st.booleans()),
        st.builds(In, parts, st.lists(parts, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(Exists, names),
        st.builds(Call, st.sampled_from(["ABS", "LENGTH", "INT", "STRING"]), st.tuples(parts)),
        st.builds(Call, st.just("CONCAT"), st.lists(parts, max_size=3).map(tuple)),
        logic(),
    )


expressions = st.recursive(names | literals, larger, max_leaves=6)
rows = st.lists(
    st.fixed_dictionaries({name: values | st.just(MISSING) for name, values in NAMES.items()}),
    min_size=1,
    max_size=6,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)


@settings(max_examples=600, deadline=None)
@given(expressions, rows)
def test_columns_and_events_give_the_same_values_and_errors(
    expression: Expression, events: list[dict[Parts, Any]]
) -> None:
    """Value for value, with the kinds kept apart; an error is an error in both."""
    columns = {name: column_of([event[name] for event in events]) for name in NAMES}
    single = [evaluate(expression, ValueScope(event)) for event in events]
    expected = [MISSING if each.errors else each.value for each in single]

    try:
        found = outcomes(expression, columns.__getitem__, len(events))
        given = Column(found.kind, found.values, found.errors).to_list()
    except NotInColumnsError:
        given = values_by_row(expression, columns.__getitem__, np.arange(len(events)))

    assert len(given) == len(expected)
    assert all(same(one, other) for one, other in zip(given, expected, strict=True)), (
        given,
        expected,
    )


@pytest.mark.parametrize(
    "expression",
    [
        Comparison(Name(("r",)), ((">", Literal(0.5)),)),
        Comparison(Name(("s",)), (("=", Literal("x")),)),
        Logic((Exists(Name(("i",))), Name(("b",))), ("AND",)),
        Like(Name(("s",)), "x%"),
        Comparison(Name(("t",)), (("<", Literal("2025-01-01T00:00:00Z")),)),
    ],
)
def test_everyday_predicates_need_no_events(expression: Expression) -> None:
    """Comparisons, logic and LIKE over plain columns have a form in columns."""
    columns: dict[Parts, Column] = {
        ("r",): column_of([0.1, 0.9]),
        ("s",): column_of(["x", "y"]),
        ("i",): column_of([1, MISSING]),
        ("b",): column_of([True, False]),
        ("t",): column_of([INSTANT, INSTANT]),
    }

    assert outcomes(expression, columns.__getitem__, 2).kind == "boolean"
