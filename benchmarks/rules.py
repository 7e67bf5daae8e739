"""What a thousand rules cost beside one, where they share a vocabulary of fifty predicates.

    python benchmarks/rules.py [--engine step] [--events 20000] [--repeats 5] [--json FILE]
    python benchmarks/rules.py --engine batch [--events 1000000] [--devices 1000]

Two vocabularies: fifty kinds (`kind = 'k17'`) and fifty thresholds (`level > 17`). A rule is
`a ; b ; c` over three of them, by key. The cost of an event is the median over the repeats of the
time of the process, divided by the number of events.

For `step` an event is one of the kinds, and passes half of the thresholds. For `batch` that would
measure the making of outputs, of which a thousand rules have a thousand times as many as one: so
the share of the events that are of any kind in the vocabulary, or above its lowest threshold, is
varied, and the number of outputs stands beside each figure. The first batch of an engine pays for
the memory of its states as well; a second one, of later events, shows what goes on from there.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ensue
from ensue.events.event import Event

TYPES = """
eventtype Reading { attribute string device; attribute string kind; attribute long level; };
eventtype Found { attribute string device; attribute long level; };
"""
PREDICATES = {
    "kinds": [f"kind = 'k{number}'" for number in range(50)],
    "thresholds": [f"level > {number}" for number in range(50)],
}
SHARES = {"kinds": (0.02, 0.1, 1.0), "thresholds": (0.002, 0.02)}


def rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        a, b, c = draw.sample(predicates, 3)
        texts.append(
            f"Found correlation R{number} (Reading a where {a}, Reading b where {b},"
            f" Reading c where {c}) a ; b ; c by device"
            " { case true: push new Found { device = c.device, level = a.level }; }"
        )
    return TYPES + "\n".join(texts)


def readings(count: int, devices: int, seed: int = 1) -> list[Event]:
    draw = random.Random(seed)
    return [
        Event(
            f"e{number}",
            "plant",
            "Reading",
            number * 1000,
            {
                "device": f"d{draw.randrange(devices)}",
                "kind": f"k{draw.randrange(50)}",
                "level": draw.randrange(50),
            },
        )
        for number in range(count)
    ]


def microseconds_an_event(text: str, events: Sequence[Event], repeats: int) -> float:
    library = ensue.parse(text)
    seconds = []
    for _ in range(repeats):
        run = library.start("step")
        push = run.push
        begin = time.process_time()
        for event in events:
            push(event)
        seconds.append(time.process_time() - begin)
    return statistics.median(seconds) / len(events) * 1e6


def table_of_readings(count: int, devices: int, share: float, first: int) -> Any:
    """Readings as an Arrow table; `share` of them are such that some rule may want them."""
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(first + 1)
    wanted = draw.random(count) < share
    kinds = pa.array([f"k{number}" for number in range(51)])
    # The lowest level is above no threshold; the kind `k50` is in no rule.
    drawn = draw.integers(0, 50, count)
    names = pa.array([f"d{number}" for number in range(devices)])
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + count)).cast(pa.string()),
            "source": pa.repeat(pa.scalar("plant"), count),
            "type": pa.repeat(pa.scalar("Reading"), count),
            "time": pa.array(np.arange(first, first + count) * 1000).cast(
                pa.timestamp("us", "UTC")
            ),
            "device": names.take(pa.array(draw.integers(0, devices, count))),
            "kind": kinds.take(pa.array(np.where(wanted, drawn, 50))),
            "level": np.where(wanted, drawn + 1, 0),
        }
    )


def batches(text: str, tables: Sequence[Any], repeats: int) -> list[tuple[float, int]]:
    """For each table, read one after the other: microseconds an event, and how many outputs."""
    from ensue.engine.batch import BatchEngine

    library = ensue.parse(text)
    seconds: list[list[float]] = [[] for _ in tables]
    outputs = [0] * len(tables)
    for repeat in range(repeats + 1):
        engine = BatchEngine(library.checked)
        for number, table in enumerate(tables):
            begin = time.process_time()
            outputs[number] = len(engine.push_batch(table))
            if repeat:  # the first time loads compiled code
                seconds[number].append(time.process_time() - begin)
    return [
        (statistics.median(each) / len(table) * 1e6, made)
        for each, table, made in zip(seconds, tables, outputs, strict=True)
    ]


def measure_batch(given: argparse.Namespace) -> dict[str, Any]:
    import pyarrow as pa

    pa.set_cpu_count(1)
    results = {}
    for name, predicates in PREDICATES.items():
        for share in SHARES[name]:
            tables = [
                table_of_readings(given.events, given.devices, share, first)
                for first in (0, given.events)
            ]
            one = batches(rules(1, predicates), tables, given.repeats)
            many = batches(rules(given.rules, predicates), tables, given.repeats)
            for which, (cost, _), (costs, made) in zip(("first", "second"), one, many, strict=True):
                title = f"{name}, {share:.1%} wanted, {which} table"
                results[title] = {
                    "one_rule_us": cost,
                    "many_rules_us": costs,
                    "ratio": costs / cost,
                    "outputs_an_event": made / given.events,
                }
                print(
                    f"{title:38} 1 rule {cost:6.3f} us an event, {given.rules:,} rules"
                    f" {costs:7.3f} us: {costs / cost:6.1f} times"
                    f" ({made / given.events:.3f} outputs an event)"
                )
    return results


def measure_step(given: argparse.Namespace) -> dict[str, Any]:
    events = readings(given.events, given.devices)
    results = {}
    for name, predicates in PREDICATES.items():
        one = microseconds_an_event(rules(1, predicates), events, given.repeats)
        many = microseconds_an_event(rules(given.rules, predicates), events, given.repeats)
        results[name] = {"one_rule_us": one, "many_rules_us": many, "ratio": many / one}
        print(
            f"{name:12} 1 rule {one:6.2f} us an event, {given.rules:,} rules {many:8.2f} us:"
            f" {many / one:.1f} times"
        )
    return results


def main() -> None:
    options = argparse.ArgumentParser(description="measure many rules beside one")
    options.add_argument("--engine", choices=["step", "batch"], default="step")
    options.add_argument("--events", type=int)
    options.add_argument("--devices", type=int)
    options.add_argument("--rules", type=int, default=1000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    is_batch = given.engine == "batch"
    given.events = given.events or (1_000_000 if is_batch else 20_000)
    given.devices = given.devices or (1_000 if is_batch else 100)
    results = measure_batch(given) if is_batch else measure_step(given)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
