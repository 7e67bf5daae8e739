"""What is followed is read in columns where much has come: the same as event by event."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ensue as package
from ensue.cli.event_run import EventRun
from ensue.cli.progress import ProgressDisplay
from ensue.events.mapping import Mapping
from tests.cli.commands.run.test_columns import LIBRARY, broken, readings
from tests.cli.followed import Runs, pieces_of

MINUTE = 60_000_000


def lines_of_json(count: int) -> list[bytes]:
    lines = [each + b"\n" for each in broken(readings(count))]
    # Out of order by some minutes.
    return [each for _, each in sorted(enumerate(lines), key=lambda at: at[0] + 37 * (at[0] % 7))]


def lines_of_csv(count: int) -> list[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "source", "type", "time", "host", "level", "site", "note"])
    for number, each in enumerate(readings(count)):
        data = each["data"]
        row = [each["id"], each["source"], each["type"], each["time"], data["host"]]
        note = "two\nlines" if number % 5 == 0 else ""
        level = "high" if number % 11 == 0 else data["level"]
        writer.writerow([*row, level, data["site"], note] if number % 13 else row)
    return text.getvalue().encode().splitlines(keepends=True)


def idle(running: EventRun) -> None:
    running.feed(iter([None]), in_order=True, bars=ProgressDisplay())


@pytest.mark.parametrize("between", [lambda _: None, idle, EventRun.snapshot])
@pytest.mark.parametrize("lateness", [0, 10 * MINUTE])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_blocks_give_what_single_records_give(
    tmp_path: Path, form: str, lateness: int, between: Callable[[EventRun], object]
) -> None:
    # Pieces from 64 KiB on are not too small for columns.
    lines = lines_of_json(2000) if form == "jsonl" else lines_of_csv(6000)
    pieces = {f"log.{form}": pieces_of(lines, 4)}
    runs = Runs(tmp_path, package.parse(LIBRARY), lateness)

    singly = runs.after(pieces, None)
    in_columns = runs.after(pieces, 1, between)

    assert in_columns == singly
    assert singly[5]


@pytest.mark.parametrize("between", [lambda _: None, idle, EventRun.snapshot])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_years_go_on_from_block_to_block(
    tmp_path: Path, form: str, between: Callable[[EventRun], object]
) -> None:
    begin = datetime(2015, 6, 1)
    moments = [begin + timedelta(hours=3 * number) for number in range(4000)]
    rows = [
        # Every hundredth is a little late, and every thirtieth has no number.
        (
            f"{when - timedelta(hours=7 * (at % 100 == 0)):%b %d %H:%M:%S}",
            "x" * (at % 30 == 0) or at,
        )
        for at, when in enumerate(moments)
    ]
    if form == "csv":
        lines = [b"When,count\n", *(f"{when},{count}\n".encode() for when, count in rows)]
    else:
        objects = ({"When": when, "count": count} for when, count in rows)
        lines = [json.dumps(each).encode() + b"\n" for each in objects]
    mapping = Mapping.parse("time=When:%b %d %H:%M:%S", "Line", None, 2015)
    rule = (
        "eventtype Line { attribute long count; };"
        " Line correlation All (Line a) a { case true: push a; }"
    )
    runs = Runs(tmp_path, package.parse(rule), 12 * 60 * MINUTE, mapping)
    pieces = {f"log.{form}": pieces_of(lines, 4)}

    singly = runs.after(pieces, None)
    in_columns = runs.after(pieces, 1, between)

    assert in_columns == singly
    assert singly[6] == int(moments[-1].replace(tzinfo=UTC).timestamp()) * 1_000_000


def test_files_are_merged_in_columns_as_they_are_singly(tmp_path: Path) -> None:
    lines = [each + b"\n" for each in broken(readings(3000))]
    pieces = {f"{part}.jsonl": [b"".join(lines[part::3])] for part in range(3)}
    runs = Runs(tmp_path, package.parse(LIBRARY))

    singly = runs.after(pieces, None)

    assert runs.after(pieces, 1) == singly
    assert singly[5]


def test_a_pipe_with_a_lateness_gives_what_a_file_gives(tmp_path: Path) -> None:
    """Takes some seconds: there must be more in the pipe than is read event by event."""
    library, file = tmp_path / "rules.cor", tmp_path / "e.jsonl"
    library.write_text(LIBRARY)
    file.write_bytes(b"".join(lines_of_json(30_000)))
    assert file.stat().st_size > 1 << 22
    call = [sys.executable, "-m", "ensue", "run", str(library), "--lateness", "1min", "-e"]

    of_file = subprocess.run([*call, str(file)], capture_output=True, check=False)
    with file.open("rb") as content:
        cat = subprocess.Popen(["cat"], stdin=content, stdout=subprocess.PIPE)
    of_pipe = subprocess.run([*call, "-"], stdin=cat.stdout, capture_output=True, check=False)
    cat.wait()

    assert of_pipe.stdout == of_file.stdout
    assert of_pipe.stdout
    assert of_pipe.stderr.splitlines()[-1] == of_file.stderr.splitlines()[-1]


def test_outputs_of_a_pipe_come_while_it_is_open(tmp_path: Path) -> None:
    """Takes some seconds: there must be more in the pipe than is read event by event."""
    library = tmp_path / "rules.cor"
    library.write_text(LIBRARY)
    lines = [each + b"\n" for each in broken(readings(30_000))]
    call = [sys.executable, "-m", "ensue", "run", str(library), "--lateness", "1min", "-e", "-"]
    running = subprocess.Popen(
        call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"".join(lines))
    running.stdin.flush()

    # Nothing would come before the end if a block had to be full.
    assert running.stdout.readline()

    running.stdin.close()
    rest = running.stdout.read()
    assert rest
    assert running.wait() == 0
