"""Latency from supplier to consumer: tables 1 and 2 of the paper, with its figures beside ours.

"Collocated" means that suppliers and consumers are in one process; the other table has two
processes, which do the same work and exchange their events over TCP. As in the paper, the tests run
in the real-time scheduling class where the system allows it. The tables show the first run of each
cell, since the paper had one run. The largest of few values depends on interrupts of the machine,
so the median of the maxima of several runs is shown too ("usual"). For comparison, two measurements
are made without a channel: plain calls of the consumers, and the pauses of a thread that only reads
the clock. The number of events that such pauses hit is estimated from the pauses that suppliers see
while they wait, in the same runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ensue.channel import build
from ensue.events.event import Event
from ensue_bench.channel import paper as paper
from ensue_bench.channel.pace import (
    CONSUMING,
    EVENTS,
    PAUSE,
    PAUSE_OF_TWO,
    SUPPLYING,
    WARM,
    Notes,
    Pauses,
    out_of_the_collectors_sight,
    push_in_turn,
    supply,
)
from ensue_bench.channel.peer import PeerRole, other_process
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, ReportTable, cost

TIMES_BELOW = 10
LEAST_PAUSE = 4_000
"""Nanoseconds; reading the clock takes a hundredth of that."""
NAMES = ("min", "avg", "max", "p99", "usual")


@dataclass(frozen=True)
class Latencies:
    """Statistics of one run, in microseconds."""

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


Runs = list[tuple[Latencies, Latencies]]
Cells = dict[tuple[int, int], Runs]


def measure_collocated(effort: Effort) -> Iterator[Figure | ReportTable]:
    events = effort.size(EVENTS, 60)
    for strategy in ("reactive", "pool"):
        pauses = Pauses()
        cells = _runs(effort, partial(collocated, strategy, events, pauses=pauses))
        yield table(f"Collocated, {strategy}", ("first", "last"), cells, paper.COLLOCATED)
        # A pool is for slow consumers; the paper measures the shortest path.
        aim = TIMES_BELOW if strategy == "reactive" else None
        yield from below_the_paper(strategy, cells, paper.COLLOCATED, aim)
        yield from _growth(strategy, cells)
        if strategy == "reactive":
            yield cost("first consumer, events over 10 µs", "count", (pauses.struck,))
            yield cost("as many as pauses explain", "count", (pauses.expected,))
    plain = _runs(effort, partial(plain_calls, events))
    for figure in below_the_paper("plain call", plain, paper.COLLOCATED, None):
        if "max" in figure.name:
            yield figure
    lengths = pauses_of_the_machine(0.2)
    yield cost("pauses of the machine, a second", "count", (len(lengths) / 0.2,))
    if lengths:
        yield cost("pauses of the machine, average", "µs", (statistics.mean(lengths),))


def measure_two_processes(effort: Effort) -> Iterator[Figure | ReportTable]:
    events = effort.size(EVENTS, 20)
    cells = _runs(effort, partial(two_processes, events), most=3)
    yield table("Two processes", ("local", "remote"), cells, paper.TWO_PROCESSES)
    yield from below_the_paper("two processes", cells, paper.TWO_PROCESSES, None)


def _sizes(effort: Effort) -> Sequence[tuple[int, int]]:
    return ((1, 1), (2, 5)) if effort.quick else paper.SIZES


def _runs(
    effort: Effort,
    run: Callable[[int, int], tuple[Latencies, Latencies]],
    most: int | None = None,
) -> Cells:
    """Measure every cell several times, in turn."""
    cells: Cells = {size: [] for size in _sizes(effort)}
    for _ in range(effort.times(most)):
        for size, runs in cells.items():
            runs.append(run(*size))
            # Linux throttles real-time threads that never leave the processor free.
            time.sleep(0.03)
    return cells


def collocated(
    strategy: str, events: int, suppliers: int, consumers: int, pauses: Pauses | None = None
) -> tuple[Latencies, Latencies]:
    """Latencies of the first and the last consumer, in the order in which they are called."""
    noted = [Notes(suppliers * events + WARM) for _ in range(consumers)]
    channel = build("full").dispatching(strategy, threads=1, real_time=True).done()
    for number, notes in enumerate(noted):
        channel.consumers.connect(f"c{number}", notes.consumer(), "Notify", priority=CONSUMING)
    with channel.in_real_time(SUPPLYING):
        supply(channel, "warm", 1, WARM, PAUSE)
        channel.settle()
        for notes in noted:
            notes.forget()
        supply(channel, "here", suppliers, events, PAUSE, pauses)
        channel.settle()
    channel.close()
    if pauses is not None:
        pauses.compare(noted[0].values)
    return merged(noted[:1]), merged(noted[-1:])


def plain_calls(events: int, suppliers: int, consumers: int) -> tuple[Latencies, Latencies]:
    """Latencies without a channel: a loop over the consumers."""
    noted = [Notes(suppliers * events + WARM) for _ in range(consumers)]
    calls = [notes.consumer() for notes in noted]

    def push(event: Event) -> None:
        for call in calls:
            call(event)

    channel = build("multiplexer").dispatching("reactive", real_time=True).done()
    with channel.in_real_time(SUPPLYING):
        push_in_turn([push], "warm", WARM, PAUSE)
        for notes in noted:
            notes.forget()
        push_in_turn([push] * suppliers, "here", events, PAUSE)
    channel.close()
    return merged(noted[:1]), merged(noted[-1:])


def two_processes(events: int, suppliers: int, consumers: int) -> tuple[Latencies, Latencies]:
    """Latencies of all consumers of this process, for its own events and for the other process's.

    All suppliers of a process together push as many events as one supplier does elsewhere, so that
    a cell takes a second.
    """
    events = max(10, events // suppliers)
    channel = build("full", "near").dispatching("reactive", real_time=True).done()
    noted: dict[str, list[Notes]] = {"near": [], "far": []}
    for number in range(consumers):
        by_source = {source: Notes(suppliers * events) for source in noted}
        for source, notes in by_source.items():
            noted[source].append(notes)
        channel.consumers.connect(f"c{number}", _sorting(by_source), "Notify", priority=CONSUMING)
    peer = PeerRole("supply", suppliers, consumers, events)
    with (
        other_process(channel, peer) as other,
        out_of_the_collectors_sight(),
        channel.in_real_time(SUPPLYING),
    ):
        other.go()
        supply(channel, "near", suppliers, events, PAUSE_OF_TWO)
        other.wait()
        time.sleep(0.05)
        channel.settle()
    channel.close()
    return merged(noted["near"]), merged(noted["far"])


def pauses_of_the_machine(seconds: float) -> list[float]:
    """The pauses of a thread that only reads the clock, in microseconds."""
    now, found = time.perf_counter_ns, []
    channel = build("multiplexer").dispatching("reactive", real_time=True).done()
    with channel.in_real_time(SUPPLYING):
        before = now()
        end = before + round(seconds * 1e9)
        while before < end:
            if (after := now()) - before > LEAST_PAUSE:
                found.append((after - before) / 1e3)
            before = after
    channel.close()
    return found


def _sorting(by_source: dict[str, Notes]) -> Callable[[Event], None]:
    consumers = {source: notes.consumer() for source, notes in by_source.items()}
    return lambda event: consumers[event.source](event)


def merged(noted: Sequence[Notes]) -> Latencies:
    return Latencies.of([value for notes in noted for value in notes.values])


def table(
    title: str, kinds: tuple[str, str], cells: Cells, theirs: dict[tuple[int, int], paper.Cell]
) -> ReportTable:
    """The first run of each cell, with the paper's figures in brackets; the paper has no p99."""
    rows = []
    for size, runs in cells.items():
        for place, (kind, their) in enumerate(zip(kinds, theirs[size], strict=True)):
            own = runs[0][place]
            shown = (
                f"{_short(own.least)} ({their.least:,})",
                f"{_short(own.average)} ({their.average:,})",
                f"{_short(own.most)} ({their.most:,})",
                _short(own.p99),
                _short(_usual_most(runs, place)),
            )
            rows.append((*map(str, size), kind, *shown))
    head = ("sup.", "con.", "events" if "local" in kinds else "cons.", *NAMES)
    return ReportTable(f"{title}: µs, the paper's in brackets", head, tuple(rows))


def below_the_paper(
    name: str, cells: Cells, theirs: dict[tuple[int, int], paper.Cell], aim: float | None
) -> Iterator[Figure]:
    """The paper's figures divided by ours, in the worst cell."""
    places = [
        (runs, place, their)
        for size, runs in cells.items()
        for place, their in enumerate(theirs[size])
    ]
    for figure, ratios in (
        ("avg", [t.average / runs[0][at].average for runs, at, t in places]),
        ("min", [t.least / runs[0][at].least for runs, at, t in places]),
        ("max", [t.most / runs[0][at].most for runs, at, t in places]),
        ("usual max", [t.most / _usual_most(runs, at) for runs, at, t in places]),
        ("p99 to their max", [t.most / runs[0][at].p99 for runs, at, t in places]),
    ):
        title = f"{name}: below the paper, {figure}"
        yield Figure(title, "times", (min(ratios),), "higher", aim, "worst cell")


def _short(microseconds: float) -> str:
    return f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:,.0f}"


def _usual_most(runs: Runs, place: int) -> float:
    """The median of the maxima of all runs."""
    return statistics.median(run[place].most for run in runs)


def _growth(name: str, cells: Cells) -> Iterator[Figure]:
    """The latency of the last of many consumers, divided by that of a single consumer."""
    one, most = cells.get((1, 1)), cells.get((1, paper.CONSUMERS[-1]))
    if one is not None and most is not None:
        values = (most[0][1].average / one[0][1].average,)
        title = f"{name}: last of {paper.CONSUMERS[-1]} to the only one"
        yield cost(title, "times", values, paper.CONSUMERS[-1], "linear would be the aim")
        yield cost(f"{name}: the only consumer, avg", "µs", (one[0][1].average,))
        yield cost(f"{name}: the last of {paper.CONSUMERS[-1]}, avg", "µs", (most[0][1].average,))
