"""The columns of a DataFrame as events: the rule of `ensue.events.columns`, in SQL.

In comes a DataFrame and the renames; out goes a `Layout`: what stands for each attribute, as a
`Column`, and of which kind it is. A struct `data` is opened into its fields. What SQL cannot read
exactly as Python does (JSON text, times as text, decimals, maps) makes the layout *opaque*: then
rows become events in Python, before the shuffle, and the layout says why. What no event can hold
(bytes, intervals, variants) is left out there. Which values fit is told by `conformance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.errors import UsageError
from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import (
    CONTEXT_COLUMNS,
    DATA_COLUMN,
    EXTENSION_PREFIX,
    is_attribute_column,
)
from ensue.events.columns import Layout as RowLayout
from ensue.lang.diagnostics import did_you_mean
from ensue.spark.worker.event_rows import DEFAULT_SOURCE, ROW

_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_REALS = (st.FloatType, st.DoubleType)
_INSTANTS = (st.TimestampType, st.TimestampNTZType)
_OTHERS = (st.BooleanType, st.StringType, st.DecimalType, st.DateType, st.TimeType, st.NullType)
_HELD = (*_INTEGERS, *_REALS, *_INSTANTS, *_OTHERS)


@dataclass(frozen=True)
class Source:
    """A column of the DataFrame, or a field of its `data`, and what it stands for.

    `kind` is None for a column that no operator of ours can compute with in SQL.
    """

    origin: str
    column: Column
    type: st.DataType
    kind: str | None
    in_data: bool = False


@dataclass(frozen=True)
class Layout:
    """`renamed` lists every column of the DataFrame with its name in the rule, for Python.

    `left_out` are those that no event can hold. `fields` are those of `data`, where it is a struct.
    """

    renamed: tuple[tuple[str, str], ...]
    context: Mapping[str, Source]
    extensions: Mapping[str, Source]
    attributes: Mapping[str, Source]
    data: Column | None = None
    fields: tuple[st.StructField, ...] = ()
    left_out: frozenset[str] = frozenset()
    opaque: tuple[str, ...] = ()

    def row(self) -> Column:
        """All that an event can hold, each under the name that the rule knows it by, as one column.

        On its way to Python, Spark takes a dot in the name of a column for a path into one, and in
        that of a field for nothing but a dot.
        """
        held = [
            (self._held_data() if name == DATA_COLUMN else sf.col(_quoted(origin))).alias(name)
            for name, origin in self.renamed
            if name not in self.left_out
        ]
        return sf.struct(*held).alias(ROW)

    def _held_data(self) -> Column:
        data = sf.col(_quoted(dict(self.renamed)[DATA_COLUMN]))
        kept = [each.name for each in self.fields if can_be_held(each.dataType)]
        if len(kept) == len(self.fields):
            return data
        parts = [data.getField(name).alias(name) for name in kept]
        return sf.when(data.isNotNull(), sf.struct(*parts)) if parts else sf.lit(None)

    @property
    def time(self) -> Column:
        """The time in microseconds since 1970."""
        return micros(self.context["time"])

    @property
    def source(self) -> Column:
        given = self.context.get("source")
        if given is None:
            return sf.lit(DEFAULT_SOURCE)
        return sf.when(given.column != "", given.column).otherwise(sf.lit(DEFAULT_SOURCE))


def layout_of(events: DataFrame, columns: Mapping[str, str] | None = None) -> Layout:
    """Raises `UsageError` for columns that cannot make events, naming them."""
    minds_case = events.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    _refuse_twins("the DataFrame has two columns", events.columns, minds_case)
    fields = {each.name: each.dataType for each in events.schema.fields}
    renamed = _renamed(list(fields), columns or {})
    # The rule refuses what it cannot take by the names that it would see.
    rows = RowLayout.of([name for name, _ in renamed], "the DataFrame")
    if "id" not in rows.context:
        raise UsageError(
            "the DataFrame has no column `id`, and without ids nobody could tell which events an"
            ' output comes from: name the column that holds them, as `columns={"id": "uuid"}`'
        )
    context: dict[str, Source] = {}
    extensions: dict[str, Source] = {}
    attributes: dict[str, Source] = {}
    opaque: list[str] = []
    data: Column | None = None
    for name, origin in renamed:
        source = _source(origin, sf.col(_quoted(origin)), fields[origin])
        if name == DATA_COLUMN:
            if isinstance(source.type, st.StructType):
                data = source.column
            elif not can_be_held(source.type):
                raise UsageError(
                    f"the column `{origin}`, which is to be the data of events, is"
                    f" {_shown(source.type)}: it must be a struct, a map or JSON text; cast it, or"
                    " drop it"
                )
            elif not isinstance(source.type, st.NullType):
                opaque.append(f"`{origin}` holds the data as {_shown(source.type)}")
        elif name in TEXT_ATTRIBUTES:
            extensions[name] = source
        elif name in CONTEXT_COLUMNS:
            context[name] = source
            opaque += _check_context(name, source)
        elif name.startswith(EXTENSION_PREFIX) and name != EXTENSION_PREFIX:
            extensions[name.removeprefix(EXTENSION_PREFIX)] = source
        else:
            attributes[name] = source
    inner: tuple[st.StructField, ...] = ()
    if data is not None:
        origin = dict(renamed)[DATA_COLUMN]
        struct = fields[origin]
        assert isinstance(struct, st.StructType)
        inner = tuple(struct.fields)
        _refuse_twins(f"`{origin}` has two fields", struct.fieldNames(), minds_case)
        _open_data(origin, inner, attributes, opaque)
    left_out = frozenset(
        name for name, origin in renamed if name != DATA_COLUMN and not can_be_held(fields[origin])
    )
    return Layout(
        tuple(renamed), context, extensions, attributes, data, inner, left_out, tuple(opaque)
    )


def _open_data(
    origin: str,
    fields: tuple[st.StructField, ...],
    attributes: dict[str, Source],
    opaque: list[str],
) -> None:
    for each in fields:
        place = f"{origin}.{each.name}"
        inner = sf.col(_quoted(origin)).getField(each.name)
        if each.name in attributes or not is_attribute_column(each.name):
            opaque.append(f"`{each.name}` is a field of `{origin}`, and of the events themselves")
            continue
        attributes[each.name] = _source(place, inner, each.dataType, in_data=True)


def _refuse_twins(what: str, names: Sequence[str], minds_case: bool) -> None:
    """Raises `UsageError` for names that Spark cannot tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        known = name if minds_case else name.lower()
        if known not in seen:
            seen[known] = name
        elif seen[known] == name:
            raise UsageError(f"{what} `{name}`: rename or drop one of them")
        else:
            raise UsageError(
                f"{what} `{seen[known]}` and `{name}`, which differ only in case, and Spark cannot"
                " tell them apart: rename or drop one of them"
            )


def _renamed(present: list[str], columns: Mapping[str, str]) -> list[tuple[str, str]]:
    for name, origin in columns.items():
        if origin not in present:
            raise UsageError(
                f"`columns` says that `{name}` is in the column `{origin}`, and the DataFrame has"
                f" none of that name; {did_you_mean(origin, present)}"
            )
    taken = {origin: name for name, origin in columns.items()}
    renamed = [(taken.get(origin, origin), origin) for origin in present]
    # A column whose name was given to another is data that nobody asked for.
    return [
        (name, origin) for name, origin in renamed if name not in columns or columns[name] == origin
    ]


def _check_context(name: str, source: Source) -> list[str]:
    """Why Python must read this column; raises `UsageError` if nobody can."""
    if isinstance(source.type, st.NullType):
        return [f"`{source.origin}` is null in every row"]
    if name == "time":
        if source.kind == "timestamp":
            return []
        if source.kind == "string":
            return [f"`{source.origin}` holds times as text"]
        raise UsageError(
            f"the column `{source.origin}`, which is to be the `time` of events, is"
            f" {_shown(source.type)}: it must be a timestamp, or RFC 3339 text"
        )
    if source.kind == "string" or (name == "id" and source.kind == "integer"):
        return []
    raise UsageError(
        f"the column `{source.origin}`, which is to be the `{name}` of events, is"
        f" {_shown(source.type)}: it must be a string"
    )


def _source(origin: str, column: Column, type_: st.DataType, in_data: bool = False) -> Source:
    return Source(origin, column, type_, kind_of_type(type_), in_data)


def kind_of_type(type_: st.DataType) -> str | None:
    """What values of a Spark type are to us; None where SQL and Python read them differently."""
    if isinstance(type_, _INTEGERS):
        return "integer"
    if isinstance(type_, _REALS):
        return "real"
    if isinstance(type_, st.BooleanType):
        return "boolean"
    if isinstance(type_, _INSTANTS):
        return "timestamp"
    # With another collation, texts that differ would be equal.
    return "string" if type_.simpleString() == "string" else None


def can_be_held(type_: st.DataType) -> bool:
    """Whether an event can hold values of a Spark type; a column of others is left out."""
    if isinstance(type_, st.ArrayType):
        return can_be_held(type_.elementType)
    if isinstance(type_, st.MapType):
        return can_be_held(type_.valueType)
    if isinstance(type_, st.StructType):
        return all(can_be_held(each.dataType) for each in type_.fields)
    return isinstance(type_, _HELD)


def instant(source: Source) -> Column:
    """A timestamp as Spark's own; what has no zone is in UTC."""
    if isinstance(source.type, st.TimestampNTZType):
        text = sf.concat(source.column.cast("string"), sf.lit("Z"))
        return sf.try_to_timestamp(text)
    return source.column


def micros(source: Source) -> Column:
    return sf.unix_micros(instant(source))


def _shown(type_: st.DataType) -> str:
    if isinstance(type_, st.StringType):
        return "text"
    return f"`{type_.simpleString()}`"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
