"""Conditions that never hold are found, and none that holds for some events is called one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ensue
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import EventScope, holds
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.machine.analyses.conditions import conditions_that_never_hold
from ensue.machine.analyses.conditions.contradiction import contradiction_in
from ensue.machine.analyses.conditions.linear import Inequality, core

TYPES = """
eventtype A { attribute double v; attribute long long n; attribute long long m; attribute string u;
              attribute boolean ok; attribute timestamp at; attribute double w; }
eventtype Out {}
"""


def reasons(head: str, ports: str = "A a, A b") -> list[str]:
    text = f"{TYPES}Out correlation R ({ports}) {head} {{ case true: push new Out {{}}; }}"
    library = ensue.parse(text)
    rule = library.correlations[0]
    return [str(each.why) for each in conditions_that_never_hold(rule, library.checked.types)]


NEVER = [
    ("a within 1 min having count(a) > 5 AND count(a) < 3", "`count(a) > 5` and `count(a) < 3`"),
    ("a having count(a) > 5 AND count(a) < 6", "`count(a) > 5` and `count(a) < 6`"),
    ("a ; b having a.v > 3 AND a.v < 2", "`a.v > 3` and `a.v < 2` exclude each other"),
    ("a ; b having b.v < a.v AND a.v < b.v", "`b.v < a.v` and `a.v < b.v` exclude each other"),
    ("a ; b having b.v > a.v + 1.0 AND b.v < a.v", "`b.v > a.v + 1.0` and `b.v < a.v`"),
    ("a ; b having b.v < a.v + 1.0 AND b.v > a.v + 2.0", "exclude each other"),
    ("a ; b having 2 * a.n > b.n + 3 AND b.n > 2 * a.n", "exclude each other"),
    ("a ; b having a.u = 'x' AND b.u = a.u AND b.u = 'y'", "exclude each other"),
    ("a having a.ok AND NOT a.ok", "`a.ok = TRUE` and `a.ok = FALSE` exclude each other"),
    ("a having NOT (a.n > 3 OR a.n < 4)", "`a.n <= 3` and `a.n >= 4` exclude each other"),
    ("a having a.n != 3 AND a.n > 2 AND a.n < 4", "exclude each other"),
    ("a having a.n BETWEEN 5 AND 3", "`a.n BETWEEN 5 AND 3` is never true"),
    ("a having a.n IN (1, 2) AND a.n > 2", "`a.n IN (1, 2)` and `a.n > 2` exclude each other"),
    ("a having a.n > 5.5 AND a.n < 3", "exclude each other"),
    ("a ; b having a.at < b.at AND b.at < a.at", "exclude each other"),
    ("a ; b having a.n > b.n XOR a.n > b.n", "exclude each other"),
    ("a{5} having count(a) < 3", "the filter asks for at least 5 `a`"),
    ("(a ; b) | a{2} having count(a) < 1", "the filter asks for at least 1 `a`"),
    ("a having count(a) < 0", "the filter asks for at least 1 `a`"),
    ("a ; b within 10 min having b.time - a.time > 900", "all events lie within 10 min"),
    ("a having distinct(a.u) > 5 AND count(a) <= 5", "no more different values than events"),
    ("a having min(a.v) > max(a.v)", "a `min` is no more than the `max`"),
]


@pytest.mark.parametrize(("head", "reason"), NEVER)
def test_a_condition_that_never_holds_is_found_with_its_reason(head: str, reason: str) -> None:
    (found,) = reasons(head)

    assert reason in found


OPEN = [
    "a ; b having a.v > 3 AND b.v < 2",
    "a ; b having b.v < a.v OR a.v < b.v",
    "a ; b having b.v < a.v AND a.v < b.v + 1.0",
    "a ; b having b.v > a.v - 1.0 AND b.v < a.v",
    "a ; b having b.v > a.v * 0.95 AND b.v < a.v",
    "a ; b having b.v < a.v * 0.95 AND b.v > a.v",
    # Rounding: a sum of reals may come out as if nothing had been added, or with more.
    "a having a.v + 1e16 - 1e16 > a.v",
    "a ; b having a.v + 0.1 >= b.v AND a.v >= b.v AND b.v >= a.v + 0.1",
    # An integer meets a real rounded: 2^53 + 1 is not more than 2^53 there.
    "a ; b having a.n > b.n AND a.n <= b.v AND b.v <= b.n",
    "a{2} | b having count(a) < 1",
    "a ; b having b.time - a.time > 900",
    "a within 10 min having avg(a.v) > max(a.v)",
    "a having a.n / 2 = 1 AND a.n = 3",
    "a having HOUR(a.at) > 3 AND HOUR(a.at) < 5",
]


@pytest.mark.parametrize("head", OPEN)
def test_what_may_hold_or_is_not_known_is_not_mentioned(head: str) -> None:
    assert reasons(head) == []


def test_a_where_that_never_holds_is_found_too() -> None:
    assert reasons("a ; b", "A a where n > 3 AND n < 2, A b") == [
        "`n > 3` and `n < 2` exclude each other"
    ]


# --- never a wrong verdict ----------------------------------------------------------------------

KINDS = {"v": "real", "w": "real", "n": "integer", "m": "integer", "u": "string"}
REALS = [-1e300, -1.5, -0.0, 0.1, 0.2, 0.3, 1.0, 2.0, 3.0, 2.0**53, 2.0**53 + 2, 1e300]
INTEGERS = [-(2**63), -3, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1]

numbers = st.sampled_from(["0", "1", "2", "3", "0.1", "0.2", "0.3", "9007199254740992", "1e16"])
names = st.sampled_from(["v", "w", "n", "m"])
sums = st.one_of(
    names,
    numbers,
    st.builds("{} {} {}".format, names, st.sampled_from("+-*"), st.one_of(names, numbers)),
    st.builds("{} + {} - {}".format, names, numbers, numbers),
)
comparisons = st.one_of(
    st.builds("{} {} {}".format, sums, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), sums),
    st.builds("{} BETWEEN {} AND {}".format, names, numbers, numbers),
    st.builds("{} IN ({}, {})".format, names, numbers, numbers),
    st.builds("u = '{}'".format, st.sampled_from("xy")),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("({} XOR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(conditions, st.integers(0, 2**32))
def test_no_values_satisfy_a_condition_that_is_said_never_to_hold(text: str, seed: int) -> None:
    condition = parse_expression(text)
    if contradiction_in(condition, lambda name: KINDS.get(name.text)) is None:
        return
    points = Random(seed).sample(list(product(REALS, REALS, INTEGERS, INTEGERS)), 2_000)
    for v, w, n, m in points:
        for u in ("x", "z"):
            data = {"v": v, "w": w, "n": n, "m": m, "u": u}
            assert not holds(condition, EventScope(Event.of("A", time=0, data=data))), data


coefficients = st.integers(-3, 3)
systems = st.lists(
    st.tuples(coefficients, coefficients, coefficients, st.integers(-5, 5), st.booleans()),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(systems)
def test_inequalities_with_a_solution_are_never_said_to_have_none(
    system: list[tuple[int, int, int, int, bool]],
) -> None:
    rows = [
        Inequality(
            {k: Fraction(c) for k, c in zip("xyz", (a, b, c), strict=True) if c},
            Fraction(constant),
            strict,
            frozenset({number}),
        )
        for number, (a, b, c, constant, strict) in enumerate(system)
    ]
    found = core(rows)
    if found is None:
        return
    needed = [system[number] for number in found]
    for x, y, z in product([Fraction(k, 2) for k in range(-8, 9)], repeat=3):
        values = [(a * x + b * y + c * z + d, strict) for a, b, c, d, strict in needed]
        assert not all(value < 0 if strict else value <= 0 for value, strict in values)


@pytest.mark.parametrize(
    "condition",
    [
        "a.n IN ({})".format(", ".join(str(7 * n) for n in range(5_000))),
        "a.u IN ({})".format(", ".join(f"'v{n}'" for n in range(5_000))),
        " OR ".join(f"a.n = {n}" for n in range(20_000)),
        " AND ".join(f"a.n != {n}" for n in range(20_000)),
        " AND ".join(f"a.n > {n}" for n in range(60)),
        " OR ".join(f"(a.n > {n} AND a.n < {n})" for n in range(3_000)),
        " XOR ".join(f"a.v > {n}" for n in range(3_000)),
    ],
    ids=["integers", "texts", "or", "and", "short and", "pairs", "xor"],
)
def test_long_conditions_are_left_open_at_once(condition: str) -> None:
    """Each alternative of a list printed all of it again, and chains were read by recursion."""
    parsed = parse_expression(condition)
    begun = process_time()
    found = contradiction_in(parsed, lambda name: "text" if name.parts[-1] == "u" else "integer")

    assert found is None
    assert process_time() - begun < 1.0
