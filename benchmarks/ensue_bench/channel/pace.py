"""How events are supplied during latency measurements, and under which conditions of the system.

Suppliers of a process push in turn, at a steady pace. They do not sleep until the next event is
due, since a thread that has slept finds cold caches, which would be measured too; where other
threads of the process have work meanwhile, suppliers yield to them. An event carries its time of
creation; a consumer only stores the elapsed time in a preallocated array.
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
"""Events of each supplier, as in the paper's spacing test; its tables do not give a number."""
WARM = 100
PAUSE = 0.0001
PAUSE_OF_TWO = 0.002
AWAKE = 0.0003
LONG = 10_000
"""Nanoseconds in which an event reaches its first consumer, unless the machine pauses."""
SUPPLYING = 5
CONSUMING = 10
"""The priorities of suppliers and of consumers."""


class Notes:
    """Latencies in nanoseconds, stored without allocating objects."""

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
    """Pauses of the machine that suppliers see while they wait until an event is due.

    The same rate of pauses hits events that are being delivered, in proportion to that time.
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
        """Add the latencies of some events, and count those over the limit."""
        self.under_way += sum(min(each, LONG) for each in latencies)
        self.struck += sum(each > LONG for each in latencies)

    @property
    def expected(self) -> float:
        """How many events pauses at random times would hit."""
        return self.long * self.under_way / max(self.waited, 1)


def supply(
    channel: Channel,
    source: str,
    suppliers: int,
    events: int,
    pause: float,
    pauses: Pauses | None = None,
) -> None:
    """Push by several suppliers in turn, at a steady pace."""
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
    """Keep existing objects from the garbage collector during a measurement."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def in_the_real_time_class(is_wanted: bool = True) -> Iterator[None]:
    """Run this thread, and threads that it starts, in the real-time class where allowed."""
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
