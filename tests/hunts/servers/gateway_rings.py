"""A ring of gateways loses and doubles nothing while a server restarts; each route is in order.

Three gateways join three of MQTT, a Redis stream, JetStream, Kafka and RabbitMQ. To one of them
20,000 numbered events are published one by one (6,000 where its server takes long to start), and
every three seconds that server is killed or stopped, for a second and a half or until it is back.
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
EVENTS, EVENTS_OF_SLOW, FEW_EVENTS = 20_000, 6_000, 1_500
SECONDS_BETWEEN = 3.0


def hunt(seed: int) -> Mapping[str, int]:
    with own_brokers() as brokers, tempfile.TemporaryDirectory() as folder:
        ring = Ring(seed, brokers, Path(folder))
        events = FEW_EVENTS if seed in SHORT else EVENTS_OF_SLOW if ring.is_slow else EVENTS
        asyncio.run(ring.run(events, SECONDS_BETWEEN))
        if wrong := ring.judged():
            said = [f"{name}: {each.said}" for name, each in ring.gateways.items()]
            raise AssertionError("\n".join([*wrong, str(ring), *said]))
    restarts = sum(f" {ring.source} after" in each for each in ring.told)
    return {"events": len(ring.sent), "restarts": restarts}
