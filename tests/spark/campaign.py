"""A long hunt for scenarios and golden cases on which Spark and the definitions differ.

    python -m tests.spark.campaign --seconds 600 --start 0
    python -m tests.spark.campaign --cases

Runs ten at a time in one job, in every way that Spark can run them. The exit code is 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from ensue.casefile import Case, find_case_files, read_cases
from tests.oracle.generator import scenario

from .agreement import WAYS, differences
from .golden import differing

ROOT = Path(__file__).parents[2]
AT_ONCE = 10


def all_cases() -> list[Case]:
    """Every golden case that has a library to run."""
    files = [*find_case_files(ROOT / "cases"), *sorted((ROOT / "examples").glob("*/cases.toml"))]
    return [case for file in files for case in read_cases(file) if not case.expected.errors]


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for differences on Spark")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--cases", action="store_true", help="every golden case instead")
    given = options.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    wrong: list[str] = []
    if given.cases:
        cases = all_cases()
        for first in range(0, len(cases), AT_ONCE):
            wrong += differing(spark, cases[first : first + AT_ONCE])
        print(f"{len(cases)} cases: {len(wrong)} differ", file=sys.stderr)
    else:
        seed, end = given.start, time.monotonic() + given.seconds
        while time.monotonic() < end and len(wrong) < 3:
            scenarios = [scenario(each) for each in range(seed, seed + AT_ONCE)]
            for way in WAYS:
                wrong += differences(spark, scenarios, way)
            seed += AT_ONCE
        print(f"seeds {given.start} to {seed - 1}: {len(wrong)} differ", file=sys.stderr)
    print("\n\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
