"""A placement puts out what one machine does, on random libraries, sites, streams and networks.

The hunt `placements` plays as many seeds as there is time for; here are a few of every kind.
"""

from __future__ import annotations

import pytest

from .agreement import Way, difference, simulated, smallest
from .random_trials import trial

BLOCK = 20


@pytest.mark.parametrize("first", range(0, 120, BLOCK))
def test_a_placement_puts_out_what_one_machine_does(first: int) -> None:
    for seed in range(first, first + BLOCK):
        way = Way.drawn(seed)
        found = difference(trial(seed), way)

        assert found is None, str(smallest(found, way))


@pytest.mark.parametrize("seed", [10194])
def test_trials_that_have_once_differed_do_not_any_more(seed: int) -> None:
    way = Way.drawn(seed)

    assert difference(trial(seed), way) is None


def test_late_parcels_change_nothing() -> None:
    for seed in range(40, 60):
        drawn = trial(seed)
        prompt, _ = simulated(drawn, Way("step"))
        late, _ = simulated(drawn, Way("step", delay=50, beat=13, wire=True))

        assert late == prompt


def test_many_random_trials_split_and_put_something_out() -> None:
    split = outputs = 0
    for seed in range(60):
        lines, simulation = simulated(trial(seed), Way("step"))
        outputs += bool(lines)
        split += any(rule.split_sites for rule in simulation.placement.rules.values())

    assert split >= 15
    assert outputs >= 20
