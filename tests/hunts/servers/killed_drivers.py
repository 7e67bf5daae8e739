"""A streaming driver that is killed at random moments loses nothing and repeats nothing.

A round is one `ensue stream` as a process, into Spark's own file sink; late events stand among the
outputs, or in a sink of their own. Its driver is killed again and again, each time with new files
to read, and at last runs to the end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from tests.spark.session import shared_session
from tests.spark.streaming.command.processes import (
    committed,
    kill,
    log_of,
    planned,
    prepare,
    run_to_the_end,
    start,
)
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LATENESS, arriving, expected, found, readings, table

SHORT = (1, 2)
KILLS, FEW_KILLS = 10, 1
LONGEST_START = 900
FILES_A_LIFE = 3
"""About as many micro-batches as a driver has done when it is killed."""

Row = dict[str, Any]


def hunt(seed: int) -> Mapping[str, int]:
    random = Random(seed)
    kills = FEW_KILLS if seed in SHORT else KILLS
    two_sinks = seed % 2 == 0
    pieces, late = stream_with_late_events(random, FILES_A_LIFE * kills + 3)
    with TemporaryDirectory(prefix="ensue-killed-") as path:
        folder = Path(path)
        outputs, put_aside = killed(
            folder, [table(piece) for piece in pieces], kills, two_sinks, random
        )
    good = [row for piece in pieces[:-1] for row in piece if row not in late]
    good += [row for row in pieces[-1] if row not in late and row["Sensor"] is not None]
    good.sort(key=lambda row: int(row["id"].removeprefix("e")))
    told = found(outputs), sorted(put_aside)
    wanted = expected(good), sorted(row["id"] for row in late)
    if told != wanted:
        raise AssertionError(
            f"put out {told[0]}, late {told[1]};\nexpected {wanted[0]}, {wanted[1]}"
        )
    return {"kills": kills, "outputs": len(outputs), "late": len(late)}


def killed(
    folder: Path, files: list[pa.Table], kills: int, two_sinks: bool, random: Random
) -> tuple[list[Row], list[str]]:
    """The outputs of a stream whose driver has been killed so often, and the ids of late events."""
    bounds = [len(files) * life // (kills + 1) for life in range(kills + 2)]
    prepare(
        folder, files[: bounds[1]], late_sink=two_sinks, together=not two_sinks, trigger="50 ms"
    )
    for first, end in pairwise(bounds[1:]):
        kill_at_a_random_moment(folder, random)
        # Each life has files of its own: a fast driver would else have nothing left to do.
        write_pieces(folder / "events", files[first:end], first=first)
    assert run_to_the_end(folder) == 0, log_of(folder)

    # A folder that Spark has written says itself which of its files count.
    spark = shared_session()
    rows = [row.asDict() for row in spark.read.parquet(str(folder / "sink")).collect()]
    if two_sinks:
        return rows, [row["id"] for row in spark.read.parquet(str(folder / "late")).collect()]
    outputs = [row for row in rows if row["ensue_kind"] == "output"]
    return outputs, [row["id"] for row in rows if row["ensue_kind"] == "late"]


def stream_with_late_events(random: Random, files: int) -> tuple[list[list[Row]], list[Row]]:
    """A stream as files, a micro-batch each, and the events in it that come too late.

    They are late by two files: where a driver is killed after it has listed a file and before it
    has planned the micro-batch, Spark reads that file and the next one together.
    """
    rows = readings(6 * files, random)
    came = arriving(rows, random)
    size = -(-len(came) // (files - 1))
    pieces = [came[n : n + size] for n in range(0, len(came), size)]
    late: list[Row] = []
    reached = list(accumulate((max(row["time"] for row in piece) for piece in pieces), max))
    for number, piece in enumerate(pieces[2:], 2):
        settled = reached[number - 2] - LATENESS
        if random.random() < 0.3:
            event = rows[0] | {"id": f"late{number}", "time": settled - random.randint(1, 999)}
            late.append(event)
            piece.insert(random.randrange(len(piece) + 1), event)
    return pieces, late


def kill_at_a_random_moment(folder: Path, random: Random) -> None:
    before = planned(folder), committed(folder)
    process = start(folder)
    if random.random() < 0.8:
        # Most kills strike while micro-batches run, the others anywhere, the start included.
        deadline = time.monotonic() + LONGEST_START
        while (planned(folder), committed(folder)) == before and process.poll() is None:
            assert time.monotonic() < deadline, log_of(folder)
            time.sleep(0.02)
        time.sleep(random.random() * 2)
    else:
        time.sleep(random.random() * 8)
    assert process.poll() is None, log_of(folder)
    kill(process)
