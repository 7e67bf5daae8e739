"""The tables of the TAO real-time event service paper, measured on this machine beside its figures.

    python benchmarks/channel.py [--quick] [--only TABLE] [--json FILE] [--plot FILE] [--real-time]

Latency (tables 1 and 2 of the paper): suppliers of a process push in turn, at a steady pace; an
event carries the time at which it was made, and a consumer does nothing but note how long ago that
was. Collocated means that all are in one process, and remote that the event comes from
another, over TCP. Utilisation (figures 13 and 14): a high- and a low-priority pair of supplier and
consumer, released by timers, with processing time as the load; laxity is counted from the moment of
release. Spacing (figure 15): how close together events may come before they fall behind.

The paper's machine had one processor of 300 MHz and nothing else to do, and its tests ran in the
real-time scheduling class: `--real-time` asks for a higher priority too, and takes it from whatever
else runs. Without it, other work on the machine shows, in the largest figures first. The garbage
collector is off while times are taken, as the paper's channel allocated nothing either.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ensue.channel import Channel, Timeout, build, want
from ensue.events.event import Event

SUPPLIERS = (1, 2, 10)
CONSUMERS = (1, 5, 10, 20)
CELLS = tuple((suppliers, consumers) for suppliers in SUPPLIERS for consumers in CONSUMERS)

# Microseconds, as min, max and average: table 1, the first and the last consumer of each cell.
PAPER_COLLOCATED = (
    ((53, 93, 58), (53, 93, 58)),
    ((107, 189, 114), (197, 284, 206)),
    ((171, 230, 183), (379, 451, 393)),
    ((291, 340, 300), (741, 817, 760)),
    ((49, 67, 51), (49, 67, 51)),
    ((95, 124, 100), (180, 213, 187)),
    ((159, 281, 170), (360, 498, 374)),
    ((283, 333, 299), (758, 828, 781)),
    ((51, 303, 72), (51, 303, 72)),
    ((100, 211, 113), (187, 1210, 284)),
    ((167, 222, 176), (369, 2545, 576)),
    ((211, 310, 290), (741, 4895, 1137)),
)
# Table 2: local and remote events of two processes.
PAPER_TWO_PROCESSES = (
    ((57, 71, 63), (772, 1078, 820)),
    ((108, 207, 155), (765, 1995, 1283)),
    ((170, 598, 289), (795, 5853, 3544)),
    ((303, 819, 534), (756, 6047, 3084)),
    ((50, 95, 57), (1226, 2329, 1297)),
    ((101, 214, 152), (1274, 4577, 2330)),
    ((167, 421, 274), (1226, 6676, 3448)),
    ((280, 821, 519), (1225, 20727, 6038)),
    ((49, 218, 60), (1406, 3969, 3102)),
    ((100, 1170, 172), (1477, 12773, 6282)),
    ((158, 2379, 310), (1258, 19153, 7904)),
    ((209, 4900, 596), (1266, 65449, 24345)),
)
LOADS = (0.80, 0.86, 0.90, 0.93, 0.96, 0.99, 1.02)


class Latencies:
    """Nanoseconds, noted without allocating."""

    def __init__(self, room: int) -> None:
        self._values = array("q", bytes(8 * room))
        self._count = 0

    def note(self, sent: int) -> None:
        if self._count < len(self._values):
            self._values[self._count] = time.perf_counter_ns() - sent
            self._count += 1

    def receive(self, event: Event) -> None:
        self.note(event.data["sent"])

    def forget(self) -> None:
        self._count = 0

    def figures(self) -> dict[str, float]:
        """Microseconds."""
        values = sorted(self._values[: self._count])
        if not values:
            return dict.fromkeys(("min", "max", "avg", "p50", "p99", "count"), 0.0)
        return {
            "min": values[0] / 1e3,
            "max": values[-1] / 1e3,
            "avg": sum(values) / len(values) / 1e3,
            "p50": values[len(values) // 2] / 1e3,
            "p99": values[min(len(values) - 1, len(values) * 99 // 100)] / 1e3,
            "count": len(values),
        }


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ask_for_priority() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)


def new_channel(strategy: str, name: str = "bench") -> Channel:
    return build("full", name).dispatching(strategy, threads=1).done()


def timed_event(number: int, source: str) -> Event:
    return Event(str(number), source, "Notify", 0, {"sent": time.perf_counter_ns()})


def supply(channel: Channel, source: str, suppliers: int, events: int, pause: float) -> None:
    """Let so many suppliers push in turn, at a steady pace."""
    connected = [
        channel.suppliers.connect(f"{source}-{number}", "Notify", source=source)
        for number in range(suppliers)
    ]
    due = time.perf_counter()
    for count in range(events):
        for supplier in connected:
            due = max(due + pause, time.perf_counter())
            rest(due, channel.strategy == "reactive")
            supplier.push(timed_event(count, source))
    for supplier in connected:
        supplier.disconnect()


def rest(until: float, awake: bool) -> None:
    """Sleep through a pause; where no other thread is kept from running, be awake at its end."""
    while (left := until - time.perf_counter()) > 0:
        if not awake:
            time.sleep(left)
        elif left > 0.001:
            time.sleep(left - 0.0005)


# --- tables 1 and 2 ------------------------------------------------------------------------------


def collocated(strategy: str, suppliers: int, consumers: int, events: int) -> dict[str, Any]:
    channel = new_channel(strategy)
    noted = [Latencies(suppliers * events) for _ in range(consumers)]
    for number, latencies in enumerate(noted):
        channel.consumers.connect(f"c{number}", latencies.receive, "Notify")
    supply(channel, "warm", 1, 20, 0.0002)
    channel.settle()
    for latencies in noted:
        latencies.forget()
    with without_collector():
        supply(channel, "here", suppliers, events, 0.0002)
        channel.settle()
    channel.close()
    return {"first": noted[0].figures(), "last": noted[-1].figures()}


def two_processes(suppliers: int, consumers: int, events: int) -> dict[str, Any]:
    """This process and another do the same; what is measured here is here and from there."""
    channel = new_channel("reactive", "near")
    local, remote = Latencies(10**5), Latencies(10**5)

    def note(event: Event) -> None:
        (local if event.source == "near" else remote).note(event.data["sent"])

    for number in range(consumers):
        # As in the paper, every consumer's measurements count.
        channel.consumers.connect(f"c{number}", note, "Notify")
    counts = (str(suppliers), str(consumers), str(events))
    with other_process(channel, "supply", *counts) as other, without_collector():
        other.go()
        supply(channel, "near", suppliers, events, 0.002)
        other.wait()
        time.sleep(0.05)
    channel.close()
    return {"local": local.figures(), "remote": remote.figures()}


class Other:
    """Another process of this benchmark, linked to a channel of this one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def wait(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def other_process(channel: Channel, *what: str) -> Iterator[Other]:
    _, port = channel.federation.listen()
    with subprocess.Popen(
        [sys.executable, __file__, "--as-other", str(port), *what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        other = Other(process)
        other.wait()
        while not channel.is_wanted(["Notify", "High"], None):
            time.sleep(0.001)
        yield other
        assert process.stdin is not None
        process.stdin.close()


def be_the_other(port: int, what: str, arguments: list[str]) -> None:
    """What the other process does: link, say so, and supply when it is told to."""
    channel = new_channel("reactive", "far")
    if what == "supply":
        suppliers, consumers, events = (int(each) for each in arguments)
        for number in range(consumers):
            channel.consumers.connect(f"c{number}", lambda _: None, "Notify")
    else:
        suppliers, events = 0, 0
        channel.consumers.connect("high", lambda _: None, "High")
        channel.consumers.connect("low", lambda _: None, "Low")
    link = channel.federation.connect("127.0.0.1", port)
    link.wait_until_connected()
    print("ready", flush=True)
    gc.disable()
    if sys.stdin.readline():
        supply(channel, "far", suppliers, events, 0.002)
        print("done", flush=True)
        sys.stdin.read()
    channel.close()


# --- utilisation ---------------------------------------------------------------------------------


def utilisation(load: float, seconds: float, federated: bool) -> dict[str, Any]:
    """A pair released every 25 ms and one every 50 ms, the latter with 4 ms of work."""
    high_period, low_period, low_work = 0.025, 0.050, 0.004
    high_work = load * high_period - low_work * high_period / low_period
    channel = new_channel("pool", "near")
    laxities: dict[str, list[float]] = {"high": [], "low": []}
    timers = []
    is_over = threading.Event()

    def pair(name: str, type_: str, priority: int, period: float, work: float) -> None:
        def process(event: Event) -> None:
            until = time.perf_counter() + work
            while time.perf_counter() < until:
                pass
            left = event.time + period * 1e6 - channel.clock.now()
            laxities[name].append(left / (period * 1e6))

        def release(event: Event) -> None:
            if isinstance(event, Timeout) and not is_over.is_set():
                channel.push(Event(event.id, name, type_, event.time))

        channel.consumers.connect(
            name, process, type_, priority=priority, deadline=f"{round(period * 1000)} ms"
        )
        supplier = channel.consumers.connect(f"{name}-timer", release, "-", priority=priority + 1)
        timers.append(supplier.every(f"{round(period * 1000)} ms"))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    with without_collector(), linked_or_not(channel, federated):
        pair("high", "High", 10, high_period, high_work)
        pair("low", "Low", 1, low_period, low_work)
        time.sleep(seconds)
        is_over.set()
        for timer in timers:
            timer.cancel()
        channel.close(drain=False, within="0 s")
    sys.setswitchinterval(interval)
    own = channel.figures().laxity
    return {
        "load": load,
        "federated": federated,
        **{name: spread_of(values) for name, values in laxities.items()},
        "missed by the channel's own count": {
            "high": own[10].missed if 10 in own else 0,
            "low": own[1].missed if 1 in own else 0,
        },
    }


@contextmanager
def linked_or_not(channel: Channel, federated: bool) -> Iterator[None]:
    if not federated:
        yield
        return
    with other_process(channel, "listen"):
        yield


def spread_of(values: list[float]) -> dict[str, float]:
    if not values:
        return {"count": 0, "missed": 0, "min": 0.0, "avg": 0.0, "max": 0.0}
    return {
        "count": len(values),
        "missed": sum(value < 0 for value in values),
        "min": min(values),
        "avg": sum(values) / len(values),
        "max": max(values),
    }


# --- spacing, and many consumers -----------------------------------------------------------------


def spacing(suppliers: int, consumers: int, rate: float, events: int = 500) -> float:
    """The effective rate as a share of the expected one."""
    channel = new_channel("reactive")
    counts = [0] * consumers
    for number in range(consumers):

        def count(_: Event, place: int = number) -> None:
            counts[place] += 1

        channel.consumers.connect(f"c{number}", count, "Notify")
    period = suppliers / rate

    def run(number: int, start: float) -> None:
        for each in range(events):
            due = start + period * (each + number / suppliers)
            while time.perf_counter() < due:
                pass
            channel.push(Event("1", "here", "Notify", 0))

    with without_collector():
        start = time.perf_counter() + 0.01
        threads = [threading.Thread(target=run, args=(n, start)) for n in range(suppliers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - start
    channel.close()
    return (events * suppliers / rate) / taken


def many_consumers(total: int, wanting: int, pushes: int) -> dict[str, float]:
    """Microseconds a push with 10,000 consumers of which 10 want the event, and with those 10."""

    def push_time(channel: Channel) -> float:
        event = Event("1", "here", "Notify", 0, {"SourceID": 5, "Value": 1.0})
        best = float("inf")
        with without_collector():
            for _ in range(7):
                start = time.perf_counter()
                for _ in range(pushes):
                    channel.push(event)
                best = min(best, (time.perf_counter() - start) / pushes)
        channel.close()
        return best * 1e6

    def by_type(count: int) -> Channel:
        channel = build("filtering").done()
        for number in range(count):
            type_ = "Notify" if number < wanting else f"Type{number}"
            channel.consumers.connect(f"c{number}", lambda _: None, type_)
        return channel

    def by_predicate(count: int) -> Channel:
        channel = build("filtering").done()
        for number in range(count):
            value = 5 if number < wanting else 1_000 + number
            wanted = want("Notify", where=f"SourceID = {value}")
            channel.consumers.connect(f"c{number}", lambda _: None, wanted)
        return channel

    return {
        "by type, 10 alone": push_time(by_type(wanting)),
        "by type, among all": push_time(by_type(total)),
        "by predicate, 10 alone": push_time(by_predicate(wanting)),
        "by predicate, among all": push_time(by_predicate(total)),
    }


# --- what is printed -----------------------------------------------------------------------------


def print_latencies(title: str, columns: tuple[str, str], cells: list[Any], paper: Any) -> None:
    print(f"\n{title} (microseconds; the paper's figures in brackets)")
    head = f"{'min':>15}{'max':>18}{'avg':>16}{'p99':>8}"
    print(f"{'sup con':>8} |{columns[0]:^57}|{columns[1]:^57}")
    print(f"{'':>8} |{head}|{head}")
    for (suppliers, consumers), cell, theirs in zip(CELLS, cells, paper, strict=True):
        parts = []
        for column, (low, high, average) in zip(columns, theirs, strict=True):
            own = cell[column]
            parts.append(
                f"{own['min']:8.1f} {f'({low})':>6}{own['max']:10.1f} {f'({high})':>7}"
                f"{own['avg']:8.1f} {f'({average})':>7}{own['p99']:8.1f}"
            )
        print(f"{suppliers:4}{consumers:4} |{'|'.join(parts)}")


def ratios(cells: list[Any], paper: Any, columns: tuple[str, str]) -> dict[str, float]:
    """How many times below the paper: the worst cell, by each figure."""
    worst: dict[str, float] = {}
    for cell, theirs in zip(cells, paper, strict=True):
        for column, figures in zip(columns, theirs, strict=True):
            for name, value in zip(("min", "max", "avg"), figures, strict=True):
                ratio = value / max(cell[column][name], 1e-9)
                worst[name] = min(worst.get(name, ratio), ratio)
            # Beside the average, which one interruption by other work can spoil.
            typical = figures[2] / max(cell[column]["p50"], 1e-9)
            name = "median against their avg"
            worst[name] = min(worst.get(name, typical), typical)
    return worst


def print_utilisation(points: list[Any]) -> None:
    for federated in (False, True):
        chosen = [each for each in points if each["federated"] is federated]
        if not chosen:
            continue
        name, bound = ("federated", "96%") if federated else ("single channel", "99%")
        print(f"\nlaxity in % of the period, {name} (the paper misses nothing up to {bound})")
        head = "min   avg   max  missed"
        print(f"{'load':>6} |{f'high: {head}':^34}|{f'low: {head}':^34}")
        for point in chosen:
            row = "|".join(
                f"{100 * each['min']:9.1f}{100 * each['avg']:7.1f}{100 * each['max']:7.1f}"
                f"{each['missed']:5}/{each['count']:<5}"
                for each in (point["high"], point["low"])
            )
            print(f"{100 * point['load']:5.0f}% |{row}")


def plot(points: list[Any]) -> str:
    """Laxity over load, as the paper draws it: averages, with bars from least to most."""
    width, height, left, top = 560, 340, 60, 30

    def x(load: float) -> float:
        return left + (load - 0.78) / 0.26 * (width - left - 20)

    def y(laxity: float) -> float:
        return top + (1 - max(-0.5, min(1.0, laxity))) / 1.5 * (height - top - 40)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="16" font-size="13">Laxity (% of the period) by load</text>',
    ]
    for share in (-50, -25, 0, 25, 50, 75, 100):
        at, colour = y(share / 100), "#444" if share == 0 else "#ddd"
        drawn.append(f'<line x1="{left}" x2="{width - 20}" y1="{at}" y2="{at}" stroke="{colour}"/>')
        drawn.append(f'<text x="{left - 8}" y="{at + 4}" text-anchor="end">{share}</text>')
    drawn += [
        f'<text x="{x(load)}" y="{height - 22}" text-anchor="middle">{100 * load:.0f}%</text>'
        for load in LOADS
    ]
    series = [
        ("high", False, "#0b7285", "high priority, single channel"),
        ("low", False, "#e8590c", "low priority, single channel"),
        ("high", True, "#66d9e8", "high priority, federated"),
        ("low", True, "#ffc078", "low priority, federated"),
    ]
    for number, (name, federated, colour, label) in enumerate(series):
        chosen = [each for each in points if each["federated"] is federated]
        places = [(x(each["load"]) + number - 2, each[name]) for each in chosen]
        line = " ".join(f"{at:.1f},{y(figures['avg']):.1f}" for at, figures in places)
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [
            f'<line x1="{at}" x2="{at}" y1="{y(figures["min"]):.1f}" y2="{y(figures["max"]):.1f}"'
            f' stroke="{colour}"/>'
            for at, figures in places
        ]
        row = height - 46 - 13 * (3 - number)
        drawn.append(f'<text x="{left + 8}" y="{row}" fill="{colour}">{label}</text>')
    return "\n".join([*drawn, "</svg>\n"])


def measure(only: str | None, quick: bool) -> dict[str, Any]:
    """Every table that is asked for; printed as it is measured."""
    events = 100 if quick else 400
    results: dict[str, Any] = {}
    if only in (None, "collocated"):
        for strategy in ("reactive", "pool"):
            cells = [collocated(strategy, s, c, 10 * events // s) for s, c in CELLS]
            results[f"collocated, {strategy}"] = cells
            print_latencies(
                f"Table 1: collocated, {strategy}", ("first", "last"), cells, PAPER_COLLOCATED
            )
            worst = ratios(cells, PAPER_COLLOCATED, ("first", "last"))
            print("times below the paper in the worst cell:", _rounded(worst))
    if only in (None, "remote"):
        cells = [two_processes(s, c, max(20, events // (2 * s))) for s, c in CELLS]
        results["two processes"] = cells
        print_latencies("Table 2: two processes", ("local", "remote"), cells, PAPER_TWO_PROCESSES)
        worst = ratios(cells, PAPER_TWO_PROCESSES, ("local", "remote"))
        print("times below the paper in the worst cell:", _rounded(worst))
    if only in (None, "utilisation"):
        seconds = 1.0 if quick else 3.0
        points = [utilisation(load, seconds, fed) for fed in (False, True) for load in LOADS]
        results["utilisation"] = points
        print_utilisation(points)
    if only in (None, "spacing"):
        print("\nFigure 15: effective rate as a share of the expected one (the paper: 50 Hz)")
        rates = (100, 1_000, 10_000, 50_000, 100_000)
        results["spacing"] = rows = {}
        for suppliers, consumers in ((1, 1), (1, 5), (1, 10), (1, 20), (2, 1)):
            row = {rate: spacing(suppliers, consumers, rate) for rate in rates}
            rows[f"{suppliers} sup. {consumers} con."] = row
            shown = "  ".join(f"{rate:,} Hz {share:.3f}" for rate, share in row.items())
            print(f"{suppliers} sup. {consumers:2} con.  {shown}")
    if only in (None, "many"):
        results["many consumers"] = many = many_consumers(10_000, 10, 500 if quick else 2_000)
        print("\n10,000 consumers of which 10 want an event (microseconds a push)")
        for kind in ("by type", "by predicate"):
            alone, among = many[f"{kind}, 10 alone"], many[f"{kind}, among all"]
            times = among / alone
            print(f"{kind:>12}: {alone:.1f} alone, {among:.1f} among all, {times:.2f} times")
    return results


def _rounded(worst: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in worst.items())


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--as-other"]:
        be_the_other(int(given[1]), given[2], given[3:])
        return
    parser = argparse.ArgumentParser(description="The event channel beside the paper's figures.")
    tables = ("collocated", "remote", "utilisation", "spacing", "many")
    parser.add_argument("--only", choices=tables, help="one table only")
    parser.add_argument("--quick", action="store_true", help="fewer events, rougher figures")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--plot", metavar="FILE", help="write the plot of laxity as SVG")
    parser.add_argument("--real-time", action="store_true", help="ask for a higher priority")
    options = parser.parse_args(given)
    if options.real_time:
        ask_for_priority()
    busy = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, of which {busy:.1f} were busy in the last minute")
    results = measure(options.only, options.quick) | {"load": busy}
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    if options.plot and "utilisation" in results:
        Path(options.plot).write_text(plot(results["utilisation"]))


if __name__ == "__main__":
    main()
