"""A list of events, run on Spark.

In come events that a reader of `ensue.events` has accepted, encoded as bytes; out go outputs in the
order of the other engines, and the counts of the run. Files that executors can read themselves go
through `files` instead, where no event passes through the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.engine.timing.jumps import NONE, UNBOUNDED, check_advance, jump_problem
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform_value
from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.events.types import TypeSystem
from ensue.library import Library
from ensue.spark.batch.job import BatchOptions, Job
from ensue.spark.failures import as_job_error
from ensue.spark.session import open_session
from ensue.spark.worker.event_rows import ARRIVAL, EVENT_DDL, write_event
from ensue.spark.worker.remote_call import for_workers
from ensue.spark.worker.tasks import UNKEYED_COUNT, GroupTask, map_payloads, payload_types


def outputs_of_events(
    library: Library,
    events: Sequence[Event],
    counts: Counts,
    until: int | None = None,
    correlation: str | None = None,
    spark: SparkSession | None = None,
) -> Iterator[Event]:
    """The outputs of a library over events that fit their types, in order."""
    if not events:
        return
    job = job_of_events(spark or open_session(), library, events, until, correlation)
    counts.events += len(events)
    yield from ordered_outputs(job, counts)


def _typed(output: Event, types: TypeSystem) -> Event:
    """An output that was JSON, where times are text. It may lack declared attributes."""
    if not isinstance(output.data, Mapping):
        return output
    declared = types.attributes(output.type) if output.type in types else {}
    values = {
        name: conform_value(value, declared[name]) if name in declared else value
        for name, value in output.data.items()
    }
    return msgspec.structs.replace(output, data=values)


def ordered_outputs(job: Job, counts: Counts) -> Iterator[Event]:
    """The outputs of a job with the options `order` and `whole_events`, one by one."""
    rows = job.outputs_and_counts().orderBy("order").select("correlation", "event")
    for row in rows.toLocalIterator():
        output = decode(row["event"])
        if row["correlation"] == UNKEYED_COUNT:
            counts.without_key[output.source] += int(output.id)
        else:
            counts.outputs += 1
            yield _typed(output, job.plan.library.types)


def job_of_events(
    spark: SparkSession,
    library: Library,
    events: Sequence[Event],
    until: int | None = None,
    correlation: str | None = None,
) -> Job:
    """A job over events that fit their types, with whole events in order as its outputs."""
    count = len(events)
    rows = pa.table(
        {
            ARRIVAL: pa.array(range(count), pa.int64()),
            "payload": pa.array([write_event(event) for event in events], pa.binary()),
            # The columns of a DataFrame of events, for the planner.
            "id": pa.nulls(count, pa.string()),
            "type": pa.nulls(count, pa.string()),
            "time": pa.array([event.time for event in events], pa.timestamp("us", "UTC")),
            "data": pa.nulls(count, pa.string()),
        }
    )
    options = BatchOptions(
        until=None if until is None else datetime_of(until),
        correlations=None if correlation is None else [correlation],
        order=True,
        whole_events=True,
        count_unkeyed=True,
        # The times of events in a list were looked at in the list.
        max_jump=NONE,
    )
    return EncodedEventJob.of(spark.createDataFrame(rows), library, options=options)


class SparkRun:
    """A run that collects its events, and runs all of them on Spark when it is finished.

    It has the methods of `ensue.engine.run.Run` that a bounded input needs. A lateness has no
    meaning here.
    """

    def __init__(
        self, library: Library, correlation: str | None = None, max_jump: float = UNBOUNDED
    ) -> None:
        self.counts = Counts()
        self.late: list[Event] = []
        self._library = library
        self._correlation = correlation
        self._max_jump = max_jump
        self._events: list[Event] = []

    reads_many = True

    @property
    def max_jump(self) -> float:
        return self._max_jump

    def next_due(self) -> int | None:
        """Raises `UsageError`: the timers are in executors, and gone with their tasks."""
        raise UsageError("a run on Spark does not know its timers: choose another engine")

    def push(self, event: Event) -> list[Event]:
        return list(self.push_iter(event))

    def push_all(self, events: Iterable[Event]) -> list[Event]:
        return list(self.push_all_iter(events))

    def finish(self, until: int | None = None) -> list[Event]:
        return list(self.finish_iter(until))

    def push_iter(self, event: Event) -> Iterator[Event]:
        latest = self._events[-1].time if self._events else event.time
        if event.time - latest > self._max_jump:
            raise EventError([jump_problem(event.time, latest, self._max_jump)])
        self._events.append(event)
        return iter(())

    def push_all_iter(self, events: Iterable[Event]) -> Iterator[Event]:
        self._events += events
        return iter(())

    def finish_iter(self, until: int | None = None) -> Iterator[Event]:
        if until is not None and self._events:
            check_advance(until, self._events[-1].time, self._max_jump)
        with as_job_error("the run"):
            yield from outputs_of_events(
                self._library, self._events, self.counts, until, self._correlation
            )


class EncodedEventJob(Job):
    """A job whose input is events as bytes, all of which fit their types."""

    def _events_of_group(self, task: GroupTask) -> DataFrame:
        return self.events.select(ARRIVAL, "payload").mapInArrow(
            for_workers(map_payloads, task), EVENT_DDL
        )

    def event_types(self) -> Counter[str]:
        payloads = self.events.select("payload")
        found = payloads.mapInArrow(for_workers(payload_types, self.task), "type string, n bigint")
        summed = found.groupBy("type").agg(sf.sum("n").alias("n"))
        return Counter({row["type"]: row["n"] for row in summed.collect()})

    def _times(self) -> DataFrame:
        return self.events.select(sf.unix_micros("time").alias("latest"))
