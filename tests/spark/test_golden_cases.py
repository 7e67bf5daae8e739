"""Golden cases give on Spark what they give everywhere; all of them by `tests.spark.campaign`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ensue.casefile import find_case_files, read_cases

from .golden import differing

ROOT = Path(__file__).parents[2]
CASES = [
    case
    for file in find_case_files(ROOT / "cases")
    for case in read_cases(file)
    if not case.expected.errors and case.expected.outputs
]
SHARE = CASES[:: max(1, len(CASES) // 30)][:30]


@pytest.mark.parametrize("first", range(0, len(SHARE), 15))
def test_golden_cases_pass_on_spark(spark: SparkSession, first: int) -> None:
    assert "\n".join(differing(spark, SHARE[first : first + 15])) == ""
