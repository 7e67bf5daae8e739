"""The sinks of a pipeline: outputs, late events and rejected rows of each micro-batch.

In comes a micro-batch with its number; its rows are split by kind and written, each kind to its
sink. In a folder, micro-batch N has a folder `ensue_batch=N`, which a repetition after a crash
replaces: no row is lost or written twice. A topic gets the records of a repeated micro-batch again,
with equal ids, by which a reader can drop them. With one sink of files Spark's own file sink
writes, and its log is checked against the checkpoint before the stream starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.spark.batch.file_outputs import DATE, dated
from ensue.spark.failures import as_job_error
from ensue.spark.streaming.bucket import KIND, LATE_KIND, LEFT_OUT, PROBLEMS, REJECTED_KIND
from ensue.spark.streaming.checkpoint.folder import local_folder
from ensue.spark.streaming.config import KAFKA, PipelineConfig, SinkConfig
from ensue.spark.streaming.job import split
from ensue.spark.streaming.kafka import (
    records_of,
    refused,
    refused_records,
    refused_rows_as_records,
)

IN_FLIGHT = "kafka.max.in.flight.requests.per.connection"
"""Of several requests to a topic that comes into being, a broker may take the second first, and
then refuses the first for good (KAFKA-15591): by default there is one at a time."""
BATCH_FOLDER = "ensue_batch"
SINK_LOG = "_spark_metadata"
LOGGED_FORMATS = frozenset({"parquet", "json", "csv", "orc", "text"})
_LOG_VERSION = "v1"
_COMPACTED = ".compact"


def splits_batches(config: PipelineConfig) -> bool:
    """Whether micro-batches are split by kind here, or written whole by Spark's sink."""
    return len(config.sinks) > 1 or config.sink.format == KAFKA


def writer_of(config: PipelineConfig) -> Callable[[DataFrame, int], None]:
    """The function that writes a micro-batch."""
    late, refused_to = config.sinks.get("late"), config.sinks.get("rejected")
    own_sink = [LATE_KIND] if late is not None else []
    own_sink += [REJECTED_KIND] if refused_to is not None else []
    only_outputs = len(own_sink) == 2

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            made = batch.filter(~sf.col(KIND).isin(*own_sink)) if own_sink else batch
            kept = made.drop(KIND, LEFT_OUT, PROBLEMS) if only_outputs else made
            _write(kept, config, config.sink, number)
            _, left_out = split(batch)
            # Mostly there are none, and an empty folder that was not asked for says nothing.
            kinds = {row[0] for row in left_out.select("kind").distinct().collect()}
            kinds |= {LATE_KIND} if config.late else set()
            kinds |= {REJECTED_KIND} if config.rejected else set()
            if late is not None and LATE_KIND in kinds:
                came_late = left_out.filter(sf.col("kind") == LATE_KIND).drop("kind")
                _write(came_late, config, late, number)
            if refused_to is not None and REJECTED_KIND in kinds:
                rows = refused(batch)
                if config.source.format != KAFKA:
                    rows = left_out.filter(sf.col("kind") == REJECTED_KIND)
                    rows = rows.select(sf.col("event").alias("row"), "problems")
                _write_refused(rows, config, refused_to, number)
        finally:
            batch.unpersist()

    return write


def with_partition_columns(rows: DataFrame, sink: SinkConfig) -> DataFrame:
    """The rows with the columns of `partition_by`. Raises `UsageError` for unknown names."""
    asked = sink.partition_by
    if DATE in asked and "time" in rows.columns:
        rows = dated(rows)
    for name in asked:
        if name not in rows.columns:
            raise UsageError(
                f"`partition_by` names `{name}`, and no column of the rows is called that;"
                f" {did_you_mean(name, [*rows.columns, DATE])}"
            )
    return rows


def check_sinks(config: PipelineConfig, resumed: bool) -> None:
    """Raises `UsageError` if a sink holds rows of another checkpoint."""
    if not splits_batches(config):
        if config.sink.path is not None and config.sink.format in LOGGED_FORMATS:
            check_sink_log(config.sink.path, config.stream.checkpoint)
        return
    if resumed:
        return
    for name, sink in config.sinks.items():
        if sink.path is not None and any(Path(sink.path).glob(f"{BATCH_FOLDER}=*")):
            raise UsageError(
                f"`{sink.path}` in `[{name}]` has micro-batches of another checkpoint, and those of"
                f" the new checkpoint `{config.stream.checkpoint}` would take their places: give"
                " another `path`, or the checkpoint that they were written with"
            )


def _write(rows: DataFrame, config: PipelineConfig, sink: SinkConfig, number: int) -> None:
    with as_job_error(f"the writing of micro-batch {number} to `{sink.topic or sink.path}`"):
        if sink.format == KAFKA:
            _write_topic(records_of(rows, sink.mode), config, sink)
        else:
            _write_folder(rows, sink, number)


def _write_refused(rows: DataFrame, config: PipelineConfig, sink: SinkConfig, number: int) -> None:
    with as_job_error(f"the writing of micro-batch {number} to `{sink.topic or sink.path}`"):
        if sink.format == KAFKA:
            from_topic = config.source.format == KAFKA
            records = refused_records(rows) if from_topic else refused_rows_as_records(rows)
            _write_topic(records, config, sink)
        else:
            _write_folder(rows, sink, number)


def _write_topic(records: DataFrame, config: PipelineConfig, sink: SinkConfig) -> None:
    writer: Any = records.write.format("kafka").options(**{IN_FLIGHT: "1", **sink.options})
    writer = writer.option("kafka.bootstrap.servers", config.servers_of(sink))
    writer.option("topic", sink.topic).option("includeHeaders", "true").save()


def _write_folder(rows: DataFrame, sink: SinkConfig, number: int) -> None:
    writer: Any = (
        with_partition_columns(rows, sink).write.format(sink.format).options(**sink.options)
    )
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if sink.path is None:
        writer.save()
        return
    writer.mode("overwrite").save(f"{sink.path.rstrip('/')}/{BATCH_FOLDER}={number}")


# --- the log of Spark's file sink --------------------------------------------------------------


def check_sink_log(path: str, checkpoint: str) -> None:
    """Raises `UsageError` if the log of Spark's file sink does not fit the checkpoint.

    The log, `_spark_metadata`, has an entry for each micro-batch. Readers see only files that it
    lists, and Spark does not write a listed micro-batch again. Spark reads it late or never, so
    that a damaged log, or one of another checkpoint, would lose rows silently. Only folders of this
    machine can be checked.
    """
    sink, remembered = local_folder(path), local_folder(checkpoint)
    if sink is None or remembered is None:
        return
    done = _last_number(remembered / "commits")
    listed = _log_entries(sink / SINK_LOG)
    if _last_number(remembered / "offsets") is None:
        if listed:
            raise UsageError(
                f"`{path}` in `[sink]` has micro-batches of another checkpoint, and those of the"
                f" new checkpoint `{checkpoint}` would be taken for written: give another `path`,"
                " or the checkpoint that they were written with"
            )
        return
    if done is not None and (not listed or max(listed) < done):
        last = f"ends with micro-batch {max(listed)}" if listed else "is missing"
        raise _damaged(path, checkpoint, f"{last}, and micro-batch {done} has been written")
    for number in _read_entries(listed):
        if number not in listed:
            raise _damaged(path, checkpoint, f"has no entry of micro-batch {number}")
        if not _is_whole(listed[number]):
            raise _damaged(path, checkpoint, f"has an entry that is broken, `{listed[number]}`")


def _damaged(path: str, checkpoint: str, how: str) -> UsageError:
    return UsageError(
        f"the list of what has been written to `{path}`, its folder `{SINK_LOG}`, {how}: readers"
        " would miss rows. Put back a copy of it, or start from a new `checkpoint`, with a new"
        f" `path` in `[sink]`; the old checkpoint is `{checkpoint}`"
    )


def _log_entries(folder: Path) -> dict[int, Path]:
    """The log entries by micro-batch; a compacted entry replaces the plain one of its number."""
    found: dict[int, Path] = {}
    for each in sorted(folder.glob("*")):
        name = each.name.removesuffix(_COMPACTED)
        if name.isdigit():
            found[int(name)] = each
    return found


def _read_entries(listed: dict[int, Path]) -> range:
    """The entries that a reader needs: the last compacted one, and all after it."""
    sums = [number for number, each in listed.items() if each.name.endswith(_COMPACTED)]
    return range(max(sums, default=0), max(listed, default=-1) + 1)


def _is_whole(entry: Path) -> bool:
    try:
        version, *lines = entry.read_text("utf-8").splitlines()
        return version == _LOG_VERSION and all(isinstance(json.loads(line), dict) for line in lines)
    except (OSError, ValueError):
        return False


def _last_number(log: Path) -> int | None:
    numbers = [int(each.name) for each in log.glob("*") if each.name.isdigit()]
    return max(numbers, default=None)
