"""A library over a streaming DataFrame: the plan made into DataFrames, and nothing run.

In come a stream of events and a library; out goes a stream of outputs, of late events and of rows
that are no events. Rows are packed into chunks by bucket (`packing`), each bucket reads what has
settled (`bucket`) with its state in Spark's own state store, and what it made is opened into rows
again. It is one shuffle and one stateful operator, whatever the number of rules and keys.

Spark's watermark is not used. It is known only after the micro-batch that moves it, and Spark drops
late rows by it; here every bucket is told the latest time with the events themselves, to the
microsecond, and nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.library import duration_microseconds
from ensue.spark.conformance import check_columns, conforms, opaque_attributes
from ensue.spark.job import LibraryLike, as_library
from ensue.spark.layout import Layout, layout_of
from ensue.spark.mapping import ARRIVAL
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.plan import Plan, plan_of
from ensue.spark.reading import Reading, check_arrival, reading_of, wanted_by_rule
from ensue.spark.sql_values import NotInSqlError
from ensue.spark.streaming.bucket import (
    KIND,
    LEFT_OUT,
    MADE_DDL,
    OUTPUT_KIND,
    PROBLEMS,
    STATE_DDL,
    made_ddl,
    run_bucket,
    unpacking,
)
from ensue.spark.streaming.figures import (
    OBSERVED_INPUT,
    OBSERVED_MEASURES,
    observed_input,
    observed_measures,
)
from ensue.spark.streaming.groups import StreamGroup, crosses_keys, stream_groups
from ensue.spark.streaming.packing import (
    CHUNK_DDL,
    TIME,
    Task,
    bound,
    pack_columns,
    pack_events,
    refused_rows,
)
from ensue.spark.worker import REJECTED_DDL

BUCKETS_PER_PARTITION = 4
"""Several buckets for each partition even out what hashing gives to one of them..."""
MANY_BUCKETS = 64
"""... up to here: each bucket costs a row of state in every micro-batch."""

_REFUSED = {
    "until": "`until` ends a bounded input, and a stream goes on: an event, of any type, moves its"
    " clock",
    "order": "`order` numbers the outputs of a bounded input, and those of a stream come as they"
    " are settled: sort what has been written by `time` and `id`",
    "partitions": "`partitions` is for a bounded input: in a stream, `buckets` and the setting"
    " `spark.sql.shuffle.partitions` say how keys are spread",
}


def correlate_stream(
    events: DataFrame,
    library: LibraryLike,
    columns: Mapping[str, str] | None = None,
    *,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    correlations: Sequence[str] | None = None,
    whole_events: bool = False,
    arrival: str | None = None,
    **batch_only: object,
) -> DataFrame:
    """What follows from a stream of events: the columns of `correlate`, and three more.

    `ensue_kind` is `output`, `late` for an event that came later than the `lateness` allows, or
    `rejected` for a row that is no event or does not fit its type. What is no output stands in
    `ensue_left_out` as JSON, with the reasons in `ensue_problems`; `split` takes the two apart.
    `buckets` is over how many parts the keys of a rule are spread; a checkpoint holds to the number
    that it was begun with. Start the query with the output mode `append`. What has a meaning only
    for a bounded input (`until`, `order`, `partitions`) is refused.
    """
    if not events.isStreaming:
        raise UsageError(
            "`lateness` and `buckets` are for streams, and the DataFrame is bounded: it is read in"
            " the order of its times, so leave them out, or use `spark.readStream`"
        )
    for name, value in batch_only.items():
        if value is not None and value is not False:
            raise UsageError(f"{_REFUSED.get(name, f'there is no option `{name}`')}")
    with only_one_in_a_query():
        made = StreamJob.of(
            events,
            library,
            columns,
            lateness=lateness or "0 s",
            buckets=buckets,
            correlations=correlations,
            whole_events=whole_events,
            arrival=arrival,
        ).outputs()
        # A client of a server looks at a plan only when it is asked something of it.
        _ = made.columns
    return made


@contextmanager
def only_one_in_a_query() -> Iterator[None]:
    """Raises `UsageError` for a stream that `correlate` has made itself.

    It is told by what is counted in both under one name.
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
    """The outputs, with the columns of a batch, and what was left out, in the same pass.

    What was left out has a `kind`, `late` or `rejected`; the `event`, or the row, as JSON; and
    `problems`, the reasons. `id`, `source`, `type` and `time` are null for what is no event.
    """
    outputs = made.filter(sf.col(KIND) == OUTPUT_KIND).drop(KIND, LEFT_OUT, PROBLEMS)
    left_out = made.filter(sf.col(KIND) != OUTPUT_KIND)
    renamed = [
        sf.col(name).alias(shown)
        for name, shown in ((KIND, "kind"), (LEFT_OUT, "event"), (PROBLEMS, "problems"))
    ]
    return outputs, left_out.select("id", "source", "type", "time", *renamed)


def rejected_stream(
    events: DataFrame, library: LibraryLike, columns: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows of a stream that are no events, as a stream of its own that keeps no state."""
    return StreamJob.of(events, library, columns).rejected()


@dataclass(frozen=True)
class StreamJob:
    """All that is known before anything runs."""

    events: DataFrame
    layout: Layout
    plan: Plan
    groups: tuple[StreamGroup, ...]
    columns: OutputColumns
    task: Task
    arrival: str | None
    readings: tuple[Reading, ...]
    in_python: str = ""

    @classmethod
    def of(
        cls,
        events: DataFrame,
        library: LibraryLike,
        columns: Mapping[str, str] | None = None,
        *,
        lateness: str | timedelta = "0 s",
        buckets: int | None = None,
        correlations: Sequence[str] | None = None,
        whole_events: bool = False,
        arrival: str | None = None,
    ) -> StreamJob:
        """Raises `UsageError` for what cannot work, naming column and rule."""
        loaded = as_library(library).plain()
        plan = plan_of(loaded.checked, correlations)
        layout = layout_of(events, columns)
        check_arrival(events, arrival)
        if buckets is not None and buckets < 1:
            raise UsageError(f"`buckets` is {buckets}, and there must be at least one")
        types = loaded.checked.types
        fed = {reader for readers in plan.library.feeds.values() for reader in readers}
        rules = [rule for group in plan.groups for rule in group.rules if rule.name not in fed]
        check_columns(layout, types, rules)
        groups = stream_groups(plan)
        reasons = [*layout.opaque, *opaque_attributes(layout, types)]
        reasons += ["whole events are asked for"] if whole_events else []
        reasons += ["rules read what rules of another key put out"] if crosses_keys(plan) else []
        reasons += _fed_rules(plan, fed)
        readings: list[Reading] = []
        if not reasons:
            try:
                readings = [reading_of(each.group, layout, types) for each in groups]
            except NotInSqlError as reason:
                reasons.append(str(reason))
        task = Task(
            str(loaded),
            plan.selected,
            duration_microseconds(lateness),
            buckets or default_buckets(_shuffle_partitions(events)),
            "events" if reasons else "columns",
            has_arrival=arrival is not None,
            with_event=whole_events,
        )
        if not reasons:
            names = tuple(dict.fromkeys(name for each in readings for name, _ in each.travelling))
            travelling = tuple(
                (tuple(names.index(name) for name, _ in each.travelling), each.nulls)
                for each in readings
            )
            task = task._replace(names=names, travelling=travelling)
        made = output_columns(plan, with_event=whole_events)
        told = "; ".join(reasons)
        return cls(
            events, layout, plan, groups, made, task, arrival, tuple(readings), in_python=told
        )

    def outputs(self) -> DataFrame:
        pack = pack_columns if self.task.form == "columns" else pack_events
        packed = self.rows().mapInArrow(bound(pack, self.task), CHUNK_DDL)
        made = packed.groupBy("group", "bucket").applyInPandasWithState(
            bound(run_bucket, self.task), MADE_DDL, STATE_DDL, "append", "NoTimeout"
        )
        made = made.observe(OBSERVED_MEASURES, *observed_measures(sf.col("measures")))
        return made.mapInArrow(unpacking(), made_ddl(self.columns))

    def rejected(self) -> DataFrame:
        rows = self.events
        if self.task.form == "columns":
            rows = rows.filter(~conforms(self.layout, self.plan.library.types))
        read = rows.select(self.layout.row())
        return read.mapInArrow(bound(refused_rows, self.task), REJECTED_DDL)

    def rows(self) -> DataFrame:
        """What goes to workers: rows as they are, or what SQL has made of them."""
        if self.task.form == "events":
            return self.events.select(self.layout.row(), *self._arrival())
        # Every event moves the clock, also one that no rule wants.
        types = self.plan.library.types
        fits = conforms(self.layout, types)
        time = sf.when(fits, self.layout.time).alias(TIME)
        buckets = [
            sf.when(reading.wanted, self._bucket(group, reading)).alias(f"b{number}")
            for number, (group, reading) in enumerate(zip(self.groups, self.readings, strict=True))
        ]
        found = {name: column for each in self.readings for name, column in each.travelling}
        columns = [found[name].alias(f"c{number}") for number, name in enumerate(self.task.names)]
        # In rows that are events a list takes no room, where a struct would take that of its parts.
        refused = sf.when(~fits, sf.array(self.layout.row())).alias("refused")
        kept = [time, *self._arrival(), *buckets, *columns, refused]
        return self._counted(kept, fits)

    def _counted(self, kept: Sequence[Column], fits: Column) -> DataFrame:
        """The columns that are kept, while Spark counts what comes for each rule."""
        types = self.plan.library.types
        wanted = {
            name: sf.when(fits, column)
            for each in self.groups
            for name, column in wanted_by_rule(each.group, self.layout, types).items()
        }
        # Their conditions are worked out with all others, in one pass, and go no further.
        asked = {name: f"ensue_wanted_{number}" for number, name in enumerate(wanted)}
        rows = self.events.select(*kept, *(wanted[name].alias(asked[name]) for name in wanted))
        counted = [(name, sf.col(column)) for name, column in asked.items()]
        rows = rows.observe(OBSERVED_INPUT, *observed_input(sf.col(TIME), counted))
        return rows.drop(*asked.values())

    def _bucket(self, group: StreamGroup, reading: Reading) -> Column:
        if not group.is_keyed:
            return sf.lit(0)
        travelling = dict(reading.travelling)
        keys = [made(travelling[name]) for name, made in reading.keys]
        return sf.pmod(sf.hash(*keys), sf.lit(self.task.buckets))

    def _arrival(self) -> list[Column]:
        if self.arrival is None:
            return []
        return [sf.col(f"`{self.arrival}`").cast("bigint").alias(ARRIVAL)]


def _fed_rules(plan: Plan, fed: set[str]) -> list[str]:
    """Rules that read outputs may read types that the stream has no columns for."""
    names = [each for group in plan.groups for each in group.rules if each.name in fed]
    return [f"`{rule.name}` reads what other rules put out" for rule in names]


def default_buckets(partitions: int) -> int:
    return max(partitions, min(BUCKETS_PER_PARTITION * partitions, MANY_BUCKETS))


def _shuffle_partitions(events: DataFrame) -> int:
    return int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
