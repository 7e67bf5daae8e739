"""Columns in which there is nothing, and which so have no type, in streams and bounded inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import ensue
from ensue.spark import correlate
from ensue.spark.batch.nanoseconds import BY_VECTORS
from ensue.spark.streaming.config import SourceConfig
from ensue.spark.streaming.job import correlate_stream
from ensue.spark.streaming.sources import open_source

from .cutting import collected, stream_of, write_pieces
from .sensors import LIBRARY, heartbeat, readings, table

RULES = LIBRARY.replace(
    "attribute double Value; }", "attribute double Value; attribute string Note; }"
)
ROWS = [*readings(30, Random(5)), heartbeat(2_000_000_000_000_000)]


def without_values(type_: pa.DataType) -> pa.Table:
    """Readings with a declared and an unknown column of nothing."""
    rows = table(ROWS)
    for name in ("Note", "other"):
        rows = rows.append_column(name, pa.nulls(len(rows), type_))
    return rows


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = [row for row in rows if row.get("ensue_kind", "output") == "output"]
    return sorted((row["correlation"], row["id"], row["causes"], row["Sensor"]) for row in found)


@pytest.fixture
def expected() -> list[tuple[Any, ...]]:
    made = ensue.correlate(without_values(pa.string()), RULES).to_pylist()
    assert made
    return shown(made)


def test_arrow(expected: list[Any]) -> None:
    assert shown(ensue.correlate(without_values(pa.null()), RULES).to_pylist()) == expected


def test_a_stream_of_parquet(spark: SparkSession, tmp_path: Path, expected: list[Any]) -> None:
    write_pieces(tmp_path / "events", [without_values(pa.null())])

    with pytest.warns(UserWarning, match="has a value in `Note`, `other`, nor says"):
        events = open_source(spark, SourceConfig(format="parquet", path=str(tmp_path / "events")))

    assert shown(collected(correlate_stream(events, RULES), tmp_path / "checkpoint")) == expected


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which the setting is afterwards as it was."""
    yield spark
    spark.conf.unset(BY_VECTORS)


@pytest.mark.parametrize(
    "schema",
    [None, "id string, type string, time timestamp, Sensor int, Value double, Note string"],
)
def test_a_stream_of_parquet_of_which_one_file_has_values(
    session: SparkSession, tmp_path: Path, expected: list[Any], schema: str | None
) -> None:
    rows = without_values(pa.null())
    later = without_values(pa.string()).slice(20)
    write_pieces(tmp_path / "events", [rows.slice(0, 20), later])
    source = SourceConfig(format="parquet", path=str(tmp_path / "events"), schema=schema)

    made = correlate_stream(open_source(session, source), RULES)

    assert shown(collected(made, tmp_path / "checkpoint")) == expected


def void(events: DataFrame) -> DataFrame:
    return events.withColumns({name: sf.lit(None) for name in ("Note", "other")})


def test_void_in_dataframes(spark: SparkSession, tmp_path: Path, expected: list[Any]) -> None:
    write_pieces(tmp_path / "events", [table(ROWS)])
    read = void(spark.read.parquet(str(tmp_path / "events")))
    streamed = void(stream_of(spark, tmp_path / "events"))

    bounded = [row.asDict() for row in correlate(read, RULES).collect()]

    assert shown(bounded) == expected
    made = correlate_stream(streamed, RULES)
    assert shown(collected(made, tmp_path / "checkpoint")) == expected


def test_void_inside_a_struct(spark: SparkSession, tmp_path: Path, expected: list[Any]) -> None:
    rules = RULES.replace("attribute string Note", "attribute string more.Note")
    write_pieces(tmp_path / "events", [table(ROWS)])
    nested = sf.struct(sf.lit(None).alias("Note"), sf.lit(1).alias("n")).alias("more")
    read = spark.read.parquet(str(tmp_path / "events")).select("*", nested)
    streamed = stream_of(spark, tmp_path / "events").select("*", nested)

    bounded = [row.asDict() for row in correlate(read, rules).collect()]

    assert shown(bounded) == expected
    made = correlate_stream(streamed, rules)
    assert shown(collected(made, tmp_path / "checkpoint")) == expected


def test_a_void_time_refuses_every_row(spark: SparkSession, tmp_path: Path) -> None:
    write_pieces(tmp_path / "events", [table(ROWS[:3])])
    events = stream_of(spark, tmp_path / "events").withColumn("time", sf.lit(None))

    rows = collected(correlate_stream(events, LIBRARY), tmp_path / "checkpoint")

    assert [row["ensue_kind"] for row in rows] == ["rejected"] * 3


def test_parquet_of_a_run(tmp_path: Path, expected: list[Any]) -> None:
    pq.write_table(without_values(pa.null()), tmp_path / "events.parquet")
    read = pq.read_table(tmp_path / "events.parquet")

    assert shown(ensue.correlate(read, RULES).to_pylist()) == expected
