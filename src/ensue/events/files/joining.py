"""Rows of several chunks in an order of their own, as chunks.

In come chunks; out go chunks with their rows in any order, whose single rows are still read by the
chunks that they come from. `Joined` puts the columns of several chunks together once, however many
chunks are taken from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk, Rows

_CONTEXT = ("id", "source", "type", "time")


def part_of(chunk: Chunk, rows: pa.RecordBatch | None, places: Rows) -> Chunk:
    """The rows of a chunk that are events, by their places in it.

    `rows` are their columns after a check, which has read doubtful rows singly; None if no columns
    can hold all of the events.
    """
    return replace(
        chunk,
        rows=chunk.rows.take(pa.array(places)) if rows is None else rows,
        doubtful=np.zeros(len(places), np.bool_),
        singly=lambda wanted: chunk.singly(places[wanted]),
        original=lambda wanted: chunk.original(places[wanted]),
        is_clashing=chunk.is_clashing or rows is None,
    )


def with_file(chunk: Chunk, path: str | None) -> Chunk:
    """The chunk, whose refused records have the path of its file."""

    def original(places: Rows) -> list[Rejected]:
        return [msgspec.structs.replace(each, file=path) for each in chunk.original(places)]

    def singly(places: Rows) -> list[Event | Rejected]:
        found = chunk.singly(places)
        return [
            msgspec.structs.replace(each, file=path) if isinstance(each, Rejected) else each
            for each in found
        ]

    return replace(chunk, original=original, singly=singly)


class Joined:
    """The rows of several chunks.

    A column that is not in all chunks, and is no declared attribute, is left out: its values are
    then read from the events.
    """

    def __init__(self, parts: Sequence[Chunk], declared: Iterable[str]) -> None:
        self._parts = parts
        declared = set(declared)
        names = {name: None for part in parts for name in part.rows.schema.names}
        sizes = np.array([len(part) for part in parts], np.int64)
        self._begins = np.cumsum(sizes) - sizes
        self._columns: dict[str, pa.Array] = {}
        self._is_clashing = any(part.is_clashing for part in parts)
        for name in names:
            if name not in declared and any(name not in part.rows.schema.names for part in parts):
                continue
            column = _concatenated([_column(part.rows, name) for part in parts], sizes)
            if column is None:
                self._is_clashing |= name in declared or name in _CONTEXT
                continue
            self._columns[name] = column
        self._is_hidden = len(self._columns) < len(names)
        self._doubtful = np.concatenate([part.doubtful for part in parts])
        self._held_bytes = sum(part.held_bytes for part in parts)

    def __len__(self) -> int:
        return len(self._doubtful)

    def chunk(self, order: Rows) -> Chunk:
        """The rows with these numbers, in this order."""
        index = pa.array(order)
        columns = [column.take(index) for column in self._columns.values()]
        share = len(order) / max(1, len(self))
        return Chunk(
            pa.RecordBatch.from_arrays(columns, names=list(self._columns)),
            self._doubtful[order],
            lambda rows: self._asked(order[rows], lambda part, places: part.singly(places)),
            _not_again,
            lambda rows: self._asked(order[rows], lambda part, places: part.original(places)),
            has_extensions=self._is_hidden or any(part.has_extensions for part in self._parts),
            has_other_data=self._is_hidden or any(part.has_other_data for part in self._parts),
            is_clashing=self._is_clashing,
            held_bytes=int(self._held_bytes * share),
            names=frozenset[str]().union(*(part.names for part in self._parts)),
        )

    def homes(self, rows: Rows) -> list[tuple[Chunk, Rows]]:
        """The chunks from which rows come, each with their places in it."""
        found = []
        for home, places in self._by_home(rows):
            found.append((self._parts[home], rows[places] - self._begins[home]))
        return found

    def _by_home(self, rows: Rows) -> list[tuple[int, Rows]]:
        homes = np.searchsorted(self._begins, rows, side="right") - 1
        return [(home, np.flatnonzero(homes == home)) for home in np.unique(homes).tolist()]

    def _asked(self, rows: Rows, ask: Callable[[Chunk, Rows], list[Any]]) -> list[Any]:
        found: list[Any] = [None] * len(rows)
        for home, places in self._by_home(rows):
            read = ask(self._parts[home], rows[places] - self._begins[home])
            for place, each in zip(places.tolist(), read, strict=True):
                found[place] = each
        return found


def _not_again(_: Rows) -> pa.RecordBatch:
    raise AssertionError("what is in order is not put aside again")


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    place = rows.schema.get_field_index(name)
    if place < 0:
        return None
    column = rows.column(place)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _concatenated(arrays: Sequence[pa.Array | None], sizes: Any) -> pa.Array | None:
    """Arrays concatenated in one type; None if no type fits all of them."""
    fields = [pa.field("c", each.type) for each in arrays if each is not None]
    try:
        type_ = (
            pa.unify_schemas([pa.schema([field]) for field in fields], promote_options="permissive")
            .field(0)
            .type
        )
        held = [
            pa.nulls(size, type_) if each is None else each.cast(type_)
            for each, size in zip(arrays, sizes.tolist(), strict=True)
        ]
        return pa.concat_arrays(held)
    except pa.ArrowException:
        return None
