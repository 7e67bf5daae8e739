"""Parts of files that a worker opens itself, where the file system is that of its machine.

In come parts of files of lines; out go blocks of whole lines with their places. A line belongs to
the part in which its first byte stands, so that parts can be read anywhere and in any order. Files
elsewhere, and packed ones, are read by Spark (`batch.opening`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.errors import UsageError
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.line_chunks import LinesReader
from ensue.spark.worker.files.line_places import PLACES_A_FILE

BLOCK_BYTES = 1 << 23
"""How much of a file is read at a time."""
_LINE_FEED = 10

Batches = Iterator[pa.RecordBatch]


class FilePart(NamedTuple):
    """A part of a file: `path` opens it, `file` is its name to Spark, `rank` its place among all.

    From `begin` to `end` are bytes of a file of lines, or row groups of a file of columns.
    """

    path: str
    file: str
    rank: int
    begin: int
    end: int


def asked_parts(parts: Sequence[Sequence[Any]], batches: Batches) -> Iterator[FilePart]:
    """The parts whose numbers Spark hands to a task."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield FilePart(*parts[number])


def line_blocks(part: FilePart, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The lines that begin in a part, in blocks of whole lines, each with its line feed.

    Raises `UsageError` for a file that cannot be read.
    """
    try:
        yield from _line_blocks(part, size)
    except OSError as error:
        reason = error.strerror or str(error)
        shown = f"{reason[:1].lower()}{reason[1:]}"
        raise UsageError(f"`{part.path}` cannot be read: {shown}") from None


def _line_blocks(part: FilePart, size: int) -> Iterator[bytes]:
    with open(part.path, "rb", buffering=0) as file:
        # The byte before a part tells whether a line begins with the part.
        at = max(0, part.begin - 1)
        file.seek(at)
        held = b""
        is_inside = part.begin > 0
        while taken := file.read(size):
            held = held + taken if held else taken
            if is_inside:
                first = held.find(b"\n") + 1
                if not first:
                    at, held = at + len(held), b""
                    continue
                at, held, is_inside = at + first, held[first:], False
            if at >= part.end:
                return
            if at + len(held) >= part.end:
                # The line that holds the last byte of the part is the last.
                end = held.find(b"\n", part.end - 1 - at) + 1
                if end:
                    yield held[:end]
                    return
                continue
            end = held.rfind(b"\n") + 1
            if end:
                yield held[:end]
                at, held = at + end, held[end:]
        if held and not is_inside and at < part.end:
            yield held if held.endswith(b"\n") else held + b"\n"


def read_part(reader: LinesReader, part: FilePart, told: dict[str, Any]) -> Batches:
    """The records of a part, typed or rejected; `told` then has the number of its lines."""
    done = 0
    for block in line_blocks(part):
        if part.begin == 0 and done == 0:
            # A header, or a record behind a byte order mark.
            end = block.find(b"\n") + 1
            first = pa.array([block[: end - 1]], pa.binary())
            yield from reader.read(_places(part, 0, 1), first)
            done, block = 1, block[end:]
        count = int(np.count_nonzero(np.frombuffer(block, np.uint8) == _LINE_FEED))
        if count:
            yield from reader.read_block(part.file, part.begin, _places(part, done, count), block)
            done += count
    told["lines"] = done


def _places(part: FilePart, first: int, count: int) -> pa.Table:
    """The places of lines; `line_places` says how many come before them in the part."""
    numbers = np.arange(first, first + count)
    file = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [part.file])
    return pa.table(
        {
            # A line takes at least a byte, so that arrivals of different lines differ.
            ARRIVAL: pa.array(part.rank * PLACES_A_FILE + part.begin + numbers, pa.int64()),
            "file": file,
            "start": pa.array(np.full(count, part.begin, np.int64)),
            "line": pa.array(numbers, pa.int64()),
        }
    )


def count_lines(parts: tuple[Any, ...], batches: Batches) -> Batches:
    """How many lines each part has."""
    for part in asked_parts(parts, batches):
        lines = sum(block.count(b"\n") for block in line_blocks(part))
        columns = {"rank": [part.rank], "start": [part.begin], "lines": [lines]}
        yield pa.RecordBatch.from_pydict(
            {name: pa.array(values, pa.int64()) for name, values in columns.items()}
        )
