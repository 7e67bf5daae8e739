"""Parameters of the rules of a stream: from its file, and from `--set`, which goes before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.errors import UsageError
from ensue.spark import correlate
from tests.spark.streaming.cutting import collected, stream_of, write_pieces
from tests.spark.streaming.sensors import START, heartbeat, table

from .processes import log_of, prepare, run_to_the_end

LIBRARY = """
parameter double least = 15.0;
parameter long times = 3;
parameter string names = 'b%';
parameter duration window = 1 s;
eventtype Reading { attribute long Sensor; attribute double Value; };
eventtype Many { attribute double Least; };
Many correlation High (Reading r where Value > least AND id LIKE names)
    r{times}
    within window
    by Sensor
{
    case true: push new Many { Least = least } with { priority = times };
}
"""
VALUES = {"least": 5.0, "times": 2, "window": "10 s"}
ROWS = [
    {
        "id": f"{name}{n}",
        "type": "Reading",
        "time": START + n * 1_000_000,
        "Sensor": 1,
        "Value": 7.0,
    }
    for n, name in enumerate("ababab")
]
PIECES = [table(ROWS[:3]), table([*ROWS[3:], heartbeat(START + 60_000_000)])]
WANTED = [("b3", 5.0, 2)]


def found(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["causes"], row["Least"], row["ce_priority"]) for row in rows]


def test_values_that_are_given_in_python_are_put_into_jobs_and_streams(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What is left of a predicate is a constant, so that SQL reads it."""
    library = ensue.parse(LIBRARY, parameters=VALUES)
    write_pieces(tmp_path / "events", PIECES)

    batch = correlate(spark.read.parquet(str(tmp_path / "events")), library)
    assert found([row.asDict() for row in batch.collect()]) == WANTED
    made = correlate(stream_of(spark, tmp_path / "events"), library, lateness="2 s", buckets=1)
    assert found(collected(made, tmp_path / "checkpoint")) == WANTED


def test_a_stream_takes_values_from_its_file_and_from_the_command(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A process of its own, which starts Spark: some ten seconds."""
    prepare(tmp_path, PIECES, library=LIBRARY)
    config = tmp_path / "stream.toml"
    given = '\n[parameters]\nleast = 5.0\ntimes = 30\nwindow = "10 s"\n'
    config.write_text(config.read_text() + given)

    assert run_to_the_end(tmp_path, "--set", "times=2") == 0, log_of(tmp_path)

    rows = spark.read.parquet(str(tmp_path / "sink")).collect()
    assert found([row.asDict() for row in rows]) == WANTED


@pytest.mark.parametrize("values", [{"leasst": 1.0}, {"times": "many"}, {"window": 3}])
def test_a_value_that_does_not_fit_is_told_before_spark_is_asked(values: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"parameter|does not fit"):
        ensue.parse(LIBRARY, parameters=values)
