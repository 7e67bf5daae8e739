"""A hunt for rules over several events on which an engine and the oracle of values differ.

    python -m tests.oracle.values.campaign --engine reference --start 0 --count 2000
    python -m tests.oracle.values.campaign --engine step --start 0 --count 2000 --resume
    python -m tests.oracle.values.campaign --engine spark --start 0 --count 2000

Prints each difference, made as small as it gets. On Spark, rules go in rounds of many
(`tests.spark.campaign`), and `start` is the first round. The exit code is 1 if there was a
difference.
"""

from __future__ import annotations

import argparse
import sys

from ensue.errors import LibraryError

from .agreement import difference, smallest
from .generator import scenario


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences from the oracle of values")
    options.add_argument("--engine", default="reference", help="the engine to compare")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--count", type=int, default=1000, help="how many seeds")
    options.add_argument("--failures", type=int, default=3, help="stop after so many differences")
    options.add_argument("--resume", action="store_true", help="save and resume after every event")
    given = options.parse_args()
    if given.engine == "spark":
        from tests.spark.campaign import hunt

        return hunt(given.start, kinds=("related", "together"), count=given.count)
    failures, refused = 0, 0
    seed = given.start
    while seed < given.start + given.count and failures < given.failures:
        try:
            found = difference(scenario(seed), given.engine, given.resume)
        except LibraryError as error:
            refused += 1
            if refused <= given.failures:
                print(f"seed {seed} gives a library that is refused:\n{error}\n", flush=True)
            found = None
        if found is not None:
            failures += 1
            print(f"{smallest(found, given.engine, given.resume)}\n", flush=True)
        seed += 1
    print(
        f"seeds {given.start} to {seed - 1}: {failures} differences, {refused} refused",
        file=sys.stderr,
    )
    return 1 if failures or refused else 0


if __name__ == "__main__":
    sys.exit(main())
