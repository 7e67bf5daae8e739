"""Files of this machine in parts, for workers that open them themselves.

In come the files that Spark has found; out go parts of about equal size, of which each is read by
one task. Files of other machines, and packed ones, make no parts: Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ensue.spark.worker.files.file_parts import FilePart
from ensue.spark.worker.files.line_places import local_path

PACKED = frozenset({".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz"})
"""Endings of names by which Spark unpacks files."""
MOST_BYTES = 64 << 20
LEAST_BYTES = 4 << 20
LARGEST_PART = "spark.sql.files.maxPartitionBytes"
_SIZE = re.compile(r"(\d+)\s*([bkmgtp])?", re.IGNORECASE)
PARTS_A_CORE = 4
"""How many parts, unless they are small, keep all cores busy until the end."""


def lines_in_parts(spark: SparkSession, files: Sequence[str]) -> tuple[FilePart, ...] | None:
    """The parts of files of lines, in the order in which they are read.

    None if workers may not be able to open them as they are.
    """
    if is_remote():
        return None
    found: list[tuple[str, str]] = []
    for file in files:
        path = local_path(file)
        if path is None or Path(path).suffix.lower() in PACKED:
            return None
        found.append((path, file))
    sizes = [Path(path).stat().st_size for path, _ in found]
    largest = _largest_part(spark)
    wanted = min(_part_size(spark, sum(sizes)), largest)
    return tuple(
        FilePart(path, file, rank, begin, end)
        for rank, ((path, file), size) in enumerate(zip(found, sizes, strict=True))
        for begin, end in _equal_parts(size, max(round(size / wanted), -(-size // largest)))
    )


def _equal_parts(size: int, count: int) -> Iterator[tuple[int, int]]:
    """So many parts of a file, one at least; a small rest would cost a task of its own."""
    bounds = [size * number // max(1, count) for number in range(max(1, count) + 1)]
    return (each for each in pairwise(bounds) if each[0] < each[1])


class RowGroups(NamedTuple):
    """Parquet files in parts, and the schema of all of them."""

    parts: tuple[FilePart, ...]
    schema: pa.Schema


def row_groups(files: Sequence[str]) -> RowGroups | None:
    """The parts of Parquet files of one schema; None where Spark has to read them."""
    if is_remote():
        return None
    parts: list[FilePart] = []
    schema: pa.Schema | None = None
    for rank, file in enumerate(files):
        path = local_path(file)
        if path is None:
            return None
        try:
            with pq.ParquetFile(path) as opened:
                found, own = opened.metadata, opened.schema_arrow
        except (pa.ArrowException, OSError):
            return None
        if schema is not None and not schema.equals(own):
            return None
        schema = own
        parts += [FilePart(path, file, rank, *each) for each in _of_size(found)]
    return None if schema is None else RowGroups(tuple(parts), schema)


def _of_size(found: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    """Row groups in runs of about the size of a part."""
    begin = size = 0
    for number in range(found.num_row_groups):
        size += found.row_group(number).total_byte_size
        if size >= LEAST_BYTES:
            yield begin, number + 1
            begin, size = number + 1, 0
    if begin < found.num_row_groups:
        yield begin, found.num_row_groups


def _part_size(spark: SparkSession, total: int) -> int:
    """About how many bytes a part should have, of so many in all."""
    cores = max(1, spark.sparkContext.defaultParallelism)
    return max(LEAST_BYTES, min(MOST_BYTES, -(-total // (cores * PARTS_A_CORE))))


def _largest_part(spark: SparkSession) -> int:
    """How many bytes a part may have: no more than a part that Spark reads."""
    allowed = _SIZE.match(str(spark.conf.get(LARGEST_PART)))
    if allowed is None:
        return MOST_BYTES
    return max(1, int(allowed[1]) << 10 * "bkmgtp".index((allowed[2] or "b").lower()))
