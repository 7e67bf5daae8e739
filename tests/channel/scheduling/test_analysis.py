"""Worst response times, against a dispatcher that is played by brute force."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ensue.channel.scheduling import Schedule
from tests.channel.scheduling.dispatching import Dispatching, random_tables, telling_phases

HYPERPERIOD = 120_000


def longest_seen(seed: int, schedule: Schedule, tables: dict[str, Any]) -> dict[str, int]:
    priorities = {each.name: (each.priority, each.sub_priority) for each in schedule.operations}
    playing = Dispatching(tables, priorities)
    suppliers = [each["name"] for each in tables["operation"] if "period" in each]
    for phases in telling_phases(suppliers, Random(seed), 40):
        playing.play(phases, 2 * HYPERPERIOD)
    return playing.longest


@pytest.mark.parametrize("seed", range(30))
def test_response_times_of_suppliers_are_the_longest_that_there_are(seed: int) -> None:
    """Reached when all are released together, just after the longest turn that is less urgent."""
    tables = random_tables(seed, with_consumers=False)
    schedule = Schedule.of(tables)
    if schedule.utilisation > 1:
        assert not schedule.is_schedulable
        return
    seen = longest_seen(seed, schedule, tables)
    together = {each.name: each.response for each in schedule.operations}

    assert seen == together


@pytest.mark.parametrize("seed", range(100, 140))
def test_no_response_time_is_longer_than_the_worst(seed: int) -> None:
    tables = random_tables(seed, with_consumers=True)
    schedule = Schedule.of(tables)
    if schedule.utilisation > 1:
        assert not schedule.is_schedulable
        return
    seen = longest_seen(seed, schedule, tables)

    for each in schedule.operations:
        assert each.response is not None
        assert seen[each.name] <= each.response, each
