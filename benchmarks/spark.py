"""How fast Spark runs rules, against handing the same rows to Python and doing nothing.

    python benchmarks/spark.py --events 5000000 --keys 10000

Writes the events once as Parquet, then times, in turn and several times over: the scan; the shuffle
and the hand-over to Python as Arrow of all columns that the rule needs (the baseline); the same
with the events dropped that no rule wants; one rule (`a ; b ; c`, reset by `d`); and a hundred
rules over the same key. What is told is the median, and ratios within this one run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.spark import correlate

TYPES = """
eventtype Event { attribute long Key; };
eventtype A : Event { }; eventtype B : Event { }; eventtype C : Event { }; eventtype D : Event { };
eventtype Found { attribute long Key; };
"""
RULE = """
Found correlation {name} (A a, B b, C c, D d) {body} | d by Key
{{ case s: push new Found {{ Key = c.Key }}; }}
"""


def library(rules: int) -> str:
    """The first rule is the one that is timed alone; the others want longer and longer stories.

    So the cost of many rules is that of reading, and not of writing a hundred times the outputs.
    """
    texts = [
        RULE.format(name=f"Rule{n}", body=f"s:(a{{{1 + n // 2}}} ; b{{{1 + (n + 1) // 2}}} ; c)")
        for n in range(rules)
    ]
    return TYPES + "".join(texts).replace("a{1} ; b{1} ; c", "a ; b ; c")


def write_events(folder: Path, count: int, keys: int) -> None:
    random = np.random.default_rng(1)
    names = np.array(["A", "B", "C", "D", "Other"])
    times = 1_700_000_000_000_000 + np.sort(random.integers(0, 10**12, count))
    table = pa.table(
        {
            "id": pa.array(np.arange(count)).cast(pa.string()),
            "type": pa.array(random.choice(names, count)),
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "Key": pa.array(random.integers(0, keys, count).astype(np.int32)),
            "Value": pa.array(random.random(count)),
        }
    )
    pq.write_table(table, folder / "events.parquet", row_group_size=max(1, count // 8))


def hand_over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([rows])], names=["rows"])


def scan(events: DataFrame) -> None:
    events.agg(*(sf.max(name) for name in events.columns)).collect()


def baseline(events: DataFrame, partitions: int) -> None:
    rows = events.select("id", "type", "time", "Key").repartition(partitions, "Key")
    rows.mapInArrow(hand_over, "rows bigint").agg(sf.sum("rows")).collect()


def ours(events: DataFrame, text: str, partitions: int) -> None:
    correlate(events, text, partitions=partitions).agg(sf.count("*"), sf.max("time")).collect()


def measure(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median of each, the first round left out: it starts workers and compiles."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    options = argparse.ArgumentParser(description="rules on Spark against the bare shuffle")
    options.add_argument("--events", type=int, default=5_000_000)
    options.add_argument("--keys", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rules", type=int, default=100)
    options.add_argument("--json", type=Path, default=None)
    given = options.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "3g")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        write_events(Path(folder), given.events, given.keys)
        events = spark.read.parquet(folder)
        wanted = events.filter(sf.col("type") != "Other")
        found = measure(
            {
                "scan": lambda: scan(events),
                "baseline": lambda: baseline(events, 2),
                "baseline, wanted only": lambda: baseline(wanted, 2),
                "one rule": lambda: ours(events, library(1), 2),
                f"{given.rules} rules": lambda: ours(events, library(given.rules), 2),
            },
            given.rounds,
        )
    for name, seconds in found.items():
        print(f"{name:24} {seconds:7.2f} s {given.events / seconds / 1e6:7.2f} M events/s")
    many = found[f"{given.rules} rules"] / found["one rule"]
    print(f"one rule / baseline      {found['one rule'] / found['baseline']:7.2f}  (aim: 1.25)")
    print(f"{given.rules} rules / one rule     {many:7.2f}  (aim: 3)")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
