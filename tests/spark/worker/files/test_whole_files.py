"""Files whose records take several lines are read in workers as in one process."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from ensue.events.event import Event
from ensue.events.records.reading import read_inputs
from ensue.events.sources import open_inputs
from ensue.spark.worker.event_rows import ARRIVAL, read_event
from ensue.spark.worker.files.line_chunks import LinesTask
from ensue.spark.worker.files.whole_files import place_lines, read_whole_files

from .test_line_chunks import HEADER, LIBRARY, NAMES, TYPES, line

FILES = ("file:///a.csv", "file:///b.csv")


def several_lines(random: Random) -> bytes:
    """Records, of which one may go on over the end of its line, or never end."""
    lines = [line(random) for _ in range(30)]
    for number in random.sample(range(30), 4):
        lines[number] = lines[number].replace(
            b",plain,", random.choice([b',"two\nlines",', b',"x'])
        )
    return b"\n".join([HEADER, *lines])


def read_in_workers(texts: list[bytes], numbered: bool) -> list[dict[str, object]]:
    before = () if numbered else None
    task = LinesTask(LIBRARY.tables(), FILES, "csv", tuple(NAMES), before=before)
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "file": [file] * len(lines),
                "start": pa.array([0] * len(lines), pa.int64()),
                "value": pa.array(lines, pa.binary()),
            }
        )
        for file, text in reversed(list(zip(FILES, texts, strict=True)))
        for lines in [text.split(b"\n")]
    ]
    placed = pa.Table.from_batches(place_lines(tuple(task), iter(batches)))
    in_order = placed.sort_by(ARRIVAL).to_batches(max_chunksize=7)
    return [
        row for made in read_whole_files(tuple(task), iter(in_order)) for row in made.to_pylist()
    ]


@pytest.mark.parametrize("seed", range(10))
def test_events_problems_and_numbers_are_those_of_one_process(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    texts = [several_lines(random) for _ in FILES]
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)

    found = read_in_workers(texts, numbered=True)

    wanted = list(read_inputs(open_inputs([str(path) for path in paths]), TYPES))
    assert len(found) == len(wanted)
    for row, record in zip(found, wanted, strict=True):
        if isinstance(record, Event):
            assert isinstance(row["payload"], bytes)
            assert read_event(row["payload"], TYPES) == record
        else:
            assert (row["raw"], row["problems"]) == (record.raw, list(record.problems))
            assert row["line"] == record.number - 1
            assert str(row["file"])[-5:] == str(record.file)[-5:]


def test_a_record_without_an_id_has_its_place_also_where_records_are_not_counted() -> None:
    good = b",Base,2024-05-06T07:08:09Z,1,1,,,,,,,,"
    text = b"\n".join([HEADER, b"2" + good, good])

    rows = read_in_workers([text, HEADER], numbered=False)

    assert [row["problems"] for row in rows] == [None, None]
