"""Federations of up to eight gateways on a simulated clock bring everything once, despite faults.

Gateways are the real code; services, network and clock are models (`tests/federation/simulated`).
Topologies, kinds of services, requests, traffic and faults follow from the seed: services and
gateways are killed or stopped and come back, connections are cut or slow, requests come in between.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.federation.simulated.stories import told

SHORT = (19, 48, 101)


def hunt(seed: int) -> Mapping[str, int]:
    story = told(seed)
    if wrong := story.judged():
        raise AssertionError("\n".join([*wrong, str(story)]))
    return {
        "events": len(story.sent),
        "gateways": len(story.links),
        "seconds": round(story.seconds),
    }
