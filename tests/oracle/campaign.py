"""A long hunt for scenarios on which an engine and the oracle differ.

    python -m tests.oracle.campaign --seconds 600 --start 0

Runs one seed after the other and prints the first differences, each made as small as it gets by
dropping events. The exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import time

from ensue.errors import LibraryError

from .agreement import difference, smaller
from .filters import TooManyError
from .generator import scenario


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences from the oracle")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--failures", type=int, default=3, help="stop after so many differences")
    options.add_argument("--engine", default="reference", help="the engine to compare")
    given = options.parse_args()
    end = time.monotonic() + given.seconds
    seed, failures, skipped = given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        drawn = scenario(seed)
        try:
            found = difference(drawn, given.engine)
        except TooManyError:
            skipped += 1
            found = None
        except LibraryError as error:
            print(f"seed {seed} gives a library that is refused:\n{error}\n{drawn.library}\n")
            failures += 1
            found = None
        if found is not None:
            failures += 1
            print(f"{smaller(found, given.engine)}\n", flush=True)
        seed += 1
    print(
        f"seeds {given.start} to {seed - 1}: {failures} differences,"
        f" {skipped} skipped because a branch remembers too much to try all splits",
        file=sys.stderr,
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
