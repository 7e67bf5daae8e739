"""What a stream has done in each micro-batch, for people and for monitoring.

In come Spark's reports of progress; out go `Figures`: events read, outputs of each rule, late
events, the size of the state, and how far the stream is behind. `FiguresListener` hands them to a
function as Spark makes them; `figures_of` reads them from a report that one has at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener

from ensue.spark.streaming.bucket import KIND, LATE_KIND

OBSERVED_INPUT = "ensue_input"
OBSERVED_OUTPUT = "ensue_output"
_LATE, _LATEST, _RULE = "late", "latest", "rule "


@dataclass(frozen=True)
class Figures:
    """One micro-batch. `outputs` is by rule; `lag_seconds` is None before the first event."""

    query: str | None
    batch: int
    events: int
    outputs: Mapping[str, int]
    late: int
    state_bytes: int
    buckets: int
    latest: datetime | None
    lag_seconds: float | None
    seconds: float


def observed_input(time_micros: Column) -> list[Column]:
    """What is measured of the rows that come in."""
    return [sf.max(time_micros).alias(_LATEST)]


def observed_output(rules: Sequence[str]) -> list[Column]:
    """What is measured of the rows that go out."""
    counts = [sf.count_if(sf.col("correlation") == rule).alias(f"{_RULE}{rule}") for rule in rules]
    return [sf.count_if(sf.col(KIND) == LATE_KIND).alias(_LATE), *counts]


def figures_of(progress: Any) -> Figures:
    """The figures in a report of progress, as a query or a listener has it."""
    measured: dict[str, Any] = {}
    for name in (OBSERVED_INPUT, OBSERVED_OUTPUT):
        row = progress.observedMetrics.get(name)
        measured |= row.asDict() if row is not None else {}
    latest = measured.get(_LATEST)
    reached = None if latest is None else datetime.fromtimestamp(latest / 1_000_000, UTC)
    at = datetime.fromisoformat(progress.timestamp)
    operators = progress.stateOperators
    return Figures(
        query=progress.name,
        batch=progress.batchId,
        events=progress.numInputRows,
        outputs={
            name.removeprefix(_RULE): count
            for name, count in measured.items()
            if name.startswith(_RULE)
        },
        late=measured.get(_LATE) or 0,
        state_bytes=sum(each.memoryUsedBytes for each in operators),
        buckets=sum(each.numRowsTotal for each in operators),
        latest=reached,
        lag_seconds=None if reached is None else (at - reached).total_seconds(),
        seconds=progress.batchDuration / 1000,
    )


class FiguresListener(StreamingQueryListener):
    """Hands the figures of every micro-batch to a function: `spark.streams.addListener(...)`."""

    def __init__(self, publish: Callable[[Figures], None]) -> None:
        self._publish = publish

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing has been read yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._publish(figures_of(event.progress))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The last micro-batch has been told of already."""
