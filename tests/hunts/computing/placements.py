"""Placements of random libraries put out what one machine does.

Random libraries of filters and expressions, with modes, aborted labels, internal rules and
parameters; random sites and streams, slow links, and sites that begin again in the middle. A
difference is made as small as it gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.federation.placement.agreement import Way, difference, simulated, smallest
from tests.federation.placement.random_trials import trial

SHORT = range(7000, 7016)


def hunt(seed: int) -> Mapping[str, int]:
    way, drawn = Way.drawn(seed), trial(seed)
    found = difference(drawn, way)
    if found is not None:
        raise AssertionError(f"{way}\n{smallest(found, way)}")
    outputs, simulation = simulated(drawn, way)
    rules = simulation.placement.rules.values()
    crossed = simulation.crossed
    return {
        "rules": len(rules),
        "split rules": sum(bool(rule.split_sites) for rule in rules),
        "outputs": len(outputs),
        "events that crossed": crossed.events.total(),
        "resets that crossed": crossed.resets.total(),
        "rules that were told to wait": sum(
            any(home.sleepers.patience or home.sleepers.keys_asleep for home in run.homes)
            for run in simulation.sites.values()
        ),
    }
