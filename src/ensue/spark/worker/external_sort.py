"""An external sort of the rows of a partition.

In come batches as Spark's shuffle hands them over; out come tables in the order of a key: a time
and an arrival, or a position. A partition that fits in memory is sorted as a whole, which costs
little: shuffle blocks are sorted runs already. A larger one is sorted in runs on disk, which are
merged. The choice is made here because the size of a partition is not known before the job runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SORT_BUFFER_BYTES = 512 * 2**20
"""How much of a partition is held in memory before it is written to disk as a sorted run."""
MERGE_ROWS = 1 << 16
"""How many rows of each run are read back at a time."""


def sorted_tables(
    batches: Iterator[pa.RecordBatch],
    keys: Sequence[str],
    sort_buffer_bytes: int = SORT_BUFFER_BYTES,
) -> Iterator[pa.Table]:
    """The rows by their keys, columns of instants, integers or bytes without nulls."""
    held: list[pa.RecordBatch] = []
    size = 0
    with tempfile.TemporaryDirectory(prefix="ensue-sorted-") as folder:
        on_disk: list[Path] = []
        for batch in batches:
            if batch.num_rows == 0:
                continue
            held.append(batch)
            size += batch.nbytes
            if size > sort_buffer_bytes:
                path = Path(folder) / f"{len(on_disk)}.arrow"
                _write(path, _sorted(pa.Table.from_batches(held), keys))
                on_disk.append(path)
                held, size = [], 0
        last = _sorted(pa.Table.from_batches(held), keys) if held else None
        if not on_disk:
            if last is not None:
                yield last
            return
        runs = [_read(path) for path in on_disk]
        if last is not None:
            runs.append(iter(last.to_batches(max_chunksize=MERGE_ROWS)))
        yield from _merged(runs, keys)


def _sorted(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    first = table.column(keys[0])
    if pa.types.is_binary(first.type):
        order = np.asarray(pc.sort_indices(table, [(key, "ascending") for key in keys]))
    else:
        numbers = [_numbers(table.column(key)) for key in keys]
        order = _order(numbers)
    if (order[1:] > order[:-1]).all():
        return table
    return table.take(pa.array(order))


def _order(numbers: Sequence[Any]) -> Any:
    """The order by one or two columns, where most rows of equal times are sorted already."""
    times = numbers[0]
    order = np.argsort(times, kind="stable")
    if len(numbers) == 1:
        return order
    ordered = times[order]
    ties = ordered[1:] == ordered[:-1]
    if not ties.any():
        return order
    arrivals = numbers[1][order]
    if not (ties & (arrivals[1:] < arrivals[:-1])).any():
        return order
    return np.lexsort(tuple(reversed(numbers)))


def _numbers(column: pa.ChunkedArray) -> Any:
    return column.cast(pa.int64()).to_numpy()


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=MERGE_ROWS)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def _merged(runs: list[Iterator[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[pa.Table]:
    """A merge of sorted runs, with one batch of each in memory."""
    heads: list[pa.Table | None] = [_next(run) for run in runs]
    while any(head is not None for head in heads):
        present = [(n, head) for n, head in enumerate(heads) if head is not None]
        # No unread row comes before the smallest of the last keys in memory.
        bound = min(_key(head, head.num_rows - 1, keys) for _, head in present)
        ready = []
        for number, head in present:
            count = _count_up_to(head, bound, keys)
            ready.append(head.slice(0, count))
            rest = head.slice(count)
            heads[number] = rest if rest.num_rows else _next(runs[number])
        yield _sorted(pa.concat_tables(ready), keys)


def _next(run: Iterator[pa.RecordBatch]) -> pa.Table | None:
    batch = next(run, None)
    return None if batch is None else pa.Table.from_batches([batch])


def _key(table: pa.Table, row: int, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(table.column(key)[row].as_py() for key in keys)


def _count_up_to(table: pa.Table, bound: tuple[Any, ...], keys: Sequence[str]) -> int:
    low, high = 0, table.num_rows
    while low < high:
        middle = (low + high) // 2
        if _key(table, middle, keys) <= bound:
            low = middle + 1
        else:
            high = middle
    return low
