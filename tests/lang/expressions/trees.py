"""Random legal expressions, events and values, for the property tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from ensue.events.event import Event
from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.builtins.functions import FUNCTIONS

words = st.sampled_from(
    ["a", "b", "id", "time", "SOURCE", "in", "like", "And", "x_1", "list", "none"]
)
names = st.lists(words, min_size=1, max_size=3).map(lambda parts: Name(tuple(parts)))
texts = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=6) | st.text(
    "\\'\"%_a", max_size=6
)
instants = st.datetimes(timezones=st.just(UTC))
literals = st.builds(
    Literal,
    st.booleans()
    | st.integers(0, 2**63)
    | st.floats(0, allow_infinity=False).map(abs)
    | texts
    | instants,
)
functions = st.sampled_from([*sorted(FUNCTIONS), "NO_SUCH"])


def _chains(operands: st.SearchStrategy[Expression], signs: list[str]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(st.sampled_from(signs), operands), min_size=1, max_size=3).map(tuple)


@st.composite
def _logic(draw: st.DrawFn, operands: st.SearchStrategy[Expression]) -> Expression:
    operators = draw(st.lists(st.sampled_from(["AND", "OR", "XOR"]), min_size=1, max_size=3))
    count = len(operators) + 1
    return Logic(tuple(draw(st.lists(operands, min_size=count, max_size=count))), tuple(operators))


def _larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, parts),
        st.builds(Negate, parts),
        st.builds(Arithmetic, parts, _chains(parts, ["+", "-"])),
        st.builds(Arithmetic, parts, _chains(parts, ["*", "/", "%"])),
        st.builds(Comparison, parts, _chains(parts, ["=", "!=", "<", "<=", ">", ">="])),
        _logic(parts),
        st.builds(Like, parts, texts, st.booleans()),
        st.builds(In, parts, several, st.booleans()),
        st.builds(Call, functions, st.lists(parts, max_size=3).map(tuple)),
    )


expressions: st.SearchStrategy[Expression] = st.recursive(
    literals | names | st.builds(Exists, names), _larger, max_leaves=12
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1", "-2", "2.5", "1e3", "true", "FALSE", "2024-01-01T00:00:00Z"])
    | instants
    | st.just(datetime(2024, 1, 1))
    | st.integers(10**400, 10**400 + 1)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
events = st.builds(
    Event,
    id=st.text(max_size=3),
    source=st.text(max_size=3),
    type=st.just("T"),
    time=st.integers(0, 2**50),
    data=st.dictionaries(words, values, max_size=5),
    extensions=st.dictionaries(words, scalars, max_size=3),
)
