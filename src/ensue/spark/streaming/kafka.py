"""Rules over a stream of Kafka records, and outputs as records again.

In comes a DataFrame of Spark's Kafka source, with headers; out goes a stream of outputs, late
events and rejected records. `kafka.record_reader` makes events of records in the same step that
packs them for their buckets. A rejected record comes out as a row with its problems, topic,
partition and offset. `sources` opens topics, and `sinks` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.engine.timing import jumps
from ensue.engine.timing.jumps import JumpLike
from ensue.errors import UsageError
from ensue.events.cloudevents import decode
from ensue.library import LibraryLike, as_library
from ensue.spark.kafka.record_reader import COLUMNS, RecordReader
from ensue.spark.kafka.records import MODES, STRUCTURED, write_record
from ensue.spark.outputs import output_columns
from ensue.spark.packaging import carried
from ensue.spark.plan import plan_of
from ensue.spark.streaming.bucket import KIND, LEFT_OUT, REJECTED_KIND
from ensue.spark.streaming.checkpoint.signing import checked_key
from ensue.spark.streaming.chunks import CHUNK_DDL, StreamTask, pack_read, planned
from ensue.spark.streaming.job import StreamOptions, bucket_outputs, rows_held
from ensue.spark.worker.remote_call import for_workers

RECORD_DDL = "key binary, value binary, headers array<struct<key: string, value: binary>>"
REFUSED_DDL = f"topic string, partition int, offset bigint, {RECORD_DDL}, problems array<string>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_RECORD = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])


def correlate_kafka(
    records: DataFrame,
    library: LibraryLike,
    *,
    lateness: str | timedelta = "0 s",
    buckets: int | None = None,
    correlations: Sequence[str] | None = None,
    whole_events: bool = False,
    idle: str | timedelta | None = None,
    max_jump: JumpLike = None,
    key: bytes | None = None,
) -> DataFrame:
    """The outputs of a library over Kafka records: the columns of `correlate` over a stream.

    Besides `output` and `late`, `ensue_kind` may be `rejected`: a record that is no event, does not
    fit its type, or lies further ahead of the stream than `max_jump`. `split` separates outputs
    from late events, and `refused` gives the rejected records. With `whole_events` a column `event`
    has each output as JSON, which `records_of` needs. Events of equal times are read by topic,
    partition and offset. With a `key` the state in the checkpoint is signed.
    """
    _check(records)
    loaded = as_library(library).plain()
    plan = plan_of(loaded.checked, correlations)
    options = StreamOptions(lateness, buckets, idle=idle)
    task = StreamTask(
        loaded.running_text,
        plan.selected,
        options.lateness_microseconds,
        options.buckets_for(records),
        "events",
        has_arrival=True,
        with_event=whole_events,
        idle=options.idle_microseconds,
        max_jump=jumps.max_jump(loaded.checked, max_jump),
        of_records=True,
        key=checked_key(key),
        rows_held=rows_held(records),
    )
    call = for_workers(pack_records, task, carried(records))
    packed = records.select(*COLUMNS).mapInArrow(call, CHUNK_DDL)
    return bucket_outputs(packed, task, output_columns(plan, with_event=whole_events))


def refused(made: DataFrame) -> DataFrame:
    """The rejected records: topic, partition and offset, their content, and all `problems`."""
    rows = made.filter(sf.col(KIND) == REJECTED_KIND)
    return rows.select(sf.from_json(LEFT_OUT, REFUSED_DDL).alias("record")).select("record.*")


def records_of(events: DataFrame, mode: str = STRUCTURED) -> DataFrame:
    """Rows with CloudEvents JSON in a column `event`, as records for Spark's Kafka sink.

    Outputs have that column with `whole_events`, and late events always. The key of a record is
    the `partitionkey` of its event.
    """
    if mode not in MODES:
        raise UsageError(f"`mode` is `{mode}`: give one of {', '.join(f'`{m}`' for m in MODES)}")
    if "event" not in events.columns:
        raise UsageError(
            "the DataFrame has no column `event` with events as JSON: ask for it with"
            " `whole_events=True`"
        )
    return events.select("event").mapInArrow(partial(write_records, mode), RECORD_DDL)


def refused_records(refused_rows: DataFrame) -> DataFrame:
    """Rejected records as they came, with headers for their place and their problems."""
    told = {
        "ensue_topic": sf.col("topic"),
        "ensue_partition": sf.col("partition").cast("string"),
        "ensue_offset": sf.col("offset").cast("string"),
        "ensue_problems": sf.array_join("problems", "; "),
    }
    added = sf.array(*(_header(name, value) for name, value in told.items()))
    kept = sf.coalesce(
        sf.col("headers"), sf.array().cast("array<struct<key: string, value: binary>>")
    )
    return refused_rows.select("key", "value", sf.concat(kept, added).alias("headers"))


def refused_rows_as_records(refused_rows: DataFrame) -> DataFrame:
    """Rejected rows of files as JSON, with a header for their problems."""
    return refused_rows.select(
        sf.lit(None).cast("binary").alias("key"),
        sf.col("row").cast("binary").alias("value"),
        sf.array(_header("ensue_problems", sf.array_join("problems", "; "))).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    return sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value"))


def _check(records: DataFrame) -> None:
    if not records.isStreaming:
        raise UsageError(
            "the records are bounded, and `correlate_kafka` reads streams: use `spark.readStream`"
        )
    missing = [name for name in COLUMNS if name not in records.columns]
    if missing == ["headers"]:
        raise UsageError(
            "the records come without their headers, where events may have their attributes: open"
            ' the source with `.option("includeHeaders", "true")`'
        )
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise UsageError(
            f"the DataFrame has no column {names}: give what Spark's Kafka source gives, as it is"
        )


# --- workers ------------------------------------------------------------------------------------


def pack_records(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Records as chunks of events for buckets, and rejected records as they came."""
    task = StreamTask(*given)
    reader = _reader(task.library, task.selected)
    yield from pack_read(task, chain.from_iterable(map(reader.read, batches)))


@lru_cache(maxsize=16)
def _reader(library: str, selected: tuple[str, ...]) -> RecordReader:
    return RecordReader(planned(library, selected)[0].library.types)


def write_records(mode: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events as JSON in, records out."""
    for batch in batches:
        made = [write_record(decode(text), mode) for text in batch.column(0).to_pylist()]
        columns = [
            pa.array([each.key for each in made], pa.binary()),
            pa.array([each.value for each in made], pa.binary()),
            pa.array(
                [[{"key": n, "value": content} for n, content in each.headers] for each in made],
                _HEADERS,
            ),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_RECORD)
