"""Optimised or not, indexed or not, handed on or kept: a machine does the same."""

from __future__ import annotations

import pytest

from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.building.labels import needs_memory
from ensue.machine.model import Machine
from ensue.machine.passes import (
    drop_unreachable,
    drop_useless,
    inline_derived,
    merge_handovers,
    optimise,
    renumber,
)
from ensue.machine.plan import plan

from .runs import golden_correlations, log, moments, random_correlations

SEEDS = 200
PASSES = [drop_unreachable, drop_useless, inline_derived, merge_handovers, renumber, optimise]


def machines(correlation: Correlation) -> list[Machine]:
    """The machine of a correlation; with long chains kept, and with short ones handed on."""
    built = plan(correlation).built
    if built is None:
        return []
    if not isinstance(correlation, FilterCorrelation) or needs_memory(correlation):
        return [built]
    return [machine_of_filter(correlation, long_chain=2), built]


@pytest.mark.parametrize("make", PASSES, ids=lambda make: make.__name__)
def test_a_pass_changes_nothing_that_a_random_machine_does(make) -> None:  # type: ignore[no-untyped-def]
    for seed, correlation in random_correlations(range(SEEDS)):
        for machine in machines(correlation):
            stream = moments(machine, seed)

            assert log(make(machine), stream) == log(machine, stream), f"seed {seed}"


@pytest.mark.parametrize("make", PASSES, ids=lambda make: make.__name__)
def test_a_pass_changes_nothing_that_a_golden_machine_does(make) -> None:  # type: ignore[no-untyped-def]
    for seed, correlation in enumerate(golden_correlations()):
        for machine in machines(correlation):
            stream = moments(machine, seed)

            assert log(make(machine), stream) == log(machine, stream), correlation.name


def test_the_index_of_a_large_machine_keeps_the_order_of_the_pass() -> None:
    for seed, correlation in random_correlations(range(SEEDS)):
        for machine in machines(correlation):
            stream = moments(machine, seed)

            assert log(machine, stream, small=0) == log(machine, stream, small=10**9), seed
