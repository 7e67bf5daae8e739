"""Channels and events for tests: short to write, and on a clock that stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import ensue
from ensue.channel import Builder, Channel, VirtualClock, build
from ensue.events.event import Event

LIBRARY = ensue.parse("""
eventtype Notify { attribute short SourceID; };
eventtype DataNotify : Notify { attribute float Value; };
eventtype Special : DataNotify {};
eventtype Other {};

Notify correlation Both (DataNotify a, Other b)
    a + b
{
    case true: push new Notify { SourceID = a.SourceID };
}

Notify correlation Silent (DataNotify a, deadline 10 s d)
    d
{
    case true: push new Notify {};
}
""")

_ids = count(1)


def event(type_: str = "Notify", at: int = 0, source: str = "test", **data: Any) -> Event:
    return Event(f"e{next(_ids)}", source, type_, at, data)


def extended(type_: str = "Notify", at: int = 0, data: Any = None, **extensions: Any) -> Event:
    return Event(f"e{next(_ids)}", "test", type_, at, data or {}, extensions)


def builder(configuration: str = "filtering", name: str = "channel") -> Builder:
    """A channel in the caller's thread, on a virtual clock, that knows the types above."""
    return build(configuration, name).library(LIBRARY).clock(VirtualClock())


def one_thread(**promises: Any) -> Channel:
    """A channel with a pool of one, so that whoever has to wait does."""
    return builder("full").dispatching("pool", threads=1).consumers(**promises).done()


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for another thread: briefly, unless the machine has much else to do."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def empty() -> list[Any]:
    """A list for what a test notes."""
    return []


def noting(into: list[Any], what: Any) -> Callable[[Event], None]:
    """A consumer that notes that it was called."""
    return lambda _: into.append(what)


@contextmanager
def held(channel: Channel) -> Iterator[None]:
    """Keep the only thread of a pool busy, so that queues fill; then let it go on."""
    started, go_on = threading.Event(), threading.Event()

    def hold(_: Event) -> None:
        started.set()
        go_on.wait(60)

    holder = channel.consumers.connect("holder", hold, "Hold", priority=1_000)
    channel.push(event("Hold"))
    assert started.wait(60)
    try:
        yield
    finally:
        go_on.set()
        assert channel.settle()
        holder.disconnect()
