"""How a library would run over a DataFrame, in words, before it does.

In come the same things as for `correlate`; out goes text: the groups of rules that share a shuffle,
what runs in SQL and what in Python and why, which columns travel, and what timers and rules without
a key cost. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from ensue.spark.job import Job, LibraryLike
from ensue.spark.plan import Group
from ensue.spark.reading import Reading


def explain(
    events: DataFrame,
    library: LibraryLike,
    columns: Mapping[str, str] | None = None,
    *,
    correlations: Sequence[str] | None = None,
    order: bool = False,
    whole_events: bool = False,
    partitions: int | None = None,
) -> str:
    """The plan of `correlate` with the same arguments, as text."""
    job = Job.of(
        events,
        library,
        columns,
        correlations=correlations,
        order=order,
        whole_events=whole_events,
        partitions=partitions,
    )
    shuffles = len(job.plan.groups)
    rules = sum(len(group.rules) for group in job.plan.groups)
    lines = [f"{_counted(rules, 'rule')} in {_counted(shuffles, 'shuffle')}"]
    for group in job.plan.groups:
        lines += ["", *_group(job, group)]
    return "\n".join(lines)


def _group(job: Job, group: Group) -> Iterator[str]:
    key = " or ".join(f"`{', '.join(names)}`" for names in group.key_set)
    place = f"by {key}, {_counted(job.partitions, 'partition')}" if key else "no key, one partition"
    after = f" (after stage {group.stage})" if group.stage else ""
    yield f"shuffle {group.number + 1}{after}: {place}"
    yield f"  rules: {', '.join(rule.name for rule in group.rules)}"
    if not key:
        yield "  cost: every event that these rules want goes through one worker, in one pass"
    if group.fed_by:
        fed = ", ".join(rule.name for rule in group.fed_by)
        yield f"  also reads what these put out, which run once more for it: {fed}"
    reading = job.readings[group.number]
    if isinstance(reading, Reading):
        yield from _in_sql(reading)
    else:
        yield f"  rows are read in Python before the shuffle, because {reading}"
    if group.has_timers:
        yield "  clock: timers need the latest time of all events, one more pass over the input"
    fast = isinstance(reading, Reading) and not job.task.with_order and not job.columns.structs
    yield f"  engine: {'batch, in columns' if fast else 'step, event by event'}"


def _in_sql(reading: Reading) -> Iterator[str]:
    yield "  before the shuffle, in SQL: what no rule wants, has no key or does not fit is dropped"
    for text in reading.in_python:
        yield f"  not in SQL, asked in the worker: {text}"
    yield f"  columns that travel: {', '.join(name for name, _ in reading.travelling)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
