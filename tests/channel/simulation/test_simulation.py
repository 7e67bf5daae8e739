"""A sample of simulated worlds; the hunt `linked-channels` plays as many as there is time for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.channel.simulation.liars import simulate_liars
from tests.channel.simulation.rules import compare_rules
from tests.channel.simulation.world import World, simulate

SEEDS = range(0, 40, 20)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Consumers fail on purpose, and every failure is logged."""
    logging.getLogger("ensue.channel").disabled = True
    yield
    logging.getLogger("ensue.channel").disabled = False


@pytest.mark.parametrize("start", SEEDS)
def test_whatever_happens_to_links_every_event_is_delivered_or_counted(start: int) -> None:
    for seed in range(start, start + 20):
        simulate(seed)


@pytest.mark.parametrize("start", SEEDS)
def test_whatever_neighbours_say_honest_channels_lose_nothing_by_it(start: int) -> None:
    for seed in range(start, start + 20):
        simulate_liars(seed)


def test_rules_over_links_put_out_what_they_do_in_one_channel() -> None:
    tried = Counter[str]()
    for seed in range(15):
        tried.update(compare_rules(seed))

    assert min(tried[name] for name in ("outputs", "away", "cuts", "ends", "anew")) > 0, tried


def test_what_is_kept_is_read_in_its_order_whatever_its_priority() -> None:
    compare_rules(1_002)


def test_what_a_finished_session_has_brought_is_waited_for() -> None:
    simulate(9_150_111)


def test_a_seed_describes_all_that_happens() -> None:
    assert simulate(7) == simulate(7)
    assert simulate_liars(7) == simulate_liars(7)


def test_worlds_are_worth_while() -> None:
    """Some events arrive by links, some are lost for each reason: the sample sees trouble."""
    arrived, reasons, faults = 0, set(), set()
    for seed in range(60):
        world = World(seed)
        world.run()
        world.heal()
        for channel in world.channels:
            arrived += channel.federation.received
            reasons |= set(channel.figures().dropped)
            faults |= set(channel.federation.faults)
        world.close()

    assert arrived > 500
    assert {"unsent", "unrouted", "unconfirmed", "blocked", "oldest", "newest"} <= reasons
    assert {"silent"} <= faults
