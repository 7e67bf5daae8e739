"""How the time of an event grows with the events that a key remembers, as `check --costs` says."""

from __future__ import annotations

import time

import pytest

import ensue
from ensue.engine.costs import cost_of

TYPES = "eventtype O {}; eventtype A { attribute long n; }; eventtype B : A {};\n"


def library(text: str) -> ensue.Library:
    return ensue.parse(
        f"{TYPES}O correlation X (A a, B b) {text} {{ case true: push new O {{}}; }}"
    )


@pytest.mark.parametrize(
    ("text", "growth"),
    [
        ("a{5} within 1 h", "constant"),
        ("a ; b keep all bind latest within 1 h", "constant"),
        ("a ; timeout(1 h) unless a, b", "constant"),
        ("a ; timeout(1 h)", "constant"),
        ("a within 1 h keep all having distinct(a.n) > 5", "logarithmic"),
        ("a ; b within 1 d having count(a) > 5", "logarithmic"),
        ("a ; timeout(1 h) within 1 d bind latest having a.time = last(a.time)", "linear"),
        ("(a | b) ; b keep all within 1 d having min(a.n) > 5", "linear"),
    ],
)
def test_the_growth_of_an_event_is_told(text: str, growth: str) -> None:
    given = library(text)
    cost = cost_of(given.checked, given.correlations[0])

    assert cost.growth == growth
    assert cost.is_dear is (growth == "linear")
    assert ("O(n)" in cost.time) is cost.is_dear


def seconds(given: ensue.Library, count: int) -> float:
    events = [
        ensue.Event(str(n), "s", "AB"[n % 2], n * 1_000_000, {"n": n % 97}) for n in range(count)
    ]
    start = time.process_time()
    list(given.run(events, engine="step", until=count * 1_000_000 + 10**10))
    return time.process_time() - start


def test_what_is_told_is_what_is_measured() -> None:
    """Four times the events: a dear rule takes clearly more than that, the others do not.

    Both are measured in one run, and processor time is compared.
    """
    dear = library("a ; timeout(1 h) within 1 d bind latest having a.time = last(a.time)")
    cheap = library("a within 1 d keep all having distinct(a.n) > 500")
    for each in (dear, cheap):
        seconds(each, 20)

    assert seconds(dear, 400) / seconds(dear, 100) > 2 * seconds(cheap, 4_000) / seconds(
        cheap, 1_000
    )
