"""Files that Spark cuts into many parts: outputs, counts and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import Result

from ensue.errors import UsageError
from ensue.events.times import format_time
from ensue.library import parse
from ensue.spark.batch import files as file_runs
from ensue.spark.batch.inputs import FileReading
from tests.spark.batch.test_files import run, split_every

START = 1_700_000_000_000_000
TYPES = """
eventtype Step { attribute string Who; attribute long Room; attribute double Value; };
eventtype In : Step { }; eventtype Out : Step { };
eventtype Seen { attribute string Who; attribute long Room; attribute double Value; };
"""
# Two keys, of which one is a text, and none; a predicate; two rules that share a key.
RULES = f"""{TYPES}
Seen correlation Through (In a, Out b where Value > 0.2) a ; b by Who
{{ case true: push new Seen {{ Who = b.Who, Room = a.Room, Value = b.Value }}; }}
Seen correlation Twice (In a, In b) a ; b by Who {{ case true: push new Seen {{ Who = a.Who }}; }}
Seen correlation Rooms (Step a, Step b) a ; b by Room, Who
{{ case true: push new Seen {{ Room = a.Room }}; }}
Seen correlation High (Step a where Value >= 0.9) a {{ case true: push new Seen {{ }}; }}
"""
TIMED = f"""{TYPES}
Seen correlation Quiet (Step a, every 7 s t) t by Room {{ case true: push new Seen {{ }}; }}
Seen correlation Soon (In a, Out b) a ; b within 2 s by Who
{{ case true: push new Seen {{ Who = b.Who }}; }}
"""


def steps(count: int) -> list[dict[str, Any]]:
    """Steps with ties, of which some lack a key and some are of a type that nobody declares."""
    return [
        {
            "id": f"s{n}",
            "type": ("In", "Out", "Step", "Other")[n * 7 % 11 % 4],
            "time": START + n // 3 * 500_000,
            "Who": None if n % 13 == 5 else f"p{n * 5 % 6}",
            "Room": n * 3 % 7,
            "Value": n * 37 % 100 / 100,
        }
        for n in range(count)
    ]


def write(path: Path, rows: list[dict[str, Any]], with_ids: bool = True) -> None:
    names = [name for name in rows[0] if with_ids or name != "id"]
    if path.suffix == ".parquet":
        table = pa.Table.from_pylist([{n: row[n] for n in names} for row in rows])
        at = table.schema.get_field_index("time")
        times = table.column("time").cast(pa.timestamp("us", "UTC"))
        pq.write_table(table.set_column(at, "time", times), path, row_group_size=17)
        return
    told = [{**row, "time": format_time(row["time"])} for row in rows]
    if path.suffix == ".csv":
        cells = [[row[n] for n in names] for row in told]
        lines = [",".join("" if c is None else f'"{c}"' for c in each) for each in cells]
        lines.insert(9, "  ")
        path.write_text("\n".join([",".join(names), *lines]))
        return
    data = ("Who", "Room", "Value")
    events = [
        {
            **{name: row[name] for name in ("id", "type", "time")},
            "source": "s",
            "data": {name: row[name] for name in data},
        }
        for row in told
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in events))


def same(here: Result, there: Result) -> None:
    assert there.exit_code == 0, there.stderr
    assert there.stdout.splitlines() == here.stdout.splitlines()
    assert there.stderr.splitlines()[-1] == here.stderr.splitlines()[-1]


@pytest.mark.parametrize("rules", [RULES, TIMED])
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_files_in_parts_give_the_outputs_and_counts_of_the_reference(
    spark: SparkSession, tmp_path: Path, format_: str, rules: str
) -> None:
    (tmp_path / "rules.cor").write_text(rules)
    path = tmp_path / f"e.{format_}"
    write(path, steps(120))

    here = run(tmp_path, path, engine="reference")
    with split_every(spark, 3000):
        there = run(tmp_path, path)

    same(here, there)
    assert len(here.stdout.splitlines()) > 20
    assert ("without a key" in here.stderr) == (rules == RULES or "Who" in rules)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_rows_without_ids_have_their_numbers_over_all_files(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    folder = tmp_path / "events"
    folder.mkdir()
    rows = steps(90)
    for name, part in (("a", rows[:40]), ("b", rows[40:41]), ("c", rows[41:])):
        write(folder / f"{name}.{format_}", part if part else rows[:1], with_ids=False)

    here = run(tmp_path, folder, engine="reference")
    with split_every(spark, 3000):
        there = run(tmp_path, folder)

    same(here, there)


def test_outputs_go_to_tables_and_folders_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    write(tmp_path / "e.csv", steps(120))
    with split_every(spark, 3000):
        here = run(tmp_path, tmp_path / "e.csv", "--out", tmp_path / "h.arrow", engine="step")
        there = run(tmp_path, tmp_path / "e.csv", "--out", tmp_path / "t.arrow")
        folder = run(tmp_path, tmp_path / "e.csv", "--out", tmp_path / "t.parquet")

    def rows(path: Path) -> list[dict[str, Any]]:
        with pa.ipc.open_file(path) as file:
            found: list[dict[str, Any]] = file.read_all().to_pylist()
            return found

    assert rows(tmp_path / "t.arrow") == rows(tmp_path / "h.arrow")
    last = here.stderr.splitlines()[-1]
    assert there.stderr.splitlines()[-1] == last.replace("h.arrow", "t.arrow")
    assert folder.stderr.splitlines()[-1] == last.replace("h.arrow", "t.parquet")
    written = spark.read.parquet(str(tmp_path / "t.parquet"))
    assert {row["id"] for row in written.collect()} == {
        row["id"] for row in rows(tmp_path / "h.arrow")
    }


def test_a_row_of_parquet_that_is_refused_has_spark_read_all_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    rows = steps(60)
    rows[33]["Value"] = float("nan")
    write(tmp_path / "e.parquet", rows)

    here = run(tmp_path, tmp_path / "e.parquet", engine="reference")
    there = run(tmp_path, tmp_path / "e.parquet")

    same(here, there)
    assert "1 refused" in there.stderr


def test_a_cell_with_a_line_break_at_the_end_of_a_part_has_files_read_as_a_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    write(tmp_path / "e.csv", steps(60))
    lines = (tmp_path / "e.csv").read_text().splitlines()
    first, *_, last = (at for at, line in enumerate(lines) if '"p' in line and 20 <= at < 40)
    for at in (first, last):
        lines[at] = lines[at].replace('"p', '"p\n')
    (tmp_path / "e.csv").write_text("\n".join(lines))
    cut = len("\n".join(lines[:first])) + lines[first].index("\n") + 2

    here = run(tmp_path, tmp_path / "e.csv", engine="reference")
    with split_every(spark, cut):
        there = run(tmp_path, tmp_path / "e.csv")

    same(here, there)


def test_a_clock_that_is_told_to_go_too_far_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "e.csv", steps(30))
    run_ = file_runs.FileRun.of(
        spark,
        parse(TIMED),
        [str(tmp_path / "e.csv")],
        "csv",
        until=START + 10**15,
        reading=FileReading(),
        jump="1 h",
    )

    with pytest.raises(UsageError, match="the clock is told to go on"):
        run_.outputs("lines")


def test_folders_are_written_where_the_command_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java keeps the directory in which the session was started, as in a notebook that moves."""
    (tmp_path / "rules.cor").write_text(RULES)
    rows = steps(60)
    rows[33]["Value"] = float("nan")
    write(tmp_path / "e.parquet", rows)
    monkeypatch.chdir(tmp_path)

    made = run(tmp_path, Path("e.parquet"), "--out", "found.parquet", "--dead-letter", "refused")

    assert "1 refused" in made.stderr
    assert [*(tmp_path / "found.parquet").rglob("*.parquet")]
    assert [*(tmp_path / "refused").glob("part-*")]
