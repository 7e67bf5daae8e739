"""A ring of gateways loses and doubles nothing while JetStream restarts; each route is in order.

Three gateways join MQTT, a Redis stream and JetStream, to which 20,000 numbered events are
published one by one. Every three seconds its server is killed or stopped, for a second and a half.
Half of the rings have been through kills of their gateways before, half have one more request.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.federation.topologies.brokers import own_brokers
from tests.federation.topologies.rings import Ring

SHORT = (5,)
EVENTS, FEW_EVENTS = 20_000, 1_500
SECONDS_BETWEEN = 3.0


def hunt(seed: int) -> Mapping[str, int]:
    events = FEW_EVENTS if seed in SHORT else EVENTS
    with own_brokers() as brokers, tempfile.TemporaryDirectory() as folder:
        ring = Ring(seed, brokers, Path(folder))
        asyncio.run(ring.run(events, SECONDS_BETWEEN))
        if wrong := ring.judged():
            said = [f"{name}: {each.said}" for name, each in ring.gateways.items()]
            raise AssertionError("\n".join([*wrong, str(ring), *said]))
    restarts = sum("nats" in each for each in ring.told)
    return {"events": len(ring.sent), "restarts": restarts}
