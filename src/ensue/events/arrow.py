"""Event types as Arrow schemas, events as Arrow tables, and the conversions back.

In come event types and events, or any object with Arrow's C stream interface; out go schemas and
tables, or events. Values never change on the way: a `float` is a 64-bit column, and the metadata of
a field has its attribute type. In columns, no data and empty data are the same. `columns` says what
the columns are. This module needs pyarrow, so that only callers with columns import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ensue.errors import EventError, UsageError
from ensue.events.arrow_types import (
    MEANING,
    arrow_type,
    field_of,
    held_type,
    value_type,
    whole_numbers,
    widen,
)
from ensue.events.cloudevents import write_json
from ensue.events.columns import (
    DATA_COLUMN,
    convert_number,
    extension_column,
    is_attribute_column,
)
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.mapping.rows import row_reader
from ensue.events.mapping.tables import apply_table
from ensue.events.nesting import value_at, without
from ensue.events.plain_columns import plain_rows, plain_schema
from ensue.events.record_ids import record_id
from ensue.events.times import EARLIEST, LATEST, datetime_of, format_time
from ensue.events.types import Attribute, EventType, TypeSystem, ValueType

TIME = pa.timestamp("us", "UTC")
CONTEXT_FIELDS = (
    pa.field("id", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("type", pa.string(), nullable=False),
    pa.field("time", TIME, nullable=False),
)
TYPE_NAME = b"ensue.eventtype"
"""The key of the name of an event type in the metadata of a schema."""


def schema_of(type_name: str, types: TypeSystem) -> pa.Schema:
    """One field for each attribute of a declared type, the inherited ones first."""
    if type_name not in types:
        known = ", ".join(f"`{each.name}`" for each in types) or "none"
        raise UsageError(f"there is no event type `{type_name}`: the declared ones are {known}")
    fields = [field_of(name, type_) for name, type_ in types.attributes(type_name).items()]
    return pa.schema(fields, metadata={TYPE_NAME: type_name.encode()})


def types_of(schema: Any, name: str | None = None) -> EventType:
    """The event type of a schema (or a table), with all attributes and no parent.

    Columns of CloudEvents attributes are left out. `name` is not needed for a schema of
    `schema_of`.
    """
    schema = schema.schema if isinstance(getattr(schema, "schema", None), pa.Schema) else schema
    schema = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    if name is None:
        name = (schema.metadata or {}).get(TYPE_NAME, b"").decode()
    if not name:
        raise UsageError("the schema does not name its event type: give the name as well")
    attributes = [
        Attribute(field.name, value_type(field))
        for field in schema
        if is_attribute_column(field.name) or MEANING in (field.metadata or {})
    ]
    return EventType(name, None, tuple(attributes))


def table_of(events: Iterable[Event], types: TypeSystem) -> pa.Table:
    """The events as a table: `id`, `source`, `type`, `time`, attributes, and extensions.

    There is a column for each attribute of all declared types that occur. All other data
    (attributes that are not declared, or have the name of a CloudEvents attribute) are JSON text in
    a column `data`, if there are any.
    """
    held = [conform(event, types) for event in events]
    attributes = _common_attributes(dict.fromkeys(event.type for event in held), types)
    fields = list(CONTEXT_FIELDS)
    columns = [
        pa.array([event.id for event in held], pa.string()),
        pa.array([event.source for event in held], pa.string()),
        pa.array([event.type for event in held], pa.string()),
        pa.array([event.time for event in held], TIME),
    ]
    for name, type_ in attributes.items():
        values = [
            value_at(event.data, name)[1] if name in types.attributes(event.type) else None
            for event in held
        ]
        fields.append(field_of(name, type_))
        columns.append(pa.array(values, arrow_type(type_)))
    rest = [_rest(event, attributes, types) for event in held]
    if any(text is not None for text in rest):
        fields.append(pa.field(DATA_COLUMN, pa.string()))
        columns.append(pa.array(rest, pa.string()))
    for name in dict.fromkeys(name for event in held for name in event.extensions):
        column = extension_values([event.extensions.get(name) for event in held])
        fields.append(pa.field(extension_column(name), column.type))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def events_of(table: Any, types: TypeSystem, *, source: str = "arrow") -> Iterator[Event]:
    """The events of anything with `__arrow_c_stream__`: a table, a reader, a data frame.

    Raises `EventError` at the first row that is no event; rows are counted from 1. `source` is the
    source of rows without one.
    """
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(
            f"a `{type(table).__name__}` gives no Arrow stream: hand over a pyarrow table, a"
            " data frame, or anything else with `__arrow_c_stream__`"
        )
    reader = pa.RecordBatchReader.from_stream(table)
    for record in read_batches(reader, reader.schema, types, source, where="the table"):
        if isinstance(record, Rejected):
            raise EventError([f"row {record.number}: {problem}" for problem in record.problems])
        yield record


def read_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    types: TypeSystem,
    source: str,
    *,
    where: str | None = None,
    rows_before: int = 0,
    mapping: UserMapping | None = None,
) -> Iterator[Event | Rejected]:
    """The rows of batches, each as an event or as a refused record.

    Raises `UsageError` before the first row if the columns do not make events.
    """
    reader = BatchReader(schema, types, source, where or f"`{source}`", mapping)
    number = rows_before
    for batch in batches:
        yield from reader.read(batch, range(number + 1, number + 1 + batch.num_rows))
        number += batch.num_rows


class BatchReader:
    """Reads single rows of one schema, each as an event or as a refused record.

    Raises `UsageError` if the columns do not make events. `where` names the table in messages, and
    `label` its file in ids of rows without one.
    """

    def __init__(
        self,
        schema: pa.Schema,
        types: TypeSystem,
        source: str,
        where: str,
        mapping: UserMapping | None = None,
        label: str | None = None,
    ) -> None:
        schema = plain_schema(schema)
        self._label = label
        self._reader = row_reader(schema.names, mapping, types, source, convert_number, where)
        if mapping is None or mapping.is_default:
            check_time_column(schema.field("time").type, where)
        else:
            apply_table(mapping, schema.empty_table(), types, where)
        self._names = schema.names
        has_zone = mapping is not None and mapping.zone is not None
        # Only without a mapping, the column of this name is certain to have times.
        has_times = mapping is None or mapping.is_default
        self._values = _RowValues(schema, where, has_zone, has_times)

    def read(
        self,
        rows: pa.RecordBatch,
        numbers: Iterable[int],
        last: LastRecord | None = None,
        near: Sequence[int | None] | None = None,
    ) -> Iterator[Event | Rejected]:
        """The records of rows, which have these numbers.

        `near` are the times that rows have in columns, for times without a year.
        """
        years = self._reader.years
        for place, (number, row) in enumerate(
            zip(numbers, self._values.of(plain_rows(rows)), strict=True)
        ):
            if years is not None:
                years.near = None if near is None else near[place]
            if last is not None:
                last.read(number, partial(raw_text, self._names, row))
            try:
                if any(type(each) is NotText for each in row):
                    raise EventError(_no_texts(self._names, row))
                event = self._reader.event(record_id(self._label, number), row)
            except EventError as error:
                yield Rejected(number, raw_text(self._names, row), error.problems)
            else:
                yield event

    def texts(self, rows: pa.RecordBatch) -> list[str]:
        """The rows as JSON text, as refused records have them."""
        return [raw_text(self._names, row) for row in self._values.of(plain_rows(rows))]


class _RowValues:
    """The Python values of rows of one schema.

    With `has_zone` times without a zone stay local. With `has_times` the column `time` is read as
    microseconds.
    """

    def __init__(self, schema: pa.Schema, where: str, has_zone: bool, has_times: bool) -> None:
        self._names = schema.names
        self._where = where
        self._held = [held_type(field, where) for field in schema]
        self._is_local = [
            has_zone and pa.types.is_timestamp(each.type) and each.type.tz is None
            for each in schema
        ]
        self._times = "time" if has_times else None

    def of(self, rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        columns = []
        for place, name in enumerate(self._names):
            column, held = rows.column(place), self._held[place]
            values = plain_values(column, held, name, self._where, name == self._times)
            if self._is_local[place]:
                values = [
                    each.replace(tzinfo=None) if isinstance(each, datetime) else each
                    for each in values
                ]
            columns.append(values)
        return zip(*columns, strict=True)


def row_texts(rows: pa.RecordBatch, where: str, has_zone: bool) -> list[str]:
    """Rows as JSON text, as refused records have them, whatever their columns are."""
    rows = plain_rows(rows)
    values = _RowValues(rows.schema, where, has_zone, False)
    return [raw_text(rows.schema.names, row) for row in values.of(rows)]


def _common_attributes(type_names: Iterable[str], types: TypeSystem) -> Mapping[str, ValueType]:
    """One type for each attribute that has a column, wide enough for all event types."""
    common: dict[str, ValueType] = {}
    first: dict[str, str] = {}
    for type_name in type_names:
        for name, type_ in types.attributes(type_name).items():
            if not is_attribute_column(name):
                continue
            wide = widen(common[name], type_) if name in common else type_
            if wide is None:
                raise UsageError(
                    f"the attribute `{name}` is `{common[name]}` in `{first[name]}` and `{type_}`"
                    f" in `{type_name}`, and no column holds both: rename one of them, or make a"
                    " table for each type"
                )
            common[name] = wide
            first.setdefault(name, type_name)
    return common


def _rest(event: Event, columns: Mapping[str, ValueType], types: TypeSystem) -> str | None:
    """The data of an event that are in no column, as JSON text."""
    data = event.data
    if isinstance(data, Mapping):
        declared = types.attributes(event.type)
        data = without([name for name in declared if name in columns], data)
    return _written(data)


def undeclared_data(event: Event, types: TypeSystem) -> str | None:
    """The data of an event that its type does not declare, as JSON text."""
    data = event.data
    if isinstance(data, Mapping):
        data = without(list(types.attributes(event.type)), data)
    return _written(data)


def _written(data: Any) -> str | None:
    return None if data is None or data == {} else write_json(data)


def extension_values(values: Sequence[Any]) -> pa.Array:
    """A column of the values' type; if they have several types, of text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values if value is not None):
        return pa.array(values, pa.int64())
    texts = [
        value if value is None or isinstance(value, str) else write_json(value) for value in values
    ]
    return pa.array(texts, pa.string())


def check_time_column(type_: pa.DataType, where: str) -> None:
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    if pa.types.is_timestamp(plain) or pa.types.is_null(plain):
        return
    if not (pa.types.is_string(plain) or pa.types.is_large_string(plain)):
        raise UsageError(
            f"the column `time` of {where} is `{type_}`: it must be a timestamp of any unit, or"
            " RFC 3339 text"
        )


def plain_values(
    column: pa.Array, held: pa.DataType, name: str, where: str, in_microseconds: bool
) -> list[Any]:
    """The Python values of a column; instants as datetimes, or as microseconds."""
    try:
        if pa.types.is_decimal(held):
            column = whole_numbers(column)
        elif column.type != held:
            column = column.cast(options=pc.CastOptions(held, allow_time_truncate=True))
        if pa.types.is_timestamp(held):
            instants = column.cast(pa.int64()).to_pylist()
            return instants if in_microseconds else [_datetime(each) for each in instants]
        try:
            values = column.to_pylist()
        except UnicodeDecodeError:
            values = [_text_or_not(column, row) for row in range(len(column))]
    except (pa.ArrowException, OverflowError) as error:
        raise UsageError(f"the column `{name}` of {where} cannot be read: {error}") from None
    return [_plain(value, held) for value in values] if pa.types.is_nested(held) else values


class NotText(NamedTuple):
    """The bytes of a text cell that are no UTF-8; None for a text inside of nested values."""

    raw: bytes | None

    @property
    def problem(self) -> str:
        if self.raw is None:
            return "the text is not UTF-8"
        try:
            self.raw.decode()
        except UnicodeDecodeError as error:
            return f"the text is not UTF-8: byte {error.start + 1} is 0x{self.raw[error.start]:02x}"
        return "the text is UTF-8"


def _text_or_not(column: pa.Array, row: int) -> Any:
    # Parquet does not check that the bytes of a text column are UTF-8.
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        if pa.types.is_nested(column.type):
            return NotText(None)
        return NotText(column[row : row + 1].cast(pa.binary())[0].as_py())


def _no_texts(names: Sequence[str], row: Sequence[Any]) -> list[str]:
    return [
        f"the column `{name}`: {each.problem}"
        for name, each in zip(names, row, strict=True)
        if isinstance(each, NotText)
    ]


def _datetime(instant: int | None) -> Any:
    # An instant outside the range of datetime stays a number, which fits no timestamp attribute.
    if instant is None or not EARLIEST <= instant <= LATEST:
        return instant
    return datetime_of(instant)


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A nested value with maps as mappings and instants in UTC."""
    if value is None or isinstance(value, NotText):
        return value
    if pa.types.is_map(type_):
        return {str(key): _plain(each, type_.item_type) for key, each in value}
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if pa.types.is_list(type_):
        return [_plain(each, type_.value_type) for each in value]
    return value.astimezone(UTC) if pa.types.is_timestamp(type_) else value


def _shown(value: Any) -> Any:
    """A value in a form that JSON can express."""
    if isinstance(value, NotText):
        return (value.raw or b"").decode("utf-8", "backslashreplace")
    # A local time, whose zone only the mapping knows.
    is_local = isinstance(value, datetime) and value.tzinfo is None
    return value.isoformat() if is_local else value


def raw_text(names: Sequence[str], row: Sequence[Any]) -> str:
    """A row as JSON text, so that a refused row can be kept and corrected."""
    members = {name: _shown(each) for name, each in zip(names, row, strict=True)}
    if isinstance(time := members.get("time"), int) and EARLIEST <= time <= LATEST:
        members["time"] = format_time(time)
    return write_json({name: value for name, value in members.items() if value is not None})
