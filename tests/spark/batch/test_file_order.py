"""Several paths on Spark: read in the order given, as in the other engines, and each file once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from ensue.cli import app

RULES = """
eventtype A { attribute long n; };
eventtype B { attribute long n; };
eventtype Out { attribute long first; attribute long then; };
Out correlation Next (A a, B b) a ; b { case true: push new Out { first = a.n, then = b.n }; }
"""
HEADER = ("id", "type", "time", "n")
TIME = "2024-01-01T00:00:00Z"


def write(path: Path, type_: str, numbers: range, delimiter: str = ",") -> None:
    """Events of one moment, so that only their order decides what comes after what."""
    rows = [(f"{type_}{n}", type_, TIME, str(n)) for n in numbers]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        events = [{"id": i, "source": "s", "type": t, "time": at, "data": {"n": int(n)}}
                  for i, t, at, n in rows]  # fmt: skip
        path.write_text("".join(json.dumps(each) + "\n" for each in events))
        return
    path.with_suffix(".csv").write_text(
        "".join(delimiter.join(each) + "\n" for each in (HEADER, *rows))
    )
    if path.suffix == ".parquet":
        pq.write_table(pyarrow.csv.read_csv(path.with_suffix(".csv")), path)
        path.with_suffix(".csv").unlink()


def run(folder: Path, engine: str, *paths: object, more: tuple[str, ...] = ()) -> Result:
    (folder / "rules.cor").write_text(RULES)
    given: list[Any] = ["run", folder / "rules.cor", "--engine", engine, *more]
    for path in paths:
        given += ["-e", path]
    return CliRunner().invoke(app, [str(each) for each in given])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_events_of_equal_times_come_in_the_order_of_the_paths_as_given(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    write(tmp_path / f"z.{ending}", "A", range(3))
    write(tmp_path / f"a.{ending}", "B", range(3))
    write(tmp_path / "m x" / f"ü.{ending}", "A", range(3, 5))
    paths = [tmp_path / f"z.{ending}", tmp_path / "m x", tmp_path / f"[a]*.{ending}"]

    here, there = (run(tmp_path, engine, *paths) for engine in ("step", "spark"))

    assert there.exit_code == 0, there.stderr
    assert there.stdout == here.stdout
    assert json.loads(here.stdout)["data"] == {"first": 4, "then": 0}


def test_a_file_that_is_named_twice_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "A", range(2))

    answers = [
        run(tmp_path, engine, tmp_path / "a.csv", tmp_path / "." / "a.csv", tmp_path)
        for engine in ("step", "spark")
    ]

    assert [each.exit_code for each in answers] == [2, 2]
    assert answers[0].stderr == answers[1].stderr
    assert "is read twice" in answers[0].stderr


@pytest.mark.parametrize("many_lines", [False, True])
def test_files_of_csv_have_their_own_delimiters_and_columns(
    spark: SparkSession, tmp_path: Path, many_lines: bool
) -> None:
    folder = tmp_path / "in"
    write(folder / "a.csv", "A", range(2))
    write(folder / "b.csv", "B", range(2), ";")
    text = "n\tkind\ttype\tid\ttime\n"
    cell = '"two\nlines"' if many_lines else "one line"
    text += "".join(f"{n}\t{cell}\tA\tc{n}\t2024-01-02T00:00:00Z\n" for n in (7, 8))
    with gzip.open(folder / "c.csv.gz", "wt") as packed:
        packed.write(text)
    (folder / "d.csv").write_text("id,type,time\nd1,B,2024-01-03T00:00:00Z\n")

    here, there = (run(tmp_path, engine, folder) for engine in ("step", "spark"))

    assert (here.exit_code, there.exit_code) == (0, 0), there.stderr
    assert there.stdout == here.stdout
    assert [json.loads(line)["data"] for line in here.stdout.splitlines()] == [
        {"first": 1, "then": 0}
    ]
    for told in (here.stderr, there.stderr):
        assert f"{folder}/d.csv:2: " in told


def test_a_refused_record_is_named_by_its_file_as_it_was_given(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "ü x" / "z 1.csv", "A", range(2))
    (tmp_path / "ü x" / "y.csv").write_text("id,type,time,n\nq,A,never,1\n")
    # The session was started in another working directory.
    monkeypatch.chdir(tmp_path)

    for folder in (str(tmp_path / "ü x"), "ü x", "../" + tmp_path.name + "/ü x"):
        here, there = (run(tmp_path, engine, folder) for engine in ("step", "spark"))

        assert f"{folder}/y.csv:2: " in here.stderr
        assert f"{folder}/y.csv:2: " in there.stderr
