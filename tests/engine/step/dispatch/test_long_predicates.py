"""Predicates that were written by a program: very many parts, one after the other."""

from __future__ import annotations

from itertools import pairwise

import pytest

import ensue
from ensue import Event

TYPES = "eventtype A { attribute long v; } eventtype Out { attribute long v; }"
PARTS = [f"v = {number}" for number in range(1_000)]
LONG = {
    "OR": " OR ".join(PARTS),
    "AND": " AND ".join(f"NOT ({part})" for part in PARTS),
    "XOR": " XOR ".join(PARTS),
    "mixed": " OR ".join(f"{one} AND {two}" for one, two in pairwise(PARTS)),
}


@pytest.mark.parametrize("predicate", LONG.values(), ids=LONG)
@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_predicate_of_a_thousand_parts_holds_as_it_does_by_the_definitions(
    predicate: str, engine: str
) -> None:
    rule = (
        f"Out correlation R (A a where {predicate}) a {{ case true: push new Out {{ v = a.v }}; }}"
    )
    library = ensue.parse(f"{TYPES} {rule}")
    events = [
        Event.of("A", time=number, id=str(number), data={"v": value})
        for number, value in enumerate([0, 1, 500, 999, 1_000, None])
    ]

    made = list(library.run(events, engine=engine))

    assert made == list(library.run(events, engine="reference"))
