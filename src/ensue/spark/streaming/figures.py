"""Figures of each micro-batch of a stream, for people and for monitoring.

In come Spark's progress reports; out go `Figures`: events read, late events, rejected rows,
outputs, the size of the state and the lag, in all and by rule. `FiguresListener` passes them to a
function as Spark reports them; `figures_of` takes them from one report. Workers count what they
read and put out (`measures`): aggregates that Spark observes would cost time at every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener

from ensue.spark.streaming.measures import read_measures

OBSERVED_MEASURES = "ensue_measures"
_MEASURES = "measures"


@dataclass(frozen=True)
class RuleFigures:
    """One rule in one micro-batch.

    `events` counts the events that the rule wants, late ones included, as far as SQL can tell.
    `state_bytes` is the size of its keys in the checkpoint. `latest` is the latest time of these
    events, and `lag_seconds` how far it lay behind the wall clock; both are None without events.
    """

    events: int
    late: int
    outputs: int
    state_bytes: int
    latest: datetime | None
    lag_seconds: float | None


@dataclass(frozen=True)
class Figures:
    """One micro-batch.

    `events` counts the rows that were read, and `rejected` the rows that are no events. `late` and
    `rejected` count a row once. `state_bytes` is Spark's figure of memory, waiting events included.
    `latest` and `lag_seconds` are None if no event came. `parts` is how many parts the buckets that
    were called have, and `parts_read` and `parts_written` how many of them were needed.
    """

    query: str | None
    batch: int
    events: int
    late: int
    rejected: int
    rules: Mapping[str, RuleFigures]
    state_bytes: int
    buckets: int
    parts: int
    parts_read: int
    parts_written: int
    latest: datetime | None
    lag_seconds: float | None
    seconds: float

    @property
    def outputs(self) -> Mapping[str, int]:
        """The number of outputs of each rule."""
        return {name: rule.outputs for name, rule in self.rules.items()}

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for a log or a gauge; times as RFC 3339."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def observed_measures(measures: Column) -> list[Column]:
    """Measures from workers: one text for each bucket, and no work for each output."""
    return [sf.collect_list(measures).alias(_MEASURES)]


def figures_of(progress: Any) -> Figures:
    """The figures in a progress report of a query or a listener."""
    observed = progress.observedMetrics.get(OBSERVED_MEASURES)
    measures = read_measures([] if observed is None else observed[_MEASURES] or [])
    at = datetime.fromisoformat(progress.timestamp)
    operators = progress.stateOperators
    rules = {
        name: RuleFigures(
            events=each.read,
            late=each.late,
            outputs=each.outputs,
            state_bytes=each.state_bytes,
            latest=_instant(each.latest),
            lag_seconds=_behind(each.latest, at),
        )
        for name, each in sorted(measures.rules.items())
    }
    return Figures(
        query=progress.name,
        batch=progress.batchId,
        events=measures.rows,
        late=measures.late,
        rejected=measures.rejected,
        rules=rules,
        state_bytes=sum(each.memoryUsedBytes for each in operators),
        buckets=measures.buckets,
        parts=measures.parts,
        parts_read=measures.parts_read,
        parts_written=measures.parts_written,
        latest=_instant(measures.latest),
        lag_seconds=_behind(measures.latest, at),
        seconds=progress.batchDuration / 1000,
    )


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC)


def _behind(micros: int | None, at: datetime) -> float | None:
    reached = _instant(micros)
    return None if reached is None else (at - reached).total_seconds()


class FiguresListener(StreamingQueryListener):
    """Passes the figures of every micro-batch to a function: `spark.streams.addListener(...)`.

    A listener gets reports of all queries of a session; those without `correlate` are skipped.
    """

    def __init__(self, publish: Callable[[Figures], None]) -> None:
        self._publish = publish

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """There are no figures at the start."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if OBSERVED_MEASURES in event.progress.observedMetrics:
            self._publish(figures_of(event.progress))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """There are no figures without events."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The figures of the last micro-batch have come already."""
