"""What a thousand rules cost beside one, where they share a vocabulary of fifty predicates.

    python benchmarks/rules.py [--events 20000] [--repeats 5] [--json FILE]

Two vocabularies: fifty kinds, of which each event is one (`kind = 'k17'`), and fifty thresholds,
of which an event passes half (`level > 17`). A rule is `a ; b ; c` over three of them, by key. The
cost of an event is the median over the repeats of the time of the process, divided by the number of
events.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import ensue
from ensue.events.event import Event

TYPES = """
eventtype Reading { attribute string device; attribute string kind; attribute long level; };
eventtype Found { attribute string device; };
"""
PREDICATES = {
    "kinds": [f"kind = 'k{number}'" for number in range(50)],
    "thresholds": [f"level > {number}" for number in range(50)],
}


def rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        a, b, c = draw.sample(predicates, 3)
        texts.append(
            f"Found correlation R{number} (Reading a where {a}, Reading b where {b},"
            f" Reading c where {c}) a ; b ; c by device"
            " { case true: push new Found { device = c.device }; }"
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


def main() -> None:
    options = argparse.ArgumentParser(description="measure many rules beside one")
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--devices", type=int, default=100)
    options.add_argument("--rules", type=int, default=1000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
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
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
