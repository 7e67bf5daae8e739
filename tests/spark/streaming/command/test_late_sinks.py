"""`ensue stream` as a process: late events go to a sink of their own, named or not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.spark.streaming.cutting import cut
from tests.spark.streaming.sensors import expected, found, heartbeat, readings, table

from .processes import log_of, prepare, run_to_the_end


@pytest.mark.parametrize("named", [True, False])
def test_late_events_go_to_a_sink_of_their_own_and_progress_is_told(
    spark: SparkSession, tmp_path: Path, named: bool
) -> None:
    """A process of its own starts Spark."""
    rows = readings(20, Random(2))
    late = rows[0] | {"id": "late"}
    last = [late, heartbeat(rows[-1]["time"] + 30_000_000)]
    pieces = [*cut(rows, Random(3), most=2), last]
    prepare(tmp_path, [table(piece) for piece in pieces], late_sink=named)

    assert run_to_the_end(tmp_path) == 0, log_of(tmp_path)

    got = [row.asDict() for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
    put_aside = spark.read.parquet(str(tmp_path / ("late" if named else "sink-late"))).collect()
    lines = [line for line in log_of(tmp_path).splitlines() if line.startswith("batch ")]
    assert found(got) == expected(rows)
    assert [row["id"] for row in put_aside] == ["late"]
    assert len(lines) == len(pieces)
    assert ", 1 late, " in lines[-1]
