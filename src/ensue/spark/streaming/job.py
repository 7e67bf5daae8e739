"""A library over a streaming DataFrame, planned as lazy DataFrames. Nothing runs here.

In come a stream of events and a library; out goes a stream of outputs, late events and rejected
rows. Rows are packed into chunks by bucket (`chunks`); each bucket reads its settled events
(`bucket`), with its state in Spark's state store; its result is unpacked into rows. That is one
shuffle and one stateful operator, whatever the number of rules and keys.

Spark's watermark is not used: it is known only after the micro-batch that moves it, and Spark drops
late rows by it. Instead every bucket gets the latest time with the events themselves, to the
microsecond, and nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.engine.timing.jumps import JumpLike, max_jump
from ensue.errors import UsageError
from ensue.events.mapping import refuse_derived
from ensue.library import Library, LibraryLike, as_library, duration_microseconds
from ensue.spark.batch.job import shuffle_partitions
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.packaging import carried
from ensue.spark.plan import JobPlan, plan_of
from ensue.spark.sql.conformance import (
    attributes_read_in_python,
    check_columns,
    conforms,
    mention_unusable_keys,
)
from ensue.spark.sql.layout import DataFrameLayout, layout_of
from ensue.spark.sql.mapping import Columns, attribute_names, mapped_events
from ensue.spark.sql.operators import balanced
from ensue.spark.sql.scan import Scan, check_arrival, scan_of, wanted_by_rule
from ensue.spark.sql.values import NotInSqlError
from ensue.spark.streaming.bucket import (
    KIND,
    LEFT_OUT,
    OUTPUT_KIND,
    PROBLEMS,
    RESULT_DDL,
    chunk_opener,
    result_ddl,
    run_bucket,
)
from ensue.spark.streaming.checkpoint.signing import checked_key
from ensue.spark.streaming.chunks import (
    CHUNK_DDL,
    REJECTED,
    TIME,
    StreamTask,
    pack_events,
    pack_ticks,
)
from ensue.spark.streaming.column_chunks import (
    RULES_A_MASK,
    mask_columns,
    pack_columns,
    value_column,
    wanted_column,
)
from ensue.spark.streaming.figures import OBSERVED_MEASURES, observed_measures
from ensue.spark.streaming.groups import StreamGroup, crosses_keys, stream_groups
from ensue.spark.streaming.processor import (
    BucketProcessor,
    mention_many_partitions,
    prepare_store,
)
from ensue.spark.worker.event_rows import ARRIVAL, REJECTED_DDL
from ensue.spark.worker.json_rows import arrow_schema
from ensue.spark.worker.remote_call import for_workers
from ensue.spark.worker.row_scans import rejected_rows
from ensue.spark.worker.tasks import GroupTask

MICROSECONDS_A_TICK = 1_000_000
MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BUCKETS_PER_PARTITION = 2
"""Two buckets for each partition even out the hashing of keys..."""
MANY_BUCKETS = 64
"""... up to this number, since each bucket runs engines of its own in every micro-batch."""


@dataclass(frozen=True)
class StreamOptions:
    """The options of `correlate` over a stream."""

    lateness: str | timedelta | None = None
    buckets: int | None = None
    correlations: Sequence[str] | None = None
    whole_events: bool = False
    arrival: str | None = None
    type: str | None = None
    timezone: str | None = None
    max_jump: JumpLike = None
    idle: str | timedelta | None = None
    key: bytes | None = None

    @property
    def idle_microseconds(self) -> int | None:
        """Raises `UsageError` for less than a second, which is how often ticks come."""
        if self.idle is None:
            return None
        found = duration_microseconds(self.idle)
        if found < MICROSECONDS_A_TICK:
            raise UsageError(f"`idle` is {self.idle}: at least a second is needed")
        return found

    @property
    def lateness_microseconds(self) -> int:
        return duration_microseconds(self.lateness or "0 s")

    def buckets_for(self, events: DataFrame) -> int:
        """The number of buckets. Raises `UsageError` for less than one."""
        if self.buckets is not None and self.buckets < 1:
            raise UsageError(f"`buckets` is {self.buckets}, and there must be at least one")
        return self.buckets or default_buckets(shuffle_partitions(events))


def correlate_stream(
    events: DataFrame,
    library: LibraryLike,
    columns: Columns | None = None,
    *,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    correlations: Sequence[str] | None = None,
    whole_events: bool = False,
    arrival: str | None = None,
    type: str | None = None,  # noqa: A002 - the name that users know
    timezone: str | None = None,
    idle: str | timedelta | None = None,
    max_jump: JumpLike = None,
    key: bytes | None = None,
) -> DataFrame:
    """The outputs of a library over a stream of events: the columns of `correlate`, and three more.

    `ensue_kind` is `output`, `late` for an event that came later than `lateness` allows, or
    `rejected` for a row that is no event, does not fit its type, or lies further ahead of the
    stream than `max_jump`. Late events and rejected rows
    stand in `ensue_left_out` as JSON, with the reasons in `ensue_problems`; `split` separates them
    from the outputs. A checkpoint keeps the number of `buckets` that it was begun with, and with or
    without `idle`. With a `key` the state in it is signed, and goes on only with
    that key. Start the query with the output mode `append`.
    """
    if not events.isStreaming:
        raise UsageError(
            "the DataFrame is bounded, and this call reads streams: use `spark.readStream`, or"
            " `ensue.spark.correlate`"
        )
    options = StreamOptions(
        lateness, buckets, correlations, whole_events, arrival, type, timezone, max_jump, idle, key
    )
    mention_many_partitions(events.sparkSession)
    with only_one_in_a_query():
        outputs = StreamJob.of(events, library, columns, options).outputs()
        # Through Spark Connect a plan is analysed only when its schema is asked for.
        _ = outputs.columns
    return outputs


def bucket_outputs(packed: DataFrame, task: StreamTask, columns: OutputColumns) -> DataFrame:
    """The rows that buckets make of their chunks, and observed measures of each micro-batch."""
    if task.idle is not None:
        # Spark logs the offsets of this source, so that a repeated micro-batch has the same ticks.
        source = packed.sparkSession.readStream.format("rate").option("rowsPerSecond", 1)
        ticks = source.option("numPartitions", 1).load().select(sf.unix_micros("timestamp"))
        call = for_workers(pack_ticks, task, carried(packed))
        packed = packed.union(ticks.mapInArrow(call, CHUNK_DDL))
    prepare_store(packed.sparkSession)
    run = BucketProcessor(
        (run_bucket.__module__, run_bucket.__name__), tuple(task), carried(packed)
    )
    grouped = packed.groupBy("group", "bucket")
    results = grouped.transformWithStateInPandas(run, RESULT_DDL, "Append", "None")
    results = results.observe(OBSERVED_MEASURES, *observed_measures(sf.col("measures")))
    return results.mapInArrow(chunk_opener(), result_ddl(columns))


def rows_held(events: DataFrame) -> int:
    """How many rows of a function Spark collects before it sends them on."""
    most = int(events.sparkSession.conf.get(MOST_ROWS, "10000") or "10000")
    return most if most > 0 else 0


@contextmanager
def only_one_in_a_query() -> Iterator[None]:
    """Raises `UsageError` for a stream that is an output of `correlate` already.

    Spark notices it by the name of the observed measures, which then occurs twice.
    """
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise UsageError(
            "the stream is made by `correlate` already, and Spark takes one operator with such a"
            " state in a query: put rules over outputs into the same library, where they read what"
            " the others put out, or write the first stream to a sink and start a second query"
            " over that"
        ) from None


def split(made: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The outputs, with the columns of a bounded input, and the late events and rejected rows.

    The second DataFrame has a `kind`, `late` or `rejected`; the `event`, or the row, as JSON; and
    its `problems`. `id`, `source`, `type` and `time` are null for a rejected row.
    """
    outputs = made.filter(sf.col(KIND) == OUTPUT_KIND).drop(KIND, LEFT_OUT, PROBLEMS)
    left_out = made.filter(sf.col(KIND) != OUTPUT_KIND)
    renamed = [
        sf.col(name).alias(shown)
        for name, shown in ((KIND, "kind"), (LEFT_OUT, "event"), (PROBLEMS, "problems"))
    ]
    return outputs, left_out.select("id", "source", "type", "time", *renamed)


def rejected_stream(
    events: DataFrame,
    library: LibraryLike,
    columns: Columns | None = None,
    options: StreamOptions | None = None,
) -> DataFrame:
    """The rejected rows of a stream, as a stream of its own that keeps no state."""
    return StreamJob.of(events, library, columns, options).rejected()


@dataclass(frozen=True)
class StreamJob:
    """The plan of a library over a stream; `python_reason` is why Python reads rows, if it does."""

    events: DataFrame
    layout: DataFrameLayout
    plan: JobPlan
    groups: tuple[StreamGroup, ...]
    columns: OutputColumns
    task: StreamTask
    arrival: str | None
    scans: tuple[Scan, ...]
    python_reason: str = ""

    @classmethod
    def of(
        cls,
        events: DataFrame,
        library: LibraryLike,
        columns: Columns | None = None,
        options: StreamOptions | None = None,
    ) -> StreamJob:
        """Raises `UsageError` for what cannot work, naming column and rule."""
        options = options or StreamOptions()
        loaded = as_library(library).plain()
        declared = attribute_names(loaded.checked.types)
        refuse_derived(columns or {}, loaded.checked.types)
        mapped = mapped_events(events, columns, options.type, options.timezone, declared)
        events = mapped.events
        plan = plan_of(loaded.checked, options.correlations)
        layout = layout_of(events, mapped.renames, mapped.times)
        check_arrival(events, options.arrival)
        types = loaded.checked.types
        check_columns(layout, types, plan.rules)
        mention_unusable_keys(layout, loaded.checked)
        groups = stream_groups(plan)
        python_reasons = [
            *layout.python_reasons,
            *attributes_read_in_python(layout, types),
            *(["whole events are asked for"] if options.whole_events else []),
            *(["rules read what rules of another key put out"] if crosses_keys(plan) else []),
            *_fed_rules(plan),
        ]
        scans: list[Scan] = []
        if not python_reasons:
            try:
                scans = [scan_of(each.group, layout, types) for each in groups]
            except NotInSqlError as reason:
                python_reasons.append(str(reason))
        task = StreamTask(
            loaded.running_text,
            plan.selected,
            options.lateness_microseconds,
            options.buckets_for(events),
            "events" if python_reasons else "columns",
            has_arrival=options.arrival is not None,
            with_event=options.whole_events,
            times=mapped.times,
            idle=options.idle_microseconds,
            max_jump=max_jump(loaded.checked, options.max_jump),
            key=checked_key(options.key),
            rows_held=rows_held(events),
        )
        if not python_reasons:
            # The time comes in microseconds, and need not come twice.
            needed = [[name for name, _ in each.shuffled if name != "time"] for each in scans]
            names = tuple(dict.fromkeys(name for each in needed for name in each))
            shuffled = tuple(
                (tuple(map(names.index, own)), scan.nulls)
                for own, scan in zip(needed, scans, strict=True)
            )
            task = task._replace(names=names, shuffled=shuffled, row_type=_row_type(events, layout))
        return cls(
            events,
            layout,
            plan,
            groups,
            output_columns(plan, with_event=options.whole_events),
            task,
            options.arrival,
            tuple(scans),
            python_reason="; ".join(python_reasons),
        )

    def outputs(self) -> DataFrame:
        pack = pack_columns if self.task.form == "columns" else pack_events
        call = for_workers(pack, self.task, carried(self.events))
        packed = self.rows().mapInArrow(call, CHUNK_DDL)
        return bucket_outputs(packed, self.task, self.columns)

    def rejected(self) -> DataFrame:
        rows = self.events
        if self.task.form == "columns":
            rows = rows.filter(~conforms(self.layout, self.plan.library.types))
        tables = Library(self.plan.library).tables()
        task = GroupTask(tables, self.plan.selected, 0, times=self.task.times)
        read = rows.select(self.layout.row())
        call = for_workers(rejected_rows, task, carried(self.events))
        return read.mapInArrow(call, REJECTED_DDL)

    def rows(self) -> DataFrame:
        """The rows for workers: as they are, or as columns and wishes computed in SQL."""
        if self.task.form == "events":
            return self.events.select(self.layout.row(), *self._arrival())
        # Every event moves the clock, also an event that no rule wants.
        types = self.plan.library.types
        fits = conforms(self.layout, types)
        time = sf.when(fits, self.layout.time).alias(TIME)
        wanted = [
            sf.when(scan.wanted, True).alias(wanted_column(group))
            for group, scan in zip(self.groups, self.scans, strict=True)
        ]
        masks = [mask for group in self.groups for mask in self._masks(group, fits)]
        found = {name: column for each in self.scans for name, column in each.shuffled}
        columns = [
            found[name].alias(value_column(number)) for number, name in enumerate(self.task.names)
        ]
        # As text: at every row Spark works out the size of the batch so far, field by field.
        rejected = sf.when(~fits, self.layout.row_as_json()).alias(REJECTED)
        return self.events.select(time, *self._arrival(), *wanted, *masks, *columns, rejected)

    def _masks(self, group: StreamGroup, fits: Column) -> Iterator[Column]:
        """Which rules of a group want a row, by bits, where the group has several rules."""
        wanted = wanted_by_rule(group.group, self.layout, self.plan.library.types)
        conditions = [wanted[rule.name] for rule in group.group.rules]
        for number, name in enumerate(mask_columns(group)):
            own = conditions[number * RULES_A_MASK : (number + 1) * RULES_A_MASK]
            bits = [
                each.eqNullSafe(True).cast("bigint") * (1 << bit) for bit, each in enumerate(own)
            ]
            yield sf.when(fits, balanced(bits, Column.bitwiseOR, False)).alias(name)

    def _arrival(self) -> list[Column]:
        if self.arrival is None:
            return []
        return [sf.col(f"`{self.arrival}`").cast("bigint").alias(ARRIVAL)]


def _row_type(events: DataFrame, layout: DataFrameLayout) -> bytes:
    """The Arrow type of a row, as bytes for `StreamTask`."""
    return bytes(arrow_schema(events.select(layout.row())).serialize())


def _fed_rules(plan: JobPlan) -> list[str]:
    """Rules over outputs may read types for which the stream has no columns."""
    rules = [rule for group in plan.groups for rule in group.rules]
    return [
        f"`{rule.name}` reads what other rules put out"
        for rule in rules
        if rule.name in plan.fed_rules
    ]


def default_buckets(partitions: int) -> int:
    return max(partitions, min(BUCKETS_PER_PARTITION * partitions, MANY_BUCKETS))
