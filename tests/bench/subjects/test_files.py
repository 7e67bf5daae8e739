"""The files that runs are measured over: events in the order of their times, in every format."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import ensue
from ensue.events.event import Event
from ensue.events.records.reading import read_events
from ensue_bench.subjects import files
from ensue_bench.workload import leak


def read(format_: str, place: Path) -> list[Any]:
    types = ensue.parse(leak()).checked.types
    return list(read_events(files.write_file(format_, 210, 3, place, piece_events=40), types))


def test_events_are_the_same_in_every_format(tmp_path: Path) -> None:
    first, *others = (read(format_, tmp_path) for format_ in ("parquet", "csv", "jsonl"))

    assert all(isinstance(each, Event) for each in first)
    assert others == [first, first]


def test_ids_are_unique_and_times_grow_over_all_pieces(tmp_path: Path) -> None:
    events = read("jsonl", tmp_path)

    assert [each.id for each in events] == [str(number) for number in range(210)]
    assert all(one.time < next_.time for one, next_ in pairwise(events))
