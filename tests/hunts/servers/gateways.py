"""Nets of gateways in one process give every service what it asked for, once, despite faults.

Topologies, requests and traffic are random. The fault `break` ends connections, loses events and
kills and restarts gateways in the middle of the traffic; `stall` stops the whole process again and
again, for at most 0.3 s each time, as a machine does that has too much to do.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ensue.federation.messages.attributes import PATH
from tests.federation.topologies.test_random import Story

SHORT = (1004,)
FAULTS = ("break", "stall")
LONGEST_STALL = 0.3
PATIENCE = 60.0
"""What is only late on a busy machine is not lost."""


def hunt(seed: int, faults: Sequence[str]) -> Mapping[str, int]:
    # A third of the rounds is calm: what is wrong there needs no fault.
    draw = random.Random(seed)
    chosen = [] if draw.random() < 0.3 else [each for each in faults if draw.random() < 0.8]
    story = asyncio.run(_told(seed, chosen))
    wrong = [line for service in story.services for line in _differences(story, service)]
    if wrong:
        raise AssertionError("\n".join([f"with {chosen}, links {story.links}", *wrong]))
    return {"events": sum(map(len, story.sent.values())), "gateways": len(story.links)}


async def _told(seed: int, faults: Sequence[str]) -> Story:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, Path(folder))
        story.patience = PATIENCE
        stalling = asyncio.create_task(_stall(seed)) if "stall" in faults else None
        try:
            async with asyncio.timeout(2 * PATIENCE):
                await story.run("break" in faults)
                await story.world.stop()
        finally:
            if stalling is not None:
                stalling.cancel()
                with suppress(asyncio.CancelledError):
                    await stalling
        return story


async def _stall(seed: int) -> None:
    """Nothing else in the process runs while this sleeps."""
    draw = random.Random(seed)
    while True:
        await asyncio.sleep(draw.uniform(0, 0.1))
        time.sleep(draw.uniform(0, LONGEST_STALL))


def _differences(story: Story, service: str) -> list[str]:
    got, wanted = story.arrived(service), story.wanted(service)
    lost = set(wanted) - set(got)
    more = [each for each in set(got) if got.count(each) > wanted.count(each)]
    if not lost and not more:
        return []
    routes = [
        f"{each.id} by {each.extensions.get(PATH)}"
        for each in story.world.hub(service).events
        if each.id in more[:3]
    ]
    return [f"`{service}` lost {sorted(lost)[:9]}, too often {more[:9]} {routes}"]
