"""Simulated linked channels lose, double and forget no event, whatever neighbours do and say.

Every round is a simulated world three times: with faults of links, with neighbours that lie, and
with rules of a random library that run at either end of links, beside the same in one channel.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.channel.simulation.liars import simulate_liars
from tests.channel.simulation.rules import compare_rules
from tests.channel.simulation.world import simulate
from tests.hunts.quiet import quiet

SHORT = range(300, 308)


def hunt(seed: int) -> Mapping[str, int]:
    with quiet("ensue.channel"):
        tried = compare_rules(seed)
        return {
            "rules at another end": tried["away"],
            "outputs of rules": tried["outputs"],
            "deliveries": len(simulate(seed)),
            "deliveries among liars": len(simulate_liars(seed)),
        }
