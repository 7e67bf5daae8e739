"""Parquet as pandas, pyarrow, Spark and DuckDB write it gives the same in every engine.

The files of DuckDB (2.0.0) are in the folder `parquet`: plain, in row groups of odd sizes with
enumerated text, small integers and decimals, with nanoseconds and 128-bit integers, and with UUIDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from ensue.cli import app
from ensue.spark import correlate
from tests.spark.streaming.cutting import collected, stream_of, write_pieces

WRITTEN = Path(__file__).parent / "parquet"
RULES = """
eventtype Login {
    attribute string user; attribute long code; attribute double amount; attribute boolean ok;
    attribute timestamp at; attribute string host.name; attribute sequence<long> tags;
    attribute string nothing;
};
eventtype Alarm {
    attribute string user; attribute long code; attribute double amount; attribute timestamp at;
    attribute string host;
};
Alarm correlation Twice (Login a where code > 3, Login b where code > 2 AND host.name = 'h1')
    a ; b by user
{
    case true: push new Alarm {
        user = b.user, code = b.code, amount = b.amount, at = b.at, host = b.host.name
    };
}
"""
SENT = """
Login correlation Sent (Login a where host.name = 'h1', Login b) a ; b by user, host.name
{
    case true: push a;
}
"""
COUNT = 40
START = datetime(2024, 5, 6, 9, 0, 0)
TYPES: Mapping[str, pa.DataType] = {
    "id": pa.string(),
    "type": pa.string(),
    "time": pa.timestamp("us", "UTC"),
    "user": pa.string(),
    "code": pa.int32(),
    "amount": pa.float64(),
    "ok": pa.bool_(),
    "at": pa.timestamp("us", "UTC"),
    "host": pa.struct([("name", pa.string()), ("ip", pa.struct([("v4", pa.string())]))]),
    "tags": pa.list_(pa.int32()),
    "nothing": pa.string(),
}


def columns() -> dict[str, list[Any]]:
    numbers = range(COUNT)
    return {
        "id": [f"e{n}" for n in numbers],
        "type": ["Login"] * COUNT,
        "time": [START + timedelta(seconds=n, microseconds=n) for n in numbers],
        "user": [f"u{n % 3}" for n in numbers],
        "code": [n % 9 if n % 11 else None for n in numbers],
        "amount": [n / 4 for n in numbers],
        "ok": [n % 2 == 0 for n in numbers],
        "at": [START + timedelta(days=n) for n in numbers],
        "host": [{"name": f"h{n % 2}", "ip": {"v4": f"10.0.0.{n % 4}"}} for n in numbers],
        "tags": [[n, n + 1] if n % 5 else None for n in numbers],
        "nothing": [None] * COUNT,
    }


def table(**types: pa.DataType) -> pa.Table:
    """The columns, some of them in other types."""
    kinds = {**TYPES, **types}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns().items()})


def write_files(folder: Path) -> None:
    texts = dict.fromkeys(("id", "type", "user"), pa.string_view())
    few = pa.dictionary(pa.int8(), pa.string())
    made = {
        "views": table(**texts),
        "dictionaries": table(type=few, user=few, tags=pa.large_list(pa.int64())),
        "nanoseconds": table(time=pa.timestamp("ns", "UTC"), at=pa.timestamp("ns")),
        "nothing": table(nothing=pa.null(), code=pa.uint64()),
        "decimals": table().set_column(
            5, "amount", pa.array([Decimal(n) / 4 for n in range(COUNT)], pa.decimal128(12, 2))
        ),
    }
    for name, rows in made.items():
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=17)
    # Written last, and read after the nanoseconds: what Spark was told for them still holds.
    pq.write_table(table(), folder / "old.parquet", use_deprecated_int96_timestamps=True)
    frame = pd.DataFrame(columns())
    frame["time"] = frame["time"].dt.tz_localize("UTC").astype("datetime64[ns, UTC]")
    frame["user"] = frame["user"].astype("category")
    frame.set_index("time").to_parquet(folder / "pandas.parquet")


def run(folder: Path, file: Path, engine: str) -> Result:
    given = ["run", folder / "rules.cor", "-e", file, "--engine", engine]
    return CliRunner().invoke(app, [str(each) for each in given])


@pytest.mark.parametrize("engine", ["batch", "auto"])
def test_one_process_reads_them_in_columns_as_singly(tmp_path: Path, engine: str) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    write_files(tmp_path)
    for file in [*tmp_path.glob("*.parquet"), *WRITTEN.glob("*.parquet")]:
        wanted, found = run(tmp_path, file, "reference"), run(tmp_path, file, engine)

        assert found.stdout == wanted.stdout, file.name
        assert f"{COUNT} events read; 6 outputs" in found.stderr, file.name


def test_spark_reads_what_one_process_reads(spark: SparkSession, tmp_path: Path) -> None:
    """A job for each of ten files, which other programs have written."""
    (tmp_path / "rules.cor").write_text(RULES)
    write_files(tmp_path)
    names = ("nanoseconds", "old", "views", "dictionaries", "nothing", "decimals", "pandas")
    files = [tmp_path / f"{name}.parquet" for name in names]
    spark.read.parquet(str(tmp_path / "old.parquet")).write.parquet(str(tmp_path / "of-spark"))
    # Spark reads no UUIDs, and says so.
    files += [each for each in sorted(WRITTEN.glob("*.parquet")) if "uuid" not in each.name]
    files += list((tmp_path / "of-spark").glob("*.parquet"))
    for file in files:
        wanted, found = run(tmp_path, file, "step"), run(tmp_path, file, "spark")

        assert found.stdout == wanted.stdout, f"{file.name}: {found.stderr}"
        assert f"{COUNT} events read; 6 outputs" in found.stderr, file.name


def test_spark_sends_on_what_is_inside_structs(spark: SparkSession, tmp_path: Path) -> None:
    types = RULES.partition("Alarm correlation")[0]
    (tmp_path / "rules.cor").write_text(types + SENT)
    file = WRITTEN / "duckdb-row-groups.parquet"

    wanted, found = run(tmp_path, file, "step"), run(tmp_path, file, "spark")

    assert found.stdout == wanted.stdout
    assert len(found.stdout.splitlines()) == 9


def test_numbers_of_more_bits_in_some_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "in + here").mkdir()
    wide, narrow = table(code=pa.int64()), table(code=pa.int16(), amount=pa.float32())
    pq.write_table(narrow.slice(0, 20), tmp_path / "in + here" / "a.parquet")
    pq.write_table(wide.slice(20), tmp_path / "in + here" / "b.parquet")

    wanted, found = (run(tmp_path, tmp_path / "in + here", each) for each in ("step", "spark"))

    assert found.stdout == wanted.stdout, found.stderr
    assert len(found.stdout.splitlines()) == 6


def test_times_of_spark_beside_others(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "in").mkdir()
    rows = table()
    old = tmp_path / "in" / "a.parquet"
    pq.write_table(rows.slice(0, 20), old, use_deprecated_int96_timestamps=True)
    pq.write_table(rows.slice(20), tmp_path / "in" / "b.parquet")

    wanted, found = (run(tmp_path, tmp_path / "in", each) for each in ("step", "spark"))

    assert found.stdout == wanted.stdout, found.stderr
    assert len(found.stdout.splitlines()) == 6


def test_columns_of_different_kinds_are_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "in").mkdir()
    rows = table()
    place = rows.schema.get_field_index("time")
    local = rows.set_column(place, "time", rows.column("time").cast(pa.timestamp("us")))
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    pq.write_table(local, tmp_path / "in" / "b.parquet")

    answer = run(tmp_path, tmp_path / "in", "spark")

    assert answer.exit_code == 2
    assert "the column `time` is `timestamp[us" in answer.stderr
    assert "in `b.parquet`: Spark reads Parquet files with columns of the same" in answer.stderr


def test_uuids_that_spark_does_not_read_are_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)

    answer = run(tmp_path, WRITTEN / "duckdb-uuids.parquet", "spark")

    assert answer.exit_code == 2
    assert "UUID" in answer.stderr


def test_a_stream_finds_attributes_inside_structs(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    write_pieces(tmp_path / "events", [rows.slice(0, 20), rows.slice(20)])
    made = correlate(stream_of(spark, tmp_path / "events"), RULES)

    assert len(collected(made, tmp_path / "checkpoint")) == 6
