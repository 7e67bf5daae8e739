"""A library over a DataFrame: the plan made into DataFrames, and nothing run.

In come a DataFrame of events and a library; out go lazy DataFrames: the outputs, or the rows that
are no events. What cannot work is said here, before a job starts. Each group of the plan is a scan
that keeps the rows it wants, a shuffle by its key, and a worker over each partition; groups that
read outputs of others come after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.engine.run import time_microseconds
from ensue.errors import UsageError
from ensue.library import LibraryLike as LibraryLike
from ensue.library import as_library as as_library
from ensue.spark.conformance import check_columns, conforms, opaque_attributes
from ensue.spark.gathering import GATHERED_BYTES
from ensue.spark.layout import Layout, layout_of
from ensue.spark.mapping import ARRIVAL, EVENT_DDL, OUTPUT_DDL
from ensue.spark.numbered import PACKED_TYPES, with_type
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.plan import Group, Plan, Rule, plan_of
from ensue.spark.reading import Reading, check_arrival, reading_of
from ensue.spark.sql_values import NotInSqlError
from ensue.spark.streaming.dispatch import also_over_streams, rejects_from_streams
from ensue.spark.worker import (
    CLOCK,
    REJECTED_DDL,
    Task,
    bound,
    latest_time,
    map_outputs,
    map_rows,
    rejected_rows,
    run_columns,
    run_events,
)


@also_over_streams
def correlate(
    events: DataFrame,
    library: LibraryLike,
    columns: Mapping[str, str] | None = None,
    *,
    until: str | datetime | None = None,
    correlations: Sequence[str] | None = None,
    order: bool = False,
    whole_events: bool = False,
    arrival: str | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """What follows from the events of a DataFrame: one row an output. Nothing runs yet.

    `library` is a `Library`, its text, or the path of its file. `columns` says which column is
    what, where the names differ: `{"type": "event_name", "time": "ts", "id": "uuid"}`.

    `correlations` names those whose outputs are wanted; without it, all. With `whole_events` a
    column `event` has each output as CloudEvents JSON, with all that came in, also what no type
    declares. Events of equal times are read in the order of the DataFrame, or of the column of
    integers `arrival`.

    Only for a bounded DataFrame: at the end the clock stands at the last event's time, or at
    `until` (RFC 3339, or a datetime) if that is later. With `order` there is a column `order` that
    sorts the outputs as every other engine puts them out. `partitions` is how many there are after
    a shuffle; without it, as many as Spark is set to.

    Only for a stream: `lateness` ("10 s", or a timedelta) is by how much events may be out of
    order, and how long they wait for that; without it, "0 s". `buckets` is into how many parts of
    the state keys are spread; without it, four for each shuffle partition, up to 64. A stream has
    three columns more, `ensue_kind`, `ensue_left_out` and `ensue_problems`, for events that came
    too late and rows that are no events; `ensue.spark.streaming.split` takes them apart.

    Raises `UsageError` for what cannot work, naming column and rule, and `LibraryError` for a
    library with mistakes.
    """
    job = Job.of(
        events,
        library,
        columns,
        until=until,
        correlations=correlations,
        order=order,
        whole_events=whole_events,
        arrival=arrival,
        partitions=partitions,
    )
    return job.outputs()


@rejects_from_streams
def rejected(
    events: DataFrame, library: LibraryLike, columns: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows that `correlate` leaves out: `row` as JSON text, and all `problems` with it.

    Over a stream it is a stream of its own, which reads the source once more; what `correlate`
    makes of a stream has the same rows already, and `ensue.spark.streaming.split` takes them apart.
    """
    return Job.of(events, library, columns).rejected()


@dataclass(frozen=True)
class Job:
    """All that is known before anything runs."""

    events: DataFrame
    layout: Layout
    plan: Plan
    columns: OutputColumns
    task: Task
    until: int | None
    arrival: str | None
    partitions: int
    unreadable: tuple[str, ...]
    readings: Mapping[int, Reading | str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        events: DataFrame,
        library: LibraryLike,
        columns: Mapping[str, str] | None = None,
        *,
        until: str | datetime | None = None,
        correlations: Sequence[str] | None = None,
        order: bool = False,
        whole_events: bool = False,
        arrival: str | None = None,
        partitions: int | None = None,
        counted: bool = False,
        gathered_bytes: int = GATHERED_BYTES,
    ) -> Job:
        """Raises `UsageError` for what cannot work, naming column and rule."""
        if events.isStreaming:
            raise UsageError(
                "the DataFrame is a stream, and `correlate` reads bounded ones: use `spark.read`"
                " for `spark.readStream`"
            )
        loaded = as_library(library).plain()
        plan = plan_of(loaded.checked, correlations)
        layout = layout_of(events, columns)
        check_arrival(events, arrival)
        types = loaded.checked.types
        rules = [rule for group in plan.groups for rule in group.rules if not _is_fed(plan, rule)]
        check_columns(layout, types, rules)
        # Whole events may hold anything; bytes carry it as it is.
        unreadable = [*layout.opaque, *opaque_attributes(layout, types)]
        unreadable += ["whole events are asked for"] if whole_events else []
        task = Task(
            loaded.tables(),
            plan.selected,
            0,
            mode="count" if counted else "rows",
            with_order=order,
            with_event=whole_events,
            gathered_bytes=gathered_bytes,
        )
        readings = {
            group.number: _reading(group, layout, plan, unreadable) for group in plan.groups
        }
        return cls(
            events,
            layout,
            plan,
            output_columns(plan, with_order=order, with_event=whole_events),
            task,
            None if until is None else time_microseconds(until),
            arrival,
            partitions or _shuffle_partitions(events),
            tuple(unreadable),
            readings,
        )

    def outputs(self) -> DataFrame:
        selected = set(self.plan.selected)
        wanted = [
            group
            for group in self.plan.groups
            if any(rule.name in selected for rule in group.rules)
        ]
        found = [self._run(group, self.task.mode, self.columns.ddl) for group in wanted]
        return reduce(DataFrame.unionAll, found)

    def rejected(self) -> DataFrame:
        types = self.plan.library.types
        rows = self.events
        if not self.unreadable:
            rows = rows.filter(~conforms(self.layout, types))
        read = rows.select(self.layout.row())
        return read.mapInArrow(bound(rejected_rows, self.task), REJECTED_DDL)

    # --- one group --------------------------------------------------------------------------------

    def _run(self, group: Group, mode: str, ddl: str) -> DataFrame:
        task = self.task._replace(group=group.number, mode=mode)
        reading = self.readings[group.number]
        if isinstance(reading, str):
            return self._run_events(group, task, ddl)
        return self._run_columns(group, task, reading, ddl)

    def _run_columns(self, group: Group, task: Task, reading: Reading, ddl: str) -> DataFrame:
        arrival = self._arrival()
        rows = self.events
        if self._compares_groups(task):
            # Numbered before rows are dropped, which costs the push-down into files.
            rows = rows.withColumn(ARRIVAL, arrival)
            arrival = sf.col(ARRIVAL)
        travelling = dict(reading.travelling)
        packed = self._packed(reading)
        if packed:
            arrival = with_type(arrival, travelling.pop("type"), packed)
        names = list(travelling)
        columns = [column.alias(f"c{n}") for n, column in enumerate(travelling.values())]
        rows = rows.filter(reading.wanted).select(*columns, arrival.alias(ARRIVAL))
        keys = [made(sf.col(f"c{names.index(name)}")) for name, made in reading.keys]
        rows = rows.repartition(self.partitions, *keys) if keys else rows.repartition(1)
        names.append(ARRIVAL)
        if group.has_timers:
            rows = self._with_clock(rows)
            names.append(CLOCK)
        task = task._replace(names=tuple(names), nulls=reading.nulls, packed=packed)
        return rows.mapInArrow(bound(run_columns, task), ddl)

    def _packed(self, reading: Reading) -> tuple[str, ...]:
        """The types that travel as a number in the column of arrivals; none if they cannot."""
        by_type = any(name == "type" for name, _ in reading.keys)
        can = self.arrival is None and not by_type and len(reading.types) <= PACKED_TYPES
        return reading.types if can else ()

    def _run_events(self, group: Group, task: Task, ddl: str) -> DataFrame:
        wanted = self._mapped(task)
        names = [rule.name for rule in group.fed_by]
        for feeder in sorted({self.plan.by_rule[name].number for name in names}):
            made = self._run(self.plan.groups[feeder], "feed", OUTPUT_DDL)
            fed = made.filter(sf.col("author").isin(*names))
            wanted = wanted.unionAll(fed.mapInArrow(bound(map_outputs, task), EVENT_DDL))
        keyed = group.is_keyed
        rows = wanted.repartition(self.partitions, "bucket") if keyed else wanted.repartition(1)
        rows = rows.drop("bucket")
        if group.has_timers:
            rows = self._with_clock(rows)
        return rows.mapInArrow(bound(run_events, task), ddl)

    def _mapped(self, task: Task) -> DataFrame:
        """The events that a group wants, in bytes."""
        rows = self.events.select(self.layout.row(), self._arrival().alias(ARRIVAL))
        return rows.mapInArrow(bound(map_rows, task), EVENT_DDL)

    def _compares_groups(self, task: Task) -> bool:
        """Whether places of one group are held against those of another, which drops other rows."""
        placed = task.with_order or task.mode == "feed"
        return placed and self.arrival is None and len(self.plan.groups) > 1

    def _arrival(self) -> Column:
        if self.arrival is not None:
            return sf.col(f"`{self.arrival}`").cast("bigint")
        return sf.monotonically_increasing_id()

    def _with_clock(self, rows: DataFrame) -> DataFrame:
        """Every row with the time at which the clock of the whole stream stands at its end."""
        latest = sf.max("latest")
        if self.until is not None:
            latest = sf.greatest(latest, sf.lit(self.until))
        clock = self._times().agg(latest.alias(CLOCK))
        return rows.crossJoin(sf.broadcast(clock))

    def _times(self) -> DataFrame:
        """A column `latest` with the times of all events, or the latest of each partition."""
        if self.unreadable:
            read = self.events.select(self.layout.row())
            return read.mapInArrow(bound(latest_time, self.task), "latest bigint")
        valid = self.events.filter(conforms(self.layout, self.plan.library.types))
        return valid.select(self.layout.time.alias("latest"))


def _reading(group: Group, layout: Layout, plan: Plan, unreadable: Sequence[str]) -> Reading | str:
    """How a group reads the DataFrame, or why Python must read it."""
    if group.fed_by:
        fed = ", ".join(f"`{rule.name}`" for rule in group.fed_by)
        return f"it also reads what {fed} put out"
    if unreadable:
        return "; ".join(unreadable)
    try:
        return reading_of(group, layout, plan.library.types)
    except NotInSqlError as reason:
        return str(reason)


def _is_fed(plan: Plan, rule: Rule) -> bool:
    """Whether its events may come from other rules, so that no column need hold them."""
    return any(rule.name in readers for readers in plan.library.feeds.values())


def _shuffle_partitions(events: DataFrame) -> int:
    return int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
