"""Random filters and publications that often meet: few names and constants, all kinds of values."""

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
from ensue.lang.expressions.tree import Has

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2024, 1, 2, tzinfo=UTC)
CONSTANTS: list[Any] = [
    *(0, 1, 2, 5, 2**53, 2**53 + 1, 2**62),
    *(0.0, 1.0, 1.5, 2.5, 1e300, 9007199254740993.0),
    *("a", "ab", "abc", "b", "", "1", "01", "1.0", "5", "true", "TRUE", "x%y"),
    *("2024-01-01T12:00:00Z", "2024-01-01T13:00:00+01:00"),
    *(True, False, NOON, LATER),
]
PATTERNS = [
    "a%",
    "ab%",
    "%b",
    "%c",
    "%b%",
    "abc",
    "a_c",
    "_",
    "%",
    "",
    "a%c",
    "1%",
    "%T12%",
    r"x\%y",
]
VALUES: list[Any] = [
    *CONSTANTS,
    *(-1, -2.5, 3, 2**63, 2**64 - 1, 2**70, float("nan"), float("inf"), -0.0),
    *("abcbc", "xab", "zzz", "False", "nope", "-1", "ac", "a\nc"),
    *(["a", 1], [], ["ab", "ab", None, 2.5], {"a": 1}, None, datetime(2024, 1, 1)),
]
WORDS = ["x", "y", "z", "subject", "X", "Subject", "type", "time"]

names = st.sampled_from(WORDS).map(lambda word: Name((word,))) | st.just(Name(("z", "a")))


def _literal(value: Any) -> Expression:
    return Literal(value)


literals = st.sampled_from(CONSTANTS).map(_literal) | st.sampled_from([1, 2.5, 2**53]).map(
    lambda value: Negate(Literal(value))
)
signs = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="])
atoms: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda n, s, c: Comparison(n, ((s, c),)), names, signs, literals),
    st.builds(lambda n, s, c: Comparison(n, ((s, c),)), names, signs, literals),
    st.builds(lambda n, s, c: Comparison(c, ((s, n),)), names, signs, literals),
    st.builds(Like, names, st.sampled_from(PATTERNS), st.booleans()),
    st.builds(In, names, st.lists(literals, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(Exists, names),
    st.builds(lambda n: Call("IS_NULL", (n,)), names),
    st.builds(lambda n, x, y: Call("BETWEEN", (n, x, y)), names, literals, literals),
    names,
    st.builds(
        Has,
        names,
        st.sampled_from(["ANY", "ALL", "ONLY"]),
        st.lists(st.sampled_from(CONSTANTS).map(Literal), min_size=1, max_size=3).map(tuple),
    ),
)
odd_atoms: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda n, s, m: Comparison(n, ((s, m),)), names, signs, names),
    st.builds(
        lambda n, s, c: Comparison(Arithmetic(n, (("+", Literal(1)),)), ((s, c),)),
        names,
        signs,
        literals,
    ),
    st.builds(lambda n: Comparison(Call("LENGTH", (n,)), ((">", Literal(1)),)), names),
    st.builds(lambda n: Call("BOOL", (n,)), names),
    st.builds(lambda n: Comparison(Call("COALESCE", (n, Literal(1))), (("=", Literal(1)),)), names),
    st.builds(lambda n: Call("COALESCE", (n, Literal(True))), names),
    st.builds(lambda n: Call("IS_NULL", (Arithmetic(n, (("+", Literal(1)),)),)), names),
    st.builds(lambda n, a: Comparison(Call("BOOL", (a,)), (("=", n),)), names, atoms),
    literals,
)


def _larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def chain(operands: list[Any], operators: list[str]) -> Logic:
        return Logic(tuple(operands), tuple(operators[: len(operands) - 1]))

    operators = st.lists(st.sampled_from(["AND", "AND", "OR", "XOR"]), min_size=3, max_size=3)
    alike = st.sampled_from(["AND", "OR"]).map(lambda word: [word] * 3)
    return st.builds(Not, parts) | st.builds(
        chain, st.lists(parts, min_size=2, max_size=4), operators | alike
    )


plain_filters: st.SearchStrategy[Any] = st.recursive(atoms, _larger, max_leaves=8)
filters: st.SearchStrategy[Any] = st.recursive(atoms | odd_atoms, _larger, max_leaves=8)
conjunctive: st.SearchStrategy[Any] = st.lists(atoms, min_size=2, max_size=4).map(
    lambda parts: Logic(tuple(parts), ("AND",) * (len(parts) - 1))
)

values = st.sampled_from(VALUES)
data = st.dictionaries(st.sampled_from(["x", "y", "z", "X", "Subject"]), values, max_size=4)
events = st.builds(
    Event,
    id=st.just("1"),
    source=st.just("s"),
    type=st.sampled_from(["a", "ab", "T"]),
    time=st.sampled_from([0, 1_704_110_400_000_000]),
    data=data | data | st.none(),
    extensions=st.dictionaries(
        st.sampled_from(["subject", "x"]), st.sampled_from(["a", "abc", 1, True]), max_size=1
    ),
)
