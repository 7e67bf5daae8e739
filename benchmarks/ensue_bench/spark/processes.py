"""`ensue run --engine spark` over files beside Flink, and beside Spark that only reads them.

Whole processes of both take turns, from the first line of Python to the last output written, and
run once over all events and once over a few, so that the time without the starts of both is known:
that of all events less that of the few. Flink is in its batch mode, its fastest for bounded files,
and only counts its matches; ours are written as JSON lines, in order. In a session that runs
already, reading files as the command does is set against Spark's own reader with a shuffle and the
hand-over to Python.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ensue.errors import UsageError
from ensue.library import parse
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, cost, rate
from ensue_bench.spark.flink import Flink
from ensue_bench.spark.jobs import (
    CSV_SCHEMA,
    Jobs,
    hand_over,
    one_rule,
    wall_clock,
    write_csv,
    write_events,
)
from ensue_bench.timing import rates, ratios

FORMATS = {"csv": "CSV", "parquet": "Parquet"}
TIMES_WHOLE_PROCESS = {"csv": 3.0, "parquet": None}
TIMES_WITHOUT_STARTS = {"csv": 8.0, "parquet": 12.0}
TIMES_HAND_OVER = 1.5
FEW = 1000


@dataclass(frozen=True)
class Files:
    """The same events in folders of every format: all of them, and a few."""

    all: Mapping[str, str]
    few: Mapping[str, str]
    count: int

    @classmethod
    def of(cls, table: pa.Table, folder: Path) -> Files:
        write = {"csv": write_csv, "parquet": write_events}

        def written(part: pa.Table) -> Mapping[str, str]:
            return {name: write[name](folder / f"{name}-{len(part)}", part) for name in FORMATS}

        return cls(written(table), written(table.slice(0, FEW)), len(table))


def beside_reading(effort: Effort, spark: Any, files: Files) -> Iterator[Figure]:
    """Files as the command reads them, in a session that runs already."""
    for format_, shown in FORMATS.items():
        frame = (
            spark.read.parquet(files.all[format_])
            if format_ == "parquet"
            else spark.read.schema(CSV_SCHEMA).csv(files.all[format_], header=True)
        )
        works: Jobs = {
            "rule": partial(correlated_files, spark, files.all[format_], format_),
            "hand-over": partial(hand_over, frame),
        }
        found = wall_clock(works, effort.times(3))
        yield rate(f"files: {shown}, one rule", rates(files.count, found["rule"]))
        yield rate(f"files: {shown}, hand-over", rates(files.count, found["hand-over"]))
        yield cost(
            f"files: {shown}, one rule to hand-over",
            "times",
            ratios(found["rule"], found["hand-over"]),
            TIMES_HAND_OVER,
        )


def correlated_files(spark: Any, folder: str, format_: str) -> int:
    """What the command does: outputs as JSON lines in order; how many bytes they are."""
    from ensue.spark.batch.files import FileRun

    outputs = FileRun.of(spark, parse(one_rule()), [folder], format_).outputs("lines")
    try:
        return sum(len(block) for block in outputs.lines())
    finally:
        outputs.close()


def beside_flink(effort: Effort, flink: Flink, files: Files, folder: Path) -> Iterator[Figure]:
    """Whole processes in turns."""
    rules = folder / "rules.cor"
    rules.write_text(one_rule(), "utf-8")
    for format_, shown in FORMATS.items():
        ours: dict[str, list[float]] = {"all": [], "few": []}
        theirs: dict[str, list[float]] = {"all": [], "few": []}
        for number in range(effort.times(2)):
            for size, folders in (("all", files.all), ("few", files.few)):
                out = folder / f"found-{format_}-{size}-{number}.jsonl"
                ours[size].append(_run(rules, folders[format_], out))
                seconds, matches = flink.whole_process(folders[format_], format_)
                theirs[size].append(seconds)
                with out.open("rb") as found:
                    lines = sum(1 for _ in found)
                if lines != matches:
                    raise RuntimeError(f"Flink found {matches} matches, and `ensue run` {lines}")
        yield cost(f"process: {shown}, `ensue run --engine spark`", "s", ours["all"])
        yield cost(f"process: {shown}, Flink in batch mode", "s", theirs["all"])
        note = f"starts: {min(ours['few']):.1f} s and {min(theirs['few']):.1f} s"
        yield Figure(
            f"process: {shown}, ahead of Flink",
            "times",
            tuple(ratios(theirs["all"], ours["all"])),
            "higher",
            TIMES_WHOLE_PROCESS[format_],
            note,
        )
        yield Figure(
            f"process: {shown}, ahead of Flink without the starts",
            "times",
            tuple(ratios(_without(theirs), _without(ours))),
            "higher",
            TIMES_WITHOUT_STARTS[format_],
            note,
        )


def _without(taken: Mapping[str, list[float]]) -> list[float]:
    """Seconds without the start, which is the quickest that a few events took."""
    start = min(taken["few"])
    return [each - start for each in taken["all"]]


def _run(rules: Path, events: str, out: Path) -> float:
    command = ["run", str(rules), "-e", events, "--engine", "spark", "--out", str(out)]
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ensue", *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UsageError(f"`ensue {' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    return time.perf_counter() - begin
