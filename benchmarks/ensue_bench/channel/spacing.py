"""The highest rate of events, and the cost of consumers that do not want an event.

Spacing is figure 15 of the paper: suppliers push a fixed number of events at an expected rate; the
result is the achieved rate as a share of it. The second part measures the look-up: the processor
time of a push to ten consumers among ten thousand, divided by that of a push to ten consumers
alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from ensue.channel import Channel, build, want
from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event
from ensue_bench.channel import paper as paper
from ensue_bench.channel.pace import in_the_real_time_class, out_of_the_collectors_sight
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, ReportTable, cost
from ensue_bench.timing import Work, ratios, side_by_side

PAIRS = ((1, 1), (1, 5), (1, 10), (1, 20), (2, 1))
EVENTS = 500
"""As many as in the paper."""
WANTING = 10
TIMES_THOSE_ALONE = 3


def measure(effort: Effort) -> Iterator[Figure | ReportTable]:
    yield from _spacing(effort)
    yield from _many(effort)


def _spacing(effort: Effort) -> Iterator[Figure | ReportTable]:
    rates = (1_000, 10_000) if effort.quick else (500, 1_000, 10_000, 50_000, 100_000)
    rows, shares = [], []
    for suppliers, consumers in PAIRS:
        row = [effective(suppliers, consumers, rate) for rate in rates]
        rows.append((f"{suppliers} sup. {consumers} con.", *(f"{each:.3f}" for each in row)))
        shares.append(row[rates.index(10_000)])
    title = f"Spacing: effective to expected rate (the paper keeps up to {paper.RATE} Hz)"
    yield ReportTable(title, ("", *(f"{rate:,} Hz" for rate in rates)), tuple(rows))
    yield Figure("spacing: share of 10,000 Hz, worst pair", "share", (min(shares),), "higher")


def effective(suppliers: int, consumers: int, rate: float) -> float:
    """The effective rate as a share of the expected one."""
    channel = build("full").dispatching("reactive").done()
    counts = [0] * consumers

    def counting(place: int) -> Callable[[Event], None]:
        def count(_: Event) -> None:
            counts[place] += 1

        return count

    for number in range(consumers):
        channel.consumers.connect(f"c{number}", counting(number), "Notify")
    period = suppliers / rate

    def run(number: int, start: float) -> None:
        for each in range(EVENTS):
            due = start + period * (each + number / suppliers)
            while (left := due - time.perf_counter()) > 0:
                # Sleep first and spin only at the end: other suppliers need the interpreter.
                if left > 0.001:
                    time.sleep(left - 0.001)
            channel.push(Event("1", "here", "Notify", 0))

    with out_of_the_collectors_sight(), in_the_real_time_class():
        start = time.perf_counter() + 0.01
        threads = [threading.Thread(target=run, args=(n, start)) for n in range(suppliers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - start
    channel.close()
    return (EVENTS * suppliers / rate) / taken


def _many(effort: Effort) -> Iterator[Figure]:
    total, pushes = effort.size(10_000, 100), effort.size(2_000, 50)
    ways: dict[str, Callable[[int], EventWant]] = {
        "by type": lambda number: want("Notify" if number < WANTING else f"Type{number}"),
        "by predicate": lambda number: want(
            "Notify", where=f"SourceID = {5 if number < WANTING else 1_000 + number}"
        ),
    }
    for name, wanted in ways.items():
        channels = {count: _channel(count, wanted) for count in (WANTING, total)}
        works = {str(n): Work(_pushing(each, pushes)) for n, each in channels.items()}
        taken = side_by_side(works, effort.times())
        among = [each / pushes * 1e6 for each in taken[str(total)]]
        yield cost(f"{WANTING} of {total:,} consumers, {name}", "µs/event", among)
        yield cost(
            f"{WANTING} of {total:,} to those {WANTING} alone, {name}",
            "times",
            ratios(taken[str(total)], taken[str(WANTING)]),
            TIMES_THOSE_ALONE,
        )
        for channel in channels.values():
            channel.close()


def _channel(count: int, wanted: Callable[[int], EventWant]) -> Channel:
    channel = build("filtering").done()
    with channel.changing():
        for number in range(count):
            channel.consumers.connect(f"c{number}", lambda _: None, wanted(number))
    return channel


def _pushing(channel: Channel, pushes: int) -> Callable[[None], None]:
    event = Event("1", "here", "Notify", 0, {"SourceID": 5, "Value": 1.0})

    def push(_: None) -> None:
        for _each in range(pushes):
            channel.push(event)

    return push
