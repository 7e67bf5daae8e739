"""The places of lines in files that Spark reads in blocks.

In come lines with the file and the first byte of their block; out go an arrival that sorts lines by
file and place, and the number of each line in its block. A number in the file follows from it once
the lines of all blocks have been counted, which is done only for rejected lines (`batch.rejected`).
The path of a file is longer than many a line, so that a code of it travels to the workers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from ensue.spark.worker.event_rows import ARRIVAL

PLACES_A_FILE = 1 << 40
SCHEME = re.compile("^([a-z0-9]+):/+")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_FIELDS = [
    (ARRIVAL, pa.int64()),
    ("file", pa.string()),
    ("start", pa.int64()),
    ("line", pa.int64()),
    ("raw", pa.binary()),
    ("problems", pa.list_(pa.string())),
]
LINE_DDL = (
    f"`{ARRIVAL}` bigint, file string, start bigint, line bigint, raw binary,"
    " problems array<string>"
)
"""What is known of a line: `raw` and `problems` only if it is rejected."""


def plain_path(name: str) -> str:
    """A path in one form: Spark writes it with escapes or without, and with one slash or three."""
    return SCHEME.sub(r"\1:/", unquote(name))


def local_path(file: str) -> str | None:
    """The path of a file, as Spark names it, on this machine; None if it is not here."""
    place = urlsplit(file)
    if place.scheme != "file" or place.netloc:
        return None
    # A name may hold a question mark or a number sign, which `urlsplit` takes for more of a URL.
    path = unquote(file.removeprefix("file:"))
    path = "/" + path.lstrip("/")
    return path if Path(path).is_file() else None


def name_of(file: str) -> str:
    """The name of a file without its folders."""
    return plain_path(file).rpartition("/")[2]


def file_codes(files: Sequence[str]) -> dict[int, str] | None:
    """The files by the codes that stand for their paths in rows; None if two have the same one."""
    found = {zlib.crc32(name.encode()): name for name in files}
    return found if len(found) == len(files) else None


class LinePlaces:
    """Numbers the lines of the blocks that a task reads, in the order in which they come.

    `files` has the paths of all files, in the order in which they are read.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = pa.array([*files, ""], pa.string())
        self._ranks = {plain_path(name): rank for rank, name in enumerate(files)}
        by_code = sorted((zlib.crc32(name.encode()), rank) for rank, name in enumerate(files))
        self._codes = np.array([code for code, _ in by_code] or [-1], np.int64)
        self._ranks_by_code = np.array([rank for _, rank in by_code] or [0], np.int64)
        self._seen: dict[tuple[int, int], int] = {}

    def numbered(self, batch: pa.RecordBatch) -> pa.Table:
        """Places of the lines of a batch with columns `file`, `start` and `value`.

        They are `LINE_FIELDS` without `raw` and `problems`. A file is a path or the code of one,
        and becomes a path by its number.
        """
        named, ranks = self._named(batch.column("file"))
        starts = batch.column("start").to_numpy()
        numbers = self._numbers(ranks, starts)
        return pa.table(
            {
                # A line takes at least a byte, so that arrivals of different lines differ.
                ARRIVAL: pa.array(ranks * PLACES_A_FILE + starts + numbers, pa.int64()),
                "file": named,
                "start": batch.column("start"),
                "line": pa.array(numbers, pa.int64()),
            }
        )

    def _named(self, given: pa.Array) -> tuple[pa.DictionaryArray, Any]:
        """The file of each line, and its rank among all files."""
        if pa.types.is_integer(given.type):
            codes = given.to_numpy()
            found = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
            is_known = self._codes[found] == codes
            ranks = np.where(is_known, self._ranks_by_code[found], len(self._ranks))
            return pa.DictionaryArray.from_arrays(pa.array(ranks, pa.int32()), self._files), ranks
        named = given.dictionary_encode()
        paths = [plain_path(name) for name in named.dictionary.to_pylist()]
        by_name = np.array([self._ranks.get(path, len(self._ranks)) for path in paths], np.int64)
        return named, by_name[named.indices.to_numpy()] if len(given) else np.empty(0, np.int64)

    def _numbers(self, ranks: Any, starts: Any) -> Any:
        """The number of each line in its block, from 0."""
        changed = (ranks[1:] != ranks[:-1]) | (starts[1:] != starts[:-1])
        firsts = [0, *(np.flatnonzero(changed) + 1).tolist()] if len(ranks) else []
        numbers = np.arange(len(ranks))
        for first, end in zip(firsts, [*firsts[1:], len(ranks)], strict=True):
            block = int(ranks[first]), int(starts[first])
            numbers[first:end] += self._seen.get(block, 0) - first
            self._seen[block] = int(numbers[end - 1]) + 1
        return numbers


def is_first(places: pa.Table) -> Any:
    """Which of the lines are the first lines of their files."""
    starts, numbers = places.column("start").to_numpy(), places.column("line").to_numpy()
    return (starts == 0) & (numbers == 0)


def first_line(text: bytes) -> bytes:
    """The first line of a file without byte order mark and line ending."""
    return text.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
