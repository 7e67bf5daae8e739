"""`ensue run --engine spark` over folders and patterns: executors read the files."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import ensue
from ensue.cli import app, spark_run
from ensue.errors import UsageError
from ensue.events.times import format_time
from ensue.spark.batch.inputs import FileReading
from ensue.spark.batch.opening import open_files
from tests.spark.class_archive import quick_start
from tests.spark.streaming.sensors import LIBRARY, readings, table

# A rule that sends on what it read shows whole events, and a tie shows the order of files.
RULES = (
    LIBRARY
    + """
Reading correlation Twice (Reading a, Reading b) a ; b by Sensor { case true: push a; push b; }
"""
)
KEYS = """
eventtype Found { attribute long Sensor; };
eventtype Last { attribute long Sensor; };
Found correlation Pairs (Reading a, Reading b) a ; b by Sensor, Value
{ case true: push new Found { Sensor = a.Sensor }; }
Found correlation Nowhere (Reading a where Value > 15.0) a { case true: push new Found { }; }
Last correlation Over (Found f from Pairs, Nowhere) f by Sensor
{ case true: push new Last { Sensor = f.Sensor }; }
"""
ROWS = readings(60, Random(3))
# Two files hold events of one time, and the one that is read first has the larger name.
PARTS = {"b": ROWS[21:40], "a": ROWS[:21], "c/d e": ROWS[40:]}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    events = [
        {
            "id": row["id"],
            "source": "s",
            "type": row["type"],
            "time": format_time(row["time"]),
            "data": {"Sensor": row["Sensor"], "Value": row["Value"], "Note": {"of": row["id"]}},
        }
        for row in rows
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def write_cells(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "type", "time", "Sensor", "Value", "Note"])
        for row in rows:
            note = f'a "note",\nof {row["id"]}'
            time = format_time(row["time"])
            writer.writerow([row["id"], row["type"], time, row["Sensor"], row["Value"], note])


def write_columns(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(table(rows), path)


WRITERS = {"jsonl": write_lines, "csv": write_cells, "parquet": write_columns}


def prepared(folder: Path, format_: str) -> Path:
    (folder / "rules.cor").write_text(RULES)
    for name, rows in PARTS.items():
        path = folder / "events" / f"{name}.{format_}"
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[format_](path, rows)
    return folder / "events"


def run(folder: Path, events: object, *arguments: object, engine: str = "spark") -> Result:
    given = ["run", folder / "rules.cor", "--events", events, "--engine", engine, *arguments]
    return CliRunner().invoke(app, [str(each) for each in given])


def one_file(folder: Path, format_: str) -> Path:
    """The same events in one file, for the engines that read one."""
    path = folder / f"all.{format_}"
    WRITERS[format_](path, ROWS)
    return path


@pytest.mark.parametrize("format_", WRITERS)
def test_a_folder_gives_the_outputs_of_one_file_with_all_of_its_events(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    events = prepared(tmp_path, format_)
    here = run(tmp_path, one_file(tmp_path, format_), engine="reference")
    there = run(tmp_path, events)

    def told(answer: Result) -> list[dict[str, Any]]:
        # A row without a source has the name of its file.
        return [{**json.loads(each), "source": ""} for each in answer.stdout.splitlines()]

    assert there.exit_code == 0, there.stderr
    assert told(there) == told(here)
    assert len(told(here)) > 40
    assert there.stderr.splitlines()[-1] == here.stderr.splitlines()[-1]


@pytest.mark.parametrize("format_", WRITERS)
def test_events_far_from_all_others_are_refused_as_in_the_other_engines(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    (tmp_path / "rules.cor").write_text(
        LIBRARY
        + "Alarm correlation Tick (Reading r, every 1 s t) t { case true: push new Alarm {}; }"
    )
    events = tmp_path / f"all.{format_}"
    ahead = {**ROWS[0], "id": "far ahead", "time": 250_000_000_000_000_000}
    behind = {**ROWS[0], "id": "far behind", "time": 5}
    WRITERS[format_](events, [ROWS[0], ahead, *ROWS[1:9], behind, *ROWS[9:20]])
    letters = tmp_path / "letters.jsonl"
    here = run(tmp_path, events, engine="step")
    there = run(tmp_path, events, "--dead-letter", letters)

    assert there.exit_code == 0, there.stderr
    assert sorted(there.stdout.splitlines()) == sorted(here.stdout.splitlines())
    assert "20 events read, 2 refused" in here.stderr
    assert "20 events read, 2 refused" in there.stderr
    for problem in ("too far ahead", "too far behind"):
        assert problem in there.stderr
    assert all(each["id"] in letters.read_text() for each in (ahead, behind))


def test_a_pattern_chooses_files(spark: SparkSession, tmp_path: Path) -> None:
    events = prepared(tmp_path, "jsonl")

    assert run(tmp_path, f"{events}/[ab].jsonl").stderr.splitlines()[-1].startswith("40 events")


@pytest.mark.parametrize(
    ("format_", "bad", "problem"),
    [
        ("jsonl", '{"broken', "no JSON"),
        ("csv", "x,Reading", "the row has 2 cells, but the first line names 6 columns"),
        ("csv", "x,Reading,2024-01-01T00:00:00Z,many,1.0,n", "attribute `Sensor` of `Reading`"),
    ],
)
def test_a_record_that_is_no_event_is_named_and_kept(
    spark: SparkSession, tmp_path: Path, format_: str, bad: str, problem: str
) -> None:
    events = prepared(tmp_path, format_)
    with (events / f"a.{format_}").open("a") as file:
        file.write(f"{bad}\n")

    answer = run(tmp_path, events, "--dead-letter", tmp_path / "bad.jsonl")

    told = [line for line in answer.stderr.splitlines() if problem in line]
    assert len(told) == 1, answer.stderr
    assert f"/events/a.{format_}:" in told[0]
    assert "60 events read, 1 refused" in answer.stderr
    assert bad in (tmp_path / "bad.jsonl").read_text()


# Every tenth row is broken, each in another way.
BROKEN_CELLS = [
    "x,Reading",
    "x,Reading,2024-01-01_00:00:00Z,1,1.0,",
    "x,Reading,2024-01-01T00:00:00,1,1.0,",
    "x,Reading,,1,1.0,",
    "x,,2024-01-01T00:00:00Z,1,1.0,",
    "x,Reading,2024-01-01T00:00:00Z,many,1.0,",
    "x,Reading,2024-01-01T00:00:00Z,1,nan,",
    "x,Reading,2024-01-01T00:00:00Z,99999999999,1.0,",
    '"x"y,Reading,2024-01-01T00:00:00Z,1,1.0,',
    "x,Reading,2024-01-01T00:00:00Z,1,1.0,,,,",
    "x,Reading,2024-02-30T00:00:00Z,1,1.0,",
    "x,Reading,2024-01-01T00:00:00Z,1.5,1.0,",
]
BROKEN_LINES = [
    '{"broken',
    "[1]",
    '{"id": "x"}',
    '{"id": "x", "source": "s", "type": "Reading", "time": "2024-01-01_00:00:00Z"}',
    '{"id": "x", "source": "s", "type": "Reading", "time": "2024-01-01T00:00:00Z", "data": 7}',
    '{"id": "x", "id": "y", "source": "s", "type": "Reading", "time": "2024-01-01T00:00:00Z"}',
    '{"id": 7, "source": "s", "type": "Reading", "time": "2024-01-01T00:00:00Z"}',
]


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize("rules", [LIBRARY, RULES])
def test_the_refusals_of_a_file_are_those_of_reading_row_by_row(
    spark: SparkSession, tmp_path: Path, format_: str, rules: str
) -> None:
    """In columns where no rule sends events on, and event by event where one does."""
    (tmp_path / "rules.cor").write_text(rules)
    path = tmp_path / f"e.{format_}"
    WRITERS[format_](path, [row for row in ROWS if row["type"] == "Reading"][:50])
    lines = path.read_text().replace(",\nof", ", of").splitlines()
    broken = BROKEN_CELLS if format_ == "csv" else BROKEN_LINES
    for number, each in enumerate(broken):
        lines.insert(3 + 4 * number, each)
    lines.insert(7, "")
    # Unusual, and good.
    if format_ == "csv":
        lines.append("last,Reading,2030-01-01T01:00:00+01:00, 7 ,1e1,")
    path.write_text("\n".join(lines) + "\n")

    here = run(tmp_path, path, "--dead-letter", tmp_path / "here.jsonl", engine="reference")
    with split_every(spark, 1500):
        there = run(tmp_path, path, "--dead-letter", tmp_path / "there.jsonl")
        folder = run(tmp_path, path, "--dead-letter", tmp_path / "there")

    assert there.exit_code == 0, there.stderr
    assert there.stdout == here.stdout == folder.stdout
    assert there.stderr.replace("there.jsonl", "here.jsonl") == here.stderr
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    parts = [each.read_text() for each in sorted((tmp_path / "there").glob("part-*"))]
    assert sorted("".join(parts).splitlines()) == sorted(
        (tmp_path / "here.jsonl").read_text().splitlines()
    )
    assert len("".join(parts).splitlines()) == len(broken)


@contextmanager
def split_every(spark: SparkSession, size: int) -> Iterator[None]:
    """Spark parts files into blocks of that many bytes, each read by a task."""
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(size))
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def test_a_row_of_parquet_that_is_refused_has_the_number_that_it_has_everywhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    rows = [row | ({"Value": float("nan")} if n % 10 == 3 else {}) for n, row in enumerate(ROWS)]
    write_columns(tmp_path / "e.parquet", rows)

    here = run(
        tmp_path, tmp_path / "e.parquet", "--dead-letter", tmp_path / "a.jsonl", engine="step"
    )
    there = run(tmp_path, tmp_path / "e.parquet", "--dead-letter", tmp_path / "b.jsonl")

    assert there.stdout == here.stdout
    assert there.stderr.replace("b.jsonl", "a.jsonl") == here.stderr
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()


def test_of_a_flood_a_sample_is_named_and_all_are_counted_and_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "rules.cor").write_text(LIBRARY)
    (tmp_path / "e.jsonl").write_text("{\n" * 50_000)

    answer = run(tmp_path, tmp_path / "e.jsonl", "--dead-letter", tmp_path / "dead")

    assert "e.jsonl:1 and 999 more: no JSON: the text ends too early" in answer.stderr
    assert "more records are refused; all are in" in answer.stderr
    assert "0 events read, 50,000 refused" in answer.stderr
    parts = [each.read_text() for each in (tmp_path / "dead").glob("part-*")]
    assert sum(text.count("{\n") for text in parts) == 50_000


def test_nothing_but_counts_and_a_sample_of_what_is_refused_reaches_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark stops a job that hands more than this to its driver."""
    (tmp_path / "rules.cor").write_text(LIBRARY)
    rows = (f"{n},Reading,2023-11-14 07:00:00,{n % 7},1.0,{'note' * 10}" for n in range(30_000))
    (tmp_path / "e.csv").write_text("\n".join(["id,type,time,Sensor,Value,Note", *rows]))
    limit = "--conf spark.driver.maxResultSize=512k pyspark-shell"

    done = subprocess.run(
        [sys.executable, "-m", "ensue", "run", "rules.cor", "-e", "e.csv", "--engine", "spark",
         "--dead-letter", "dead"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ, "PYSPARK_SUBMIT_ARGS": limit, "SPARK_SUBMIT_OPTS": quick_start()
        },
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert "0 events read, 30,000 refused (kept in `dead`)" in done.stderr
    kept = b"".join(each.read_bytes() for each in (tmp_path / "dead").glob("part-*"))
    assert kept.count(b"\n") == 30_000
    assert len(kept) > 4 << 20


@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_rules_with_timers_read_lines_in_columns(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    timed = "Alarm correlation Quiet (Reading r, every 1 s t) t by Sensor"
    library = ensue.parse(LIBRARY + timed + " { case true: push new Alarm {}; }")
    (tmp_path / "rules.cor").write_text(str(library))
    events = tmp_path / f"all.{format_}"
    if format_ == "csv":
        lines = [
            f"{row['id']},{row['type']},{format_time(row['time'])},{row['Sensor']},{row['Value']},"
            for row in ROWS
        ]
        events.write_text("\n".join(["id,type,time,Sensor,Value,Note", *lines]))
    else:
        write_lines(events, ROWS)

    given = open_files(spark, library, [str(events)], format_, FileReading())
    here = run(tmp_path, events, engine="step")
    there = run(tmp_path, events)

    assert not given.is_encoded
    assert there.exit_code == 0, there.stderr
    assert there.stdout == here.stdout
    assert here.stdout.count('"trigger":"timer"') > 10


def test_strict_stops_at_a_record_that_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = prepared(tmp_path, "parquet")
    write_columns(events / "z.parquet", [ROWS[0] | {"id": "nan", "Value": float("nan")}])

    answer = run(tmp_path, events, "--strict")

    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "nan was given, a `double`" in answer.stderr


@pytest.mark.parametrize("ending", ["csv", "arrow", "pq"])
def test_the_ending_of_the_output_decides_on_its_format_as_everywhere(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    events = prepared(tmp_path, "jsonl")

    there = run(tmp_path, events, "--out", tmp_path / f"there.{ending}")
    here = run(tmp_path, events, "--out", tmp_path / f"here.{ending}", engine="batch")

    assert (there.exit_code, here.exit_code) == (0, 0), there.output
    rows = rows_of(tmp_path / f"there.{ending}")
    # What is sent on brings columns of its own, which Spark does not have.
    expected = [
        {name: row[name] for name in rows[0]} for row in rows_of(tmp_path / f"here.{ending}")
    ]
    assert rows == expected
    assert len(rows) > 40


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of outputs without their sources, which are files of the events."""
    match path.suffix:
        case ".csv":
            with path.open(newline="") as file:
                rows: list[dict[str, Any]] = list(csv.DictReader(file))
        case ".pq":
            rows = pq.read_table(path).to_pylist()
        case _:
            rows = pa.ipc.open_file(path).read_all().to_pylist()
    return [{**row, "source": ""} for row in rows]


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_outputs_may_be_a_folder_of_parquet_by_correlation_and_day(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    events = prepared(tmp_path, format_)
    lines = one_file(tmp_path, "jsonl").read_text().splitlines()
    wanted = list(ensue.load(tmp_path / "rules.cor").run(lines))

    answer = run(tmp_path, events, "--out", tmp_path / "found.parquet")

    assert answer.exit_code == 0, answer.stderr
    assert f"; {len(wanted)} outputs in" in answer.stderr
    found = pq.read_table(tmp_path / "found.parquet").to_pylist()
    assert sorted((row["correlation"], row["id"]) for row in found) == sorted(
        (str(output.extensions["correlation"]), output.id) for output in wanted
    )
    days = {str(row["ensue_date"]) for row in found}
    assert days == {"2023-11-14"}
    again = run(tmp_path, events, "--out", tmp_path / "found.parquet")
    assert again.exit_code == 2
    assert "give another folder" in again.stderr
    assert "on Spark" not in again.stderr


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_events_without_a_key_are_counted_in_a_folder_as_everywhere(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    events = prepared(tmp_path, format_)
    # `Over` reads outputs, of which those of `Nowhere` have no key, and `Pairs` has another key.
    (tmp_path / "rules.cor").write_text(RULES + KEYS)
    unkeyed = [row | {"id": f"u{n}", "Sensor": None} for n, row in enumerate(ROWS[:7])]
    WRITERS[format_](events / f"u.{format_}", unkeyed)
    lines = tmp_path / "all.jsonl"
    write_lines(lines, [*ROWS, *unkeyed])

    here = run(tmp_path, lines, engine="reference")
    there = run(tmp_path, events, "--out", tmp_path / "found.parquet")

    def told(answer: Result) -> str:
        return answer.stderr.splitlines()[-1].partition(" in `")[0]

    assert told(there) == told(here)
    assert "7 without a key for `Twice`" in told(here)
    assert "without a key for `Over`" in told(here)
    assert "without a key for `Pairs`" in told(here)
    assert "ensue_counted" not in {each.name for each in (tmp_path / "found.parquet").iterdir()}


def test_only_places_are_made_on_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = prepared(tmp_path, "jsonl")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the driver has read events")

    monkeypatch.setattr("ensue.cli.commands.run.read_events", refuse)
    monkeypatch.setattr("ensue.events.records.text_record.LineReader.read", refuse)

    # Of a rule without outputs the first events are looked at, for hints.
    assert run(tmp_path, events, "--correlation", "Twice").exit_code == 0


def test_a_folder_without_files_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "events").mkdir()

    assert "events` holds no file of events: give" in run(tmp_path, tmp_path / "events").stderr


def test_files_of_several_formats_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = prepared(tmp_path, "jsonl")
    prepared(tmp_path, "csv")

    answer = run(tmp_path, events)

    assert "has files of several formats (`csv`, `jsonl`): choose some" in answer.stderr


def test_what_only_spark_can_reach_is_left_to_it(tmp_path: Path) -> None:
    write_lines(tmp_path / "one.jsonl", ROWS)
    write_columns(tmp_path / "one.parquet", ROWS)
    (tmp_path / "without-ids.csv").write_text("type,time\n")

    assert spark_run.is_for_executors(["s3a://bucket/events"])
    assert spark_run.is_for_executors([str(tmp_path / "*.parquet")])
    with pytest.raises(UsageError, match="no file matches the pattern"):
        spark_run.is_for_executors([str(tmp_path / "may-*.parquet")])
    assert spark_run.is_for_executors([str(tmp_path / "one.jsonl")])
    assert spark_run.is_for_executors([str(tmp_path / "one.parquet")])
    assert spark_run.is_for_executors([str(tmp_path / "without-ids.csv")])
    assert not spark_run.is_for_executors(["-"])
