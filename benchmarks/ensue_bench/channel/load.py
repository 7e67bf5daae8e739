"""The processor load at which deadlines are missed: section 5.1 of the paper.

A supplier and consumer of high priority are released every 25 ms, and a pair of low priority, which
computes for 4 ms, every 50 ms. The computing time of the high-priority pair is raised step by step.
Both compute in Python until their thread has used so much processor time, so that waiting does not
shorten the work. Laxity is the share of the period that is left when a consumer is done, counted
from its release. In the federated case every event also goes to a channel of another process, which
does nothing with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ensue.channel import Channel, Consumer, Laxity, build, nothing
from ensue.channel.figures.values import LaxityMeter
from ensue.channel.realtime.threads import is_permitted
from ensue.events.event import Event
from ensue_bench.channel import paper as paper
from ensue_bench.channel.pace import in_the_real_time_class
from ensue_bench.channel.peer import PeerRole, other_process
from ensue_bench.channel.plot import draw_laxity
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, Picture, ReportTable

LOADS = (0.80, 0.86, 0.90, 0.93, 0.96, 0.99, 1.02)
HIGH_PERIOD, LOW_PERIOD, LOW_WORK = 0.025, 0.050, 0.004
HIGH, LOW = 10, 0


@dataclass(frozen=True)
class LoadPoint:
    """The laxities under one load."""

    load: float
    federated: bool
    high: Laxity
    low: Laxity


def measure(effort: Effort) -> Iterator[Figure | ReportTable | Picture]:
    loads = (0.5, 0.6) if effort.quick else LOADS
    seconds = 0.3 if effort.quick else 2.0
    points: list[LoadPoint] = []
    for federated in (False, True):
        found = [utilisation(load, seconds, federated) for load in loads]
        points += found
        name = "federated" if federated else "single channel"
        title = f"Laxity, {name}: % of the period, and deadlines missed"
        yield ReportTable(title, HEAD, tuple(_row(each) for each in found))
        bound = paper.UTILISATION[federated]
        judged = [each for each in found if each.load == bound] or found[-1:]
        yield _met(f"{name}: deadlines met at {judged[0].load:.0%}, high", judged[0].high, 100.0)
        yield _met(f"{name}: deadlines met at {judged[0].load:.0%}, low", judged[0].low, None)
    plain = utilisation(loads[-2], seconds, False, real_time=False)
    yield _met(f"not `real_time`: deadlines met at {plain.load:.0%}, high", plain.high, None)
    yield Picture("laxity-channel", draw_laxity([_drawn(each) for each in points], loads))


HEAD = ("load", "high min", "avg", "max", "missed", "low min", "avg", "max", "missed")


def _row(point: LoadPoint) -> tuple[str, ...]:
    cells = [f"{point.load:.0%}"]
    for each in (point.high, point.low):
        cells += [f"{100 * value:.1f}" for value in (each.least, each.average, each.most)]
        cells.append(f"{each.missed}/{each.count}")
    return tuple(cells)


def _met(name: str, laxity: Laxity, aim: float | None) -> Figure:
    note = "in the real-time class" if is_permitted() else "the system gave no real-time class"
    share = 100 * (1 - laxity.missed / max(laxity.count, 1))
    return Figure(name, "%", (share,), "higher", aim, note)


def _drawn(point: LoadPoint) -> tuple[bool, float, dict[str, tuple[float, float, float]]]:
    spans = {
        name: (each.least, each.average, each.most)
        for name, each in (("high", point.high), ("low", point.low))
    }
    return point.federated, point.load, spans


def utilisation(load: float, seconds: float, federated: bool, real_time: bool = True) -> LoadPoint:
    """Run both pairs under a load for some seconds."""
    high_work = load * HIGH_PERIOD - LOW_WORK * HIGH_PERIOD / LOW_PERIOD
    channel = build("full", "near").dispatching("pool", threads=2, real_time=real_time).done()
    meter = LaxityMeter()
    # The thread that waits here has to be able to release the interpreter at once, too.
    with in_the_real_time_class(real_time), linked_or_not(channel, federated):
        released = [
            _pair(channel, meter, HIGH, HIGH_PERIOD, high_work),
            _pair(channel, meter, LOW, LOW_PERIOD, LOW_WORK),
        ]
        time.sleep(seconds)
        laxity = meter.read()
        for supplier in released:
            supplier.disconnect()
        channel.settle("100 ms")
        channel.close(drain=False, within="0 s")
    return LoadPoint(load, federated, laxity.get(HIGH, Laxity()), laxity.get(LOW, Laxity()))


def _pair(
    channel: Channel, meter: LaxityMeter, priority: int, period: float, work: float
) -> Consumer:
    """A supplier that is released by a timer, and a consumer that computes."""
    type_ = "High" if priority == HIGH else "Low"
    microseconds = round(period * 1e6)

    def release(event: Event) -> None:
        channel.push(Event(event.id, "here", type_, event.time))

    def process(event: Event) -> None:
        compute(work)
        # The channel measures from publication; here laxity counts from the release.
        meter.note(priority, microseconds, channel.clock.now() - event.time)

    channel.consumers.connect(type_, process, type_, priority=priority)
    supplier = channel.consumers.connect(
        f"{type_} supplier", release, nothing(), priority=priority + 1
    )
    supplier.every(f"{microseconds // 1000} ms")
    return supplier


def compute(seconds: float) -> int:
    """Compute until this thread has used some processor time."""
    until, total = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        for number in range(100):
            total += number * number
    return total


@contextmanager
def linked_or_not(channel: Channel, federated: bool) -> Iterator[None]:
    if not federated:
        yield
        return
    with other_process(channel, PeerRole("listen")):
        yield
