"""`correlate` and `rejected`: one call for bounded DataFrames and for streams.

In come a DataFrame of events and a library; out goes a lazy DataFrame. A bounded DataFrame goes to
`batch`, a stream to `streaming`. An option that has a meaning only for the other kind is refused
here, before anything is planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from ensue.errors import UsageError
from ensue.library import LibraryLike
from ensue.spark.batch.job import BatchOptions, Job
from ensue.spark.sql.mapping import Columns
from ensue.spark.streaming.job import StreamOptions, correlate_stream, rejected_stream

_ONLY_BOUNDED = {
    "until": "`until` ends a bounded input, and a stream goes on: an event, of any type, moves its"
    " clock",
    "order": "`order` numbers the outputs of a bounded input, and those of a stream come as they"
    " are settled: sort what has been written by `time` and `id`",
    "partitions": "`partitions` is for a bounded input: in a stream, `buckets` and the setting"
    " `spark.sql.shuffle.partitions` say how keys are spread",
}


def correlate(
    events: DataFrame,
    library: LibraryLike,
    columns: Columns | None = None,
    *,
    type: str | None = None,  # noqa: A002 - the name that users know
    timezone: str | None = None,
    until: str | datetime | None = None,
    correlations: Sequence[str] | None = None,
    order: bool = False,
    whole_events: bool = False,
    arrival: str | None = None,
    partitions: int | None = None,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    idle: str | timedelta | None = None,
    max_jump: str | timedelta | None = None,
    key: bytes | None = None,
) -> DataFrame:
    """The outputs of a library over the events of a DataFrame, one row an output. Nothing runs yet.

    `library` is a `Library`, its text, or the path of its file. `columns` says, by the names of
    event attributes, which column is what where the names differ: a column, a path into structs, a
    column of numbers since 1970 with their unit, or any `Column`:
    `{"time": "ts:ms", "user": "actor.name", "host": sf.lower("node")}`. `type` is the type of all
    events where no column tells it, and `timezone` the zone of times that have no offset.

    `correlations` selects correlations by name; without it, all of them run. With `whole_events` a
    column `event` holds each output as CloudEvents JSON, with undeclared data included. Events of
    equal times are read in the order of the DataFrame, or of the integer column `arrival`. Events
    whose time lies further ahead of those before them than `max_jump` (a duration, or "none") are
    rejected; unless it is given, timers fire up to a million times for a key in such a jump.

    For a bounded DataFrame only: at the end the clock stands at the time of the last event, or at
    `until` (RFC 3339, or a datetime) if that is later. With `order` a column `order` sorts the
    outputs as the other engines put them out. `partitions` is the number of partitions after a
    shuffle; without it, as many as Spark finds that the data needs, up to its own setting.

    For a stream only: `lateness` ("10 s", or a timedelta) is how far events may be out of order,
    and how long they wait for that; without it, "0 s". After `idle` ("1 min") without any event the
    wall clock moves timers, at that distance; without it, only events do. `buckets` is the number
    of parts of the state over which keys are spread; without it, four for each shuffle partition,
    up to 64. With a `key` of 16 bytes or more the state in the checkpoint is signed, and goes on
    only with that key. A stream has three more columns, `ensue_kind`, `ensue_left_out` and
    `ensue_problems`, for late events and rejected rows; `ensue.spark.streaming.split` separates
    them from the outputs.

    Raises `UsageError` for what cannot work, naming column and rule, and `LibraryError` for a
    library with mistakes.
    """
    if events.isStreaming:
        _refuse_bounded_options({"until": until, "order": order, "partitions": partitions})
        return correlate_stream(
            events,
            library,
            columns,
            lateness=lateness,
            buckets=buckets,
            correlations=correlations,
            whole_events=whole_events,
            arrival=arrival,
            type=type,
            timezone=timezone,
            idle=idle,
            max_jump=max_jump,
            key=key,
        )
    if lateness is not None or buckets is not None or idle is not None or key is not None:
        raise UsageError(
            "`lateness` and `buckets` are for streams, as are `idle` and `key`, and the DataFrame"
            " is bounded: it is read in the order of its times, so leave them out, or use"
            " `spark.readStream`"
        )
    options = BatchOptions(
        until, correlations, order, whole_events, arrival, partitions, type, timezone, max_jump
    )
    return Job.of(events, library, columns, options).outputs()


def rejected(
    events: DataFrame,
    library: LibraryLike,
    columns: Columns | None = None,
    *,
    type: str | None = None,  # noqa: A002 - the name that users know
    timezone: str | None = None,
) -> DataFrame:
    """The rows that `correlate` leaves out: `row` as JSON text, and all `problems` with it.

    Over a stream it is a stream of its own, which reads the source once more. The result of
    `correlate` over a stream holds these rows already; `ensue.spark.streaming.split` takes them
    out.
    """
    if events.isStreaming:
        stream_options = StreamOptions(type=type, timezone=timezone)
        return rejected_stream(events, library, columns, stream_options)
    options = BatchOptions(type=type, timezone=timezone)
    return Job.of(events, library, columns, options).rejected()


def _refuse_bounded_options(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            raise UsageError(_ONLY_BOUNDED[name])
