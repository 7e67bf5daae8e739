"""Records that are refused in files on Spark: the same ones as in one process, and told alike."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ensue.cli import app

RULES = """
eventtype A { attribute string k; attribute long n; };
eventtype Out {};
Out correlation Quiet (A a, deadline 1 min d) d by k { case true: push new Out {}; }
"""
MAPPING = ("--columns", "time=at,type=kind,n=in.count")
FAR = "9999-12-31T23:59:59Z"


def table(number: int) -> pa.Table:
    """Ten rows: one without a type, one without a time, two too far off, three without ids."""
    times = [f"2024-05-06T07:{number}{second}:00Z" for second in range(10)]
    times[3] = times[8] = FAR
    times[5] = "never"
    kinds: list[str | None] = ["A"] * 10
    kinds[6] = None
    counts: list[int | None] = list(range(10))
    counts[7] = None
    return pa.table(
        {
            "id": [None if row in (2, 3, 6) else f"{number}-{row}" for row in range(10)],
            "at": times,
            "kind": kinds,
            "k": ["x", "y"] * 5,
            "in.count": counts,
            "other": pa.array([datetime(2024, 1, 1, row) for row in range(10)]),
        }
    )


def write(ending: str, path: Path, rows: pa.Table) -> None:
    if ending == "csv":
        pacsv.write_csv(rows, path)
    elif ending == "jsonl":
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows.to_pylist()))
    else:
        pq.write_table(rows, path)


def refusals(tmp_path: Path, engine: str, *options: str) -> tuple[Any, ...]:
    """What is told of refused records, and kept of them, and what was found in the others."""
    letters, out = tmp_path / f"{engine}.letters.jsonl", tmp_path / f"{engine}.jsonl"
    arguments = ["run", tmp_path / "r.cor", "-e", tmp_path / "in", "--engine", engine]
    arguments += ["--dead-letter", letters, "--out", out, *options]
    answer = CliRunner().invoke(app, [str(each) for each in arguments])
    told = sorted(line for line in answer.stderr.splitlines() if ": its time" in line)
    told += sorted(line for line in answer.stderr.splitlines() if f"{tmp_path / 'in'}/" in line)
    return answer.exit_code, told, sorted(letters.read_text().splitlines()), out.read_text()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_clock_that_is_told_to_go_too_far_is_a_wrong_call(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "r.cor").write_text(RULES)
    (tmp_path / "in").mkdir()
    write(ending, tmp_path / "in" / f"0.{ending}", table(0))
    given = ["run", tmp_path / "r.cor", "-e", tmp_path / "in", *MAPPING, "--max-jump", "2 h"]
    given += ["--until", "2024-05-06T12:00:00Z"]

    here, there = (
        CliRunner().invoke(app, [str(each) for each in (*given, "--engine", engine)])
        for engine in ("step", "spark")
    )

    assert (here.exit_code, there.exit_code) == (2, 2)
    assert here.stderr.splitlines()[-1] == there.stderr.splitlines()[-1]
    assert "the clock is told to go on from" in here.stderr


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_events_without_a_key_are_counted_where_the_clock_goes(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    """Several jobs of Spark, and the same in two engines of one process."""
    (tmp_path / "r.cor").write_text(RULES)
    (tmp_path / "in").mkdir()
    times = [f"2024-05-06T07:{minute:02}:00Z" for minute in range(30)]
    keys = [None if minute in (2, 4, 20) else "x" for minute in range(29)]
    rows = {"id": [*map(str, range(30))], "at": [*times[:-1], FAR], "kind": ["A"] * 30}
    made = pa.table({**rows, "k": [*keys, None], "in.count": range(30)})
    write(ending, tmp_path / "in" / f"0.{ending}", made)
    given = ["run", tmp_path / "r.cor", "-e", tmp_path / "in", *MAPPING, "--max-jump", "5 min"]

    for engine in ("step", "batch", "spark"):
        answer = CliRunner().invoke(app, [str(each) for each in (*given, "--engine", engine)])
        assert "29 events read, 1 refused, 3 without a key for `Quiet`" in answer.stderr


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_refused_records_are_told_and_kept_as_in_one_process(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    """Several jobs of Spark, and the same in two engines of one process."""
    (tmp_path / "r.cor").write_text(RULES)
    (tmp_path / "in").mkdir()
    for number in range(2):
        write(ending, tmp_path / "in" / f"{number}.{ending}", table(number))

    here, batch, there = (
        refusals(tmp_path, engine, *MAPPING) for engine in ("step", "batch", "spark")
    )

    assert here[0] == 0
    assert len(here[2]) == 8
    assert batch == here
    assert there == here
