"""A long hunt for topologies, faults and moments in which somebody does not get what it asked for.

    python -m tests.federation.campaign --seconds 60 --start 1000

In memory; the exit code is 1 if there was a difference. `--calm` leaves the faults out.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from .test_random_topologies import Story


async def told(seed: int, faults: bool) -> Story:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, Path(folder))
        async with asyncio.timeout(120):
            await story.run(faults)
            await story.world.stop()
        return story


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for events that are lost or doubled")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--start", type=int, default=1000)
    options.add_argument("--failures", type=int, default=3)
    options.add_argument("--calm", action="store_true")
    given = options.parse_args()
    end = time.monotonic() + given.seconds
    seed, failures, events = given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        story = asyncio.run(told(seed, not given.calm))
        events += sum(map(len, story.sent.values()))
        for service in story.services:
            got, wanted = story.world.arrived(service), story.wanted(service)
            lost = set(wanted) - set(got)
            more = [each for each in set(got) if got.count(each) > wanted.count(each)]
            if lost or more:
                failures += 1
                print(
                    f"seed {seed}: `{service}` lost {sorted(lost)[:9]}, too often {more[:9]};"
                    f" {story.links}",
                    flush=True,
                )
        seed += 1
    print(f"seeds {given.start} to {seed - 1}: {failures} differences, {events} events")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
