"""How many events a second the step engine takes, one `run.push` each, on one core.

    python benchmarks/step.py [--events 300000] [--repeats 7] [--json FILE]

The events are made beforehand; what is measured is the whole way through the check of attributes,
predicates, key, table and transformer. Each figure is the median of the repeats, each repeat a
fresh run of the same events; the garbage collector is on, as it is for users. Time is that of the
process, so that other work on the machine does not count.
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
eventtype Login { attribute string user; attribute boolean ok; };
eventtype Reset { attribute string user; };
eventtype Alarm { attribute string user; };
"""
HEAD = "(Login bad where ok = false, Login good where ok = true, Reset r)"
RULES = {
    "keyed, predicates, transformer": f"""Alarm correlation R {HEAD}
        l1:(bad ; bad ; good) | l2:r by user
        {{ case l1: push new Alarm {{ user = good.user }}; }}""",
    "the same without a key": f"""Alarm correlation R {HEAD}
        l1:(bad ; bad ; good) | l2:r {{ case l1: push new Alarm {{ user = good.user }}; }}""",
    "the same within 10 s": f"""Alarm correlation R {HEAD}
        l1:(bad ; bad ; good) | l2:r within 10 s by user
        {{ case l1: push new Alarm {{ user = good.user }}; }}""",
    "ECL": f"""Alarm ecl R {HEAD} by user
        {{ repeat {{ notify {{ do {{ sequential {{ bad, bad, good }} }} unless {{ r }} }} }} }}""",
}


def logins(count: int, users: int, failing: float, seed: int = 1) -> list[Event]:
    """Logins of many users, some of which fail, and now and then a reset."""
    draw = random.Random(seed)
    events = []
    for number in range(count):
        user = f"user{draw.randrange(users)}"
        if draw.random() < 0.05:
            event = Event(f"e{number}", "app", "Reset", number * 1000, {"user": user})
        else:
            ok = draw.random() >= failing
            event = Event(f"e{number}", "app", "Login", number * 1000, {"user": user, "ok": ok})
        events.append(event)
    return events


def measure(library: ensue.Library, events: Sequence[Event], repeats: int) -> dict[str, float]:
    seconds = []
    outputs = 0
    for _ in range(repeats):
        run = library.start("step")
        push = run.push
        begin = time.process_time()
        for event in events:
            push(event)
        seconds.append(time.process_time() - begin)
        outputs = run.counts.outputs
    median = statistics.median(seconds)
    return {
        "events": len(events),
        "outputs": outputs,
        "median_seconds": median,
        "events_a_second": len(events) / median,
        "fastest": len(events) / min(seconds),
        "slowest": len(events) / max(seconds),
    }


def main() -> None:
    options = argparse.ArgumentParser(description="measure the step engine")
    options.add_argument("--events", type=int, default=300_000)
    options.add_argument("--users", type=int, default=10_000)
    options.add_argument("--failing", type=float, default=0.3)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    events = logins(given.events, given.users, given.failing)
    results = {}
    for name, rule in RULES.items():
        found = measure(ensue.parse(TYPES + rule), events, given.repeats)
        results[name] = found
        print(
            f"{name:32} {found['events_a_second']:>10,.0f} events/s"
            f"  ({found['slowest']:,.0f} to {found['fastest']:,.0f}; {found['outputs']:,} outputs)"
        )
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
