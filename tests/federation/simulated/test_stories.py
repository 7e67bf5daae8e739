"""Federations on a simulated clock lose and double nothing, whatever restarts when.

The hunt `simulated-gateways` goes on from other seeds.
"""

from __future__ import annotations

import pytest

from .stories import told

RESTARTED_SERVICE = 19
"""A ring in which a service and two gateways restart: a route that is given up and the one that
takes its place had both brought events."""
CUT_OFF = 33
"""Two gateways side by side: one is cut off a service, and killed, with much waiting for it."""
RESTING_WITH_GRANTS = 15
"""A ring of eight, in which a gateway asks for a turn and then has nothing to bring."""


@pytest.mark.parametrize("seed", [RESTARTED_SERVICE, CUT_OFF, RESTING_WITH_GRANTS, *range(60, 66)])
def test_everybody_gets_what_it_asked_for_exactly_once(seed: int) -> None:
    story = told(seed)

    assert not story.judged(), str(story)


def test_a_seed_gives_the_same_story_again() -> None:
    first, second = told(3), told(3)

    for name, service in first.world.services.items():
        assert service.log == second.world.services[name].log
