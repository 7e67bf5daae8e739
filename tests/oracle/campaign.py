"""A long hunt for scenarios on which an engine and the oracle differ.

    python -m tests.oracle.campaign --seconds 600 --start 0
    python -m tests.oracle.campaign --seconds 600 --start 0 --rare
    python -m tests.oracle.campaign --seconds 600 --start 0 --engine step --together
    python -m tests.oracle.campaign --seconds 600 --start 0 --engine spark

Runs one seed after the other and prints the first differences, each made as small as it gets by
dropping events. With `--rare` the scenarios are those that the usual generator seldom draws, and
each is run in every way of `ways`. With `--together` the step engine puts rules together however
few they are, and each rule is there several times. Spark has rounds of its own, with scenarios of
every kind (`tests.spark.campaign`). The exit code is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random

import ensue
from ensue.engine.step.many import grouping
from ensue.errors import LibraryError

from .agreement import candidates, difference, smaller
from .filters import TooManyError
from .generator import Scenario, scenario
from .rare import RareDrawing
from .ways import Disagreement, disagreements, variants


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences from the oracle")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--failures", type=int, default=3, help="stop after so many differences")
    options.add_argument("--engine", default="reference", help="the engine to compare")
    options.add_argument("--rare", action="store_true", help="rare scenarios, in every way")
    options.add_argument("--together", action="store_true", help="many rules, stepped together")
    given = options.parse_args()
    if given.engine == "spark":
        from tests.spark.campaign import hunt

        return hunt(given.start, given.seconds)
    if given.together:
        vars(grouping).update(FEWEST_IN_CELLS=1)
    end = time.monotonic() + given.seconds
    seed, failures, skipped = given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        try:
            drawn = several_times(scenario(seed)) if given.together else scenario(seed)
            for found in rarely(seed) if given.rare else usually(drawn, given.engine):
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


def several_times(drawn: Scenario) -> Scenario:
    """The scenario with some more rules of the same shapes, some of them in other windows."""
    draw = Random(drawn.seed)
    rules = re.findall(r"^\w+ (?:correlation|ecl) .*?^\}", drawn.library, re.MULTILINE | re.DOTALL)
    more = []
    for number in range(draw.randrange(4)):
        for text in rules:
            again = re.sub(r"^(\w+ \w+) (\w+)", rf"\1 \2x{number}", text)
            within = draw.choice(["500 ms", "1 s", "2 s"])
            more.append(re.sub(r"within [\d.]+ m?s", f"within {within}", again))
    several = replace(drawn, library="\n".join([drawn.library, *more]))
    try:
        ensue.parse(several.library)
    except LibraryError:
        # What reads its own output is no circle, but two that read each other's are.
        return drawn
    return several


def usually(drawn: Scenario, engine: str) -> Iterator[object]:
    found = difference(drawn, engine)
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
