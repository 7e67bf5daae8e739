"""All pairs of some small rules, held against all short sequences of events.

The reference engine says at the end of which sequences each rule puts out. What is said of a pair
must agree with that, and a witness may be no longer than the shortest sequence that is found so.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import pytest

import ensue

from . import rules

PORTS = "A a, B b, C c"
LONGEST = 5

SMALL = (
    "a ; b",
    "a + b",
    "a | (b ; c)",
    "a{2}",
    "a ; b ; a",
    "a || b ; c",
    "l1:(a ; b) | l2:c => { case l1: push new Out {}; }",
    "l1:a + l2:b | c => { case l1 & !l2: push new Out {}; }",
    "l1:a || l2:b => { case l2: toggle(l1); case l1: push new Out {}; }",
    "l1:(a + b) || l2:c => { abort(l1); case l2: revive(l1); case l1: push new Out {}; }",
    "a + l1:b || l2:c => { case l2: abort(l1); case !l2: push new Out {}; }",
    "l1:a ; b || l2:c => { case l2: toggle(l1); case !l2: push new Out {}; }",
    "l1:(a + l2:b) ; c => { case l2: push new Out {}; abort(l2); case !l2: push c; revive(l2); }",
    "l1:(a ; b) ; l2:c => { abort(l1); case l2: push new Out {}; toggle(l1); abort(l2); }",
    "ecl notify { sequential { a, b } }",
    "ecl repeat { notify { do { sequential { a, b } } unless { c } } }",
    "ecl repeat(2) { notify { select { a, b } } }",
    "ecl loop { notify { do { a } unless { b } } }",
    "ecl modes { in (a) do { repeat { notify { b } } } in (c) do { notify { b } } }",
    "ecl parallel { repeat { notify { accumulate { a, b } } }, sequential { c, notify { a } } }",
)


@cache
def sequences_of(text: str) -> frozenset[str]:
    """The sequences at whose last event a rule puts something out, each as its types in order."""
    library = rules.library(text, ports=PORTS)
    found = set()
    for length in range(1, LONGEST + 1):
        for types in product("ABC", repeat=length):
            run = rules.alone(library, library.correlations[0])
            made: list[ensue.Event] = []
            for second, type_ in enumerate(types):
                data = {"V": 1, "S": "x", "K": 1}
                event = ensue.Event.of(type_, time=second * 1_000_000, id=f"{second}", data=data)
                made = run.push(event)
            if made:
                found.add("".join(types))
    return frozenset(found)


@pytest.mark.parametrize(("first", "second"), list(combinations(SMALL, 2)))
def test_a_relation_agrees_with_all_short_sequences(first: str, second: str) -> None:
    found = rules.compared(first, second, PORTS)
    one, two = sequences_of(first), sequences_of(second)

    for witness, only in ((found.only_first, one - two), (found.only_second, two - one)):
        if witness is None:
            assert not only
        elif len(witness) <= LONGEST:
            assert "".join(event.type for event in witness.events) in only
            assert len(witness) == min(map(len, only))
        else:
            assert not only
    assert found.relation != "undecided"
