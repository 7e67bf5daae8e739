"""Where what a pipeline makes goes: each micro-batch, taken apart, to files and topics.

In comes a micro-batch with its number; out go outputs, late events and refused records, each to
its sink. In a folder, a micro-batch has a folder of its own, `ensue_batch=N`, and one that is run
again after a crash replaces it: nothing is lost, and nothing is there twice. To a topic, one that
is run again is written again, with the same ids, so that a reader can drop what it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.spark.batch.files import DATE, dated
from ensue.spark.failures import in_words
from ensue.spark.streaming.bucket import KIND, LATE_KIND, LEFT_OUT, PROBLEMS, REJECTED_KIND
from ensue.spark.streaming.config import KAFKA, PipelineConfig, Sink
from ensue.spark.streaming.file_sink import LISTED_FORMATS, check_list
from ensue.spark.streaming.job import split
from ensue.spark.streaming.kafka import (
    records_of,
    refused,
    refused_records,
    refused_rows_as_records,
)

BATCH_FOLDER = "ensue_batch"


def takes_apart(config: PipelineConfig) -> bool:
    """Whether micro-batches are taken apart here, and not written by Spark as they are."""
    return len(config.sinks) > 1 or config.sink.format == KAFKA


def writer_of(config: PipelineConfig) -> Callable[[DataFrame, int], None]:
    """What writes a micro-batch."""
    own_place = [LATE_KIND] if config.late is not None else []
    own_place += [REJECTED_KIND] if config.rejected is not None else []
    only_outputs = len(own_place) == 2

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            made = batch.filter(~sf.col(KIND).isin(*own_place)) if own_place else batch
            kept = made.drop(KIND, LEFT_OUT, PROBLEMS) if only_outputs else made
            _write(kept, config, config.sink, number)
            _, left_out = split(batch)
            if config.late is not None:
                came_late = left_out.filter(sf.col("kind") == LATE_KIND).drop("kind")
                _write(came_late, config, config.late, number)
            if config.rejected is not None and config.source.format == KAFKA:
                _write_refused(refused(batch), config, config.rejected, number)
            elif config.rejected is not None:
                rows = left_out.filter(sf.col("kind") == REJECTED_KIND)
                rows = rows.select(sf.col("event").alias("row"), "problems")
                _write_refused(rows, config, config.rejected, number)
        finally:
            batch.unpersist()

    return write


def parted(rows: DataFrame, sink: Sink) -> DataFrame:
    """The rows with the columns by which their folder is parted. Raises `UsageError`."""
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
    """Raises `UsageError` where what is there does not belong to the checkpoint."""
    if not takes_apart(config):
        if config.sink.path is not None and config.sink.format in LISTED_FORMATS:
            check_list(config.sink.path, config.stream.checkpoint)
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


def _write(rows: DataFrame, config: PipelineConfig, sink: Sink, number: int) -> None:
    with in_words(f"the writing of micro-batch {number} to `{sink.topic or sink.path}`"):
        if sink.format == KAFKA:
            _write_topic(records_of(rows, sink.mode), config, sink)
        else:
            _write_folder(rows, sink, number)


def _write_refused(rows: DataFrame, config: PipelineConfig, sink: Sink, number: int) -> None:
    with in_words(f"the writing of micro-batch {number} to `{sink.topic or sink.path}`"):
        if sink.format == KAFKA:
            from_topic = config.source.format == KAFKA
            records = refused_records(rows) if from_topic else refused_rows_as_records(rows)
            _write_topic(records, config, sink)
        else:
            _write_folder(rows, sink, number)


def _write_topic(records: DataFrame, config: PipelineConfig, sink: Sink) -> None:
    writer: Any = records.write.format("kafka").options(**sink.options)
    writer = writer.option("kafka.bootstrap.servers", config.servers_of(sink))
    writer.option("topic", sink.topic).option("includeHeaders", "true").save()


def _write_folder(rows: DataFrame, sink: Sink, number: int) -> None:
    writer: Any = parted(rows, sink).write.format(sink.format).options(**sink.options)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if sink.path is None:
        writer.save()
        return
    writer.mode("overwrite").save(f"{sink.path.rstrip('/')}/{BATCH_FOLDER}={number}")
