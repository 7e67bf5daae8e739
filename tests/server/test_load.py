"""A short form of `ensue bench server`: bounds so wide that only a change of kind breaks them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ensue_bench.effort import Effort
from ensue_bench.subjects.server import BATCH, batch, served, subscribers, throughput, warm

QUICK = Effort(quick=True)


def test_batches_cost_little_memory_stays_and_a_thousand_subscribers_get_theirs(
    tmp_path: Path,
) -> None:
    """A thousand subscribers connect, each over a connection of its own."""
    with served(tmp_path, "journal_events = 20000\n") as server:
        server.put()
        first = warm(server)
        acknowledged, *_ = throughput(server, QUICK, first)
        # The aim is 50,000; a machine that is shared makes processor time dearer, not threefold.
        assert max(acknowledged.values) > 17_000
        first += 10 * BATCH

        resident = []
        for number in range(60):
            server.publish(batch(first + number * BATCH, BATCH))
            resident.append(server.resident_mebibytes())
        # Events that may be sent again are remembered, in some 200 bytes each.
        assert max(resident[45:]) - max(resident[15:30]) < 30
        first += 60 * BATCH

        delivered = asyncio.run(subscribers(server, Effort(), first))
        assert delivered.values[0] > 0
        found = server.client.get("/v1/figures", params={"seconds": 1}).json()
        assert found["rejected"] == 0
