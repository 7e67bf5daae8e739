"""Histories beside the paper on temporal knowledge-based networking: its two tests, and growth.

Test 1: fifty subscribers, each with one of seven filters, and 250 events into an empty store. Test
2: 50,000 events are stored, and fifty subscribers ask FILTER with limits of 200 to 5,000. The
paper's texts give no unit for AFTER(500) and AFTER(125): with an event every ten seconds they are
read as seconds. A filter is asked of an event before that is stored. What is asked is measured in
processor time; durable writes by the wall clock, for they wait for the disk.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.history import History
from ensue.knowledge import SAMPLES, Ontology
from ensue.subscriptions import Filter
from ensue_bench.effort import Effort
from ensue_bench.report import Curve, Figure, ReportTable, cost, rate

SUBSCRIBERS: Final = 50
SECOND: Final = 1_000_000
ORIGIN: Final = 1_704_067_200 * SECOND
BATCH: Final = 5_000

RED: Final = "ONTPROP<wine:hasColor>(B) = wine:Red"
FILTERS: Final[Mapping[str, str]] = {
    "A": "A < 8",
    "B": RED,
    "C": f"A FILTER(<, 200) ({RED})",
    "D": "end DURING (A < 8)",
    "E": "start AFTER(500 s) (A < 8)",
    "F": "start AFTER(125 s) (A < 8)",
    "G": "A FILTER(<, 200) (C > 10)",
}
"""Table 3 of the paper."""
FIRST_TEST: Final = (
    "grows with what is stored in all three of its stores, to nearly 7 s at 250 in the largest"
)
TEMPORAL: Final = "the paper: 10 to 63 ms on average"
LIMITS: Final[Mapping[int, str]] = {
    200: "about 200",
    500: "almost linear in the limit",
    1_000: "almost linear in the limit",
    2_000: "almost linear in the limit",
    5_000: "more than linear",
}
"""The paper's figures did not survive; its text names these, of a Java broker over Oracle."""
AIMS: Final = {"temporal": 1.0, "FILTER": 2.0, "growth": 2.0, "writes": 20_000}
"""Ours: milliseconds an event at 50,000 stored; times as long at more of them; writes a second."""


WINES: Final = (
    "wine:CascinaBellaBarolo",
    "wine:ClosDuMoulinPinot",
    "wine:TourGriseClaret",
    "wine:LangheNebbiolo",
    "wine:HouseRed",
    "wine:KettenRiesling",
    "wine:KettenEiswein",
    "wine:ClosDuMoulinChablis",
    "wine:OldOakChardonnay",
    "wine:HouseWhite",
)
"""Five reds and five whites of our own ontology, most of which get their colour by reasoning."""


def measure(effort: Effort) -> Iterator[Figure | ReportTable | Curve]:
    with TemporaryDirectory(prefix="ensue-bench-") as folder:
        yield from _first_test(effort, Path(folder))
        yield from _second_test(effort, Path(folder))
        yield from _growth(effort, Path(folder))
        yield from _writes(effort, Path(folder))


def events(
    random: Random, first: int, count: int, every: int = 10, origin: int = ORIGIN
) -> Iterator[Event]:
    """The paper's publications: one every ten seconds, each three to eight seconds long."""
    for number in range(first, first + count):
        start = origin + number * every * SECOND
        end = format_time(start + random.randint(3, 8) * SECOND)
        data = {"A": random.randint(1, 10), "B": random.choice(WINES)}
        yield Event(str(number), "paper", "Publication", start, data, {"endtime": end})


def _first_test(effort: Effort, folder: Path) -> Iterator[Figure | ReportTable]:
    """Milliseconds a publication for all fifty subscribers, by what is stored."""
    random = Random(1)
    names = [random.choice(list(FILTERS)) for _ in range(SUBSCRIBERS)]
    filters = [Filter.parse(FILTERS[name]) for name in names]
    taken: list[float] = []
    with _opened(folder / "first.db") as history:
        for event in events(random, 0, effort.size(250, 40)):
            taken.append(_milliseconds(history, filters, event))
            history.add(event)
    places = [place for place in (1, 50, 100, 150, 200, 250) if place <= len(taken)]
    rows = [
        (f"{place}", f"{statistics.median(taken[max(0, place - 20) : place]):.2f}")
        for place in places
    ]
    yield ReportTable(
        f"Test 1 of the paper: {FIRST_TEST}", ("stored", "ms for 50 subscribers"), tuple(rows)
    )
    yield cost("test 1: a publication, 50 subscribers", "ms", taken)


def _second_test(effort: Effort, folder: Path) -> Iterator[Figure | ReportTable]:
    random = Random(2)
    stored = effort.size(50_000, 500)
    rounds = effort.size(60, 5)
    rows = []
    with _opened(folder / "second.db") as history:
        history.add_all(events(random, 0, stored))
        # The second test's publisher waits three seconds; its first event follows the stored ones.
        behind = ORIGIN + stored * (10 - 3) * SECOND
        coming = events(random, stored, 1_000_000, every=3, origin=behind)
        for limit, theirs in LIMITS.items():
            pair = [f"A FILTER(<, {limit}) ({RED})", f"A FILTER(<, {limit}) (C > 10)"]
            filters = [Filter.parse(random.choice(pair)) for _ in range(SUBSCRIBERS)]
            single = [Filter.parse(text) for text in pair]
            whole, each = [], []
            for _ in range(rounds):
                event = next(coming)
                each += [_milliseconds(history, [one], event) for one in single]
                whole.append(_milliseconds(history, filters, event))
                history.add(event)
            rows.append(
                (
                    f"{limit:,}",
                    theirs,
                    f"{statistics.median(whole):.2f}",
                    f"{statistics.median(each):.3f}",
                )
            )
            if limit == min(LIMITS):
                yield cost("FILTER, limit 200", "ms", each, AIMS["FILTER"])
        yield ReportTable(
            f"Test 2 of the paper: FILTER over {stored:,} stored events, ms",
            ("limit", "paper, 50 subscribers", "50 subscribers", "one filter"),
            tuple(rows),
        )
        for name, figure in (("D", "DURING"), ("E", "AFTER(500 s)"), ("F", "AFTER(125 s)")):
            taken = _medians(history, FILTERS[name], coming, rounds)
            yield cost(figure, "ms", taken, AIMS["temporal"], note=TEMPORAL)


def _growth(effort: Effort, folder: Path) -> Iterator[Figure | Curve]:
    """The same filters over ten and a hundred times as many stored events, taking turns."""
    sizes = [effort.size(50_000 * 10**power, 300 * 3**power) for power in range(3)]
    rounds = effort.size(60, 5)
    asked = {
        "AFTER(500 s)": FILTERS["E"],
        "DURING": FILTERS["D"],
        "FILTER, limit 200": FILTERS["C"],
        "in the middle: AFTER(500 s)": FILTERS["E"],
        "in the middle: DURING": FILTERS["D"],
    }
    histories = []
    for size in sizes:
        history = _opened(folder / f"growth-{size}.db")
        history.add_all(events(Random(3), 0, size))
        histories.append(history)
    for name, text in asked.items():
        wanted = Filter.parse(text)
        taken: list[list[float]] = [[] for _ in sizes]
        for number in range(rounds):
            for place, (size, history) in enumerate(zip(sizes, histories, strict=True)):
                at = size // 2 - number if name.startswith("in the middle") else size + number
                (event,) = events(Random(number), at, 1)
                # Not one of the stored ones, though it comes when they did.
                event = Event(
                    "asked", "bench", event.type, event.time, event.data, event.extensions
                )
                taken[place].append(_milliseconds(history, [wanted], event))
        curve = tuple(
            (float(size), tuple(values)) for size, values in zip(sizes, taken, strict=True)
        )
        yield Curve("history-stored", name, "stored events", "ms", curve)
        medians = [statistics.median(values) for values in taken]
        title = f"{name}: {sizes[-1]:,} stored events to {sizes[0]:,}"
        yield cost(title, "times", [medians[-1] / medians[0]], AIMS["growth"])
    for history in histories:
        history.close()


def _writes(effort: Effort, folder: Path) -> Iterator[Figure]:
    """Batches of 5,000, each on disk before the next begins (WAL, synchronous=FULL)."""
    count = effort.size(50_000, 500)
    by_clock, by_processor = [], []
    for number in range(effort.times(5)):
        drawn = list(events(Random(number), 0, count))
        with _opened(folder / f"writes-{number}.db") as history:
            begin, busy = time.perf_counter(), time.process_time()
            for first in range(0, count, BATCH):
                history.add_all(drawn[first : first + BATCH])
            by_clock.append(count / (time.perf_counter() - begin))
            by_processor.append(count / (time.process_time() - busy))
    note = "each batch of 5,000 is on disk when it returns: WAL, synchronous=FULL"
    yield rate("durable writes, by the wall clock", by_clock, AIMS["writes"], note)
    yield rate("durable writes, by processor time", by_processor, note=note)


def _opened(path: Path) -> History:
    return History.open(f"sqlite:{path}", ontology=wine_ontology())


@cache
def wine_ontology() -> Ontology:
    return Ontology.load(SAMPLES / "wine.ttl")


def _medians(history: History, text: str, coming: Iterator[Event], rounds: int) -> list[float]:
    wanted = [Filter.parse(text)]
    taken = []
    for _ in range(rounds):
        event = next(coming)
        taken.append(_milliseconds(history, wanted, event))
        history.add(event)
    return taken


def _milliseconds(history: History, filters: Sequence[Filter], event: Event) -> float:
    begin = time.process_time()
    for each in filters:
        history.matches(each, event)
    return (time.process_time() - begin) * 1_000
