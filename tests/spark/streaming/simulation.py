"""A stream without Spark: the workers of a stream called as Spark calls them.

In come rows, cut into micro-batches of partitions; out go outputs and late events, with the state
of every bucket written to bytes and read again between micro-batches. So very many streams can be
tried where Spark itself would take a second for each micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from ensue.spark.streaming.bucket import run_bucket
from ensue.spark.streaming.chunks import (
    STATELESS_GROUPS,
    StreamTask,
    from_bytes,
    pack_events,
    pack_ticks,
)
from ensue.spark.streaming.column_chunks import pack_columns
from ensue.spark.streaming.measures import read_measures


@dataclass
class State:
    """What Spark's states of one bucket are to a function: bytes that come back next time."""

    head: dict[int, bytes] = field(default_factory=dict)
    parts: dict[int, bytes] = field(default_factory=dict)
    slices: dict[int, bytes] = field(default_factory=dict)

    @property
    def states(self) -> tuple[_Value, _Map, _Map]:
        return _Value(self.head), _Map(self.parts), _Map(self.slices)

    @property
    def size(self) -> int:
        held = (self.head, self.parts, self.slices)
        return sum(len(data) for each in held for data in each.values())


class _Map:
    def __init__(self, held: dict[int, bytes]) -> None:
        self._held = held

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:  # noqa: N802
        return (self._held[key[0]],) if key[0] in self._held else None

    def updateValue(self, key: tuple[int], value: tuple[Any, ...]) -> None:  # noqa: N802
        self._held[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:  # noqa: N802
        del self._held[key[0]]


class _Value(_Map):
    def exists(self) -> bool:
        return 0 in self._held

    def get(self) -> tuple[bytes]:
        return (self._held[0],)

    def update(self, newValue: tuple[Any, ...]) -> None:  # noqa: N803
        self._held[0] = newValue[0]


class SimulatedStream:
    def __init__(self, task: StreamTask) -> None:
        self._task = task
        self.states: dict[tuple[str, int], State] = {}

    def read(self, partitions: Sequence[pa.Table], tick: int | None = None) -> list[dict[str, Any]]:
        """What one micro-batch puts out; `tick` is a time of the wall clock that comes with it."""
        pack = pack_columns if self._task.form == "columns" else pack_events
        packed = [
            row | {"partition": number}
            for number, table in enumerate(partitions)
            for batch in pack(tuple(self._task), iter(table.to_batches()))
            for row in batch.to_pylist()
        ]
        if tick is not None:
            ticks = [pa.record_batch({"tick": [tick - 1, tick]})]
            for batch in pack_ticks(tuple(self._task), iter(ticks)):
                packed += batch.to_pylist()
        found: list[dict[str, Any]] = []
        told: list[str] = []
        buckets = sorted({(row["group"], row["bucket"]) for row in packed})
        for key in buckets:
            state = State() if key[0] in STATELESS_GROUPS else self.states.setdefault(key, State())
            rows = [row for row in packed if (row["group"], row["bucket"]) == key]
            for frame in run_bucket(
                tuple(self._task), key, iter([pd.DataFrame(rows)]), state.states
            ):
                told += [each for each in frame["measures"] if each is not None]
                for chunk in frame["chunk"]:
                    found += [] if chunk is None else from_bytes(chunk).to_pylist()
        self.measures = read_measures(told)
        return found

    @property
    def size(self) -> int:
        return sum(each.size for each in self.states.values())
