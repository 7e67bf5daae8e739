"""What `with` sets has a column of its own on Spark, in jobs and in streams, for events too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import ensue
from ensue.spark import correlate
from tests.agreement.golden import cases_together, golden_trials
from tests.agreement.spark.jobs import differences

from .streaming.cutting import collected, stream_of, write_pieces

LIBRARY = """
eventtype Reading { attribute long Sensor; attribute double Value; attribute timestamp Until; };
eventtype Alarm { attribute long Sensor; attribute long ce_priority; };
Alarm correlation High (Reading a where Value > 5)
    a
{
    case true: push new Alarm { Sensor = a.Sensor, ce_priority = 1 }
        with { priority = INT(a.Value), expirytime = a.Until,
            subject = STRING(a.Sensor), test = a.Value > 8 };
}
Reading correlation Low (Reading a where Value < 2)
    a
{
    case true: push a with { priority = 0 };
}
"""


def rows(values: list[float]) -> pa.Table:
    times = [n * 1_000_000 for n in range(len(values))]
    instants = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": [str(n) for n in range(len(values))],
            "type": ["Reading"] * len(values),
            "time": pa.array(times, instants),
            "Sensor": pa.array([n % 3 for n in range(len(values))], pa.int32()),
            "Value": values,
            "Until": pa.array(
                [None if n % 4_000_000 == 0 else 60_000_000 + n for n in times], instants
            ),
            "ce_priority": pa.array([n % 2 or None for n in range(len(values))], pa.int64()),
        }
    )


VALUES = [1.0, 3.0, 9.0, 6.0, 0.5, 7.0, 8.5, 9.5, 1.5, 6.5]
WANTED = {
    "0": (0, None, None, None),
    "High:2@2000000:1": (9, "1970-01-01T00:01:02Z", "2", True),
    "High:3@3000000:1": (6, "1970-01-01T00:01:03Z", "0", False),
    "4": (0, None, None, None),
    "High:5@5000000:1": (7, "1970-01-01T00:01:05Z", "2", False),
    "High:6@6000000:1": (8, "1970-01-01T00:01:06Z", "0", True),
    "High:7@7000000:1": (9, "1970-01-01T00:01:07Z", "1", True),
    "8": (0, None, None, None),
    "High:9@9000000:1": (6, "1970-01-01T00:01:09Z", "0", False),
}
COLUMNS = ("ce_priority", "ce_expirytime", "subject", "ce_test")


def test_cases_of_extensions_pass_on_spark(spark: SparkSession) -> None:
    cases = [each for each in golden_trials() if "extensions.toml" in each.name]

    assert len(cases) > 12
    assert "\n".join(differences(spark, cases_together(cases), "events")) == ""


def test_a_job_gives_a_column_for_each_extension(spark: SparkSession) -> None:
    """The columns of extensions, typed by the library; the attribute that is in their way stands
    in the struct of its type."""
    frame = correlate(spark.createDataFrame(rows(VALUES)), LIBRARY)

    types = dict(frame.dtypes)
    assert [types[name] for name in COLUMNS] == ["bigint", "string", "string", "boolean"]
    found = {row["id"]: tuple(row[name] for name in COLUMNS) for row in frame.collect()}
    assert found == WANTED
    assert [row["Alarm"]["ce_priority"] for row in frame.collect() if row["type"] == "Alarm"]
    table = ensue.correlate(rows(VALUES), LIBRARY).to_pylist()
    assert {row["id"]: tuple(row[name] for name in COLUMNS) for row in table} == WANTED


def test_a_stream_gives_a_column_for_each_extension(spark: SparkSession, tmp_path: Path) -> None:
    whole = rows([*VALUES, 3.0])
    write_pieces(tmp_path / "events", [whole.slice(0, 4), whole.slice(4, 3), whole.slice(7)])
    stream = stream_of(spark, tmp_path / "events")

    made = correlate(stream, LIBRARY, lateness="0 s", buckets=2)

    assert [dict(made.dtypes)[name] for name in COLUMNS][:2] == ["bigint", "string"]
    got = collected(made, tmp_path / "checkpoint")
    found = {row["id"]: tuple(row[name] for name in COLUMNS) for row in got}
    assert found == {each: WANTED[each] for each in WANTED if each in found}
    assert len(found) >= len(WANTED) - 1
