"""A running query from a source to a sink, as a configuration says.

In come a session, a library and a `PipelineConfig`; out goes a started query. What cannot work is
refused first, before anything is written. With one sink of files, Spark's own file sink writes
every row exactly once. With several sinks, or a topic, `sinks` splits and writes the micro-batches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ensue.errors import UsageError
from ensue.library import Library
from ensue.spark.failures import reason_of
from ensue.spark.kafka.connector import with_kafka
from ensue.spark.streaming.checkpoint.folder import check_location, lock
from ensue.spark.streaming.checkpoint.rules import record_rules, rules_of_planned_batch
from ensue.spark.streaming.config import KAFKA, PipelineConfig
from ensue.spark.streaming.job import StreamOptions, correlate_stream
from ensue.spark.streaming.kafka import correlate_kafka
from ensue.spark.streaming.lines import correlate_lines, open_lines
from ensue.spark.streaming.sinks import (
    check_sinks,
    splits_batches,
    with_partition_columns,
    writer_of,
)
from ensue.spark.streaming.sources import check_servers, open_source


def plan(spark: SparkSession, library: Library, config: PipelineConfig) -> DataFrame:
    """The stream of outputs, not started. Raises `UsageError` for what cannot work."""
    stream = config.stream
    mapping = config.mapping
    if config.source.is_text:
        options = StreamOptions(
            stream.lateness,
            stream.buckets,
            stream.correlations,
            config.sink.format == KAFKA,
            max_jump=stream.max_jump,
            idle=stream.idle,
            key=stream.signing_key,
        )
        lines = open_lines(spark, config.source)
        return correlate_lines(
            lines, library, config.source.given, mapping, options, config.source.path
        )
    counted = {each.path for each in mapping.columns.values() if each.unit is not None}
    events = open_source(spark, config.source, counted)
    # A topic gets whole events as JSON, files get columns.
    whole_events = config.sink.format == KAFKA
    if config.source.format == KAFKA:
        return correlate_kafka(
            events,
            library,
            lateness=stream.lateness,
            buckets=stream.buckets,
            correlations=stream.correlations,
            whole_events=whole_events,
            idle=stream.idle,
            max_jump=stream.max_jump,
            key=stream.signing_key,
        )
    return correlate_stream(
        events,
        library,
        config.columns,
        lateness=stream.lateness,
        buckets=stream.buckets,
        correlations=stream.correlations,
        whole_events=whole_events,
        arrival=stream.arrival,
        type=config.source.type,
        timezone=config.source.timezone,
        idle=stream.idle,
        max_jump=stream.max_jump,
        key=stream.signing_key,
    )


def start(
    spark: SparkSession, library: Library, config: PipelineConfig, alone: bool = False
) -> Any:
    """The running query. Raises `UsageError` for what cannot work.

    With `alone` the checkpoint is locked against other processes until this one ends.
    """
    _configure(spark, config)
    check_sinks(config, is_resumed(config))
    if config.uses_kafka:
        with_kafka(spark)
        for servers in {config.source.servers, *map(config.servers_of, config.sinks.values())}:
            if servers is not None:
                check_servers(servers)
    check_location(config.stream.checkpoint)
    # Errors of the plan come before anything is written.
    made = plan(spark, library, config)
    with_partition_columns(made, config.sink)
    if alone:
        lock(config.stream.checkpoint)
    planned_with = rules_of_planned_batch(
        spark, config.stream.checkpoint, library, config.stream.signing_key
    )
    if planned_with is not None:
        _start(spark, planned_with, config, finishing=True).awaitTermination()
    record_rules(spark, config.stream.checkpoint, library, config.stream.signing_key)
    return _start(spark, library, config, made)


def _start(
    spark: SparkSession,
    library: Library,
    config: PipelineConfig,
    made: DataFrame | None = None,
    finishing: bool = False,
) -> Any:
    """The query; with `finishing` it runs the planned micro-batch, and ends."""
    made = plan(spark, library, config) if made is None else made
    splits = splits_batches(config)
    writer: Any = (
        made if splits else with_partition_columns(made, config.sink)
    ).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", config.stream.checkpoint)
    interval = config.stream.trigger_milliseconds
    if finishing:
        writer = writer.trigger(once=True)
    elif interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{interval} milliseconds")
    if splits:
        return writer.foreachBatch(writer_of(config)).start()
    writer = writer.format(config.sink.format).options(**config.sink.options)
    if config.sink.partition_by:
        writer = writer.partitionBy(*config.sink.partition_by)
    return writer.start(config.sink.path) if config.sink.path else writer.start()


def is_resumed(config: PipelineConfig) -> bool:
    """Whether the checkpoint exists already; only known for local folders."""
    return (Path(config.stream.checkpoint) / "offsets").is_dir()


def _configure(spark: SparkSession, config: PipelineConfig) -> None:
    for name, value in config.spark.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            spark.conf.set(name, text)
        except AnalysisException as error:
            raise UsageError(
                f"`{name}` in `[spark]` cannot be set ({reason_of(error)}): give it when Spark is"
                f" started, as `spark-submit --conf {name}={text}`"
            ) from None
