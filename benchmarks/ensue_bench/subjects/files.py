"""Whole processes of `ensue run` over files, beside a bare read of the same file.

The bare read is pyarrow's, of the whole file into columns, in a process of its own. Both processes
take turns, and are measured by the wall clock, with the start of Python and its modules; memory is
the most that a process has held. The rule is `a ; b ; c` by user, reset by `d`, with outputs
written as JSON lines.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ensue_bench.effort import Effort
from ensue_bench.report import Figure, cost, rate
from ensue_bench.timing import ratios
from ensue_bench.workload import EVENT_GAP, UserSteps, leak

START_SECONDS = 1.5
PARQUET_TIMES, TEXT_TIMES = 3.0, 2.5
ROW_BY_ROW_TIMES = 10.0
PIECES = 5
"""How many pieces of events differ; a longer file has them again, at later times."""
FLAT_TIMES = 1.25
"""How much more memory ten times the events may take, and be called the same."""

_READ = {
    "parquet": "import pyarrow.parquet as r; r.read_table",
    "csv": "import pyarrow.csv as r; r.read_csv",
    "jsonl": "import pyarrow.json as r; r.read_json",
}
AIMS = {"parquet": PARQUET_TIMES, "csv": TEXT_TIMES, "jsonl": TEXT_TIMES}


def measure(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rules = place / "rules.cor"
        rules.write_text(leak())
        events, keys = effort.size(5_000_000, 2_000), effort.size(10_000, 20)
        empty = place / "empty.jsonl"
        empty.write_text("")
        # The first run compiles what later ones load.
        for format_ in _READ:
            run(rules, write_file(format_, effort.size(100_000, 500), keys, place), place)
        starts = [run(rules, empty, place).seconds for _ in range(effort.times(5))]
        yield cost("start, no events", "s", starts, START_SECONDS)
        held = {}
        for format_ in _READ:
            file = write_file(format_, events, keys, place)
            beside = _beside_a_bare_read(effort, events, format_, file, rules, starts)
            held[format_] = yield from beside
            file.unlink()
        yield from _beside_rows(effort, rules, place)
        # Last what takes longest, so that an interrupt leaves the rest.
        yield from _memory(10 * events, keys, held, rules, place)


@dataclass(frozen=True)
class Ran:
    """How long a process took, and the most that it held, in megabytes."""

    seconds: float
    megabytes: float


def write_file(
    format_: str, events: int, keys: int, place: Path, piece_events: int = 200_000
) -> Path:
    """Events in the order of their times, made and written a piece at a time."""
    file = place / f"events-{events}.{format_}"
    pieces = [UserSteps(piece_events, keys, seed).table() for seed in range(1, PIECES + 1)]
    with file.open("wb") as out, ExitStack() as stack:
        writer: Any = None
        for number, first in enumerate(range(0, events, piece_events)):
            piece = pieces[number % PIECES].slice(0, min(piece_events, events - first))
            table = _from(first, piece)
            if format_ != "parquet":
                table = _with_time_texts(table)
            if format_ == "jsonl":
                out.write(_lines(table))
                continue
            if writer is None:
                make = pq.ParquetWriter if format_ == "parquet" else pyarrow.csv.CSVWriter
                writer = stack.enter_context(make(out, table.schema))
            writer.write_table(table)
    return file


def _from(first: int, piece: pa.Table) -> pa.Table:
    """The events of a piece after so many others: with later times, and ids of their own."""
    later = pa.scalar(first * EVENT_GAP, pa.duration("us"))
    place = piece.schema.get_field_index("time")
    moved = piece.set_column(place, "time", pc.add(piece.column("time"), later))
    ids = pa.array(np.arange(first, first + len(piece))).cast(pa.string())
    return moved.set_column(0, "id", ids)


def _with_time_texts(table: pa.Table) -> pa.Table:
    times = table.column("time").cast(pa.timestamp("us"))
    place = table.schema.get_field_index("time")
    return table.set_column(place, "time", pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ"))


def _lines(table: pa.Table) -> bytes:
    """The events as JSON lines; no text of theirs needs an escape."""
    parts: list[Any] = ['{"specversion": "1.0"']
    for name in ("source", "id", "type", "time"):
        parts += [f', "{name}": "', table.column(name), '"']
    sizes = table.column("size").cast(pa.string())
    parts += [', "data": {"user": "', table.column("user"), '", "size": ', sizes, "}}\n"]
    given = [part if isinstance(part, str) else part.combine_chunks() for part in parts]
    lines = pc.binary_join_element_wise(*given, "")
    (whole,) = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "").to_pylist()
    return bytes(whole.encode())


def run(rules: Path, events: Path, place: Path, engine: str = "batch") -> Ran:
    """A process that runs a file, and writes what it finds."""
    out = place / "found.jsonl"
    return _process(
        [sys.executable, "-m", "ensue", "run", str(rules), "-e", str(events),
         "--engine", engine, "--out", str(out)]
    )  # fmt: skip


def bare_read(format_: str, events: Path) -> Ran:
    """A process that reads a file into columns, and nothing else."""
    return _process([sys.executable, "-c", f"{_READ[format_]}({str(events)!r})"])


_ASK = """
import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - begin
print(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _process(command: Sequence[str]) -> Ran:
    # Asked by a small process, for a process counts what the one that started it held.
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, *command], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise RuntimeError(f"{command}: {asked.stderr}")
    seconds, kilobytes = asked.stdout.split()
    return Ran(float(seconds), int(kilobytes) / 1024)


def _beside_a_bare_read(
    effort: Effort, events: int, format_: str, file: Path, rules: Path, starts: Sequence[float]
) -> Generator[Figure, None, float]:
    """Figures of one format; returned is the most that a run has held, in megabytes."""
    runs: list[float] = []
    reads: list[float] = []
    held: list[float] = []
    for _ in range(effort.times(5)):
        reads.append(bare_read(format_, file).seconds)
        ran = run(rules, file, file.parent)
        runs.append(ran.seconds)
        held.append(ran.megabytes)
    size = f"{file.stat().st_size / 1e6:,.0f} MB"
    yield rate(f"{format_}, whole process", [events / each for each in runs], note=size)
    aim = AIMS[format_]
    if format_ == "parquet":
        beyond = [max(each - START_SECONDS, 0.0) for each in runs]
        name = f"{format_}: run less {START_SECONDS} s of start, to a bare read"
        yield cost(name, "times", ratios(beyond, reads), aim)
    else:
        yield cost(f"{format_}: run to a bare read", "times", ratios(runs, reads), aim)
    start = float(np.median(starts))
    yield cost(
        f"{format_}: run without its own start, to a bare read", "times",
        ratios([max(each - start, 0.0) for each in runs], reads),
    )  # fmt: skip
    return max(held)


def _beside_rows(effort: Effort, rules: Path, place: Path) -> Iterator[Figure]:
    """JSON lines in columns and row by row; the starts of both count."""
    events = effort.size(1_000_000, 2_000)
    file = write_file("jsonl", events, effort.size(10_000, 20), place)
    rows, columns = [], []
    for _ in range(effort.times(2)):
        rows.append(run(rules, file, place, "step").seconds)
        columns.append(run(rules, file, place).seconds)
    times = ratios(rows, columns)
    yield Figure("1 M JSON lines: row by row to columns", "times", tuple(times), "higher",
                 ROW_BY_ROW_TIMES)  # fmt: skip


def _memory(
    events: int, keys: int, held: Mapping[str, float], rules: Path, place: Path
) -> Iterator[Figure]:
    """The most that a process holds, of these events to a tenth of them; measured once."""
    for format_, few in held.items():
        file = write_file(format_, events, keys, place)
        many = run(rules, file, place).megabytes
        file.unlink()
        yield cost(
            f"{format_}: memory of {events:,} events to that of {events // 10:,}", "times",
            [many / few], FLAT_TIMES, f"{few:,.0f} and {many:,.0f} MB",
        )  # fmt: skip
