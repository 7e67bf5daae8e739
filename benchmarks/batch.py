"""How fast the batch engine is: from an Arrow table to outputs, and its loops alone.

    python benchmarks/batch.py [--events N] [--keys N] [--repeats N] [--json FILE]

One process, one thread; what is measured is the processor time of that process, so that others on
the machine count as little as they can. Every figure is the median of several repeats in one run;
the table of events is made before the clock starts. The rule is `a ; b ; c` under a string key,
reset by `d`, with a predicate on `a`; a fifth of the events is of a type that no port wants.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

import numpy as np
import pyarrow as pa

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.correlations import ColumnCorrelation
from ensue.engine.batch.keys import IntegerNumbers, TextNumbers

TYPES = ("Login", "Open", "Copy", "Logout", "Ping")
RULE = """
eventtype Step {{ attribute string user; attribute double size; }};
eventtype Login : Step {{}};
eventtype Open : Step {{}};
eventtype Copy : Step {{}};
eventtype Logout : Step {{}};
eventtype Ping : Step {{}};
eventtype Alert {{ attribute string user; attribute double first; attribute double last; }};

Alert correlation Leak (Login a where size > 0.1, Open b, Copy c, Logout d)
    l1:(a ; b ; c) | l2:d
    {within} by user
{{
    case l1: push new Alert {{ user = a.user, first = a.size, last = c.size }};
}}
"""


def table_of_events(count: int, keys: int, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    users = pa.array([f"user-{number:08d}" for number in range(keys)])
    names = pa.array(TYPES)
    return pa.table(
        {
            "id": pa.array(np.arange(count)).cast(pa.string()),
            "source": pa.repeat(pa.scalar("bench"), count),
            "type": names.take(pa.array(random.integers(0, len(TYPES), count))),
            "time": pa.array(1_700_000_000_000_000 + np.arange(count) * 10).cast(
                pa.timestamp("us", "UTC")
            ),
            "user": users.take(pa.array(random.integers(0, keys, count))),
            "size": random.random(count),
        }
    )


def median_seconds(repeats: int, prepare: Callable[[], Any], work: Callable[[Any], Any]) -> float:
    work(prepare())
    found = []
    for _ in range(repeats):
        ready = prepare()
        begin = time.process_time()
        work(ready)
        found.append(time.process_time() - begin)
    return statistics.median(found)


def engine_for(within: str = "") -> BatchEngine:
    return BatchEngine(ensue.parse(RULE.format(within=within)).checked)


def measure_tables(events: int, keys: int, repeats: int) -> dict[str, float]:
    table = table_of_events(events, keys)
    window = f"within {max(1, keys * 100 // 1000)} ms"
    found = {}
    for name, within in (("table to table", ""), ("the same with `within`", window)):
        seconds = median_seconds(
            repeats, partial(engine_for, within), lambda engine: engine.push_batch(table)
        )
        found[f"{name}, {keys:,} keys"] = events / seconds / 1e6
    return found


def walk_all(walk: Any, bits: Any, numbers: Any, times: Any, keys: int, _: None) -> None:
    walk.read(bits, numbers, times, keys, 0)


def measure_loops(events: int, keys: int, repeats: int) -> dict[str, float]:
    """The loop over the machine alone, as the engine calls it."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, keys, events).astype(np.int32)
    times = np.arange(events, dtype=np.int64) * 10
    bits = (1 << random.integers(0, 4, events)).astype(np.uint8)
    found = {}
    for name, within in (("table walk", ""), ("window walk", f"within {keys // 10 + 1} ms")):
        engine = engine_for(within)
        running = engine.correlations["Leak"]
        assert isinstance(running, ColumnCorrelation)
        walk = running.walk
        seconds = median_seconds(
            repeats, lambda: None, partial(walk_all, walk, bits, numbers, times, keys)
        )
        found[f"{name} alone, {keys:,} keys"] = events / seconds / 1e6
    texts = pa.array([f"user-{number:08d}" for number in range(keys)]).take(pa.array(numbers))
    seconds = median_seconds(repeats, TextNumbers, lambda table: table.number(texts))
    found[f"string keys to numbers, {keys:,} keys"] = events / seconds / 1e6
    wide = numbers.astype(np.int64)
    seconds = median_seconds(repeats, IntegerNumbers, lambda table: table.number(wide))
    found[f"integer keys to numbers, {keys:,} keys"] = events / seconds / 1e6
    return found


FIRST_USE = """
import time
begin = time.perf_counter()
from benchmarks.batch import engine_for, table_of_events
imported = time.perf_counter()
table = table_of_events(1000, 10)
engine = engine_for({within!r})
begun = time.perf_counter()
engine.push_batch(table)
print(imported - begin, time.perf_counter() - begun)
"""


def measure_first_use() -> dict[str, float]:
    """A new process: what importing costs, and the first batch (compiled code comes from disk)."""
    found = {}
    for name, within in (("table", ""), ("window", "within 1 s")):
        code = FIRST_USE.format(within=within)
        times = []
        for _ in range(3):
            out = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout.split()
            times.append((float(out[0]), float(out[1])))
        found[f"import, {name}: seconds"] = statistics.median(each[0] for each in times[1:])
        found[f"first batch, {name}: seconds"] = statistics.median(each[1] for each in times[1:])
    return found


def measure_snapshot(keys: int) -> dict[str, float]:
    """Every key in the middle of a match: bytes of a snapshot for each."""
    random = np.random.default_rng(2)
    rows = 2 * keys
    who = np.r_[random.permutation(keys), random.permutation(keys)]
    table = pa.table(
        {
            "id": pa.array(np.arange(rows)).cast(pa.string()),
            "type": pa.array(["Login", "Open"]).take(pa.array(np.repeat([0, 1], keys))),
            "time": pa.array(1_700_000_000_000_000 + np.arange(rows)).cast(
                pa.timestamp("us", "UTC")
            ),
            "user": pa.array([f"user-{number:08d}" for number in range(keys)]).take(pa.array(who)),
            "size": random.random(rows) * 0.8 + 0.2,
        }
    )
    engine = engine_for()
    engine.push_batch(table)
    begin = time.perf_counter()
    snapshot = engine.snapshot()
    taken = time.perf_counter() - begin
    begin = time.perf_counter()
    engine_for().restore(snapshot)
    return {
        f"snapshot, {keys:,} keys mid-match: bytes a key": len(snapshot) / keys,
        "taking it: seconds": taken,
        "restoring it: seconds": time.perf_counter() - begin,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--events", type=int, default=5_000_000)
    options.add_argument("--keys", type=int, default=10_000)
    options.add_argument("--many-keys", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--json", metavar="FILE")
    given = options.parse_args()
    pa.set_cpu_count(1)
    figures: dict[str, float] = {}
    for keys in (given.keys, given.many_keys):
        figures |= measure_tables(given.events, keys, given.repeats)
        figures |= measure_loops(given.events, keys, given.repeats)
    figures |= measure_first_use()
    figures |= measure_snapshot(given.many_keys)
    for name, figure in figures.items():
        unit = "" if "seconds" in name or "bytes" in name else " M events/s"
        print(f"{name:60} {figure:10.3f}{unit}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"events": given.events, "figures": figures}, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
