"""The thirteen relations and their compositions, against their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations_with_replacement, product
from random import Random

import pytest

from ensue.history.asking.intervals import RELATIONS, relates
from ensue.history.publication import Interval
from ensue.lang.expressions import terms
from tests.history.judge import ALLEN, is_related

SMALL = [(start, end) for start, end in product(range(6), repeat=2) if start <= end]
LONG = [(start, end) for start, end in SMALL if start < end]


def test_the_relations_are_those_of_the_language() -> None:
    assert set(RELATIONS) == set(terms.RELATIONS) == set(ALLEN)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_holds_where_its_definition_does(relation: str) -> None:
    for x, y in product(SMALL, repeat=2):
        assert relates(relation, Interval.of(*x), Interval.of(*y)) == is_related(relation, *x, *y)


@cache
def compositions() -> Mapping[tuple[str, str], frozenset[str]]:
    """Which relations X may have to Z, if it has the first to Y and Y has the second to Z.

    Three intervals have six ends, so every way in which they can lie shows with six instants.
    """
    intervals = [
        Interval.of(start, end)
        for start, end in combinations_with_replacement(range(6), 2)
        if start < end
    ]
    between = {(x, y): relation_of(x, y) for x in intervals for y in intervals}
    found: dict[tuple[str, str], set[str]] = {
        (first, second): set() for first in RELATIONS for second in RELATIONS
    }
    for x, y, z in product(intervals, repeat=3):
        found[between[x, y], between[y, z]].add(between[x, z])
    return {pair: frozenset(relations) for pair, relations in found.items()}


def relation_of(x: Interval, y: Interval) -> str:
    """The one relation between two intervals that have a length."""
    return next(each for each in RELATIONS if relates(each, x, y))


def test_exactly_one_relation_holds_between_intervals_of_some_length() -> None:
    for x, y in product(LONG, repeat=2):
        assert sum(relates(each, Interval.of(*x), Interval.of(*y)) for each in RELATIONS) == 1


def test_the_table_of_compositions_has_169_cells_and_409_entries() -> None:
    """Both numbers are known from Allen's table."""
    table = compositions()

    assert len(table) == 169
    assert sum(map(len, table.values())) == 409
    assert table["BEFORE", "BEFORE"] == {"BEFORE"}
    assert table["BEFORE", "AFTER"] == set(RELATIONS)
    assert table["MEETS", "MET_BY"] == {"FINISHES", "FINISHED_BY", "EQUALS"}
    assert table["OVERLAPS", "DURING"] == {"OVERLAPS", "STARTS", "DURING"}


def test_random_triples_stand_as_the_table_says_and_reach_every_entry() -> None:
    random, table = Random(1), compositions()
    reached = set()
    for _ in range(60_000):
        x, y, z = (
            Interval.of(*sorted(random.sample(range(random.choice((5, 7, 12))), 2)))
            for _ in range(3)
        )
        first, second, whole = relation_of(x, y), relation_of(y, z), relation_of(x, z)
        assert whole in table[first, second]
        reached.add((first, second, whole))

    assert len(reached) == 409


@pytest.mark.parametrize("relation", RELATIONS)
def test_uncertain_intervals_are_related_surely_and_possibly_as_all_their_places_say(
    relation: str,
) -> None:
    random = Random(relation)
    for _ in range(400):
        x, y = _uncertain(random), _uncertain(random)
        places = [
            is_related(relation, xs, xe, ys, ye) for xs, xe in _places(x) for ys, ye in _places(y)
        ]
        assert relates(relation, x, y, possibly=False) == all(places), (x, y)
        assert relates(relation, x, y, possibly=True) == any(places), (x, y)


def _uncertain(random: Random) -> Interval:
    start = random.randrange(6)
    start_until = start + random.randrange(3)
    end = start + random.randrange(4)
    return Interval(start, start_until, end, max(end, start_until) + random.randrange(3))


def _places(times: Interval) -> list[tuple[int, int]]:
    assert times.end is not None
    assert times.end_until is not None
    return [
        (start, end)
        for start in range(times.start, times.start_until + 1)
        for end in range(times.end, times.end_until + 1)
        if start <= end
    ]
