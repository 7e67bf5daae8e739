"""Parquet with times in nanoseconds, as pandas writes it, in streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ensue.spark.batch.nanoseconds import SETTING
from ensue.spark.streaming.config import SourceConfig
from ensue.spark.streaming.job import correlate_stream
from ensue.spark.streaming.sources import open_source

from .cutting import collected, write_pieces
from .sensors import LIBRARY, expected, found, heartbeat, readings, table


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which the setting is afterwards as it was."""
    yield spark
    spark.conf.unset(SETTING)


def in_nanoseconds(rows: pa.Table, type_: pa.DataType) -> pa.Table:
    place = rows.schema.get_field_index("time")
    return rows.set_column(place, "time", rows.column("time").cast(type_))


def test_times_in_nanoseconds_are_read_in_microseconds_in_the_first_stream_and_in_later_ones(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = [*readings(30, Random(5)), heartbeat(2_000_000_000_000_000)]
    wanted = expected(rows)
    kinds = {"timestamp": pa.timestamp("ns", "UTC"), "timestamp_ntz": pa.timestamp("ns")}
    assert wanted

    for name, type_ in kinds.items():
        folder = tmp_path / name
        write_pieces(folder, [in_nanoseconds(table(rows), type_)])
        events = open_source(session, SourceConfig(format="parquet", path=str(folder)))
        made = correlate_stream(events, LIBRARY)

        assert dict(events.dtypes)["time"] == name
        assert found(collected(made, tmp_path / f"checkpoint-{name}")) == wanted


def test_numbers_of_which_the_user_says_the_unit_stay_numbers(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = readings(5, Random(6))
    write_pieces(tmp_path, [in_nanoseconds(table(rows), pa.timestamp("ns", "UTC"))])
    source = SourceConfig(format="parquet", path=str(tmp_path))

    assert dict(open_source(session, source, ["time"]).dtypes)["time"] == "bigint"
