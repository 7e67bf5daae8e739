"""One call for both: `correlate` and `rejected` over a bounded DataFrame, or over a stream.

In comes the `correlate` of bounded DataFrames; out goes one that hands a stream to
`correlate_stream`, and takes `lateness` and `buckets` for it. Each side refuses what has a meaning
only for the other. `rejected` means the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import wraps
from os import PathLike
from typing import Any, Protocol

from pyspark.sql import DataFrame

from ensue.library import Library


class Correlate(Protocol):
    """How `correlate` is called."""

    def __call__(
        self,
        events: DataFrame,
        library: Library | str | PathLike[str],
        columns: Mapping[str, str] | None = None,
        *,
        until: str | datetime | None = None,
        correlations: Sequence[str] | None = None,
        order: bool = False,
        whole_events: bool = False,
        arrival: str | None = None,
        partitions: int | None = None,
        lateness: str | timedelta | None = None,
        buckets: int | None = None,
    ) -> DataFrame: ...


def also_over_streams(bounded: Callable[..., DataFrame]) -> Correlate:
    """The same call, for streams too."""

    @wraps(bounded)
    def correlate(events: DataFrame, *given: Any, **options: Any) -> DataFrame:
        streaming = {name: options[name] for name in ("lateness", "buckets") if name in options}
        if not events.isStreaming and all(each is None for each in streaming.values()):
            kept = {name: each for name, each in options.items() if name not in streaming}
            return bounded(events, *given, **kept)
        # The planner of streams reads the module that is being decorated here.
        from ensue.spark.streaming.job import correlate_stream

        return correlate_stream(events, *given, **options)

    return correlate


class Rejecting(Protocol):
    """How `rejected` is called."""

    def __call__(
        self,
        events: DataFrame,
        library: Library | str | PathLike[str],
        columns: Mapping[str, str] | None = None,
    ) -> DataFrame: ...


def rejects_from_streams(bounded: Rejecting) -> Rejecting:
    """The same call, for streams too."""

    @wraps(bounded)
    def rejected(events: DataFrame, *given: Any, **options: Any) -> DataFrame:
        if not events.isStreaming:
            return bounded(events, *given, **options)
        from ensue.spark.streaming.job import rejected_stream

        return rejected_stream(events, *given, **options)

    return rejected
