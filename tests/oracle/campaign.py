"""A long hunt for scenarios on which an engine and the oracle differ.

    python -m tests.oracle.campaign --seconds 600 --start 0
    python -m tests.oracle.campaign --seconds 600 --start 0 --rare

Runs one seed after the other and prints the first differences, each made as small as it gets by
dropping events. With `--rare` the scenarios are those that the usual generator seldom draws, and
each is run in every way of `ways`. The exit code is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

from ensue.errors import LibraryError

from .agreement import candidates, difference, smaller
from .filters import TooManyError
from .generator import scenario
from .rare import RareDrawing
from .ways import Disagreement, disagreements, variants


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences from the oracle")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--failures", type=int, default=3, help="stop after so many differences")
    options.add_argument("--engine", default="reference", help="the engine to compare")
    options.add_argument("--rare", action="store_true", help="rare scenarios, in every way")
    given = options.parse_args()
    end = time.monotonic() + given.seconds
    seed, failures, skipped = given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        try:
            for found in rarely(seed) if given.rare else usually(seed, given.engine):
                failures += 1
                print(f"{found}\n", flush=True)
        except TooManyError:
            skipped += 1
        except LibraryError as error:
            print(f"seed {seed} gives a library that is refused:\n{error}\n")
            failures += 1
        seed += 1
    print(
        f"seeds {given.start} to {seed - 1}: {failures} differences,"
        f" {skipped} skipped because a branch remembers too much to try all splits",
        file=sys.stderr,
    )
    return 1 if failures else 0


def usually(seed: int, engine: str) -> Iterator[object]:
    found = difference(scenario(seed), engine)
    if found is not None:
        yield smaller(found, engine)


def rarely(seed: int) -> Iterator[object]:
    drawing = RareDrawing(seed)
    drawn = drawing.scenario()
    changed = variants(drawing)
    for found in disagreements(drawn, changed):
        yield _smaller(found, changed)


def _smaller(found: Disagreement, changed: list[str]) -> Disagreement:
    """The same way still differs, with as many events dropped as possible."""
    while True:
        for candidate in candidates(found.scenario):
            with suppress(TooManyError):
                again = [
                    each for each in disagreements(candidate, changed) if each.way == found.way
                ]
                if again:
                    found = again[0]
                    break
        else:
            return found


if __name__ == "__main__":
    sys.exit(main())
