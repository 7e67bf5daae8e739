"""A library over a bounded DataFrame, planned as lazy DataFrames. Nothing runs here.

In come a DataFrame of events and a library; out go the outputs, or the rejected rows. What cannot
work is refused here, before a job starts. Each group of the plan is a scan that keeps the rows its
rules want, a shuffle by their key, and a worker function over each partition; a group that reads
outputs of other groups comes after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.engine.inputs import time_microseconds
from ensue.engine.timing.jumps import UNBOUNDED, JumpLike, max_jump
from ensue.errors import UsageError
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.mapping import refuse_derived
from ensue.library import LibraryLike, as_library
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.plan import JobPlan, RuleGroup, plan_of
from ensue.spark.sql.conformance import (
    attributes_read_in_python,
    check_columns,
    conforms,
    mention_unusable_keys,
)
from ensue.spark.sql.layout import DataFrameLayout, layout_of
from ensue.spark.sql.mapping import Columns, attribute_names, mapped_events
from ensue.spark.sql.scan import Scan, check_arrival, scan_of
from ensue.spark.sql.values import NotInSqlError
from ensue.spark.worker.event_rows import (
    ARRIVAL,
    BEGIN,
    EVENT_DDL,
    IN_FILE,
    OUTPUT_DDL,
    REACH,
    REJECTED_DDL,
)
from ensue.spark.worker.external_sort import SORT_BUFFER_BYTES
from ensue.spark.worker.packed_types import can_be_packed, pack_type
from ensue.spark.worker.remote_call import for_workers
from ensue.spark.worker.row_scans import (
    FileRowsTask,
    find_reach,
    latest_time,
    rejected_in_files,
    rejected_rows,
    time_runs,
)
from ensue.spark.worker.tasks import (
    CLOCK,
    UNKEYED_COUNT,
    GroupTask,
    map_outputs,
    map_rows,
    run_columns,
    run_events,
)


@dataclass(frozen=True)
class BatchOptions:
    """The options of `correlate` over a bounded DataFrame, and three for commands and tests.

    `count_unkeyed` adds rows that say how many events had no key, by rule. `sort_buffer_bytes` is
    how much of a partition is sorted in memory. `packs_types` says that the arrivals leave the bits
    free which a packed type takes.
    """

    until: str | datetime | None = None
    correlations: Sequence[str] | None = None
    order: bool = False
    whole_events: bool = False
    arrival: str | None = None
    partitions: int | None = None
    type: str | None = None
    timezone: str | None = None
    max_jump: JumpLike = None
    count_unkeyed: bool = False
    packs_types: bool = False
    sort_buffer_bytes: int = SORT_BUFFER_BYTES


@dataclass(frozen=True)
class Job:
    """The plan of a library over a DataFrame.

    `python_reasons` says why rows must be read in Python, if they must. `scans` has, for each group
    by its number, its scan in SQL, or the reason why Python reads its rows. Without `partitions`,
    Spark puts the partitions of a shuffle together by their sizes, up to the number of its setting.
    """

    events: DataFrame
    layout: DataFrameLayout
    plan: JobPlan
    columns: OutputColumns
    task: GroupTask
    until: int | None
    arrival: str | None
    packs_types: bool
    partitions: int | None
    max_jump: float
    python_reasons: tuple[str, ...]
    scans: Mapping[int, Scan | str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        events: DataFrame,
        library: LibraryLike,
        columns: Columns | None = None,
        options: BatchOptions | None = None,
    ) -> Self:
        """Raises `UsageError` for what cannot work, naming column and rule."""
        options = options or BatchOptions()
        loaded = as_library(library).plain()
        declared = attribute_names(loaded.checked.types)
        refuse_derived(columns or {}, loaded.checked.types)
        mapped = mapped_events(events, columns, options.type, options.timezone, declared)
        events = mapped.events
        if events.isStreaming:
            raise UsageError(
                "the DataFrame is a stream, and this call reads bounded ones: use `spark.read`"
                " for `spark.readStream`"
            )
        plan = plan_of(loaded.checked, options.correlations)
        layout = layout_of(events, mapped.renames, mapped.times)
        check_arrival(events, options.arrival)
        types = loaded.checked.types
        check_columns(layout, types, plan.rules)
        mention_unusable_keys(layout, loaded.checked)
        python_reasons = [*layout.python_reasons, *attributes_read_in_python(layout, types)]
        # Undeclared data of any kind is sent on, which only bytes carry unchanged.
        if options.whole_events and any(group.sends_on for group in plan.groups):
            python_reasons.append("whole events are asked for, and a rule sends events on")
        task = GroupTask(
            loaded.tables(),
            plan.selected,
            0,
            mode="count" if options.count_unkeyed else "rows",
            with_order=options.order,
            with_event=options.whole_events,
            sort_buffer_bytes=options.sort_buffer_bytes,
            times=mapped.times,
        )
        return cls(
            events,
            layout,
            plan,
            output_columns(plan, with_order=options.order, with_event=options.whole_events),
            task,
            None if options.until is None else time_microseconds(options.until),
            options.arrival,
            options.packs_types or options.arrival is None,
            options.partitions,
            max_jump(loaded.checked, options.max_jump, bounded=True),
            tuple(python_reasons),
            {group.number: _scan(group, layout, plan, python_reasons) for group in plan.groups},
        )

    def outputs(self) -> DataFrame:
        made = self.outputs_and_counts()
        if self.task.mode != "count":
            return made
        return made.filter(sf.col("correlation") != UNKEYED_COUNT)

    def outputs_and_counts(self) -> DataFrame:
        """The outputs and, with `count_unkeyed`, a row for each rule that missed keys."""
        selected = set(self.plan.selected)
        wanted = [
            group
            for group in self.plan.groups
            if any(rule.name in selected for rule in group.rules)
        ]
        found = [self._run(group, self.task.mode, self.columns.ddl) for group in wanted]
        if not found:
            # Every rule is internal: the library keeps all of its outputs to itself.
            return self.events.sparkSession.createDataFrame([], self.columns.ddl)
        return reduce(DataFrame.unionAll, found)

    def rejected(self) -> DataFrame:
        """The rows that are no events."""
        task = self.task._replace(max_jump=self.max_jump)
        rows, reach = self._doubtful()
        read = rows.select(self.layout.row(), *reach)
        return read.mapInArrow(for_workers(rejected_rows, task), REJECTED_DDL)

    def rejected_in_files(self, columns: Mapping[str, str], mapping: UserMapping) -> DataFrame:
        """The rows that are no events, with arrivals, as they are in files of a mapping.

        `columns` says for each column of the files which column of the events has its values.
        """
        task = self.task._replace(max_jump=self.max_jump)
        rows, reach = self._doubtful()
        left_out = {origin for name, origin in self.layout.renamed if name in self.layout.left_out}
        kept = [
            sf.col(f"`{origin}`").alias(name)
            for name, origin in columns.items()
            if origin not in left_out
        ]
        in_file = sf.struct(*kept).alias(IN_FILE)
        read = rows.select(self.layout.row(), self._arrival().alias(ARRIVAL), in_file, *reach)
        ddl = f"{REJECTED_DDL}, `{ARRIVAL}` bigint"
        rows_task = FileRowsTask(tuple(task), mapping.plain)
        return read.mapInArrow(for_workers(rejected_in_files, rows_task), ddl)

    def _doubtful(self) -> tuple[DataFrame, list[Column]]:
        """The rows that may be no events, and columns of the times between which the clock goes."""
        types = self.plan.library.types
        rows, reach = self.events, []
        if self.is_bounded:
            rows = rows.crossJoin(sf.broadcast(self._reach()))
            reach = [sf.col(REACH), sf.col(BEGIN)]
        if not self.python_reasons:
            wrong = ~conforms(self.layout, types)
            if reach:
                wrong = wrong | ~self.layout.time.between(reach[1], reach[0])
            rows = rows.filter(wrong)
        return rows, reach

    def latest_time(self) -> int | None:
        """The latest time of all events that are read. Runs a query."""
        latest = self._reach() if self.is_bounded else self._times().agg(sf.max("latest"))
        found: int | None = latest.collect()[0][0]
        return found

    def event_types(self) -> Counter[str]:
        """How many events there are of each type. Runs a query."""
        rows = self.events
        if not self.python_reasons:
            rows = rows.filter(conforms(self.layout, self.plan.library.types))
        types = rows.select(self.layout.context["type"].column.alias("type"))
        found = types.groupBy("type").count().collect()
        return Counter({row[0]: row[1] for row in found if row[0] is not None})

    # --- one group --------------------------------------------------------------------------------

    def _run(self, group: RuleGroup, mode: str, ddl: str) -> DataFrame:
        task = self.task._replace(group=group.number, mode=mode)
        scan = self.scans[group.number]
        if isinstance(scan, str):
            return self._run_events(group, task, ddl)
        return self._run_columns(group, task, scan, ddl)

    def _run_columns(self, group: RuleGroup, task: GroupTask, scan: Scan, ddl: str) -> DataFrame:
        arrival = self._arrival()
        rows = self.events
        if self._compares_groups(task):
            # Numbered before rows are dropped, at the price of the push-down into files.
            rows = rows.withColumn(ARRIVAL, arrival)
            arrival = sf.col(ARRIVAL)
        shuffled = dict(scan.shuffled)
        packed = self.packed_types(scan)
        if packed:
            arrival = pack_type(arrival, shuffled.pop("type"), packed)
        names = list(shuffled)
        columns = [column.alias(f"c{n}") for n, column in enumerate(shuffled.values())]
        rows = rows.filter(scan.wanted).select(*columns, arrival.alias(ARRIVAL))
        travelling = {name: sf.col(f"c{number}") for number, name in enumerate(names)}
        keys = [each.of(travelling) for each in scan.keys]
        rows = self._spread(rows, *keys) if keys else rows.repartition(1)
        names.append(ARRIVAL)
        rows, added = self._with_clock(group, rows)
        names += added
        task = task._replace(names=tuple(names), nulls=scan.nulls, packed=packed)
        return rows.mapInArrow(for_workers(run_columns, task), ddl)

    def packed_types(self, scan: Scan) -> tuple[str, ...]:
        """The types that are packed as numbers into the column of arrivals, if they can be."""
        by_type = any("type" in each.names for each in scan.keys)
        fits = self.packs_types and not by_type and can_be_packed(scan.types)
        return scan.types if fits else ()

    def _run_events(self, group: RuleGroup, task: GroupTask, ddl: str) -> DataFrame:
        wanted = self._events_of_group(task)
        names = [rule.name for rule in group.fed_by]
        for feeder in sorted({self.plan.by_rule[name].number for name in names}):
            made = self._run(self.plan.groups[feeder], "feed", OUTPUT_DDL)
            fed = made.filter(sf.col("author").isin(*names))
            wanted = wanted.unionAll(fed.mapInArrow(for_workers(map_outputs, task), EVENT_DDL))
        keyed = group.is_keyed
        rows = self._spread(wanted, sf.col("bucket")) if keyed else wanted.repartition(1)
        rows, _ = self._with_clock(group, rows.drop("bucket"))
        return rows.mapInArrow(for_workers(run_events, task), ddl)

    def _spread(self, rows: DataFrame, *keys: Column) -> DataFrame:
        """The rows shuffled by keys.

        A number that a DataFrame asks for is a number of tasks, however little each has to do; two
        hundred, as in a session with Spark's own settings, would cost more than the rules.
        """
        if self.partitions is None:
            return rows.repartition(*keys)
        return rows.repartition(self.partitions, *keys)

    def _events_of_group(self, task: GroupTask) -> DataFrame:
        """The events that a group wants, as bytes."""
        rows = self.events.select(self.layout.row(), self._arrival().alias(ARRIVAL))
        return rows.mapInArrow(for_workers(map_rows, task), EVENT_DDL)

    def _compares_groups(self, task: GroupTask) -> bool:
        """Whether positions of different groups are compared, whose scans drop different rows."""
        has_positions = task.with_order or task.mode == "feed"
        return has_positions and self.arrival is None and len(self.plan.groups) > 1

    def _arrival(self) -> Column:
        if self.arrival is not None:
            return sf.col(f"`{self.arrival}`").cast("bigint")
        return sf.monotonically_increasing_id()

    def _with_clock(self, group: RuleGroup, rows: DataFrame) -> tuple[DataFrame, list[str]]:
        """The rows with what they need of the times of the whole input, and names of the columns.

        A group with timers needs to know where the clock stands at the end; every group, which
        events lie too far ahead, if the clock may not jump to them.
        """
        if self.is_bounded:
            reach = self._reach()
            latest = sf.col(REACH) if self.until is None else sf.greatest(REACH, sf.lit(self.until))
            clock = reach.select(latest.alias(CLOCK), REACH, BEGIN)
            return rows.crossJoin(sf.broadcast(clock)), [CLOCK, REACH, BEGIN]
        if not group.has_timers:
            return rows, []
        latest = sf.max("latest")
        if self.until is not None:
            latest = sf.greatest(latest, sf.lit(self.until))
        clock = self._times().agg(latest.alias(CLOCK))
        return rows.crossJoin(sf.broadcast(clock)), [CLOCK]

    @property
    def is_bounded(self) -> bool:
        """Whether events may be rejected because they lie too far ahead."""
        return self.max_jump != UNBOUNDED

    def within_reach(self) -> Self:
        """The job over the events to which the clock may go, for a job whose rows SQL reads."""
        if not self.is_bounded:
            return self
        known = self.events.crossJoin(sf.broadcast(self._reach()))
        near = known.filter(self.layout.time.between(sf.col(BEGIN), sf.col(REACH)))
        return replace(self, events=near.drop(BEGIN, REACH), max_jump=UNBOUNDED)

    def _reach(self) -> DataFrame:
        """One row with the times of the last and the first event between which the clock goes."""
        times = self._times()
        allowed = int(self.max_jump)
        if self.python_reasons and times.columns == ["low", "high", "count"]:
            return _reach_of_runs(times, allowed, self.until)
        return reach_of(times.withColumnRenamed("latest", "time"), allowed, self.until)

    def _times(self) -> DataFrame:
        """A column `latest` with the times of all events, or the latest of each partition.

        Where the clock may not jump everywhere, and Python reads the rows, the runs of times.
        """
        if self.python_reasons:
            read = self.events.select(self.layout.row())
            if self.is_bounded:
                task = self.task._replace(max_jump=self.max_jump)
                return read.mapInArrow(
                    for_workers(time_runs, task), "low bigint, high bigint, count bigint"
                )
            return read.mapInArrow(for_workers(latest_time, self.task), "latest bigint")
        valid = self.events.filter(conforms(self.layout, self.plan.library.types))
        return valid.select(self.layout.time.alias("latest"))


def reach_of(times: DataFrame, allowed: int, until: int | None) -> DataFrame:
    """One row with the times, of those in a column `time`, between which the clock goes.

    Events that lie within a jump of each other are a run of times. In a slice of time as long as a
    jump there is one run; where one ends and the next begins is found from those of all slices,
    which are few.
    """
    slices = times.groupBy(sf.col("time") - sf.pmod("time", sf.lit(allowed)))
    ends = sf.min("time").alias("low"), sf.max("time").alias("high")
    runs = slices.agg(*ends, sf.count("time").alias("count"))
    return _reach_of_runs(runs, allowed, until)


def _reach_of_runs(runs: DataFrame, allowed: int, until: int | None) -> DataFrame:
    together = runs.agg(sf.collect_list(sf.struct("low", "high", "count")).alias("runs"))
    ddl = f"`{REACH}` bigint, `{BEGIN}` bigint"
    return together.mapInArrow(for_workers(find_reach, (allowed, until)), ddl)


def _scan(
    group: RuleGroup, layout: DataFrameLayout, plan: JobPlan, python_reasons: Sequence[str]
) -> Scan | str:
    """How SQL reads the rows for a group, or the reason why Python must read them."""
    if group.fed_by:
        fed = ", ".join(f"`{rule.name}`" for rule in group.fed_by)
        return f"it also reads what {fed} put out"
    if python_reasons:
        return "; ".join(python_reasons)
    try:
        return scan_of(group, layout, plan.library.types)
    except NotInSqlError as reason:
        return str(reason)


def shuffle_partitions(events: DataFrame) -> int:
    """The number of partitions after a shuffle in the session of a DataFrame."""
    return int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
