"""Parquet as a DataFrame: its columns as they are, with the place of every row.

In come paths and a `FileReading`; out goes an `Input`. Times in nanoseconds, and columns that are
null in every row, are read as `nanoseconds` says. Rows without ids have their places.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.events.columns import (
    CONTEXT_COLUMNS,
    DATA_COLUMN,
    EXTENSION_PREFIX,
)
from ensue.events.records.parquet import open_parquet as open_local_parquet
from ensue.library import Library
from ensue.spark.batch import nanoseconds
from ensue.spark.batch.inputs import (
    MOST_RANKED,
    FileReading,
    Input,
    file_column,
    open_with,
    paths_of,
    reader_of,
)
from ensue.spark.plan import plan_of
from ensue.spark.sql.mapping import attribute_names
from ensue.spark.sql.scan import names_read
from ensue.spark.worker.event_rows import ARRIVAL, OWN_ID
from ensue.spark.worker.files.line_places import PLACES_A_FILE, SCHEME, name_of, plain_path


def open_parquet(
    spark: SparkSession,
    paths: Sequence[str],
    reading: FileReading,
    library: Library,
) -> Input:
    """The columns, the name of the file where a row has no source, and the place of each row."""
    read = _with_plain_times(spark, paths, reading, _columns_read(library, reading))
    columns = {name: name for name in read.columns}
    files = paths_of(read, reading)
    own_name = sf.element_at(sf.split(_decoded_path(), "/"), -1)
    place: Column = sf.monotonically_increasing_id()
    if len(files) < MOST_RANKED:
        rank = _rank(files, read.inputFiles())
        place = rank * sf.lit(PLACES_A_FILE) + sf.col("_metadata.row_index")
    arrival = place.cast("bigint").alias(ARRIVAL)
    added = [arrival]
    if "id" not in (*read.columns, *reading.mapping.columns):
        added.append(_row_id(read, reading, own_name).alias("id"))
    elif reading.numbered:
        ids = _column_of_ids(reading)
        if ids in read.columns:
            known = sf.col(f"`{ids}`").cast("string")
            columns[ids] = OWN_ID
            read = read.withColumn(OWN_ID, sf.col(f"`{ids}`"))
            read = read.withColumn(ids, sf.coalesce(known, _row_id(read, reading, own_name)))
    source = own_name
    if "source" in read.columns and "source" not in reading.mapping.columns:
        source = sf.coalesce(sf.nullif(sf.col("source"), sf.lit("")), own_name)
    kept = [sf.col(f"`{name}`") for name in read.columns if name != "source"]
    if "source" in reading.mapping.columns:
        kept, named = [sf.col(f"`{name}`") for name in read.columns], []
    else:
        named = [source.alias("source")]
    events = read.select(*kept, *named, *added)
    return Input(len(files), events, rows=read.select("*", *added), columns=columns)


def _read_by_rules(library: Library) -> set[str]:
    rules = [rule for group in plan_of(library.checked).groups for rule in group.rules]
    return {name for rule in rules for name in names_read(rule)}


def _columns_read(library: Library, reading: FileReading) -> set[str] | None:
    """The columns that a run may read; None for all of them."""
    if any(group.sends_on for group in plan_of(library.checked).groups):
        return None
    names = {*attribute_names(library.checked.types), *_read_by_rules(library), *CONTEXT_COLUMNS}
    moved = reading.mapping.moved(())
    return {DATA_COLUMN, *names, *moved, *(name.partition(".")[0] for name in (*names, *moved))}


def _rank(files: Sequence[str], spelled: Sequence[str]) -> Column:
    """The number of the file of a row among all files.

    Each path is known by its code, in every way in which Spark spells it: to decode and compare
    texts for every row would cost more than a rule.
    """
    ranks = {path: rank for rank, path in enumerate(files)}
    by_code: dict[int, int] = {}
    for path in spelled:
        rank = ranks[plain_path(path)]
        for each in (path, *(SCHEME.sub(rf"\1:{slashes}", path) for slashes in ("/", "///"))):
            if by_code.setdefault(zlib.crc32(each.encode()), rank) != rank:
                return _rank_by_text(files)
    known = sf.array_position(sf.array(*map(sf.lit, by_code)), sf.crc32(file_column()))
    # A code that is not found has the place 0.
    numbers = sf.array(*map(sf.lit, (len(files), *by_code.values())))
    return sf.get(numbers, known.cast("int"))


def _rank_by_text(files: Sequence[str]) -> Column:
    path = sf.regexp_replace(_decoded_path(), SCHEME.pattern, "$1:/")
    found = sf.array_position(sf.array(*map(sf.lit, files)), path)
    return sf.when(found > 0, found - 1).otherwise(sf.lit(len(files)))


def _decoded_path() -> Column:
    """The path of the file of a row, without escapes."""
    # Only in a query of a URL a plus stands for a space.
    escaped = sf.replace(file_column(), sf.lit("+"), sf.lit("%2B"))
    return sf.coalesce(sf.try_url_decode(escaped), file_column())


def _column_of_ids(reading: FileReading) -> str:
    origin = reading.mapping.columns.get("id")
    return "id" if origin is None else origin.path


def _row_id(read: DataFrame, reading: FileReading, own_name: Column) -> Column:
    """The file of a row and its number there, which stand in for an id."""
    labels = reading.labels(read.inputFiles())
    others = [each for each in labels.items() if each[1] != name_of(each[0])]
    label = own_name
    if others:
        path = sf.regexp_replace(_decoded_path(), SCHEME.pattern, "$1:/")
        pairs = [sf.lit(each) for pair in others for each in pair]
        label = sf.coalesce(sf.try_element_at(sf.create_map(*pairs), path), own_name)
    number = (sf.col("_metadata.row_index") + 1).cast("string")
    return sf.concat(label, sf.lit(":"), number)


def _check_files(paths: Sequence[str]) -> None:
    """Raises `UsageError` for a local file that is no Parquet, as in one process."""
    for path in paths:
        if Path(path).is_file():
            with ExitStack() as stack:
                open_local_parquet(Path(path), path, stack)


def _with_plain_times(
    spark: SparkSession, paths: Sequence[str], reading: FileReading, needed: set[str] | None
) -> DataFrame:
    """The columns of Parquet; times in nanoseconds, which Spark does not read, in microseconds.

    Raises `UsageError` for a needed column that is of different kinds in different files; other
    columns of that sort are left out.
    """
    reader = reader_of(spark, "parquet")
    try:
        read = open_with(reader, paths)
    except UsageError as error:
        if nanoseconds.SIGN not in str(error):
            _check_files(paths)
            raise
        spark.conf.set(nanoseconds.SETTING, "true")
        read = open_with(reader, paths)
    files = paths_of(read, reading)
    if len(files) < MOST_RANKED:
        different = nanoseconds.different_types(files)
        for name, reason in different.clashing.items():
            if needed is None or name in needed or name.startswith(EXTENSION_PREFIX):
                raise UsageError(reason)
        if different.null:
            spark.conf.set(nanoseconds.BY_VECTORS, "false")
        if different.elsewhere:
            schema = nanoseconds.with_types(reader, read.schema, different.elsewhere)
            read = open_with(reader_of(spark, "parquet").schema(schema), paths)
        read = read.drop(*different.clashing)
        empty = nanoseconds.empty_columns(files, read.schema)
        read = read.withColumns({name: sf.lit(None) for name in empty}) if empty else read
    if spark.conf.get(nanoseconds.SETTING, "false") != "true":
        return read
    # What the user has given a unit is meant as a number.
    counted = {each.path for each in reading.mapping.columns.values() if each.unit is not None}
    for name, is_local in nanoseconds.nanosecond_columns(files, read.schema).items():
        if name not in counted:
            instant = nanoseconds.in_microseconds(sf.col(f"`{name}`"), is_local)
            read = read.withColumn(name, instant)
    return read
