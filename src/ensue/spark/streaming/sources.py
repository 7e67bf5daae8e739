"""The source of a pipeline: a folder of files in columns, or topics of Kafka.

In come a session and the `[source]` of a configuration; out goes a streaming DataFrame: columns for
files, records for Kafka. Text files are opened in `lines`. Errors that show without reading are
raised here: an unknown schema, Kafka servers that do not answer.
"""

from __future__ import annotations

import json
import socket
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.spark.batch import nanoseconds
from ensue.spark.batch.inputs import MOST_RANKED
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.kafka.connector import with_kafka
from ensue.spark.streaming.config import KAFKA, SourceConfig
from ensue.spark.worker.files.line_places import plain_path

_PATIENCE_SECONDS = 5.0


def open_source(
    spark: SparkSession, source: SourceConfig, counted: Collection[str] = ()
) -> DataFrame:
    """The source as a stream; columns in `counted` hold numbers, of which the user says the unit.

    Raises `UsageError` for a source that cannot be read.
    """
    if source.format == KAFKA:
        return _open_topics(spark, source)
    told = FileColumns(source.schema)
    if source.schema is None:
        told = _columns_of_files(spark, source)
    elif source.format == "parquet" and has_null_types(source):
        spark.conf.set(nanoseconds.BY_VECTORS, "false")
    try:
        form = "json" if source.format == "jsonl" else source.format
        reader = spark.readStream.format(form).schema(told.schema).options(**source.options)
        opened = reader.load(source.path)
    except FAILURES as error:
        raise UsageError(f"the source `{source.path}` cannot be read: {reason_of(error)}") from None
    if told.empty:
        names = ", ".join(f"`{name}`" for name in told.empty)
        warnings.warn(
            f"no file of `{source.path}` has a value in {names}, nor says of what type they are:"
            " they are read as null, also where later files have values. If they are to come, say"
            " the types of all columns as `schema` in `[source]`",
            stacklevel=2,
        )
        opened = opened.withColumns({name: sf.lit(None) for name in told.empty})
    for name, is_local in told.nanoseconds.items():
        if name in counted:
            continue
        instant = nanoseconds.in_microseconds(sf.col(f"`{name}`"), is_local)
        opened = opened.withColumn(name, instant)
    return opened


def check_servers(servers: str) -> None:
    """Raises `UsageError` if none of the servers takes a connection from here."""
    refusals: list[str] = []
    for server in (each.strip() for each in servers.split(",")):
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"`{server}` is no server: give its name and its port, as `host:9092`")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_SECONDS).close()
        except OSError as error:
            refusals.append(f"`{server}`: {(error.strerror or str(error)).lower()}")
        else:
            return
    raise UsageError(
        f"no Kafka server answers ({'; '.join(refusals)}): look whether it runs, and whether"
        " `servers` is right"
    )


def without_topics(source: SourceConfig, progress: Any) -> str | None:
    """The message about a micro-batch whose topic pattern matches no topic; None if one does."""
    if source.pattern is None or any(_names_topics(each.endOffset) for each in progress.sources):
        return None
    return (
        f"no topic on `{source.servers}` matches the pattern `{source.pattern}`, so that there is"
        " nothing to read: look at `pattern` in `[source]`, or create a topic that matches it"
    )


def _names_topics(offsets: Any) -> bool:
    """Whether Kafka offsets, JSON by topic and partition, name a topic."""
    return bool(json.loads(offsets) if isinstance(offsets, str) and offsets else offsets)


def _open_topics(spark: SparkSession, source: SourceConfig) -> DataFrame:
    reader = with_kafka(spark).readStream.format("kafka")
    reader = reader.option("kafka.bootstrap.servers", source.servers)
    if source.pattern:
        reader = reader.option("subscribePattern", source.pattern)
    else:
        reader = reader.option("subscribe", ",".join(source.topics or ()))
    reader = reader.option("startingOffsets", source.start).options(**source.options)
    try:
        # The headers hold the attributes of events in binary mode.
        return reader.option("includeHeaders", "true").load()
    except FAILURES as error:
        raise UsageError(f"the topics `{source.name}` cannot be read: {reason_of(error)}") from None


def has_null_types(source: SourceConfig) -> bool:
    """Whether a file of this machine has a column of which it says no type."""
    files = sorted(Path(source.path or "").rglob("*.parquet"))[:MOST_RANKED]
    return any(
        pa.types.is_null(field.type)
        for file in files
        for field in nanoseconds.schema_here(str(file)) or ()
    )


class FileColumns(NamedTuple):
    """The columns of files: those of nanoseconds, by whether they have no zone, and those of which
    no file says the type, since none has a value."""

    schema: Any
    nanoseconds: Mapping[str, bool] = {}
    empty: Sequence[str] = ()


def _columns_of_files(spark: SparkSession, source: SourceConfig) -> FileColumns:
    try:
        files = spark.read.format(source.format).load(source.path)
    except FAILURES as error:
        if nanoseconds.SIGN not in str(error):
            raise UsageError(
                f"the columns of `{source.path}` cannot be told ({reason_of(error)}): say them as"
                " `schema` in `[source]`, or put a first file there"
            ) from None
        spark.conf.set(nanoseconds.SETTING, "true")
        files = spark.read.format(source.format).load(source.path)
    if source.format != "parquet":
        return FileColumns(files.schema)
    paths = sorted(plain_path(each) for each in files.inputFiles())
    schema = files.schema
    different = nanoseconds.different_types(paths[:MOST_RANKED])
    if different.null:
        spark.conf.set(nanoseconds.BY_VECTORS, "false")
    if different.elsewhere:
        reader = spark.read.format(source.format)
        schema = nanoseconds.with_types(reader, schema, different.elsewhere)
    empty = nanoseconds.empty_columns(paths[:MOST_RANKED], schema)
    if spark.conf.get(nanoseconds.SETTING, "false") != "true":
        return FileColumns(schema, empty=empty)
    return FileColumns(schema, nanoseconds.nanosecond_columns(paths, schema), empty)
