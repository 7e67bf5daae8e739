"""A long hunt for trials in which a placement differs from one machine.

    python -m tests.federation.placement.campaign --seconds 60 --start 0

The exit code is 1 if there was a difference; the first ones are printed, each as small as it gets.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from .agreement import Way, difference, simulated, smallest
from .random_trials import trial


def way_of(seed: int) -> Way:
    random = Random(seed)
    return Way(
        random.choice(["reference", "step"]),
        random.choice([0, 0, 3, 20]),
        random.choice([1, 1, 7, 1000]),
        random.random() < 0.3,
    )


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences from one machine")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--start", type=int, default=0)
    options.add_argument("--failures", type=int, default=1)
    given = options.parse_args()
    end = time.monotonic() + given.seconds
    seed, failures = given.start, 0
    totals: Counter[str] = Counter()
    while time.monotonic() < end and failures < given.failures:
        way, drawn = way_of(seed), trial(seed)
        found = difference(drawn, way)
        if found is not None:
            failures += 1
            print(f"{way}\n{smallest(found, way)}\n", flush=True)
        else:
            outputs, simulation = simulated(drawn, way)
            crossed = simulation.crossed
            totals["trials with outputs"] += bool(outputs)
            totals["outputs"] += len(outputs)
            totals["whole, by types"] += crossed.whole_by_types
            totals["whole, by ports"] += crossed.whole_by_ports
            totals["events"] += crossed.events.total()
            totals["resets"] += crossed.resets.total()
            rules = simulation.placement.rules.values()
            totals["rules"] += len(rules)
            totals["split rules"] += sum(bool(rule.split_sites) for rule in rules)
        seed += 1
    done = f"seeds {given.start} to {seed - 1}: {failures} differences"
    print(f"{done}; {dict(totals)}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
