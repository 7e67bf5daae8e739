"""Nets of gateways over real brokers lose and double no more than their services promise.

Gateways are processes; brokers, gateways and the connections between them are killed, restarted and
stalled. The brokers are started once, by the first round that needs them. Where something is wrong
the last lines of what every gateway wrote follow.
"""

from __future__ import annotations

import asyncio
import atexit
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random

from tests.federation.topologies.brokers import Brokers, own_brokers
from tests.federation.topologies.story import Story

SHORT = (3,)
FAULTS = ("break",)
KINDS = ("mqtt", "nats", "nats-jetstream", "redis", "zenoh")
LAST_LINES = 8


def hunt(seed: int, faults: Sequence[str]) -> Mapping[str, int]:
    is_calm = Random(seed).random() < 0.2 or not faults
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, _brokers(), [*KINDS], Path(folder))
        wrong = []
        try:
            asyncio.run(story.run(not is_calm))
        except (AssertionError, TimeoutError) as error:
            wrong.append(f"{type(error).__name__} {error}")
        wrong += story.judged()
        if wrong:
            raise AssertionError("\n".join([*wrong, str(story), *_told(Path(folder))]))
    return {"events": len(story.sent)}


@cache
def _brokers() -> Brokers:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(own_brokers())


def _told(folder: Path) -> list[str]:
    return [
        f"{file.stem}: {line}"
        for file in sorted(folder.glob("*.err"))
        for line in file.read_text("utf-8").splitlines()[-LAST_LINES:]
    ]
