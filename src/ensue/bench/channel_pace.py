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
LONG = 10_000
"""Nanoseconds in which an event reaches its first consumer, unless something stops it."""
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


class Pauses:
    """How often the machine stops a thread, seen by suppliers while they wait for an event's time.

    The same strikes events on their way: as many of them as are under way for a part of that time.
    """

    def __init__(self) -> None:
        self.waited = 0
        self.long = 0
        self.under_way = 0
        self.struck = 0

    def wait_until(self, due: int) -> None:
        now = time.perf_counter_ns
        before = begin = now()
        while before < due:
            after = now()
            if after - before > LONG:
                self.long += 1
            before = after
        self.waited += before - begin

    def compare(self, latencies: Sequence[int]) -> None:
        """Note how long events were under way, and how many of them took so long."""
        self.under_way += sum(min(each, LONG) for each in latencies)
        self.struck += sum(each > LONG for each in latencies)

    @property
    def expected(self) -> float:
        """How many events pauses would strike that come when they like."""
        return self.long * self.under_way / max(self.waited, 1)


def supply(
    channel: Channel,
    source: str,
    suppliers: int,
    events: int,
    pause: float,
    pauses: Pauses | None = None,
) -> None:
    """Let so many suppliers push in turn, at a steady pace."""
    connected = [
        channel.suppliers.connect(f"{source}-{number}", "Notify", source=source)
        for number in range(suppliers)
    ]
    gives_way = channel.strategy != "reactive" or pause > AWAKE
    pushes = [each.push for each in connected]
    push_in_turn(pushes, source, events, pause, gives_way, pauses)
    for supplier in connected:
        supplier.disconnect()


def push_in_turn(
    pushes: Sequence[Callable[[Event], None]],
    source: str,
    events: int,
    pause: float,
    gives_way: bool = False,
    pauses: Pauses | None = None,
) -> None:
    due, period, noted = time.perf_counter_ns(), round(pause * 1e9), pauses or Pauses()
    for count in range(events):
        identity = str(count)
        for push in pushes:
            due = max(due + period, time.perf_counter_ns())
            if gives_way:
                while (left := due - time.perf_counter_ns()) > 0:
                    time.sleep(max(0.0, left / 1e9 - AWAKE))
            else:
                noted.wait_until(due)
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
