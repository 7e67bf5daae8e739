"""From the supplier to the consumer: tables 1 and 2 of the paper, with its figures beside ours.

Suppliers of a process push in turn, at a steady pace. An event carries the time at which it was
made; a consumer does nothing but keep how long ago that was, in an array that exists already.
Collocated means that all are in one process; in the other table there are two, which do the same
and get each other's events over TCP. As the paper's did, the tests run in the real-time scheduling
class where the system lets them: what else is at work there shows in the largest figures first.
"""

from __future__ import annotations

import gc
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ensue.bench import channel_paper as paper
from ensue.bench.channel_peer import Peer, other_process
from ensue.bench.effort import Effort
from ensue.bench.report import Figure, Table, cost
from ensue.channel import Channel, build
from ensue.events.event import Event

TIMES_BELOW = 10
NAMES = ("min", "avg", "max", "p99")
WARM = 100
PAUSE_OF_TWO = 0.002
BURST, REST = 500, 0.02
"""So many events in a row, then a rest: a thread that never has one is set aside by the system."""


@dataclass(frozen=True)
class Latencies:
    """Microseconds."""

    least: float
    most: float
    average: float
    p99: float
    median: float

    @classmethod
    def of(cls, nanoseconds: Sequence[int]) -> Latencies:
        values = sorted(nanoseconds)
        return cls(
            values[0] / 1e3,
            values[-1] / 1e3,
            sum(values) / len(values) / 1e3,
            values[len(values) * 99 // 100] / 1e3,
            values[len(values) // 2] / 1e3,
        )


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


def measure_collocated(effort: Effort) -> Iterator[Figure | Table]:
    events = effort.size(4_000, 60)
    for strategy in ("reactive", "pool"):
        cells = {size: collocated(strategy, *size, events // size[0]) for size in _sizes(effort)}
        yield table(f"Collocated, {strategy}", ("first", "last"), cells, paper.COLLOCATED)
        # A pool is there for consumers that take long; the paper's question is the shortest way.
        aim = TIMES_BELOW if strategy == "reactive" else None
        yield from below_the_paper(strategy, cells, paper.COLLOCATED, aim)
        yield from _growth(strategy, cells)


def measure_two_processes(effort: Effort) -> Iterator[Figure | Table]:
    events = effort.size(300, 20)
    cells = {size: two_processes(*size, max(10, events // size[0])) for size in _sizes(effort)}
    yield table("Two processes", ("local", "remote"), cells, paper.TWO_PROCESSES)
    yield from below_the_paper("two processes", cells, paper.TWO_PROCESSES, None)


def _sizes(effort: Effort) -> Sequence[tuple[int, int]]:
    return ((1, 1), (2, 5)) if effort.quick else paper.SIZES


Cells = dict[tuple[int, int], tuple[Latencies, Latencies]]


def collocated(
    strategy: str, suppliers: int, consumers: int, events: int
) -> tuple[Latencies, Latencies]:
    """The first and the last consumer, in the order in which they are called."""
    channel = build("full").dispatching(strategy, threads=1).done()
    noted = [Notes(suppliers * events + WARM) for _ in range(consumers)]
    for number, notes in enumerate(noted):
        channel.consumers.connect(f"c{number}", notes.consumer(), "Notify")
    # Where threads hand over to each other, each would have to be in that class.
    with in_the_real_time_class(strategy == "reactive"), out_of_the_collectors_sight():
        supply(channel, "warm", 1, WARM, 0.0002)
        channel.settle()
        for notes in noted:
            notes.forget()
        supply(channel, "here", suppliers, events, 0.0002)
        channel.settle()
    channel.close()
    return merged(noted[:1]), merged(noted[-1:])


def two_processes(suppliers: int, consumers: int, events: int) -> tuple[Latencies, Latencies]:
    """What all consumers of this process saw of its own events, and of the other's."""
    channel = build("full", "near").dispatching("reactive").done()
    noted: dict[str, list[Notes]] = {"near": [], "far": []}
    for number in range(consumers):
        by_source = {source: Notes(suppliers * events) for source in noted}
        for source, notes in by_source.items():
            noted[source].append(notes)
        channel.consumers.connect(f"c{number}", _sorting(by_source), "Notify")
    peer = Peer("supply", suppliers, consumers, events)
    with (
        in_the_real_time_class(),
        out_of_the_collectors_sight(),
        other_process(channel, peer) as other,
    ):
        other.go()
        supply(channel, "near", suppliers, events, PAUSE_OF_TWO)
        other.wait()
        time.sleep(0.05)
        channel.settle()
    channel.close()
    return merged(noted["near"]), merged(noted["far"])


def _sorting(by_source: dict[str, Notes]) -> Callable[[Event], None]:
    consumers = {source: notes.consumer() for source, notes in by_source.items()}
    return lambda event: consumers[event.source](event)


def merged(noted: Sequence[Notes]) -> Latencies:
    return Latencies.of([value for notes in noted for value in notes.values])


# --- the paper beside us -------------------------------------------------------------------------


def table(
    title: str, kinds: tuple[str, str], cells: Cells, theirs: dict[tuple[int, int], paper.Cell]
) -> Table:
    """Ours, and theirs in brackets; they have no p99."""
    rows = []
    for size, both in cells.items():
        for kind, own, their in zip(kinds, both, theirs[size], strict=True):
            shown = (
                f"{own.least:.1f} ({their.least:,})",
                f"{own.average:.1f} ({their.average:,})",
                f"{own.most:.1f} ({their.most:,})",
                f"{own.p99:.1f}",
            )
            rows.append((*map(str, size), kind, *shown))
    head = ("sup.", "con.", "events" if "local" in kinds else "consumer", *NAMES)
    return Table(f"{title}: µs, the paper's in brackets", head, tuple(rows))


def below_the_paper(
    name: str, cells: Cells, theirs: dict[tuple[int, int], paper.Cell], aim: float | None
) -> Iterator[Figure]:
    """How many times below the paper's figure ours is, in the worst cell."""
    pairs = [pair for size, both in cells.items() for pair in zip(both, theirs[size], strict=True)]
    for figure, ratios in (
        ("avg", [their.average / own.average for own, their in pairs]),
        ("min", [their.least / own.least for own, their in pairs]),
        ("max", [their.most / own.most for own, their in pairs]),
        ("p99 to their max", [their.most / own.p99 for own, their in pairs]),
    ):
        note = "worst cell"
        yield Figure(
            f"{name}: below the paper, {figure}", "times", (min(ratios),), "higher", aim, note
        )


def _growth(name: str, cells: Cells) -> Iterator[Figure]:
    """What the last of many consumers waits, beside the only one."""
    one, most = cells.get((1, 1)), cells.get((1, paper.CONSUMERS[-1]))
    if one is not None and most is not None:
        values = (most[1].average / one[1].average,)
        title = f"{name}: last of {paper.CONSUMERS[-1]} to the only one"
        yield cost(title, "times", values, paper.CONSUMERS[-1], "linear would be the aim")
        yield cost(f"{name}: the only consumer, avg", "µs", (one[1].average,))
        yield cost(f"{name}: the last of {paper.CONSUMERS[-1]}, avg", "µs", (most[1].average,))


# --- how it is run -------------------------------------------------------------------------------


def supply(channel: Channel, source: str, suppliers: int, events: int, pause: float) -> None:
    """Let so many suppliers push in turn, at a steady pace, with a rest after each burst."""
    connected = [
        channel.suppliers.connect(f"{source}-{number}", "Notify", source=source)
        for number in range(suppliers)
    ]
    # Where consumers are called in another thread, waiting awake would keep it from running.
    is_awake = channel.strategy == "reactive" and pause < 0.001
    due, pushed = time.perf_counter(), 0
    for count in range(events):
        for supplier in connected:
            due = max(due + pause, time.perf_counter())
            while (left := due - time.perf_counter()) > 0:
                if not is_awake:
                    time.sleep(left)
            supplier.push(Event(str(count), source, "Notify", 0, time.perf_counter_ns()))
            pushed += 1
            if pushed % BURST == 0:
                time.sleep(REST)
    for supplier in connected:
        supplier.disconnect()


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
