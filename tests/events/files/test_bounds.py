"""What a file can cost: records without an end, blank lines, columns, and small files of much."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ensue.errors import UsageError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.event import Event, Rejected
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.files.reading import read_chunks
from ensue.events.records.parquet import MOST_BYTES
from ensue.events.sources import open_inputs
from ensue.events.sources.finding import find_files
from tests.events.files.test_agreement import agree
from tests.events.vocabulary import types_from

TYPES = types_from(T={"note": "string"})
LINE = b'{"id":"%d","source":"s","type":"T","time":"2024-05-06T07:00:00Z","data":{"note":"%s"}}\n'
SIZE = 120


SHORT = Bounds(record_bytes=SIZE, kept_bytes=20)


@pytest.mark.parametrize("size", [1, 50, 700])
def test_a_line_that_is_too_long_is_refused_alone(tmp_path: Path, size: int) -> None:
    file = tmp_path / "events.jsonl"
    longest = SIZE - len(LINE % (1, b"")) + 1
    lengths = [0, longest, longest + 1, 5000, 3, longest + 2, 0]
    lines = [LINE % (number, b"x" * length) for number, length in enumerate(lengths)]
    # A whole event, and then nothing but space.
    lines.insert(3, (LINE % (9, b"")).rstrip() + b" " * 400 + b"\r\n")

    for ending in (b"\n", b"\r\n", b""):
        file.write_bytes(b"".join(lines).replace(b"\n", ending or b"\n").removesuffix(b"\n"))
        found = agree(file, TYPES, bounds=replace(SHORT, block_bytes=size))

        refused = [each for each in found if isinstance(each, Rejected)]
        assert [each.number for each in refused] == [3, 4, 5, 7]
        assert all("longer than 120 bytes" in each.problems[0] for each in refused)
        assert all(len(each.raw) <= 20 for each in refused)


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_csv_that_are_too_long(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    bounds = replace(
        SHORT, block_bytes=draw.choice([3, 90, 1000]), records=draw.choice([1, 2, 1000])
    )
    rows = []
    for number in range(12):
        note = "".join(draw.choice("abc d\n,") for _ in range(draw.choice([0, 5, 90, 130, 400])))
        rows.append(f'T,2024-05-06T07:00:00Z,"{note}",{number}')
    if seed % 3 == 0:
        rows.insert(draw.randrange(12), 'T,2024-05-06T07:00:00Z,"never closed')
    file = tmp_path / "events.csv"
    file.write_text("\n".join(["type,time,note,id", *rows]))

    found = agree(file, TYPES, bounds=bounds)

    assert any(isinstance(each, Event) for each in found)
    assert any(isinstance(each, Rejected) for each in found)


@pytest.mark.parametrize("name", ["events.jsonl", "events.csv"])
def test_a_chunk_has_so_many_records_at_most(tmp_path: Path, name: str) -> None:
    """A block of line breaks, or of the shortest rows, takes no more room than any other."""
    bounds = Bounds(values=200)
    file = tmp_path / name
    row = LINE % (1, b"a") if name.endswith("jsonl") else b"T,2024-05-06T07:00:00Z,a,1\n"
    header = b"" if name.endswith("jsonl") else b"type,time,note,id\n"
    file.write_bytes(header + (b"\n" * 1000 + b"x\n" * 100 + row) * 3)

    inputs = open_inputs([str(file)])
    chunks = [chunk for _, chunk in read_chunks(inputs, TYPES, bounds=bounds)]

    assert sum(map(len, chunks)) == 303
    assert max(map(len, chunks)) <= 50
    agree(file, TYPES, bounds=bounds)


@pytest.mark.parametrize("name", ["events.csv", "events.parquet"])
def test_more_columns_than_are_allowed(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    names = ["type", "time", *(f"c{number}" for number in range(10_000))]
    if name.endswith("csv"):
        file.write_text(",".join(names) + "\n")
    else:
        pq.write_table(pa.table({each: pa.array([], pa.string()) for each in names}), file)
    with pytest.raises(UsageError, match=r"has 10,002 columns, and 10,000 are allowed"):
        list(read_chunks(open_inputs([str(file)]), TYPES))


def test_a_header_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_bytes(b'"type,' * (BOUNDS.record_bytes // 5))
    with pytest.raises(UsageError, match=r"longer than 67,108,864 bytes"):
        list(read_chunks(open_inputs([str(file)]), TYPES))


@pytest.mark.parametrize("encoding", ["PLAIN_DICTIONARY", "DELTA_BYTE_ARRAY"])
def test_long_texts_after_the_first_rows_are_read_in_bounded_batches(
    tmp_path: Path, encoding: str
) -> None:
    """The first rows are short; the others have a text each that the file has once."""
    rows, text = 300, "x" * (1 << 20)
    notes = pa.array(["a"] * 100 + [text] * (rows - 100))
    table = pa.table(
        {
            "type": pa.repeat("T", rows),
            "time": pa.array(range(rows), pa.timestamp("us", "UTC")),
            "note": notes,
        }
    )
    file = tmp_path / "events.parquet"
    if encoding == "PLAIN_DICTIONARY":
        pq.write_table(table, file)
    else:
        pq.write_table(table, file, use_dictionary=False, column_encoding={"note": encoding})
    assert file.stat().st_size < 3_000_000

    chunks = [
        (len(chunk), chunk.held_bytes) for _, chunk in read_chunks(open_inputs([str(file)]), TYPES)
    ]

    assert sum(count for count, _ in chunks) == rows
    assert max(held for _, held in chunks) <= 1.1 * MOST_BYTES


def test_links_that_lead_back_make_no_further_files(tmp_path: Path) -> None:
    """Two of them are 2^40 paths to whatever goes through links."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "one").symlink_to(tmp_path)
    (below / "two").symlink_to(tmp_path)
    (below / "e.jsonl").write_text("")
    (tmp_path / "f.jsonl").write_text("")

    both = [str(below / "e.jsonl"), str(tmp_path / "f.jsonl")]
    assert find_files([f"{tmp_path}/**/*.jsonl"]) == both
    assert find_files([f"{tmp_path}/a/**/**/e*"]) == [str(below / "e.jsonl")]
    assert len(find_files([str(tmp_path)])) == 2


def test_a_file_that_cannot_be_closed_leaves_nothing_beside(tmp_path: Path) -> None:
    """On a full disk closing fails, too."""
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    whole = WholeFile(out)
    whole.file.write(b"new")
    os.close(whole.file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        whole.abandon()
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]
    assert out.read_text() == "old"


def test_a_link_under_the_name_of_the_new_file_is_not_written_through(tmp_path: Path) -> None:
    out, other = tmp_path / "out.jsonl", tmp_path / "other"
    other.write_text("mine")
    (tmp_path / f".out.jsonl.{os.getpid()}.part").symlink_to(other)
    with WholeFile(out) as whole:
        whole.file.write(b"new")
    assert (out.read_text(), other.read_text()) == ("new", "mine")


def test_the_longest_name_has_room_for_a_file_beside(tmp_path: Path) -> None:
    out = tmp_path / ("é" * 124 + ".jsonl")
    with WholeFile(out) as whole:
        whole.file.write(b"new")
    assert out.read_text() == "new"
