"""The columns of a DataFrame as events: the rule of `ensue.events.columns`, in SQL.

In come a DataFrame and the renames of its columns; out goes a `DataFrameLayout`: for each attribute
of an event its `Column` and its kind. A struct `data` is opened into its fields. Columns that SQL
does not read exactly as Python does (JSON text, numbers as text, decimals, maps) are listed in
`python_reasons`; rows then become events in Python, before the shuffle. Columns that no event can
hold (bytes, intervals, variants) are left out. `conformance` says which values fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.errors import UsageError
from ensue.events.cloudevents import NUMBERED, TEXT_ATTRIBUTES
from ensue.events.columns import (
    CONTEXT_COLUMNS,
    DATA_COLUMN,
    EXTENSION_PREFIX,
    is_attribute_column,
)
from ensue.events.columns import Layout as RowLayout
from ensue.events.time_patterns import is_pattern
from ensue.lang.diagnostics import did_you_mean
from ensue.spark.sql.instants import instant_of_local, instant_of_number, instant_of_text
from ensue.spark.worker.event_rows import DEFAULT_SOURCE, NO_TIMES, ROW, Times
from ensue.spark.worker.json_rows import JSON_OPTIONS

_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_REALS = (st.FloatType, st.DoubleType)
_INSTANTS = (st.TimestampType, st.TimestampNTZType)
_OTHERS = (st.BooleanType, st.StringType, st.DecimalType, st.DateType, st.TimeType, st.NullType)
_EVENT_VALUES = (*_INTEGERS, *_REALS, *_INSTANTS, *_OTHERS)


@dataclass(frozen=True)
class InputColumn:
    """A column of the DataFrame, or a field of its `data`.

    `origin` is its name there, with its path. `kind` is the kind of its values in CESQL, or None if
    no operator of CESQL can compute with them in SQL.
    """

    origin: str
    column: Column
    type: st.DataType
    kind: str | None
    in_data: bool = False


@dataclass(frozen=True)
class DataFrameLayout:
    """What each column of a DataFrame means.

    `renamed` pairs the name of every column in `ensue.events.columns` with its name in the
    DataFrame. `left_out` has the columns that no event can hold, `fields` the fields of a struct
    `data`, and `python_reasons` why Python must read the rows, if it must.
    """

    renamed: tuple[tuple[str, str], ...]
    context: Mapping[str, InputColumn]
    extensions: Mapping[str, InputColumn]
    attributes: Mapping[str, InputColumn]
    data: Column | None = None
    fields: tuple[st.StructField, ...] = ()
    left_out: frozenset[str] = frozenset()
    python_reasons: tuple[str, ...] = ()

    def row(self) -> Column:
        """All columns that an event can hold, renamed, as the fields of one struct column.

        Spark takes a dot in the name of a column for a path, but not in the name of a field.
        """
        columns = [
            (self._data_column() if name == DATA_COLUMN else sf.col(_quoted(origin))).alias(name)
            for name, origin in self.renamed
            if name not in self.left_out
        ]
        return sf.struct(*columns).alias(ROW)

    def row_as_json(self) -> Column:
        """`row` as text from which `worker.json_rows` gets back every value exactly."""
        return sf.to_json(self.row(), JSON_OPTIONS)

    def _data_column(self) -> Column:
        data = sf.col(_quoted(dict(self.renamed)[DATA_COLUMN]))
        kept = [each.name for each in self.fields if is_event_value(each.dataType)]
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


def layout_of(
    events: DataFrame, columns: Mapping[str, str] | None = None, times: Times = NO_TIMES
) -> DataFrameLayout:
    """Raises `UsageError` for columns that do not make events, naming them.

    `columns` has columns by the names of attributes where they differ.
    """
    case_sensitive = events.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    _refuse_equal_names("the DataFrame has two columns", events.columns, case_sensitive)
    fields = {each.name: each.dataType for each in events.schema.fields}
    renamed = _renamed(list(fields), columns or {})
    # Names are refused as they are after renaming.
    rows = RowLayout.of([name for name, _ in renamed], "the DataFrame")
    if "id" not in rows.context:
        raise UsageError(
            "the DataFrame has no column `id`, and without ids nobody could tell which events an"
            ' output comes from: name the column that holds them, as `columns={"id": "uuid"}`'
        )
    context: dict[str, InputColumn] = {}
    extensions: dict[str, InputColumn] = {}
    attributes: dict[str, InputColumn] = {}
    python_reasons: list[str] = []
    data: Column | None = None
    for name, origin in renamed:
        source = _source(origin, sf.col(_quoted(origin)), fields[origin])
        source = _as_instant(name, source, times, python_reasons)
        if name == DATA_COLUMN:
            if isinstance(source.type, st.StructType):
                data = source.column
            elif not is_event_value(source.type):
                raise UsageError(
                    f"the column `{origin}`, which is to be the data of events, is"
                    f" {_shown(source.type)}: it must be a struct, a map or JSON text; cast it, or"
                    " drop it"
                )
            elif not isinstance(source.type, st.NullType):
                python_reasons.append(f"`{origin}` holds the data as {_shown(source.type)}")
        elif name in TEXT_ATTRIBUTES:
            extensions[name] = source
        elif name in CONTEXT_COLUMNS:
            python_reasons += _check_context(name, source)
            if name == "type" and source.kind == "integer":
                text = source.column.cast("string")
                source = replace(source, column=text, type=st.StringType(), kind="string")
            context[name] = source
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
        _refuse_equal_names(f"`{origin}` has two fields", struct.fieldNames(), case_sensitive)
        _open_data(origin, inner, attributes, python_reasons)
    left_out = frozenset(
        name
        for name, origin in renamed
        if name != DATA_COLUMN and not is_event_value(fields[origin])
    )
    return DataFrameLayout(
        tuple(renamed),
        context,
        extensions,
        attributes,
        data,
        inner,
        left_out,
        tuple(python_reasons),
    )


def _open_data(
    origin: str,
    fields: tuple[st.StructField, ...],
    attributes: dict[str, InputColumn],
    python_reasons: list[str],
) -> None:
    for each in fields:
        place = f"{origin}.{each.name}"
        inner = sf.col(_quoted(origin)).getField(each.name)
        if each.name in attributes or not is_attribute_column(each.name):
            python_reasons.append(
                f"`{each.name}` is a field of `{origin}`, and of the events themselves"
            )
            continue
        attributes[each.name] = _source(place, inner, each.dataType, in_data=True)


def _refuse_equal_names(what: str, names: Sequence[str], case_sensitive: bool) -> None:
    """Raises `UsageError` for names that Spark cannot tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        known = name if case_sensitive else name.lower()
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
    # A column whose own name was given to another column is left out.
    return [
        (name, origin) for name, origin in renamed if name not in columns or columns[name] == origin
    ]


def _check_context(name: str, source: InputColumn) -> list[str]:
    """The reasons why Python must read this column. Raises `UsageError` if it cannot either."""
    if isinstance(source.type, st.NullType):
        return [f"`{source.origin}` is null in every row"]
    if name == "time":
        if source.kind == "timestamp":
            return []
        number = ", or say in which unit it counts, as `ts:ms`" if source.kind else ""
        raise UsageError(
            f"the column `{source.origin}`, which is to be the `time` of events, is"
            f" {_shown(source.type)}: it must be a timestamp, or RFC 3339 text{number}"
        )
    if source.kind == "string" or (name in NUMBERED and source.kind == "integer"):
        return []
    if name in NUMBERED and source.kind == "real":
        return [f"`{source.origin}` holds the {name} as {_shown(source.type)}"]
    raise UsageError(
        f"the column `{source.origin}`, which is to be the `{name}` of events, is"
        f" {_shown(source.type)}: it must be a string"
    )


def _as_instant(
    name: str, source: InputColumn, times: Times, python_reasons: list[str]
) -> InputColumn:
    """A column of times as timestamps, where SQL reads them as Python does.

    Raises `UsageError` for a unit where there are no numbers.
    """
    units, zone = dict(times[0]), times[1]
    unit = units.get(name)
    if is_pattern(unit):
        if not isinstance(source.type, (st.StringType, *_INTEGERS, st.NullType)):
            raise UsageError(
                f"the column `{source.origin}` is {_shown(source.type)}, which is no text: leave"
                f" out the pattern `{unit}`"
            )
        python_reasons.append(f"`{source.origin}` holds times of the pattern `{unit}`")
        return _instant_column(source, sf.lit(None).cast("timestamp"))
    if unit is not None:
        if isinstance(source.type, (*_INTEGERS, *_REALS)):
            return _instant_column(source, instant_of_number(source.column, source.type, unit))
        if not isinstance(source.type, st.StringType | st.DecimalType | st.NullType):
            raise UsageError(
                f"the column `{source.origin}` is {_shown(source.type)}, which is no number since"
                f" 1970: leave out the unit `{unit}`"
            )
        python_reasons.append(
            f"`{source.origin}` holds numbers since 1970 as {_shown(source.type)}"
        )
        return _instant_column(source, sf.lit(None).cast("timestamp"))
    if name == "time" and source.kind == "string":
        return _instant_column(source, instant_of_text(source.column, zone))
    if zone is not None and isinstance(source.type, st.TimestampNTZType):
        return _instant_column(source, instant_of_local(instant(source), zone))
    return source


def _instant_column(source: InputColumn, column: Column) -> InputColumn:
    return replace(source, column=column, type=st.TimestampType(), kind="timestamp")


def _source(origin: str, column: Column, type_: st.DataType, in_data: bool = False) -> InputColumn:
    return InputColumn(origin, column, type_, kind_of_type(type_), in_data)


def kind_of_type(type_: st.DataType) -> str | None:
    """The CESQL kind of a Spark type; None where SQL and Python read its values differently."""
    if isinstance(type_, _INTEGERS):
        return "integer"
    if isinstance(type_, _REALS):
        return "real"
    if isinstance(type_, st.BooleanType):
        return "boolean"
    if isinstance(type_, _INSTANTS):
        return "timestamp"
    # Under another collation, different texts could be equal.
    return "string" if type_.simpleString() == "string" else None


def is_event_value(type_: st.DataType) -> bool:
    """Whether an event can hold values of a Spark type."""
    if isinstance(type_, st.ArrayType):
        return is_event_value(type_.elementType)
    if isinstance(type_, st.MapType):
        return is_event_value(type_.valueType)
    if isinstance(type_, st.StructType):
        return all(is_event_value(each.dataType) for each in type_.fields)
    return isinstance(type_, _EVENT_VALUES)


def instant(source: InputColumn) -> Column:
    """A column of timestamps with a zone; a timestamp without one is in UTC."""
    if isinstance(source.type, st.TimestampNTZType):
        text = sf.concat(source.column.cast("string"), sf.lit("Z"))
        return sf.try_to_timestamp(text)
    return source.column


def micros(source: InputColumn) -> Column:
    return sf.unix_micros(instant(source))


def _shown(type_: st.DataType) -> str:
    if isinstance(type_, st.StringType):
        return "text"
    return f"`{type_.simpleString()}`"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
