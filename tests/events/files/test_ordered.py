"""Records of several files in the order of their times: in memory, and on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ensue.engine.batch.input.batches import TableBatch
from ensue.engine.batch.input.intake import Intake
from ensue.engine.counts import Counts
from ensue.events.event import Event, Rejected
from ensue.events.files.ordered import HeldRows, OrderedRecords
from ensue.events.files.reading import read_chunks
from ensue.events.files.sorting import SORT_BYTES
from ensue.events.records.reading import read_inputs
from ensue.events.sources import InputFile, open_inputs
from tests.events.files import test_agreement as rows

TYPES = rows.TYPES


def held_rows(inputs: list[InputFile]) -> Iterator[HeldRows]:
    intake = Intake(TYPES, Counts())
    for file, chunk in read_chunks(inputs, TYPES):
        checked = intake.check(chunk)
        columns = checked.batch.rows if isinstance(checked.batch, TableBatch) else None
        yield HeldRows(file, chunk, checked.kept, columns, checked.batch.times)


@pytest.mark.parametrize("most_bytes", [1, 3_000, SORT_BYTES])
def test_events_of_several_files_come_by_their_times(tmp_path: Path, most_bytes: int) -> None:
    draw = Random(2)
    lines = [
        json.dumps(
            {**rows.GOOD, "id": str(number), "time": f"2024-05-06T{draw.randrange(24):02}:00:00Z"}
        )
        for number in range(300)
    ]
    first, second, table = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.csv"))
    first.write_bytes("\n".join(lines[:200]).encode() + b"\n" + b"\n".join(rows.LINES))
    second.write_text("\n".join(lines[200:]))
    table.write_text("\n".join([rows.HEADER, *rows.ROWS]))
    inputs = open_inputs([str(first), str(second), str(table)])

    records = OrderedRecords(inputs, TYPES, most_bytes=most_bytes)
    for each in held_rows(inputs):
        records.add(each)
    intake = Intake(TYPES, Counts())
    found: list[Event] = []
    for chunk in records.chunks():
        batch = intake.check(chunk).batch
        found += batch.events(np.arange(len(batch)))

    wanted = [each for each in read_inputs(inputs, TYPES) if not isinstance(each, Rejected)]
    assert [repr(each) for each in found] == [
        repr(each) for each in sorted(wanted, key=lambda event: event.time)
    ]
