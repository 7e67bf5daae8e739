"""Filters of very many terms, with which anybody may subscribe, are indexed in no time."""

from __future__ import annotations

import time

import pytest

from ensue.events.event import Event
from ensue.subscriptions import Filter, Index
from ensue.subscriptions.questions import ERROR, FALSE, TRUE, Atoms, node_of, possible

TERMS = 500
SHAPES = {
    "alternatives": " OR ".join(f"s = 'x{n}'" for n in range(TERMS)),
    "patterns": " OR ".join(f"s LIKE '%x{n}_'" for n in range(TERMS)),
    "demands": " AND ".join(f"n <> {n + 1}" for n in range(TERMS)),
    "sums of products": " OR ".join(f"(n > {n} AND m < {n})" for n in range(TERMS)),
    "products of sums": " AND ".join(f"(n <> {n} OR m < {n})" for n in range(TERMS)),
    "a parity": " XOR ".join(f"n = {n}" for n in range(TERMS)),
    "mixed": " OR ".join(f"NOT (n > {n} XOR m = {n}) AND s = 'x'" for n in range(TERMS)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_filter_of_very_many_terms_is_indexed_soon_and_matches_as_it_says(shape: str) -> None:
    filter_, index = Filter.parse(SHAPES[shape]), Index()
    began = time.process_time()
    index.add("one", filter_)
    took = time.process_time() - began

    # Each of these took minutes where every conjunction was written out before it was counted.
    assert took < 5
    for number in (-1, 0, 7, TERMS - 1, TERMS + 1):
        for other in (-1, 3, TERMS):
            event = Event.of("A", time=0, data={"s": f"x{number}", "n": number, "m": other})
            assert ("one" in index.match(event)) is filter_.matches(event)


@pytest.mark.parametrize("sign", ["AND", "OR", "XOR"])
def test_outcomes_of_a_chain_of_thousands_are_told_without_recursion(sign: str) -> None:
    atoms = Atoms()
    long = Filter.parse(f" {sign} ".join(f"n{n} > 1" for n in range(3_000)))
    node = node_of(long.expression, atoms)
    assert possible(node, [TRUE | FALSE] * len(atoms.all)) == TRUE | FALSE
    assert possible(node, [ERROR] * len(atoms.all)) == ERROR
