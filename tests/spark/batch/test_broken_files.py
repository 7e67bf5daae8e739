"""Files in which every tenth row is broken in another way: refused on Spark as row by row."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from ensue.cli import app
from tests.cli.commands.run.test_columns import LIBRARY, as_table, broken, readings

from .test_files import split_every

# No rule sends events on, so that lines are read in columns.
IN_COLUMNS = LIBRARY.replace("case true: push a;", "case true: push new Reading { host = a.host };")
TOKENS = [b'"', b",", b"{", b"}", b"\\", b"\xff", b"null", b"1e5", b" ", b"\r", b"\x00", b":", b"T"]


def mutated(line: bytes, draw: random.Random) -> bytes:
    """A line with a piece of it gone, doubled, or with something in it that was not there."""
    at = draw.randrange(len(line))
    end = min(len(line), at + draw.choice([1, 1, 2, 5, 40]))
    ways: list[Callable[[], bytes]] = [
        lambda: line[:at] + line[end:],
        lambda: line[:end] + line[at:],
        lambda: line[:at] + draw.choice(TOKENS) + line[at:],
        lambda: line[:at] + draw.choice(TOKENS) + line[at + 1 :],
        lambda: line[:at],
    ]
    return draw.choice(ways)()


def json_lines(seed: int) -> bytes:
    draw = random.Random(seed)
    lines = broken(readings(200, seed))
    for number in range(5, len(lines), 10):
        lines[number] = mutated(lines[number], draw)
    return b"\n".join(lines)


def csv_lines(seed: int) -> bytes:
    draw = random.Random(seed)
    table = as_table([each for each in readings(200, seed) if "\n" not in each["data"]["host"]])
    times = pa.array([f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in table.column("time").to_pylist()])
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table.set_column(3, "time", times), sink)
    lines = sink.getvalue().to_pybytes().splitlines()
    for number in range(4, len(lines), 10):
        lines[number] = mutated(lines[number], draw)
    return b"\n".join(lines)


WRITERS = {"jsonl": json_lines, "csv": csv_lines}


def run(folder: Path, events: Path, engine: str) -> tuple[Result, list[str], list[str]]:
    """What a run answers, what it says of the rows that it refused, and what it kept of them."""
    kept = folder / f"{engine}.bad"
    given = ["run", folder / "rules.cor", "-e", events, "--engine", engine, "--dead-letter", kept]
    given += ["--until", "2024-05-07T00:00:00Z", "--verbose"]
    answer = CliRunner().invoke(app, [str(each) for each in given])
    lines = answer.stderr.replace(str(kept), "BAD").splitlines()
    said = [each for each in lines if each.startswith(str(events)) or "events read" in each]
    letters = kept.read_bytes().decode(errors="backslashreplace")
    return answer, said, letters.splitlines()


@pytest.mark.parametrize(("rules", "seed"), [(IN_COLUMNS, 1), (LIBRARY, 2)])
@pytest.mark.parametrize("format_", WRITERS)
def test_every_refusal_has_the_reason_and_the_place_of_reading_row_by_row(
    spark: SparkSession,
    tmp_path: Path,
    format_: str,
    rules: str,
    seed: int,
) -> None:
    """Several jobs of Spark over a file in four parts."""
    (tmp_path / "rules.cor").write_text(rules)
    file = tmp_path / f"{seed}.{format_}"
    file.write_bytes(WRITERS[format_](seed))

    here, said_here, kept_here = run(tmp_path, file, "step")
    with split_every(spark, file.stat().st_size // 4):
        there, said_there, kept_there = run(tmp_path, file, "spark")

    assert said_there == said_here
    assert kept_there == kept_here
    assert len(kept_here) > 10
    assert there.stdout == here.stdout
    assert there.stdout


def test_rows_of_parquet_with_every_tenth_broken(spark: SparkSession, tmp_path: Path) -> None:
    """Several jobs of Spark: rows, refused rows, and what is told of them."""
    (tmp_path / "rules.cor").write_text(IN_COLUMNS)
    ways: list[dict[str, Any]] = [
        {"id": ""}, {"id": None}, {"type": None}, {"type": ""}, {"time": None}, {"source": ""},
        {"level": float("nan")}, {"level": float("inf")}, {"level": None}, {"site": 40_000},
    ]  # fmt: skip
    rows = as_table(readings(300)).to_pylist()
    for number, row in enumerate(rows):
        if number % 10 == 3:
            row |= ways[number // 10 % len(ways)]
    schema = as_table(readings(1)).schema.set(3, pa.field("time", pa.timestamp("us", "UTC")))
    schema = schema.set(6, pa.field("site", pa.int32()))
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "e.parquet", row_group_size=37)

    here, said_here, kept_here = run(tmp_path, tmp_path / "e.parquet", "step")
    there, said_there, kept_there = run(tmp_path, tmp_path / "e.parquet", "spark")

    assert said_there == said_here
    assert [json.loads(each) for each in kept_there] == [json.loads(each) for each in kept_here]
    assert len(kept_here) > 10
    assert there.stdout == here.stdout
