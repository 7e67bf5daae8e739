"""Tables as chunks: batches of Parquet and Arrow files, and tables that are in memory.

In come batches with columns that make events; out go chunks with plain columns. Declared attributes
inside of a struct `data` or of nested columns become columns; times in text are read; text is
checked to be UTF-8, which Parquet does not do. Rows with values that fit no plain column are read
singly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.arrow import BatchReader
from ensue.events.arrow_types import held_type, whole_numbers
from ensue.events.cloudevents import TEXT_ATTRIBUTES, VERSION
from ensue.events.columns import Layout, extension_column
from ensue.events.event import Event, Rejected
from ensue.events.files.attributes import DeclaredAttributes
from ensue.events.files.chunk import NUMBER, Chunk, Mask, Rows
from ensue.events.mapping import Mapping
from ensue.events.mapping.instants import TIME, instants_in, is_text, null_rows, texts_of
from ensue.events.mapping.tables import apply_table
from ensue.events.mapping.years import Years
from ensue.events.nesting import is_nested
from ensue.events.plain_columns import plain_rows
from ensue.events.record_ids import record_ids
from ensue.events.types import TypeSystem

_FIRST_NOT_ASCII = 128


class TableChunks:
    """Makes chunks of batches of one schema. Raises `UsageError` if its columns make no events."""

    def __init__(
        self,
        schema: pa.Schema,
        types: TypeSystem,
        source: str,
        where: str,
        mapping: Mapping | None = None,
        label: str | None = None,
    ) -> None:
        """`label` is the file in ids of rows without one; without it they are numbers."""
        self._reader = BatchReader(schema, types, source, where, mapping, label)
        self._label = label
        self._mapping = mapping or Mapping()
        self._years = Years.of(self._mapping.year)
        self._types = types
        self._source = source
        self._where = where
        self._declared = DeclaredAttributes(types)

    def chunk(self, rows: pa.RecordBatch, numbers: Rows, near: Rows | None = None) -> Chunk:
        """The chunk of a batch; `numbers` are those of its rows in their file.

        `near` are the times of rows that are read again.
        """
        rows = plain_rows(rows)
        doubtful = _not_utf8(rows)
        given = rows
        if doubtful.any():
            # Functions of Arrow fail on text that is no UTF-8.
            given = _without_bad_text(rows, doubtful)
        mapped = given
        if not self._mapping.is_default:
            mapped, unread = apply_table(
                self._mapping, given, self._types, self._where, self._years, near
            )
            doubtful |= False if unread is None else unread
        plain = _PlainRows(mapped, self._declared, self._source, self._where, doubtful)
        columns = plain.columns(record_ids(self._label, numbers))
        reader = self._reader

        def singly(places: Rows) -> list[Event | Rejected]:
            taken = rows.take(pa.array(places))
            times = columns["time"].take(pa.array(places)).cast(pa.int64()).to_pylist()
            return list(reader.read(taken, numbers[places].tolist(), near=times))

        def original(places: Rows) -> list[Rejected]:
            texts = reader.texts(rows.take(pa.array(places)))
            return [
                Rejected(number, text, ())
                for number, text in zip(numbers[places].tolist(), texts, strict=True)
            ]

        def record(places: Rows) -> pa.RecordBatch:
            taken = rows.take(pa.array(places))
            return taken.append_column(NUMBER, pa.array(numbers[places]))

        return Chunk(
            pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)),
            doubtful,
            singly,
            record,
            original,
            has_other_data=plain.has_other_data,
            held_bytes=max(rows.nbytes, sum(each.nbytes for each in columns.values())),
            names=frozenset(rows.schema.names),
        )


class _PlainRows:
    """The plain columns of a batch; rows that they do not represent are marked in `doubtful`."""

    def __init__(
        self,
        rows: pa.RecordBatch,
        declared: DeclaredAttributes,
        source: str,
        where: str,
        doubtful: Mask,
    ) -> None:
        self._rows = rows
        self._declared = declared
        self._source = source
        self._where = where
        self._doubtful = doubtful
        self._layout = Layout.of(rows.schema.names, where)
        self.has_other_data = False

    def columns(self, ids: pa.Array) -> dict[str, pa.Array]:
        """The columns; `ids` are those of rows without one."""
        context = {name: self._rows.column(at) for name, at in self._layout.context.items()}
        columns = {"time": self._time(context["time"])}
        columns["type"] = self._type(context["type"])
        columns["id"] = self._id(context.get("id"), ids)
        if "source" in context:
            source = self._text(context["source"])
            lacking = is_empty(source) | null_rows(source)
            if lacking.any():
                source = pc.if_else(pa.array(lacking), pa.scalar(self._source), source)
            columns["source"] = source
        else:
            columns["source"] = pa.repeat(pa.scalar(self._source), len(ids))
        if (version := context.get("specversion")) is not None:
            if is_text(_plain_type(version.type)):
                fits = pc.fill_null(pc.equal(_decoded(version), VERSION), True)
                self._doubtful |= ~np.asarray(fits)
            else:
                self._doubtful |= ~null_rows(version)
        for name, at in self._layout.extensions:
            self._add_extension(name, self._rows.column(at), columns)
        self._add_attributes(columns)
        return columns

    def _id(self, identity: pa.Array | None, own: pa.Array) -> pa.Array:
        """The ids, with the place of the row where it has none."""
        if identity is None:
            return own
        text = self._text(self._numbers_as_text(identity))
        return pc.coalesce(text, own) if text.null_count else text

    def _numbers_as_text(self, column: pa.Array) -> pa.Array:
        """A column of numbers as text; rows with a fraction are doubtful."""
        if pa.types.is_integer(column.type):
            return column.cast(pa.string())
        if pa.types.is_floating(column.type):
            text = texts_of(column)
            self._doubtful |= null_rows(text) & ~null_rows(column)
            return text
        return column

    def _time(self, column: pa.Array) -> pa.Array:
        found = instants_in(column, None, None)
        gone = found.unread | found.missing
        self._doubtful |= gone
        held = pa.array(found.values, pa.int64(), mask=gone if gone.any() else None)
        return held.cast(TIME)

    def _type(self, column: pa.Array) -> pa.Array:
        """The types; a dictionary column stays one, since there are few types."""
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            self._doubtful |= null_rows(column)
            return column
        return self._text(self._numbers_as_text(column), needed=True)

    def _text(self, column: pa.Array, needed: bool = False) -> pa.Array:
        """A column of text; rows with other values, or with a null where `needed`, are doubtful."""
        if not is_text(_plain_type(column.type)):
            self._doubtful |= True if needed else ~null_rows(column)
            return pa.nulls(len(column), pa.string())
        text = _decoded(column)
        if needed:
            self._doubtful |= null_rows(text)
        return text

    def _add_extension(self, name: str, column: pa.Array, columns: dict[str, pa.Array]) -> None:
        type_ = _plain_type(column.type)
        if is_text(type_) or (
            name not in TEXT_ATTRIBUTES
            and (pa.types.is_integer(type_) or pa.types.is_boolean(type_))
        ):
            columns[extension_column(name)] = _decoded(column)
        elif not pa.types.is_null(type_):
            self._doubtful |= ~null_rows(column)

    def _add_attributes(self, columns: dict[str, pa.Array]) -> None:
        given = {name: self._rows.column(at) for name, at in self._layout.attributes}
        inner = self._inner()
        declared = {each.name: each for each in self._declared.all}
        for name, column in given.items():
            if pa.types.is_nested(column.type):
                self.has_other_data = True
                known = declared.get(name)
                if known is not None:
                    self._doubtful |= ~null_rows(column)
                    if known.is_apart and known.type is not None:
                        columns[name] = pa.nulls(len(column), known.field.type)
                continue
            if is_nested(name) and name not in declared:
                # A name with a dot that is no path: events have it as it is.
                self.has_other_data = True
                continue
            columns[name] = _held_array(column, name, self._where)
        for name, known in declared.items():
            found = inner.get(name)
            if known.is_apart:
                self.has_other_data |= known.type is None
                self._doubtful |= _has_any(found, len(self._rows))
                if found is not None and known.type is not None and name not in columns:
                    columns[name] = pa.nulls(len(self._rows), known.field.type)
                continue
            if found is None and is_nested(name):
                found = self._at_path(given, name)
            if found is None:
                continue
            if pa.types.is_nested(found.type):
                self._doubtful |= ~null_rows(found)
                continue
            own = columns.get(name)
            if own is None:
                columns[name] = _held_array(found, name, self._where)
            else:
                # Both have values: the column takes precedence over the data, row by row.
                self._doubtful |= null_rows(own) & ~null_rows(found)
        for name, known in declared.items():
            if known.type is not None and known.type.name == "timestamp" and name in columns:
                self._read_timestamps(name, columns)

    def _inner(self) -> dict[str, pa.Array]:
        """The fields of a struct `data`, and declared attributes inside of them."""
        at = self._layout.data
        if at is None:
            return {}
        data = self._rows.column(at)
        self.has_other_data = True
        if not pa.types.is_struct(data.type):
            # JSON text or a map is read singly.
            self._doubtful |= ~null_rows(data)
            return {}
        fields = dict(zip((each.name for each in data.type), data.flatten(), strict=True))
        found = {}
        for each in self._declared.all:
            if each.name in fields:
                found[each.name] = fields[each.name]
            elif is_nested(each.name) and (inside := self._at_path(fields, each.name)) is not None:
                found[each.name] = inside
        if found:
            # A row without data lacks declared attributes.
            self._doubtful |= null_rows(data)
        return found

    def _at_path(self, columns: dict[str, pa.Array], name: str) -> pa.Array | None:
        """The column of an attribute inside of nested columns; null where these are null."""
        first, *rest = name.split(".")
        outer = column = columns.get(first)
        for part in rest:
            if column is None or not pa.types.is_struct(column.type):
                return None
            names = [field.name for field in column.type]
            column = column.flatten()[names.index(part)] if part in names else None
        if column is not None and outer is not None:
            # Where the outermost column is null, the event does not have the attribute.
            self._doubtful |= null_rows(outer)
        return column

    def _read_timestamps(self, name: str, columns: dict[str, pa.Array]) -> None:
        """Read the instants of a text column."""
        column = columns[name]
        if not is_text(column.type):
            return
        found = instants_in(column, None, None)
        self._doubtful |= found.unread
        gone = found.unread | found.missing
        columns[name] = pa.array(found.values, pa.int64(), mask=gone).cast(TIME)


def _has_any(column: pa.Array | None, count: int) -> Any:
    return np.zeros(count, np.bool_) if column is None else ~null_rows(column)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _decoded(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type) and not pa.types.is_string(column.type):
        return column.cast(pa.string())
    return column


def is_empty(texts: pa.Array) -> Mask:
    """The rows of a plain text column that are empty; a null is not empty."""
    _, offsets, _ = texts.buffers()
    if offsets is None or not len(texts):
        return np.zeros(len(texts), np.bool_)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    empty: Mask = ends[1:] == ends[:-1]
    return empty & ~null_rows(texts) if texts.null_count else empty


def _held_array(column: pa.Array, name: str, where: str) -> pa.Array:
    """A column cast to the type from which Python values are taken."""
    held = held_type(pa.field(name, column.type), where)
    if pa.types.is_timestamp(held):
        found = instants_in(column, None, None)
        return pa.array(found.values, pa.int64(), mask=found.missing).cast(TIME)
    plain = _decoded(column)
    if pa.types.is_decimal(held):
        return whole_numbers(plain)
    return plain if plain.type == held or is_text(plain.type) else plain.cast(held)


def _not_utf8(rows: pa.RecordBatch) -> Mask:
    """The rows with text that is no UTF-8."""
    wrong = np.zeros(rows.num_rows, np.bool_)
    for column in rows.columns:
        if not _may_hold_text(column.type) or _is_ascii(column):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for row in range(len(column)):
                try:
                    column[row].as_py()
                except (UnicodeDecodeError, pa.ArrowException):
                    wrong[row] = True
    return wrong


def _is_ascii(column: pa.Array) -> bool:
    """Whether all bytes of a plain text column are ASCII, which is always UTF-8."""
    if not pa.types.is_string(column.type):
        return False
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return True
    bounds = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    begin, end = bounds.tolist()
    if not 0 <= begin <= end <= data.size:
        return False
    return (
        begin == end
        or int(np.frombuffer(data, np.uint8, end - begin, begin).max()) < _FIRST_NOT_ASCII
    )


def _may_hold_text(type_: pa.DataType) -> bool:
    return is_text(_plain_type(type_)) or bool(pa.types.is_nested(type_))


def _without_bad_text(rows: pa.RecordBatch, wrong: Mask) -> pa.RecordBatch:
    """The batch with nulls in its bad rows, since functions of Arrow fail on bad text."""
    places = np.where(wrong, -1, np.arange(rows.num_rows))
    taken = pa.array(places, mask=wrong)
    arrays = [column.take(taken) for column in rows.columns]
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
