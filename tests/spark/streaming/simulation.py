"""A stream without Spark: the workers of a stream called as Spark calls them.

In come rows, cut into micro-batches of partitions; out go outputs and late events, with the state
of every bucket written to bytes and read again between micro-batches. So very many streams can be
tried where Spark itself would take a second for each micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class State:
    """What Spark's `GroupState` is to a function: bytes that come back next time."""

    def __init__(self) -> None:
        self._held: tuple[Any, ...] | None = None

    @property
    def exists(self) -> bool:
        return self._held is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self._held is not None
        return self._held

    def update(self, value: tuple[Any, ...]) -> None:
        self._held = value


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
        buckets = sorted({(row["group"], row["bucket"]) for row in packed})
        for key in buckets:
            state = State() if key[0] in STATELESS_GROUPS else self.states.setdefault(key, State())
            rows = [row for row in packed if (row["group"], row["bucket"]) == key]
            for frame in run_bucket(tuple(self._task), key, iter([pd.DataFrame(rows)]), state):
                for chunk in frame["chunk"]:
                    found += [] if chunk is None else from_bytes(chunk).to_pylist()
        return found

    @property
    def size(self) -> int:
        return sum(len(each.get[0]) for each in self.states.values())
