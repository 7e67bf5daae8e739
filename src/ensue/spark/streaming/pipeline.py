"""From a source to a sink: a configuration made into a running query.

In come a session, a library and a `PipelineConfig`; out goes a query that has been started, after
all that can be wrong with it has been said. With one sink, Spark's own file sink makes every row
appear exactly once. With a sink of their own for late events, each micro-batch is written to a
folder of its own, `ensue_batch=N`, in both; one that is run again after a crash replaces it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from ensue.errors import UsageError
from ensue.library import Library
from ensue.spark.streaming.config import PipelineConfig, Sink, Source
from ensue.spark.streaming.job import correlate_stream, split

BATCH_FOLDER = "ensue_batch"


def plan(spark: SparkSession, library: Library, config: PipelineConfig) -> DataFrame:
    """The stream of outputs, with nothing started. Raises `UsageError` for what cannot work."""
    stream = config.stream
    return correlate_stream(
        open_source(spark, config.source),
        library,
        config.columns,
        lateness=stream.lateness,
        buckets=stream.buckets,
        correlations=stream.correlations,
        arrival=stream.arrival,
    )


def start(spark: SparkSession, library: Library, config: PipelineConfig) -> Any:
    """The running query. Raises `UsageError` for what cannot work."""
    for name, value in config.spark.items():
        spark.conf.set(name, str(value).lower() if isinstance(value, bool) else str(value))
    stream = config.stream
    made = plan(spark, library, config)
    writer: Any = made.writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", stream.checkpoint)
    interval = stream.trigger_milliseconds
    if interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{interval} milliseconds")
    if config.late is not None:
        return writer.foreachBatch(_both(config.sink, config.late)).start()
    writer = writer.format(config.sink.format).options(**config.sink.options)
    return writer.start(config.sink.path) if config.sink.path else writer.start()


def open_source(spark: SparkSession, source: Source) -> DataFrame:
    schema: Any = source.schema
    if schema is None:
        schema = _schema_of_files(spark, source)
    try:
        reader = spark.readStream.format(source.format).schema(schema).options(**source.options)
        return reader.load(source.path)
    except (AnalysisException, ParseException) as error:
        raise UsageError(f"the source `{source.path}` cannot be read: {_first(error)}") from None


def _schema_of_files(spark: SparkSession, source: Source) -> Any:
    if source.format not in ("parquet", "orc", "delta"):
        raise UsageError(
            f"a source of format `{source.format}` needs a `schema` in `[source]`, as"
            ' `schema = "id string, type string, time timestamp, ..."`'
        )
    try:
        return spark.read.format(source.format).load(source.path).schema
    except AnalysisException as error:
        raise UsageError(
            f"the columns of `{source.path}` cannot be told ({_first(error)}): say them as"
            " `schema` in `[source]`, or put a first file there"
        ) from None


def _first(error: Exception) -> str:
    text = str(error).partition("\n")[0].partition(" SQLSTATE")[0].rstrip(".")
    return text.partition("] ")[2] or text


def _both(sink: Sink, late: Sink) -> Any:
    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            outputs, came_late = split(batch)
            _write(outputs, sink, number)
            _write(came_late, late, number)
        finally:
            batch.unpersist()

    return write


def _write(rows: DataFrame, sink: Sink, number: int) -> None:
    writer: Any = rows.write.format(sink.format).options(**sink.options)
    if sink.path is None:
        writer.save()
        return
    writer.mode("overwrite").save(f"{sink.path.rstrip('/')}/{BATCH_FOLDER}={number}")


def remembered(config: PipelineConfig) -> bool:
    """Whether a checkpoint is there to go on from; only local folders can be asked."""
    return (Path(config.stream.checkpoint) / "commits").is_dir()
