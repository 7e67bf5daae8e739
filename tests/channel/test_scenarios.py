"""A few seeds of every random scenario; the hunt `channels` plays as many as there is time for."""

from __future__ import annotations

import logging
import random

import pytest

from tests.channel.linked_scenarios import LINKED_SCENARIOS
from tests.channel.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_channel_keeps_its_promises_under_any_load(scenario: Scenario, seed: int) -> None:
    # Consumers fail on purpose, and every failure is logged.
    logging.getLogger("ensue.channel").disabled = True
    try:
        scenario(random.Random(seed))
    finally:
        logging.getLogger("ensue.channel").disabled = False


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scenario", LINKED_SCENARIOS, ids=lambda each: each.__name__)
def test_linked_channels_deliver_once_and_in_order_whatever_happens(
    scenario: Scenario, seed: int
) -> None:
    scenario(random.Random(seed))
