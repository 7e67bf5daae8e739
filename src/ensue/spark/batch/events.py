"""`ensue run --engine spark`: events that were read from one file, run on Spark.

In come events; out go outputs in the order of every other engine, and the counts of the run. The
session is the one that is active, or a local one; whoever starts the command through `spark-submit`
gets that cluster. A single file is read, and its refused records told, where every other engine
does it; folders of files are read by executors (`files`).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.errors import JobError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.library import Library
from ensue.spark.batch.job import Job
from ensue.spark.failures import FAILURES, in_words, reason_of
from ensue.spark.worker.event_rows import ARRIVAL, EVENT_DDL, write_event
from ensue.spark.worker.tasks import COUNTED, Task, bound, map_payloads

LOG = "ENSUE_SPARK_LOG"
"""The variable of the environment that says what a local Spark writes of itself, as `WARN`."""
_CHOSEN_ELSEWHERE = ("SPARK_REMOTE", "MASTER", "PYSPARK_GATEWAY_PORT")
"""What is in the environment where somebody has said which Spark to use, `spark-submit` the last.
"""
SHORT_LIVED = {
    # Java would compile for longer than it runs.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def started_session() -> Iterator[SparkSession]:
    """A session for one short job, stopped at its end unless it was there before."""
    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    started = session(SHORT_LIVED)
    try:
        yield started
    finally:
        started.stop()


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is there, or that of `spark-submit`, or a quiet local one over all cores.

    Only the last one takes the settings. Raises `JobError` if it cannot be started.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("ensue")
    if any(name in os.environ for name in _CHOSEN_ELSEWHERE):
        with in_words("the start of a session"):
            return builder.getOrCreate()
    # All of it runs on this machine, whatever its network looks like.
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    cores = os.cpu_count() or 1
    level = os.environ.get(LOG)
    builder = (
        builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", level or "OFF")
        .config("spark.sql.shuffle.partitions", str(cores))
        # With any limit, Spark works out the size of a batch at every row of it.
        .config("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))
        .config(map=dict(settings or {}))
    )
    with nullcontext() if level else _words_of_java_kept():
        return builder.getOrCreate()


@contextmanager
def _words_of_java_kept() -> Iterator[None]:
    """What Java says of its modules and logs when it starts is no news, unless it fails.

    A process that is started here keeps the standard error that it finds. What fails later is told
    by exceptions.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as words:
        kept = os.dup(2)
        os.dup2(words.fileno(), 2)
        try:
            yield
        except FAILURES as failure:
            words.seek(0)
            said = words.read().decode(errors="replace").strip()
            raise JobError(f"Spark cannot be started: {reason_of(failure)}\n{said}") from None
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def run_events(
    library: Library,
    events: Sequence[Event],
    counts: Counts,
    until: int | None = None,
    correlation: str | None = None,
    partitions: int | None = None,
    spark: SparkSession | None = None,
) -> Iterator[Event]:
    """Everything that follows from events that fit their types, in order."""
    if not events:
        return
    job = job_of_events(
        spark or session(), library, events, until, correlation, partitions=partitions
    )
    counts.events += len(events)
    yield from outputs_in_order(job, counts)


def outputs_in_order(job: Job, counts: Counts) -> Iterator[Event]:
    """The outputs of a job that makes whole events with their order, one by one."""
    for row in job.outputs().orderBy("order").select("correlation", "event").toLocalIterator():
        output = decode(row["event"])
        if row["correlation"] == COUNTED:
            counts.without_key[output.source] += int(output.id)
        else:
            counts.outputs += 1
            yield output


def job_of_events(
    spark: SparkSession,
    library: Library,
    events: Sequence[Event],
    until: int | None = None,
    correlation: str | None = None,
    partitions: int | None = None,
) -> Job:
    """A job over events that fit their types, with whole events in order as its outputs."""
    count = len(events)
    rows = pa.table(
        {
            ARRIVAL: pa.array(range(count), pa.int64()),
            "payload": pa.array([write_event(event) for event in events], pa.binary()),
            # What a DataFrame of events has, so that the same plan is made.
            "id": pa.nulls(count, pa.string()),
            "type": pa.nulls(count, pa.string()),
            "time": pa.array([event.time for event in events], pa.timestamp("us", "UTC")),
            "data": pa.nulls(count, pa.string()),
        }
    )
    return EventJob.of(
        spark.createDataFrame(rows),
        library,
        until=None if until is None else datetime_of(until),
        correlations=None if correlation is None else [correlation],
        order=True,
        whole_events=True,
        partitions=partitions,
        counted=True,
    )


class CollectedRun:
    """A run that gathers its events, and runs them all when it is finished.

    It answers as `ensue.engine.run.Run` does for a bounded input, so that whoever feeds it need not
    know the difference. A lateness has no meaning here.
    """

    def __init__(self, library: Library, correlation: str | None = None) -> None:
        self.counts = Counts()
        self.late: list[Event] = []
        self._library = library
        self._correlation = correlation
        self._events: list[Event] = []

    reads_many = True

    def push(self, event: Event) -> list[Event]:
        self._events.append(event)
        return []

    def push_all(self, events: Iterable[Event]) -> list[Event]:
        self._events += events
        return []

    def finish(self, until: int | None = None) -> list[Event]:
        with in_words("the run"):
            found = run_events(self._library, self._events, self.counts, until, self._correlation)
            return list(found)


class EventJob(Job):
    """A job whose input is events in bytes, all of which fit."""

    def _mapped(self, task: Task) -> DataFrame:
        return self.events.select(ARRIVAL, "payload").mapInArrow(
            bound(map_payloads, task), EVENT_DDL
        )

    def _times(self) -> DataFrame:
        return self.events.select(sf.unix_micros("time").alias("latest"))
