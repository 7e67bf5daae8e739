"""A long hunt for topologies, faults and moments in which somebody does not get what it asked for.

    python -m tests.federation.campaign --seconds 60 --start 1000
    python -m tests.federation.campaign --seconds 600 --real mqtt,nats,nats-jetstream,redis,zenoh

In memory, or over real brokers of the kinds that `--real` names, with gateways that are processes;
the exit code is 1 if there was a difference. `--calm` leaves the faults out. `--stall 0.3` stops
the whole process again and again, for at most 0.3 s each time, as a machine does that has too much
to do.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from ensue.federation.messages.attributes import PATH

from .topologies.brokers import own_brokers
from .topologies.forked import Forked
from .topologies.story import Story as RealStory
from .topologies.test_random import Story


async def told(seed: int, faults: bool, longest_stall: float) -> Story:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, Path(folder))
        # What is only late on a busy machine is not lost.
        story.patience = 60.0
        stalling = asyncio.create_task(stall(seed, longest_stall))
        async with asyncio.timeout(120):
            await story.run(faults)
            await story.world.stop()
        stalling.cancel()
        return story


async def stall(seed: int, longest: float) -> None:
    """Nothing else in the process runs while this sleeps."""
    draw = random.Random(seed)
    while longest:
        await asyncio.sleep(draw.uniform(0, 0.1))
        time.sleep(draw.uniform(0, longest))


def routes(story: Story, service: str, ids: list[str]) -> list[str]:
    """The ways on which events came to a service."""
    return [
        f"{each.id} by {each.extensions.get(PATH)}"
        for each in story.world.hub(service).events
        if each.id in ids
    ]


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for events that are lost or doubled")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--start", type=int, default=1000)
    options.add_argument("--failures", type=int, default=3)
    options.add_argument("--calm", action="store_true")
    options.add_argument("--stall", type=float, default=0.0)
    options.add_argument("--real", type=lambda text: text.split(","), default=[])
    options.add_argument(
        "--trace", type=Path, help="a folder for what gateways did where something differs"
    )
    given = options.parse_args()
    return over_brokers(given) if given.real else in_memory(given)


def over_brokers(given: argparse.Namespace) -> int:
    end = time.monotonic() + given.seconds
    seed, failures, events = given.start, 0, 0
    Forked.is_traced = given.trace is not None
    # Whoever ends the hunt ends its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with own_brokers() as brokers:
        while time.monotonic() < end and failures < given.failures:
            with tempfile.TemporaryDirectory() as folder:
                story = RealStory(seed, brokers, given.real, Path(folder))
                found = []
                try:
                    asyncio.run(story.run(not given.calm))
                except (AssertionError, TimeoutError) as error:
                    found.append(f"{type(error).__name__} {error}")
                found += story.judged()
                events += len(story.sent)
                if found:
                    failures += 1
                    print(f"seed {seed}: {found}\n  {story}", flush=True)
                    if given.trace is not None:
                        keep_traces(Path(folder), given.trace / str(seed))
            seed += 1
    print(f"seeds {given.start} to {seed - 1}: {failures} differ, {events} events published")
    return 1 if failures else 0


def keep_traces(told: Path, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for each in told.glob("*.err"):
        (where / each.name).write_text(each.read_text("utf-8"), "utf-8")


def in_memory(given: argparse.Namespace) -> int:
    end = time.monotonic() + given.seconds
    seed, failures, events = given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        story = asyncio.run(told(seed, not given.calm, given.stall))
        events += sum(map(len, story.sent.values()))
        for service in story.services:
            got, wanted = story.arrived(service), story.wanted(service)
            lost = set(wanted) - set(got)
            more = [each for each in set(got) if got.count(each) > wanted.count(each)]
            if lost or more:
                failures += 1
                print(
                    f"seed {seed}: `{service}` lost {sorted(lost)[:9]}, too often {more[:9]}"
                    f" {routes(story, service, more[:3])}; {story.links}",
                    flush=True,
                )
        seed += 1
    print(f"seeds {given.start} to {seed - 1}: {failures} differences, {events} events")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
