"""Positions of outputs of the batch engine, computed over columns.

In come the rows of a partition, sorted by time and arrival, and the table of outputs that the batch
engine made of them; out go positions as `positions.output_position` writes them, so that outputs of
all partitions sort into the order of the whole run. The row of an output is found by its time and
by the id of its trigger. Rows that share both are therefore never in one batch: `distinct_slices`
cuts them apart. Timers and rules over rules have other positions, and run event by event
(`ordered_group`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]

_SIGN = 1 << 63
# An event moment, one step, and the depth of the path before and behind it (`positions`).
_OUTPUT = np.dtype(
    [
        ("time", ">u8"),
        ("is_event", "u1"),
        ("arrival", ">u8"),
        ("depth", ">u2"),
        ("correlation", ">u4"),
        ("key_place", ">u2"),
        ("number", ">u4"),
        ("depth_again", ">u2"),
    ]
)


class SortedRows:
    """Times, arrivals and ids of rows that are sorted by time and arrival."""

    def __init__(self, table: pa.Table, arrivals: pa.ChunkedArray) -> None:
        self.times: Integers = table.column("time").cast(pa.int64()).to_numpy()
        self.arrivals: Integers = arrivals.to_numpy()
        self._ids = table.column("id")
        same = self.times[1:] == self.times[:-1]
        tied = np.zeros(len(self.times), np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        self._tied = np.flatnonzero(tied)

    def distinct_slices(self) -> Iterator[tuple[int, int]]:
        """The rows in as few slices as keep rows of equal time and id apart."""
        cuts: list[int] = []
        if len(self._tied):
            keys, _ = self._keys(self._tied, np.empty(0, np.int64), pa.array([], pa.string()))
            order = np.argsort(keys, kind="stable")
            repeated = keys[order][1:] == keys[order][:-1]
            cuts = np.sort(self._tied[order[1:][repeated]]).tolist()
        yield from zip([0, *cuts], [*cuts, len(self.times)], strict=True)

    def rows_of(self, times: Integers, triggers: pa.ChunkedArray, begin: int, end: int) -> Integers:
        """The rows of the triggers of outputs, within one of the slices."""
        within = self.times[begin:end]
        rows = np.searchsorted(within, times, side="left")
        last = np.searchsorted(within, times, side="right")
        unclear = np.flatnonzero(last - rows > 1)
        if len(unclear):
            first, stop = np.searchsorted(self._tied, [begin, end])
            tied = self._tied[first:stop]
            keys, wanted = self._keys(tied, times[unclear], triggers.take(pa.array(unclear)))
            order = np.argsort(keys, kind="stable")
            found = order[np.searchsorted(keys[order], wanted)]
            rows[unclear] = tied[found] - begin
        return rows + begin

    def _keys(
        self, rows: Integers, times: Integers, ids: pa.Array | pa.ChunkedArray
    ) -> tuple[Integers, Integers]:
        """One integer for each pair of a time and an id: of rows, and of other pairs."""
        texts = pa.chunked_array(
            [*self._ids.take(pa.array(rows)).chunks, *_chunks(ids)], pa.string()
        )
        codes = texts.combine_chunks().dictionary_encode()
        numbers = codes.indices.to_numpy().astype(np.int64)
        places = np.searchsorted(self.times, np.concatenate([self.times[rows], times]))
        keys = places * len(codes.dictionary) + numbers
        return keys[: len(rows)], keys[len(rows) :]


def _chunks(ids: pa.Array | pa.ChunkedArray) -> Sequence[pa.Array]:
    return ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]


def output_positions(
    sorted_rows: SortedRows, begin: int, end: int, outputs: pa.Table, names: Sequence[str]
) -> pa.Array:
    """The positions of outputs of one slice; `names` has the correlations by their numbers."""
    count = len(outputs)
    times: Integers = outputs.column("time").cast(pa.int64()).to_numpy()
    rows = sorted_rows.rows_of(times, outputs.column("trigger"), begin, end)
    positions: Any = np.zeros(count, _OUTPUT)
    positions["time"] = times.astype(np.uint64) + np.uint64(_SIGN)
    positions["is_event"] = 1
    positions["arrival"] = sorted_rows.arrivals[rows].astype(np.uint64)
    positions["depth"] = positions["depth_again"] = 1
    numbers = pc.index_in(outputs.column("correlation"), pa.array(list(names)))
    positions["correlation"] = numbers.to_numpy()
    # Outputs of one row and rule follow each other, so that any rising number orders them.
    positions["number"] = np.arange(count)
    buffer = pa.py_buffer(positions.tobytes())
    width = pa.binary(_OUTPUT.itemsize)
    return pa.FixedSizeBinaryArray.from_buffers(width, count, [None, buffer]).cast(pa.binary())
