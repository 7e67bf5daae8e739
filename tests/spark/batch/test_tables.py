"""`--table`: a table or a view of Spark's catalog is read by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ensue.cli import app
from tests.cli.commands.run.test_columns import LIBRARY, readings


@pytest.fixture
def given(spark: SparkSession, tmp_path: Path) -> tuple[Path, Path]:
    library, file = tmp_path / "rules.cor", tmp_path / "e.parquet"
    library.write_text(LIBRARY)
    rows = [
        (each["id"], each["source"], each["type"], each["time"], *each["data"].values())
        for each in readings(400)
    ]
    ddl = "id string, source string, type string, time string, host string, level double"
    table = spark.createDataFrame(rows, f"{ddl}, site int")
    table.write.parquet(str(file))
    spark.read.parquet(str(file)).createOrReplaceTempView("sensor_readings")
    return library, file


def run(*arguments: object) -> tuple[int, list[str], str]:
    answer = CliRunner().invoke(app, ["run", *map(str, arguments)])
    return answer.exit_code, answer.stdout.splitlines(), answer.stderr


def test_a_table_gives_what_its_files_give(given: tuple[Path, Path]) -> None:
    library, file = given

    code, of_table, told = run(library, "--engine", "spark", "--table", "sensor_readings")

    assert code == 0, told
    assert "reading the table `sensor_readings` on Spark" in told
    assert of_table == run(library, "-e", file)[1]
    assert of_table


def test_rows_that_are_no_events_are_refused(spark: SparkSession, given: tuple[Path, Path]) -> None:
    rows = spark.table("sensor_readings").drop("id", "source")
    view = "readings_without_ids"
    wrong = spark.createDataFrame([("Reading", "noon", "a", 1.5, 1)], rows.schema)
    rows.limit(100).unionByName(wrong).createOrReplaceTempView(view)

    code, found, told = run(given[0], "--engine", "spark", "--table", view)

    assert code == 0, told
    assert found
    assert "`time`: `noon` is no RFC 3339 time" in told
    assert "100 events read, 1 refused" in told


def test_a_table_that_is_not_there_is_told(given: tuple[Path, Path]) -> None:
    code, _, told = run(given[0], "--engine", "spark", "--table", "nowhere.readings")

    assert code == 2
    assert "the table `nowhere.readings` cannot be read" in told


def test_a_table_needs_spark(given: tuple[Path, Path]) -> None:
    code, _, told = run(given[0], "--table", "sensor_readings")

    assert code == 2
    assert "give `--engine spark`" in told
