"""Simulated linked channels lose, double and forget no event, whatever neighbours do and say.

Every round is a simulated world twice: with faults of links, and with neighbours that lie.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.channel.simulation.liars import simulate_liars
from tests.channel.simulation.world import simulate
from tests.hunts.quiet import quiet

SHORT = range(300, 308)


def hunt(seed: int) -> Mapping[str, int]:
    with quiet("ensue.channel"):
        return {
            "deliveries": len(simulate(seed)),
            "deliveries among liars": len(simulate_liars(seed)),
        }
