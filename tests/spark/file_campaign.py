"""A long hunt for files that Spark, or columns, read otherwise than one process row by row.

    python -m tests.spark.file_campaign --seconds 600 --start 0
    python -m tests.spark.file_campaign --engines batch reference --seconds 60

A round draws files of one format, of which every tenth row is broken: one to three files, in or out
of the order of their times, packed or not, CSV with its own delimiters, orders of columns and line
breaks in cells, other names and units of times, clocks that are wrong, and options of the command.
Each engine has to give the same outputs, refusals, dead letters, counts and exit code as `step`.
The files of a round that differs are kept, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from ensue.cli import app
from tests.cli.commands.run.test_columns import LIBRARY, readings

from .batch.test_broken_files import IN_COLUMNS, mutated

TIMED = """
eventtype Reading { attribute string host; attribute double level; attribute short site; };
eventtype High : Reading {};
eventtype Quiet { attribute string host; };

Quiet correlation Silent (Reading a, deadline 5 min d) d by host
{ case true: push new Quiet { host = a.host }; }
"""
"""A timer that fires again, so that the clock may not jump as far as it likes."""

RULES = {"columns": IN_COLUMNS, "events": LIBRARY, "timed": TIMED}
NAMES = {"time": "at", "type": "kind", "level": "value"}
"""What other columns may be called."""
FAR = ["9999-12-31T23:59:59Z", "1971-01-01T00:00:00Z"]
INSTANTS = (("us", "UTC"), ("ms", "UTC"), ("ns", "UTC"), ("us", None), ("ns", None))
"""Units and zones of times in Parquet."""
MOST_FAILURES = 3
TOLD_BY_SOME = (
    "reading ",
    "the clock stopped",
    "are sorted",
    "read by this",
    "read by no rule",
    "no event is of a type",
    "no event had",
    "lie in 1970",
)
"""What engines tell of themselves, and hints, which are not as detailed everywhere."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Round:
    """What a round draws: files in a folder, and options of the command."""

    folder: Path
    options: tuple[str, ...]
    ending: str


class Answer(NamedTuple):
    """All that a run tells."""

    code: int
    outputs: str
    letters: list[str]
    told: list[str]


def wrong_value(draw: random.Random, name: str) -> Any:
    if name == "time":
        return draw.choice([None, "", "soon", "2024-05-06", "2024-05-06T07:08:09", *FAR])
    if name in ("level", "site"):
        return draw.choice([None, 40_000, -1, 0, 7])
    return draw.choice([None, "", " ", "x", "\u00e9", "a,b;c|d\te", '"'])


def rows_of(draw: random.Random, count: int, with_breaks: bool) -> list[Row]:
    """Flat rows, of which every tenth has a value that may be wrong."""
    rows: list[Row] = []
    for each in readings(count, draw.randrange(1 << 30)):
        row = {name: value for name, value in each.items() if name != "data"} | each["data"]
        if not with_breaks:
            row["host"] = row["host"].replace("\n", "")
        if len(rows) % 10 == 9:
            name = draw.choice([*row])
            row[name] = wrong_value(draw, name)
        rows.append(row)
    return rows


def as_csv(draw: random.Random, rows: Sequence[Row], is_mutated: bool) -> bytes:
    delimiter = draw.choice([",", ",", ";", "\t", "|"])
    names = list(rows[0])
    if draw.random() < 0.3:
        draw.shuffle(names)
    text = io.StringIO()
    written = csv.DictWriter(
        text, names, delimiter=delimiter, lineterminator=draw.choice(["\n", "\r\n"])
    )
    written.writeheader()
    written.writerows(rows)
    content = text.getvalue().encode()
    return _mutated(draw, content, 1) if is_mutated else content


def as_lines(draw: random.Random, rows: Sequence[Row], is_mutated: bool, is_plain: bool) -> bytes:
    lines = []
    for row in rows:
        given = dict(row)
        if not is_plain:
            inside = {name: given.pop(name) for name in ("host", "level", "site") if name in given}
            given["data"] = inside
        lines.append(json.dumps(given, ensure_ascii=draw.random() < 0.5))
    content = ("\n".join(lines) + draw.choice(["", "\n", "\n\n"])).encode()
    return _mutated(draw, content, 0) if is_mutated else content


def _mutated(draw: random.Random, content: bytes, first: int) -> bytes:
    """Some lines with a piece gone, doubled, or with something in it that was not there."""
    lines = content.split(b"\n")
    for number in range(first + draw.randrange(10), len(lines), 10):
        lines[number] = mutated(lines[number], draw) if lines[number] else b""
    return b"\n".join(lines)


def as_parquet(
    draw: random.Random, rows: Sequence[Row], path: Path, times: pa.DataType | None
) -> None:
    """Files of a round have times of one kind, and numbers of more or fewer bits."""
    columns: dict[str, pa.Array] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name in ("time", "at") and times is not None:
            columns[name] = pa.array([_instant(each) for each in values], times)
        elif name == "site":
            columns[name] = pa.array(values, draw.choice([pa.int32(), pa.int64()]))
        elif name in ("level", "value"):
            columns[name] = pa.array(values, draw.choice([pa.float64(), pa.float32()]))
        else:
            column = pa.array(values, pa.string())
            columns[name] = column.dictionary_encode() if draw.random() < 0.3 else column
    if times is None:
        columns["note"] = pa.array([{"a": n, "b": [str(n)]} for n in range(len(rows))])
    pq.write_table(pa.table(columns), path, row_group_size=draw.choice([7, 50, 1000]))


def _instant(text: str | None) -> datetime | None:
    try:
        # Nanoseconds reach to the year 2262.
        found = datetime.fromisoformat((text or "").replace("9999", "2199"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def packed(draw: random.Random, path: Path, content: bytes, way: str) -> None:
    if way == "gzip":
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    elif way == "zstd":
        with pa.output_stream(path.with_name(path.name + ".zst"), compression="zstd") as file:
            file.write(content)
    else:
        path.write_bytes((b"\xef\xbb\xbf" if draw.random() < 0.2 else b"") + content)


def drawn(seed: int, folder: Path) -> Round:
    draw = random.Random(seed)
    format_ = draw.choice(["csv", "jsonl", "parquet"])
    kind = draw.choice([*RULES])
    (folder / "rules.cor").write_text(RULES[kind])
    (folder / "in").mkdir()
    options: list[str] = []
    renames = NAMES if draw.random() < 0.4 else {}
    is_plain = bool(renames) or draw.random() < 0.3
    if renames:
        given = [f"{name}={column}" for name, column in renames.items()]
        options += ["--columns", ",".join(given)]
    elif format_ == "jsonl" and is_plain:
        options += ["--columns", "host=host"]
    if draw.random() < 0.3:
        options += ["--timezone", draw.choice(["UTC", "Europe/Berlin"])]
    if kind == "timed" and draw.random() < 0.5:
        options += ["--max-jump", draw.choice(["10 min", "2 h", "30 d"])]
    if draw.random() < 0.3:
        options += ["--until", "2024-05-07T00:00:00Z"]
    if draw.random() < 0.3:
        options += [
            "--correlation",
            "Silent" if kind == "timed" else draw.choice(["Rising", "Loud"]),
        ]
    with_breaks = format_ != "csv" or draw.random() < 0.3
    without_ids = draw.random() < 0.3
    is_mutated = draw.random() < 0.6
    is_shuffled = draw.random() < 0.5
    way = draw.choice(["", "", "", "gzip", "zstd"])
    times = draw.choice([None, *(pa.timestamp(*each) for each in INSTANTS)])
    for number in range(draw.choice([1, 1, 2, 3])):
        rows = rows_of(draw, draw.choice([5, 60, 400]), with_breaks)
        if kind == "timed":
            for row in draw.sample(rows, 2):
                row["time"] = draw.choice(FAR)
        if is_shuffled:
            draw.shuffle(rows)
        for row in rows if without_ids else ():
            if draw.random() < 0.5:
                row["id"] = None
        rows = [{renames.get(name, name): value for name, value in row.items()} for row in rows]
        path = folder / "in" / f"{draw.choice('zyx')}{number} +\u00fc.{format_}"
        if format_ == "parquet":
            as_parquet(draw, rows, path, times)
        elif format_ == "csv":
            packed(draw, path, as_csv(draw, rows, is_mutated), way)
        else:
            packed(draw, path, as_lines(draw, rows, is_mutated, is_plain), way)
    return Round(folder, tuple(options), draw.choice(["jsonl", "jsonl", "csv", "arrow"]))


def answer_of(drawn_round: Round, engine: str) -> Answer:
    folder = drawn_round.folder
    letters, out = folder / f"{engine}.bad", folder / f"{engine}.{drawn_round.ending}"
    given = ["run", folder / "rules.cor", "-e", folder / "in", "--engine", engine]
    given += ["--dead-letter", letters, "--out", out, "--verbose", *drawn_round.options]
    answer = CliRunner().invoke(app, [str(each) for each in given])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        return Answer(-1, "", [], [repr(answer.exception)])
    told = [
        line.replace(str(letters), "BAD").replace(str(out), "OUT")
        for line in answer.stderr.splitlines()
        if not any(each in line for each in TOLD_BY_SOME)
    ]
    if answer.exit_code == 2:
        # How far a run comes before it is refused is not the same everywhere.
        told = [line for line in told if line.startswith("ensue: ")]
        return Answer(2, "", [], told)
    kept = letters.read_bytes().decode(errors="backslashreplace") if letters.exists() else ""
    made = _shown(out) if out.exists() else ""
    return Answer(answer.exit_code, made, sorted(kept.splitlines()), sorted(told))


def _shown(out: Path) -> str:
    if out.suffix == ".csv":
        return out.read_text()
    if out.suffix == ".jsonl":
        # The members of an object have no order.
        lines = map(json.loads, out.read_text().splitlines())
        return "".join(f"{json.dumps(each, sort_keys=True)}\n" for each in lines)
    table = pa.ipc.open_file(out).read_all()
    return "\n".join([str(table.schema), *map(str, table.to_pylist()), ""])


def differences(found: Answer, expected: Answer) -> list[str]:
    return [
        f"{name}: {_first_difference(one, other)}"
        for name, one, other in zip(Answer._fields, found, expected, strict=True)
        if one != other
    ]


def _first_difference(found: Any, expected: Any) -> str:
    if isinstance(found, int):
        return f"{found} for {expected}"
    lines, others = (
        each.splitlines() if isinstance(each, str) else each for each in (found, expected)
    )
    more = [line for line in lines if line not in others][:2]
    less = [line for line in others if line not in lines][:2]
    return f"{len(lines)} lines for {len(others)}; has {more}, lacks {less}"


def hunt(start: int, seconds: float, engines: Sequence[str], say: Callable[[str], None]) -> int:
    """How many rounds differ, of those that fit into the time."""
    end = time.monotonic() + seconds
    wrong = rounds = refused = outputs = 0
    while time.monotonic() < end and wrong < MOST_FAILURES:
        seed = start + rounds
        rounds += 1
        folder = Path(mkdtemp(prefix=f"files-{seed}-"))
        given = drawn(seed, folder)
        expected = answer_of(given, "step")
        refused += len(expected.letters)
        outputs += expected.outputs.count("\n")
        for engine in engines:
            if found := differences(answer_of(given, engine), expected):
                wrong += 1
                say(f"round {seed}, {engine}, {' '.join(given.options)}, in {folder}:")
                for each in found:
                    say(f"  {each}")
    say(
        f"{rounds} rounds from {start}, {', '.join(engines)}: {outputs:,} outputs,"
        f" {refused:,} refused records, {wrong} differences"
    )
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for files that are read differently")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first round")
    options.add_argument("--engines", nargs="+", default=["reference", "batch", "spark"])
    given = options.parse_args()
    # Otherwise Spark names the first twenty refused records only.
    return 1 if hunt(given.start, given.seconds, given.engines, print) else 0


if __name__ == "__main__":
    sys.exit(main())
