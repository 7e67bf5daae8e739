"""`explain`: the plan of `correlate` as text. Nothing runs.

In come the arguments of `correlate`, for a bounded DataFrame or a stream; out goes text: the groups
of rules that share a shuffle, what runs in SQL and what in Python and why, which columns are
shuffled, and what timers, buckets and rules without a key cost. On request Spark's own plan
follows. What `correlate` refuses is refused here too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from ensue.library import LibraryLike
from ensue.spark.batch.job import BatchOptions, Job, shuffle_partitions
from ensue.spark.failures import FAILURES
from ensue.spark.plan import RuleGroup
from ensue.spark.sql.mapping import Columns
from ensue.spark.sql.scan import Scan
from ensue.spark.streaming.groups import StreamGroup
from ensue.spark.streaming.job import StreamJob, StreamOptions
from ensue.spark.worker.tasks import runs_in_columns

_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNLIMITED = 2**31 - 1
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
MANY_STORES = 100
"""From this number of stores on, most of a micro-batch is spent on them, on most clusters."""


def explain(
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
    spark_plan: bool = False,
) -> str:
    """The plan of `correlate` with these arguments, which it takes all, as text.

    With `spark_plan`, Spark's physical plan stands at the end: the scan with the filters and
    columns that are pushed down to it, the shuffles, and the workers.
    """
    if events.isStreaming:
        stream_options = StreamOptions(
            lateness,
            buckets,
            correlations,
            whole_events,
            arrival,
            type,
            timezone,
            max_jump=max_jump,
            idle=idle,
            key=key,
        )
        streamed = StreamJob.of(events, library, columns, stream_options)
        lines, outputs = list(_stream(streamed)), streamed.outputs()
        if (stores := shuffle_partitions(events)) >= MANY_STORES:
            lines += [
                "",
                f"setting: with `{_SHUFFLE_PARTITIONS}` at {stores}, a micro-batch has so many"
                " tasks with a store of state each, however few events it has; a few for each core"
                " are enough, and the first start fixes it",
            ]
    else:
        options = BatchOptions(
            until, correlations, order, whole_events, arrival, partitions, type, timezone, max_jump
        )
        job = Job.of(events, library, columns, options)
        lines, outputs = list(_bounded(job)), job.outputs()
        if (limit := _batch_limit(events)) is not None:
            lines += ["", limit]
    if spark_plan:
        lines += ["", "Spark's plan", *_plan_of_spark(outputs)]
    return "\n".join(lines)


def _batch_limit(events: DataFrame) -> str | None:
    """What the limit on the bytes of an Arrow batch costs; None if there is none."""
    try:
        limit = events.sparkSession.conf.get(_BATCH_BYTES)
    except FAILURES:
        # A Spark without this setting has no limit.
        return None
    # A limit with a unit, as `256m`, is below.
    if limit is None or (limit.isdigit() and int(limit) >= _UNLIMITED):
        return None
    return (
        f"setting: with `{_BATCH_BYTES}` below {_UNLIMITED}, Spark measures every row that it hands"
        " to Python, a third of the time of a job"
    )


def _plan_of_spark(outputs: DataFrame) -> Iterator[str]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        outputs.explain("formatted")
    yield from (line.rstrip() for line in printed.getvalue().strip().splitlines())


# --- bounded DataFrames ---------------------------------------------------------------------------


def _bounded(job: Job) -> Iterator[str]:
    groups = job.plan.groups
    rules = sum(len(group.rules) for group in groups)
    yield f"{_counted(rules, 'rule')} in {_counted(len(groups), 'shuffle')}"
    for group in groups:
        yield ""
        yield from _group(job, group)


def _group(job: Job, group: RuleGroup) -> Iterator[str]:
    key = _key(group)
    place = f"by {key}, {_partitions(job)}" if key else "no key, one partition"
    after = f" (after stage {group.stage})" if group.stage else ""
    yield f"shuffle {group.number + 1}{after}: {place}"
    yield f"  rules: {', '.join(rule.name for rule in group.rules)}"
    if not key:
        yield "  cost: every event that these rules want goes through one worker, in one pass"
    if group.fed_by:
        fed = ", ".join(rule.name for rule in group.fed_by)
        yield f"  also reads what these put out, which run once more for it: {fed}"
    scan = job.scans[group.number]
    if isinstance(scan, Scan):
        yield from _in_sql(scan)
    else:
        yield f"  rows are read in Python before the shuffle, because {scan}"
    if group.has_timers:
        yield "  clock: timers need the latest time of all events, one more pass over the input"
    fast = isinstance(scan, Scan) and runs_in_columns(job.plan, group, job.task)
    yield f"  engine: {'batch, in columns' if fast else 'step, event by event'}"


def _partitions(job: Job) -> str:
    if job.partitions is not None:
        return _counted(job.partitions, "partition")
    return f"up to {_counted(shuffle_partitions(job.events), 'partition')}"


# --- streams --------------------------------------------------------------------------------------


def _stream(job: StreamJob) -> Iterator[str]:
    rules = sum(len(each.group.rules) for each in job.groups)
    yield f"{_counted(rules, 'rule')} in one shuffle and one state, whatever their keys"
    yield f"lateness: {job.task.lateness / 1_000_000:g} s; events wait in the state for as long"
    if job.python_reason:
        yield f"rows are read in Python before the shuffle, because {job.python_reason}"
    for group in job.groups:
        yield ""
        yield from _stream_group(job, group)


def _stream_group(job: StreamJob, each: StreamGroup) -> Iterator[str]:
    key = _key(each.group)
    spread = _counted(each.buckets(job.task.buckets), "bucket")
    yield (
        f"state {each.group.number + 1}: by {key}, {spread}"
        if key
        else (f"state {each.group.number + 1}: together, one bucket")
    )
    yield f"  rules: {', '.join(rule.name for rule in each.group.rules)}"
    if not key:
        yield "  cost: every event that these rules want goes through one worker, in one pass"
    if job.scans:
        left_out = (
            "what no rule wants or has no key is dropped, what does not fit is put out as such"
        )
        yield from _in_sql(job.scans[each.group.number], left_out)


# --- both -----------------------------------------------------------------------------------------


def _key(group: RuleGroup) -> str:
    return " or ".join(f"`{', '.join(names)}`" for names in group.key_set)


def _in_sql(
    scan: Scan, left_out: str = "what no rule wants, has no key or does not fit is dropped"
) -> Iterator[str]:
    yield f"  before the shuffle, in SQL: {left_out}"
    for text in scan.python_predicates:
        yield f"  not in SQL, asked in the worker: {text}"
    yield f"  columns that travel: {', '.join(name for name, _ in scan.shuffled)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
