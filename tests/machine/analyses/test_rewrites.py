"""Rules that were rewritten, and rules that were rewritten wrongly, across both languages.

A rewrite must be found equivalent; a near-miss must not be, and its witnesses are run by the
reference engine. Each pair says in its name what was done to the rule.
"""

from __future__ import annotations

import time

import pytest

from ensue.machine.analyses.normal_form import normal_form

from . import rules
from .search.test_symmetry import many

SECONDS_A_PAIR = 5.0

EQUAL = "equivalent"
LESS = "contained"
MORE = "contains"
OTHER = "different"


def ecl(body: str) -> str:
    return f"ecl repeat {{ notify {{ {body} }} }}"


def pushing(condition: str, *changes: str) -> str:
    return f"{{ {' '.join(changes)} case {condition}: push new Out {{}}; }}"


REWRITES = {
    # laws of the filters, without and within a window
    "+ turned around": ("a + b + c => within 5 s", "c + b + a => within 5 s"),
    "| turned around": ("a | b ; c => within 5 s", "b ; c | a => within 5 s"),
    "+ bracketed otherwise": ("(a + b) + (c + d) => within 5 s", "a + (b + (c + d)) => within 5 s"),
    "; bracketed otherwise": ("(a ; b) ; (c ; d) => within 5 s", "a ; (b ; c) ; d => within 5 s"),
    "+ over | multiplied out": ("a + (b | c) => within 5 s", "a + b | a + c => within 5 s"),
    "| over + multiplied out": ("a | (b + c) => within 5 s", "(a | b) + (a | c) => within 5 s"),
    "; over | multiplied out": ("a ; (b | c) => within 5 s", "(a ; b) | (a ; c) => within 5 s"),
    "| before ; multiplied out": ("(a | b) ; c => within 5 s", "(a ; c) | (b ; c) => within 5 s"),
    "+ before ; as two orders": ("(a + b) ; c", "(a ; b ; c) | (b ; a ; c)"),
    "; over + multiplied out": ("a ; (b + c)", "(a ; b) + (a ; c)"),
    "+ before ; multiplied out": ("(a + b) ; c", "(a ; c) + (b ; c)"),
    "branches that end alike": ("a ; b || c ; b", "(a | c) ; b"),
    "+ of three as all orders": (
        "a + b + c => within 9 s",
        "(a;b;c) | (a;c;b) | (b;a;c) | (b;c;a) | (c;a;b) | (c;b;a) => within 9 s",
    ),
    "absorbed by |": ("a | a + b => within 5 s", "a => within 5 s"),
    "absorbed by +": ("a + (a | b) => within 5 s", "a => within 5 s"),
    "an order beside its accumulation": ("(a ; b) | a + b => within 5 s", "a + b => within 5 s"),
    "a shorter chain beside a longer": (
        "(a ; b) | (a ; c ; b) => within 5 s",
        "a ; b => within 5 s",
    ),
    "written twice with +": ("a ; b + a ; b", "a ; (a + b) ; b"),
    "x{n} unrolled": ("(a ; b){3} => within 9 s", "a ; b ; a ; b ; a ; b => within 9 s"),
    "x{n} in x{m}": ("a{2}{3}", "a{6}"),
    "x{n} of a choice": ("(a | b){2}", "a;a | a;b | b;a | b;b"),
    "a branch repeated": ("a ; b || a ; b => within 5 s", "a ; b => within 5 s"),
    "branches of single ports": ("a || b || c", "a | b | c"),
    # clauses that make no difference
    "a window around one event": ("a | b => within 1 s", "a | b"),
    "bind changes no moment": ("a ; b => bind first within 5 s", "a ; b => bind last within 5 s"),
    "within written in other units": ("a ; b => within 1 min", "a ; b => within 60000 ms"),
    "a key on both": ("a + b => by K", "b + a => by K"),
    # labels
    "labels that decide nothing": ("l1:a + l2:(b ; c) => " + pushing("l1 & l2"), "a + (b ; c)"),
    "de morgan over labels": (
        "l1:a | l2:b | c => " + pushing("!(l1 & l2)"),
        "l1:a | l2:b | c => " + pushing("!l1 | !l2"),
    ),
    "a label or its absence": ("l1:a | b => " + pushing("l1 | !l1"), "a | b"),
    "do-unless as labels": (
        "l1:(a ; b) | l2:c => " + pushing("l1"),
        ecl("do { sequential { a, b } } unless { c }"),
    ),
    "do-unless of an accumulation": (
        "l1:(a + b) | l2:(c ; d) => " + pushing("l1"),
        ecl("do { accumulate { a, b } } unless { sequential { c, d } }"),
    ),
    "aborted from the start": ("l1:a + b => " + pushing("true", "abort(l1);"), "b"),
    "aborted and revived": ("l1:a + b => " + pushing("true", "abort(l1); revive(l1);"), "a + b"),
    "toggled twice": ("l1:a ; b => " + pushing("true", "toggle(l1); toggle(l1);"), "a ; b"),
    "aborted left of ;": ("l1:a ; b ; c => " + pushing("true", "abort(l1);"), "b ; c"),
    "six labels aborted left of ;": (
        "l1:a ; l2:a ; l3:a ; l4:a ; l5:a ; l6:a ; b => "
        + pushing("true", "abort(l1, l2, l3, l4, l5, l6);"),
        "b",
    ),
    "once, by abort": (
        "l1:(a ; b) => { case l1: push new Out {}; abort(l1); }",
        "ecl notify { sequential { a, b } }",
    ),
    # the same in ECL
    "an accumulation": ("a + b + c", ecl("accumulate { c, a, b }")),
    "an accumulation of a choice": ("a + (b | c)", ecl("accumulate { a, select { b, c } }")),
    "a chain": ("a ; b ; a", ecl("sequential { a, b, a }")),
    "a chain of an accumulation": ("(a + b) ; c", ecl("sequential { accumulate { a, b }, c }")),
    "parallel as branches": (
        "a ; b || c ; d",
        "ecl parallel { repeat { notify { sequential { a, b } } },"
        " repeat { notify { sequential { c, d } } } }",
    ),
    "fail of fail": (ecl("fail { fail { sequential { a, b } } }"), ecl("sequential { a, b }")),
    "a bounded repeat unrolled": (
        "ecl repeat(3) { notify { a } }",
        "ecl sequential { notify { a }, notify { a }, notify { a } }",
    ),
    "repeat over repeat": ("ecl repeat { repeat(2) { notify { a } } }", ecl("a")),
    "loop of what never fails": ("ecl loop { notify { a } }", ecl("a")),
    "persist of what succeeds": ("ecl persist { notify { a } }", "ecl notify { a }"),
    "unless nothing": (ecl("do { sequential { a, b } } unless { false }"), "a ; b"),
    "unless after success": (ecl("do { a } unless { a }"), "a"),
    "nested accumulations": (
        ecl("accumulate { accumulate { a, b }, c }"),
        ecl("accumulate { a, b, c }"),
    ),
    "select* of what never fails": (ecl("select* { a, sequential { b, c } }"), "a | b ; c"),
    "a timeout in two halves": (
        "ecl notify { timeout(4 s) }",
        "ecl notify { sequential { timeout(1 s), timeout(3 s) } }",
    ),
    "the shorter of two timeouts": (
        ecl("select { timeout(2 s), timeout(5 s) }"),
        ecl("timeout(2 s)"),
    ),
    "the longer of two timeouts": (
        "ecl notify { accumulate { timeout(2 s), timeout(5 s) } }",
        "ecl notify { timeout(5 s) }",
    ),
    # modes removed
    "one mode": ("ecl modes { in (a) do { repeat { notify { b } } } }", ecl("b")),
    "modes as labels": (
        "ecl modes { in (c) do { repeat { notify { a } } } in (d) do { repeat { notify { b } } } }",
        "l1:c | l2:d || m1:a | m2:b => { abort(m2);"
        " case l1: abort(m2); revive(m1); case l2: abort(m1); revive(m2);"
        " case m1 | m2: push new Out {}; }",
    ),
    "a mode that does nothing": (
        "ecl modes { in (c) do { false } in (d) do { repeat { notify { a } } } }",
        "ecl repeat { sequential { d, do { repeat { notify { a } } } unless { c } } }",
    ),
}

NEAR_MISSES = {
    "a window a second longer": ("a ; b => within 5 s", "a ; b => within 6 s", LESS),
    "a window a millisecond longer, over +": (
        "a + b => within 5 s",
        "a + b => within 5001 ms",
        OTHER,
    ),
    "a window where there was none": ("a ; b ; c => within 5 s", "a ; b ; c", OTHER),
    "two neighbours swapped": ("a ; b ; c", "a ; c ; b", OTHER),
    "an order where there was none": ("a + b", "a ; b", OTHER),
    "one repetition more": ("a{4}", "a{5}", OTHER),
    "a chain cut short": ("(a ; b){2}", "a ; b ; a", OTHER),
    "+ multiplied out, one forgotten": ("a + (b | c)", "a + b", OTHER),
    "branches for a choice": ("a ; b || c ; d", "(a | c) ; (b | d)", OTHER),
    "x{n} distributed": ("(a ; b){2}", "a{2} ; b{2}", OTHER),
    "one order of three forgotten": (
        "a + b + c",
        "(a;b;c) | (a;c;b) | (b;a;c) | (b;c;a) | (c;a;b)",
        OTHER,
    ),
    "do-unless made stricter": (
        "l1:(a ; b) | l2:(c ; b) => " + pushing("l1 & !l2"),
        ecl("do { sequential { a, b } } unless { sequential { c, b } }"),
        LESS,
    ),
    "an interruption that forgets nothing": (
        "l1:(a ; b) || l2:c => " + pushing("l1"),
        "l1:(a ; b) | l2:c => " + pushing("l1"),
        MORE,
    ),
    "aborted one step later": (
        "l1:a || b => { case l1: abort(l1); case l1: push new Out {}; }",
        "l1:a || b => { case l1: push new Out {}; abort(l1); }",
        LESS,
    ),
    "revived one step later": (
        "l1:(a ; b) || l2:c => { case l2: abort(l1); revive(l1); case l1: push new Out {}; }",
        "l1:(a ; b) || l2:c => { case l2: toggle(l1); case l1: push new Out {}; }",
        MORE,
    ),
    "aborted right of ; instead of left": (
        "l1:a ; b => " + pushing("true", "abort(l1);"),
        "a ; l1:b => " + pushing("true", "abort(l1);"),
        OTHER,
    ),
    "once and again and again": ("ecl notify { a }", ecl("a"), LESS),
    "a bound one lower": ("ecl repeat(3) { notify { a } }", "ecl repeat(2) { notify { a } }", MORE),
    "interrupted for good": ("ecl notify { do { a } unless { b } }", "ecl notify { a }", LESS),
    "success and failure swapped": (
        ecl("do { a } unless { b }"),
        ecl("do { b } unless { a }"),
        OTHER,
    ),
    "select* fails with one": (
        "ecl notify { select* { a, fail { b } } }",
        "ecl notify { select { a, fail { b } } }",
        LESS,
    ),
    "an accumulation fails with one": (
        "ecl notify { accumulate { a, fail { b } } }",
        "ecl notify { a }",
        LESS,
    ),
    "a timeout moved": (ecl("timeout(4 s)"), ecl("timeout(2 s)"), LESS),
    "a timeout moved a little": (
        "ecl notify { timeout(4 s) }",
        "ecl notify { timeout(4001 ms) }",
        OTHER,
    ),
    "absence within a longer time": (
        ecl("sequential { a, do { timeout(2 s) } unless { b } }"),
        ecl("sequential { a, do { timeout(3 s) } unless { b } }"),
        OTHER,
    ),
    "a time limit for a window": (
        "a ; b => within 5 s",
        ecl("do { sequential { a, b } } unless { timeout(5 s) }"),
        MORE,
    ),
    "the first mode another": (
        "ecl modes { in (c) do { repeat { notify { a } } } in (d) do { repeat { notify { b } } } }",
        "ecl modes { in (d) do { repeat { notify { b } } } in (c) do { repeat { notify { a } } } }",
        OTHER,
    ),
    "a guard forgotten": (
        "ecl modes { in (c) do { repeat { notify { a } } } in (d) do { repeat { notify { b } } } }",
        ecl("select { a, b }"),
        LESS,
    ),
}


WIDE = [f"p{n}" for n in range(40)]
ALL, REST = " + ".join(WIDE), " + ".join(WIDE[1:])
NEEDLESS = {
    "one order of many beside all": f"{ALL} | (p0 ; ({REST})) | (({REST}) ; p0)",
    "more than is wanted beside it": f"{ALL} | ({ALL} + p40)",
    "some of it twice": f"({ALL}) + (p0 + p1) + (p2 | p3)",
    "a longer chain beside it": f"({ALL}) | (({ALL}) ; p40 ; p40)",
}


@pytest.mark.parametrize("text", NEEDLESS.values(), ids=NEEDLESS.keys())
def test_parts_that_another_makes_needless_are_left_out_of_forty_ports(text: str) -> None:
    found = rules.compare_in(many(f"{text} => within 5 s", f"{ALL} => within 5 s"))

    assert found.relation == EQUAL


@pytest.mark.parametrize(
    ("first", "second", "relation"), NEAR_MISSES.values(), ids=NEAR_MISSES.keys()
)
def test_a_near_miss_has_another_normal_form(first: str, second: str, relation: str) -> None:
    one, two = rules.library(first, second).correlations

    assert relation != EQUAL
    assert normal_form(one) != normal_form(two)


def compare_in_time(first: str, second: str, relation: str) -> None:
    library = rules.library(first, second)
    begin = time.process_time()
    found = rules.compare_in(library)
    taken = time.process_time() - begin

    assert (found.relation, found.reason) == (relation, None)
    rules.verify(library, found)
    assert taken < SECONDS_A_PAIR


@pytest.mark.parametrize(("first", "second"), REWRITES.values(), ids=REWRITES.keys())
def test_a_rewritten_rule_is_equivalent(first: str, second: str) -> None:
    compare_in_time(first, second, EQUAL)


@pytest.mark.parametrize(
    ("first", "second", "relation"), NEAR_MISSES.values(), ids=NEAR_MISSES.keys()
)
def test_a_rule_that_is_nearly_the_same_is_told_apart(
    first: str, second: str, relation: str
) -> None:
    compare_in_time(first, second, relation)
