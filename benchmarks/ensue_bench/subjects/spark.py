"""Rules on Spark, in batch and in streams, beside what Spark itself costs and beside Flink.

The yardstick of a batch is a shuffle by key that hands every row to Python as Arrow and does
nothing with it; that of a stream is the same rule written by hand, with a state for each key. All
figures are times on the wall over two cores, in a session with Spark's own settings (`jobs`). Flink
is fetched the first time (`flink`), and a quick run leaves it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from ensue_bench.effort import Effort
from ensue_bench.report import Curve, Figure, cost, rate
from ensue_bench.spark.flink import WAYS, Flink, prepare
from ensue_bench.spark.jobs import (
    CORES,
    MANY,
    NEEDED,
    Jobs,
    correlated,
    event_table,
    events,
    hand_over,
    one_rule,
    rules_over_several_events,
    scan,
    session,
    wall_clock,
    write_events,
    write_in_step,
)
from ensue_bench.spark.processes import Files, beside_flink, beside_reading
from ensue_bench.spark.streams import streams
from ensue_bench.timing import rates, ratios

TIMES_HAND_OVER = 1.25
TIMES_HAND_OVER_OF_SEVERAL_EVENTS = 1.5
TIMES_ONE_RULE = 3
TIMES_FLINK = 12


def measure(effort: Effort) -> Iterator[Figure | Curve]:
    """What the aims are about comes first: the whole takes some twenty minutes."""
    flink = None if effort.quick else prepare()
    with session() as spark, TemporaryDirectory(prefix="ensue-bench-") as name:
        folder = Path(name)
        table = events(effort.size(5_000_000, 2000), effort.size(10_000, 50))
        path = write_events(folder / "events", table)
        frame = spark.read.parquet(path)
        ours = yield from _one_rule(effort, frame, len(table))
        yield from _files(effort, spark, table, folder / "files", flink)
        yield from streams(effort, spark, folder / "streams")
        yield from _several_events(effort, frame, len(table))
        for kind, text_of in MANY.items():
            yield from _many_rules(effort, frame, kind, text_of)
        yield from _many_keys(effort, spark, folder / "keys")
        if flink is not None:
            in_step = write_in_step(folder / "events-in-step", table)
            yield from _beside_flink(effort, flink, path, in_step, ours)
        del table
        yield from _curves(effort, spark, folder / "curves")


@dataclass(frozen=True)
class OneRule:
    """How one rule over all events did."""

    events: int
    matches: int
    seconds: Sequence[float]


def _one_rule(effort: Effort, frame: Any, count: int) -> Generator[Figure, None, OneRule]:
    works: Jobs = {
        "scan": partial(scan, frame),
        "shuffle and hand over": partial(hand_over, frame),
        "one rule": partial(correlated, frame, one_rule()),
    }
    begin = time.perf_counter()
    matches = correlated(frame, one_rule())
    cold = time.perf_counter() - begin
    yield cost("batch: one rule, first job of a session", "s", [cold], note="workers start cold")
    found = wall_clock(works, effort.times(5))
    for name, taken in found.items():
        note = f"{matches:,} outputs" if name == "one rule" else ""
        yield rate(f"batch: {name}", rates(count, taken), note=note)
    yield cost(
        "batch: one rule to hand-over",
        "times",
        ratios(found["one rule"], found["shuffle and hand over"]),
        TIMES_HAND_OVER,
    )
    return OneRule(count, matches, found["one rule"])


def _several_events(effort: Effort, frame: Any, count: int) -> Iterator[Figure]:
    """Conditions between events and aggregates, beside the hand-over of the columns they need."""
    texts = rules_over_several_events()
    works: Jobs = {
        **{name: partial(correlated, frame, text) for name, text in texts.items()},
        "hand-over": partial(hand_over, frame, names=(*NEEDED, "Value")),
    }
    found = wall_clock(works, effort.times(3))
    for name in texts:
        yield rate(f"batch: {name}", rates(count, found[name]))
        yield cost(
            f"batch: {name} to hand-over",
            "times",
            ratios(found[name], found["hand-over"]),
            TIMES_HAND_OVER_OF_SEVERAL_EVENTS,
        )


def _files(
    effort: Effort, spark: Any, table: pa.Table, folder: Path, flink: Flink | None
) -> Iterator[Figure]:
    files = Files.of(table, folder)
    yield from beside_reading(effort, spark, files)
    if flink is not None:
        yield from beside_flink(effort, flink, files, folder)


def _many_rules(
    effort: Effort, frame: Any, name: str, text_of: Callable[[int], str]
) -> Iterator[Figure]:
    many = effort.size(100, 3)
    text = text_of(many)
    works: Jobs = {
        "one": partial(correlated, frame, text_of(1)),
        "many": partial(correlated, frame, text),
    }
    outputs = correlated(frame, text)
    found = wall_clock(works, effort.times(3))
    yield cost(f"batch: {many} rules, {name}", "s", found["many"], note=f"{outputs:,} outputs")
    yield cost(
        f"batch: {many} rules to one, {name}",
        "times",
        ratios(found["many"], found["one"]),
        TIMES_ONE_RULE,
    )


def _beside_flink(
    effort: Effort, flink: Flink, path: str, in_step: str, ours: OneRule
) -> Iterator[Figure]:
    """In both of Flink's modes: bounded files run in batch, and most of its users run streams.

    Files that are read side by side are out of order to a stream, which would have to wait for
    them: it gets the same events in files that are read in step.
    """
    for way in WAYS:
        theirs = flink.run(in_step if way.in_step else path, effort.times(2), way)
        if theirs.matches != ours.matches:
            raise RuntimeError(
                f"Flink in {way.name} found {theirs.matches} matches, and `correlate`"
                f" {ours.matches}"
            )
        note = f"{ours.matches:,} matches"
        yield rate(f"Flink, {way.name}: scan", rates(ours.events, theirs.scan))
        yield rate(
            f"Flink, {way.name}: `MATCH_RECOGNIZE`", rates(ours.events, theirs.rule), note=note
        )
        # Not in turns, since each side would have to start anew: best with best, and so on.
        pairs = zip(sorted(theirs.rule), sorted(ours.seconds), strict=False)
        values = tuple(one / other for one, other in pairs)
        name = f"batch: one rule ahead of Flink in {way.name}"
        yield Figure(name, "times", values, "higher", TIMES_FLINK)


def _many_keys(effort: Effort, spark: Any, folder: Path) -> Iterator[Figure]:
    """As many keys as events."""
    keys = effort.size(10_000_000, 1000)
    draw = np.random.default_rng(5)
    table = event_table(draw.integers(0, 5, keys), draw.permutation(keys), draw.random(keys))
    frame = spark.read.parquet(write_events(folder, table))
    found = wall_clock(_beside(frame), effort.times(2))
    yield rate(f"batch: one rule, {keys:,} keys", rates(keys, found["one rule"]))
    yield cost(
        f"batch: one rule to hand-over, {keys:,} keys",
        "times",
        ratios(found["one rule"], found["hand-over"]),
    )


# --- curves -------------------------------------------------------------------------------------


def _beside(frame: Any, partitions: int = CORES) -> Jobs:
    return {
        "one rule": partial(correlated, frame, one_rule(), partitions),
        "hand-over": partial(hand_over, frame, partitions),
    }


def _curves(effort: Effort, spark: Any, folder: Path) -> Iterator[Curve]:
    count, keys = effort.size(2_000_000, 1000), effort.size(10_000, 50)

    def frame(size: int, of_keys: int) -> Any:
        place = folder / f"{size}-{of_keys}"
        if not place.exists():
            write_events(place, events(size, of_keys))
        return spark.read.parquet(str(place))

    sizes: tuple[int, ...] = (500, 1000) if effort.quick else (200_000, 1_000_000, 5_000_000)
    yield from _curve(effort, "events", sizes, lambda n: _beside(frame(n, keys)), lambda n: n)
    sizes = (10, 50) if effort.quick else (100, 10_000, 1_000_000)
    yield from _curve(effort, "keys", sizes, lambda n: _beside(frame(count, n)), lambda _: count)
    sizes = (1, 4) if effort.quick else (1, 2, 4, 8, 32)
    yield from _curve(
        effort, "partitions", sizes, lambda n: _beside(frame(count, keys), n), lambda _: count
    )
    sizes = (1, 3) if effort.quick else (1, 10, 100)

    def rules(number: int) -> Jobs:
        of = frame(count, keys)
        return {name: partial(correlated, of, text(number)) for name, text in MANY.items()}

    yield from _curve(effort, "rules", sizes, rules, lambda _: count)


def _curve(
    effort: Effort,
    against: str,
    sizes: Sequence[int],
    jobs: Callable[[int], Jobs],
    count: Callable[[int], int],
) -> Iterator[Curve]:
    """Sizes one after the other, for their data would not fit side by side; jobs take turns."""
    points: dict[str, list[tuple[float, tuple[float, ...]]]] = {}
    for size in sizes:
        for name, taken in wall_clock(jobs(size), effort.times(2)).items():
            values = tuple(each / count(size) * 1e6 for each in taken)
            points.setdefault(name, []).append((float(size), values))
    for name, found in points.items():
        yield Curve(f"{against}-spark", name, against, "µs/event", tuple(found))
