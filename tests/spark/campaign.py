"""A long hunt for trials and golden cases on which Spark and the definitions differ.

    python -m tests.oracle.campaign --engine spark --seconds 600 --start 0
    python -m tests.oracle.values.campaign --engine spark --start 0 --count 2000
    python -m tests.spark.campaign --seconds 600 --start 0 --kinds related together --ways streamed
    python -m tests.spark.campaign --cases

Trials of all kinds run in every way: in jobs, in simulated streams, and in streams of Spark that
are stopped on the way. A round has a trial by itself, some trials together and many together, each
of these as one library over one stream. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from ensue.casefile import Case, find_case_files, read_cases

from .agreement import WAYS, differences
from .golden import differing
from .streaming.agreement import simulated, streamed
from .trials import DRAWN, Trial, together, trial

ROOT = Path(__file__).parents[2]
CASES_AT_ONCE = 10
TOGETHER = {"usual": (1, 3, 16), "rare": (1, 2, 8), "related": (1, 5, 40), "together": (1, 3)}
"""How many trials of a kind are together in each of the libraries of a round."""
STREAMS = ("simulated", "streamed")
MOST_FAILURES = 3


def all_cases() -> list[Case]:
    """Every golden case that has a library to run."""
    files = [*find_case_files(ROOT / "cases"), *sorted((ROOT / "examples").glob("*/cases.toml"))]
    return [case for file in files for case in read_cases(file) if not case.expected.errors]


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences on Spark")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first round")
    options.add_argument("--kinds", nargs="+", choices=[*DRAWN], default=[*DRAWN])
    ways = (*WAYS, *STREAMS)
    options.add_argument("--ways", nargs="+", choices=ways, default=ways, help="how to run them")
    options.add_argument("--cases", action="store_true", help="every golden case instead")
    given = options.parse_args()
    if not given.cases:
        return hunt(given.start, given.seconds, given.kinds, given.ways)
    spark = _session()
    wrong: list[str] = []
    cases = all_cases()
    for first in range(0, len(cases), CASES_AT_ONCE):
        wrong += differing(spark, cases[first : first + CASES_AT_ONCE])
    print(f"{len(cases)} cases: {len(wrong)} differ", file=sys.stderr)
    print("\n\n".join(wrong))
    return 1 if wrong else 0


def hunt(
    start: int,
    seconds: float = math.inf,
    kinds: Sequence[str] = (*DRAWN,),
    ways: Sequence[str] = (*WAYS, *STREAMS),
    count: float = math.inf,
) -> int:
    """One round after the other, until a time is over or so many trials were made; the exit code.

    Rounds are counted from `start`.
    """
    spark = _session()
    end = time.monotonic() + seconds
    number, made, failures = start, 0, 0
    while time.monotonic() < end and failures < MOST_FAILURES and made < count:
        for kind in kinds:
            made += sum(TOGETHER[kind])
            for found in _round(spark, kind, number, ways):
                failures += 1
                print(f"{found}\n", flush=True)
        number += 1
        print(f"rounds {start} to {number - 1}: {made} trials, {failures} differ", file=sys.stderr)
    return 1 if failures else 0


def _round(spark: SparkSession, kind: str, number: int, ways: Sequence[str]) -> list[str]:
    trials = list(_drawn(kind, number))
    wrong: list[str | None] = []
    for way in ways:
        if way in WAYS:
            wrong += differences(spark, trials, way)
        elif way == "simulated":
            wrong += [simulated(spark, each, number, number % 3 == 0) for each in trials]
        else:
            with TemporaryDirectory(prefix="ensue-streamed-") as folder:
                wrong.append(streamed(spark, trials[-1], number, Path(folder)))
    return [each for each in wrong if each is not None]


def _drawn(kind: str, number: int) -> Iterator[Trial]:
    first = number * sum(TOGETHER[kind])
    for size in TOGETHER[kind]:
        yield trial(kind, first) if size == 1 else together(kind, range(first, first + size))
        first += size


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


if __name__ == "__main__":
    sys.exit(main())
