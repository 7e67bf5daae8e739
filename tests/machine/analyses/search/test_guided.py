"""The search by order and the search by times say the same, wherever both come to an end."""

from __future__ import annotations

import pytest

from ensue.library import Library
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.comparison import Differences, search_by_times
from ensue.machine.analyses.events.alphabet import alphabets
from ensue.machine.analyses.search.exploration import Edge
from ensue.machine.analyses.search.guided import GuidedSearch
from ensue.machine.analyses.witness import has_times
from tests.machine.analyses import rules
from tests.machine.analyses.test_random_relations import draw_pair

from .test_symmetry import many

WORK = 300_000


def shortest_by_order(found: dict[int, list[Edge]], side: int) -> int | None:
    """The length of the first way that has times; None if none has, or there is no way at all."""
    lengths = [edge.source.depth + 1 for edge in found[side] if has_times(edge)]
    return min(lengths, default=None)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_no_way_that_times_allow_is_shorter_than_the_first_that_order_allows(first: int) -> None:
    for seed in range(50_000 + first, 50_030 + first):
        _, library = draw_pair(seed)
        for number in range(len(alphabets(_behaviours(library), library.checked.types))):
            behaviours = _behaviours(library)
            symbols = alphabets(behaviours, library.checked.types)[number].symbols
            by_times = Differences()
            search_by_times(behaviours, symbols, WORK, {0, 1}, by_times)
            search = GuidedSearch(behaviours, symbols, WORK)
            edges: dict[int, list[Edge]] = {0: [], 1: []}
            for edge in search.differences():
                side = 0 if edge.puts_out[0] else 1
                edges[side].append(edge)
                search.settle(side)

            for side in (0, 1):
                if side in by_times.seen and edges[side]:
                    assert edges[side][0].source.depth + 1 <= len(by_times.seen[side])
                if side in by_times.seen and search.complete:
                    assert edges[side]
                if side in by_times.absent:
                    assert shortest_by_order(edges, side) is None


def _behaviours(library: Library) -> list[Behaviour]:
    return [Behaviour(each) for each in library.correlations]


FORTY = [f"p{n}" for n in range(40)]
ALL = " + ".join(FORTY)
REST = " + ".join(FORTY[1:])
UNTIL = f"do {{ accumulate {{ {', '.join(FORTY)} }} }} unless {{ timeout(10 s) }}"
WINDOWS = [
    ("a window twice as long", f"{ALL} => within 10 s", f"{ALL} => within 20 s", [41, 40]),
    ("no window", f"{ALL} => within 10 s", ALL, [41, 40]),
    (
        "a window a microsecond longer",
        f"{ALL} => within 10 s",
        f"{ALL} => within 10000.001 ms",
        [41, 40],
    ),
    ("one port fewer", f"{ALL} => within 10 s", f"{REST} => within 10 s", [40, 39]),
    ("one port more", f"{ALL} => within 10 s", f"{ALL} + p40 => within 10 s", [40, 41]),
    (
        "the first before the others",
        f"{ALL} => within 10 s",
        f"p0 ; ({REST}) => within 10 s",
        [40, 41],
    ),
    (
        "the first after the others",
        f"{ALL} => within 10 s",
        f"({REST}) ; p0 => within 10 s",
        [40, 41],
    ),
    ("then one more", f"({ALL}) ; p40 => within 10 s", f"{ALL} + p40 => within 10 s", [42, 41]),
    ("two branches alike", f"{ALL} => within 10 s", f"{ALL} || {ALL} => within 10 s", []),
    (
        "a time limit in ECL",
        f"{ALL} => within 10 s",
        f"ecl repeat {{ notify {{ {UNTIL} }} }}",
        [41, 42],
    ),
]


@pytest.mark.parametrize(
    ("first", "second", "lengths"),
    [each[1:] for each in WINDOWS],
    ids=[each[0] for each in WINDOWS],
)
def test_forty_ports_in_a_window_are_compared_with_their_variants(
    first: str, second: str, lengths: list[int]
) -> None:
    library = many(first, second)

    found = rules.compare_in(library)

    assert found.relation == ("different" if lengths else "equivalent")
    assert [len(each) for each in found.witnesses] == lengths
    rules.verify(library, found)
