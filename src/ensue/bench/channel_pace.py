"""How events are supplied while latencies are taken, and under which conditions of the system.

Suppliers of a process push in turn, at a steady pace. While they wait for the next event to be due
they stay awake, for a thread that has slept finds its caches filled by others, and it is the
channel that is asked, not the way back to it; where other threads of the process have something to
do meanwhile they give way all the time. An event carries the time at which it was made; a consumer
does nothing but keep how long ago that was, in an array that exists already.
"""

from __future__ import annotations

import gc
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from ensue.channel import Channel
from ensue.events.event import Event

EVENTS = 500
"""Of each supplier. The paper does not say how many its tables are from; its spacing test has so
many."""
WARM = 100
PAUSE = 0.0001
PAUSE_OF_TWO = 0.002
AWAKE = 0.0003
SUPPLYING = 5
CONSUMING = 10
"""How urgent suppliers are, and how urgent those whom they supply."""


class Notes:
    """Nanoseconds, kept without making anything but numbers."""

    def __init__(self, room: int) -> None:
        self._values = array("q", bytes(8 * room))
        self._count = 0

    def consumer(self) -> Callable[[Event], None]:
        values, now = self._values, time.perf_counter_ns

        def note(event: Event) -> None:
            values[self._count] = now() - event.data
            self._count += 1

        return note

    def forget(self) -> None:
        self._count = 0

    @property
    def values(self) -> Sequence[int]:
        return self._values[: self._count]


def supply(channel: Channel, source: str, suppliers: int, events: int, pause: float) -> None:
    """Let so many suppliers push in turn, at a steady pace."""
    connected = [
        channel.suppliers.connect(f"{source}-{number}", "Notify", source=source)
        for number in range(suppliers)
    ]
    gives_way = channel.strategy != "reactive" or pause > AWAKE
    push_in_turn([each.push for each in connected], source, events, pause, gives_way)
    for supplier in connected:
        supplier.disconnect()


def push_in_turn(
    pushes: Sequence[Callable[[Event], None]],
    source: str,
    events: int,
    pause: float,
    gives_way: bool = False,
) -> None:
    due = time.perf_counter()
    for count in range(events):
        identity = str(count)
        for push in pushes:
            due = max(due + pause, time.perf_counter())
            while (left := due - time.perf_counter()) > 0:
                if gives_way:
                    time.sleep(max(0.0, left - AWAKE))
            push(Event(identity, source, "Notify", 0, time.perf_counter_ns()))


@contextmanager
def out_of_the_collectors_sight() -> Iterator[None]:
    """What exists already is no work for the garbage collector while times are taken."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def in_the_real_time_class(is_wanted: bool = True) -> Iterator[None]:
    """Let this thread, and those that it starts, go first, where the system lets us."""
    if not is_wanted or not hasattr(os, "sched_setscheduler"):
        yield
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, *before)
