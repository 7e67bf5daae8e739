"""Blocks of JSON lines in columns, parsed by `pyarrow.json` under an explicit schema.

The schema has every name of the lines, not only those that a library asks for: what is asked for
with its declared type, and all others with the kind of value that they have in a sample of the
lines. A name or a kind that is not in it makes the parser refuse the block. So each member of each
line is seen by the parser, which refuses a name that is given twice.

What the parser takes although it is no JSON line is looked for before (`_is_safe`, `_is_utf8`) and
afterwards: the number of rows, and numbers that are none. A block that is refused is read line by
line (`json_objects`), and the next is tried with a schema that knows more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ensue.events.arrow_types import arrow_type
from ensue.events.cloudevents import NUMBERED, TEXT_ATTRIBUTES
from ensue.events.columns import DATA_COLUMN
from ensue.events.files.text.found import ArrowFound
from ensue.events.files.text.json_objects import decoded
from ensue.events.files.text.lines import Lines
from ensue.events.files.text.wanted import Wanted, WantedValues, Way

SAMPLE_LINES = 64
"""How many lines of a block are looked at for names and kinds of values."""

MOST_NAMES = 100
"""Up to how many names a schema has; objects with more are quicker to read one by one."""

MOST_LEVELS = 20
"""Up to which depth values are columns."""

REFUSED_IN_TURN = 3
"""After how many blocks that are refused in turn no more are tried."""

_FIRST, _LAST, _RETURN = ord("{"), ord("}"), ord("\r")


@dataclass
class _Kinds:
    """The kinds of values under one name in a sample, and the kinds of the values inside."""

    kinds: set[str] = field(default_factory=set)
    members: dict[str, _Kinds] = field(default_factory=dict)
    element: _Kinds | None = None

    def see(self, value: Any) -> None:
        if isinstance(value, dict):
            self.kinds.add("object")
            for name, each in value.items():
                self.members.setdefault(name, _Kinds()).see(each)
        elif isinstance(value, list):
            self.kinds.add("list")
            self.element = self.element or _Kinds()
            for each in value:
                self.element.see(each)
        elif value is not None:
            self.kinds.add(type(value).__name__)


_PLAIN = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


class NotInColumnsError(Exception):
    """Values of several kinds under one name, or too many names."""


class ParsedColumns:
    """A parsed block."""

    def __init__(self, rows: pa.RecordBatch, wanted: WantedValues) -> None:
        self.count = int(rows.num_rows)
        self._rows = rows
        self._wanted = wanted
        self._own = {way for each in wanted.all for way in each.ways}

    def found(self, wanted: Wanted) -> ArrowFound:
        columns, inner = self._all_at(wanted.ways), self._all_at(wanted.in_data)
        if len(columns) > 1 or len(inner) > 1:
            raise NotInColumnsError
        column = columns[0] if columns else pa.nulls(self.count)
        if inner and wanted.unit is None:
            column = inner[0] if pa.types.is_null(column.type) else _either(column, inner[0])
        elif inner:
            raise NotInColumnsError
        return ArrowFound(column)

    def is_refused(self) -> Any:
        """The rows that the parser has refused: none."""
        return np.zeros(self.count, np.bool_)

    def has_others(self) -> tuple[bool, bool, bool]:
        """Whether lines have members, and data, that are not wanted, or clashing names."""
        own = {way[0] for way in self._own} | {DATA_COLUMN}
        others = [name for name in self._rows.schema.names if name not in own]
        others = [name for name in others if not self._is_all_null(self._rows.column(name))]
        if any(pa.types.is_nested(self._rows.schema.field(name).type) for name in others):
            raise NotInColumnsError
        if any(pa.types.is_floating(self._rows.schema.field(name).type) for name in others):
            raise NotInColumnsError
        data = self._at((DATA_COLUMN,))
        inner: list[str] = []
        if data is not None and pa.types.is_struct(data.type):
            inner = [each.name for each in data.type if (DATA_COLUMN, each.name) not in self._own]
        declared = {each.name for each in self._wanted.declared.all}
        return bool(others), bool(inner), bool(declared & {*self._rows.schema.names} - own)

    def names(self) -> frozenset[str]:
        """The names in the lines, and in their `data`."""
        columns = dict(zip(self._rows.schema.names, self._rows.columns, strict=True))
        data = columns.get(DATA_COLUMN)
        if data is not None and pa.types.is_struct(data.type):
            inner = zip((each.name for each in data.type), data.flatten(), strict=True)
            columns = {**dict(inner), **columns}
        # The schema has names that are only asked for.
        return frozenset(name for name, each in columns.items() if not self._is_all_null(each))

    def _is_all_null(self, column: pa.Array) -> bool:
        return bool(column.null_count == len(column))

    def _all_at(self, ways: Sequence[Way]) -> list[pa.Array]:
        return [each for each in map(self._at, ways) if each is not None]

    def _at(self, way: Way) -> pa.Array | None:
        """The column at a path; None if no line has one."""
        place = self._rows.schema.get_field_index(way[0])
        column = None if place < 0 else self._rows.column(place)
        for name in way[1:]:
            if column is None or not pa.types.is_struct(column.type):
                return None
            at = column.type.get_field_index(name)
            column = None if at < 0 else column.flatten()[at]
        return column


def _either(column: pa.Array, other: pa.Array) -> pa.Array:
    if column.null_count == 0:
        return column
    if column.type != other.type:
        raise NotInColumnsError
    return pc.coalesce(column, other)


class ColumnParser:
    """Parses the blocks of one file, and learns its schema."""

    def __init__(self, wanted: WantedValues, part_bytes: int) -> None:
        self._wanted = wanted
        self._part_bytes = part_bytes
        self._seen = _Kinds()
        self._schema: pa.Schema | None = None
        self._refused = 0
        ways = [way for each in wanted.all for way in each.ways]
        # A value that has wanted values inside of it fits no column.
        self._fits = not any(
            len(way) < len(other) and other[: len(way)] == way for way in ways for other in ways
        )

    def parse(self, block: bytes, lines: Lines) -> ParsedColumns | None:
        """The block in columns; None if it has to be read line by line."""
        if not self._fits or self._refused >= REFUSED_IN_TURN or not len(lines.begins):
            return None
        if not _is_safe(block, lines) or not _is_utf8(block):
            return None
        found = self._parsed(block) if self._schema is not None else None
        if found is None and self._learn(block, lines):
            found = self._parsed(block)
        if found is None or found.num_rows != len(lines.begins) or _has_no_number(found.columns):
            self.refuse()
            return None
        self._refused = 0
        return ParsedColumns(found, self._wanted)

    def refuse(self) -> None:
        """Count a block that had to be read line by line."""
        self._refused += 1

    def _parsed(self, block: bytes) -> pa.RecordBatch | None:
        # In as many parts as there are processors; a line longer than a part is refused.
        size = max(self._part_bytes, len(block) // pa.cpu_count() + 1)
        reading = pj.ReadOptions(use_threads=True, block_size=size)
        parsing = pj.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="error")
        try:
            table = pj.read_json(pa.BufferReader(block), reading, parsing)
        except pa.ArrowException:
            return None
        batches = table.combine_chunks().to_batches()
        return batches[0] if len(batches) == 1 else None

    def _learn(self, block: bytes, lines: Lines) -> bool:
        """Make a schema that has the names of a sample of the lines, too."""
        count = len(lines.begins)
        rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLE_LINES)).astype(np.int64))
        begins, ends = lines.begins[rows].tolist(), lines.ends[rows].tolist()
        for begin, end in zip(begins, ends, strict=True):
            members = decoded(block[begin:end])
            if members is None:
                self._refused = REFUSED_IN_TURN
                return False
            self._seen.see(members)
        try:
            self._schema = pa.schema([*_fields(self._seen, (), self._wanted_types(), 0)])
        except NotInColumnsError:
            self._refused = REFUSED_IN_TURN
            return False
        return True

    def _wanted_types(self) -> dict[Way, pa.DataType | None]:
        """The types of wanted values; None where the sample decides."""
        types: dict[Way, pa.DataType | None] = {}
        for each in self._wanted.all:
            for way in (*each.ways, *each.in_data):
                types[way] = _type_of(each)
        if self._wanted.mapping.is_plain:
            # These may be numbers.
            for name in NUMBERED:
                asked = self._wanted.context[name]
                types |= {} if asked is None else dict.fromkeys(asked.ways)
            # An object or a number with the name of an attribute stays in the data.
            for name in TEXT_ATTRIBUTES:
                types.pop((name,), None)
        return types


def _type_of(wanted: Wanted) -> pa.DataType | None:
    if wanted.unit is not None or wanted.type is None or wanted.type.element is not None:
        return None
    match wanted.type.kind:
        case "integer":
            return pa.int64()
        case "timestamp":
            return pa.string()
        case _:
            return arrow_type(wanted.type)


def _fields(
    seen: _Kinds, outer: Way, wanted: dict[Way, pa.DataType | None], level: int
) -> Iterator[pa.Field]:
    if level > MOST_LEVELS or len(seen.members) > MOST_NAMES:
        raise NotInColumnsError
    for name, kinds in seen.members.items():
        way = (*outer, name)
        yield pa.field(name, _learned(kinds, way, wanted, level))
    for way, type_ in wanted.items():
        is_here = len(way) == len(outer) + 1 and way[: len(outer)] == outer
        if is_here and type_ is not None and way[-1] not in seen.members:
            yield pa.field(way[-1], type_)


def _learned(
    seen: _Kinds, way: Way, wanted: dict[Way, pa.DataType | None], level: int
) -> pa.DataType:
    """The type of a name: that which is wanted, or that of its values."""
    kinds = seen.kinds
    if (type_ := wanted.get(way)) is not None:
        if kinds <= _KINDS_OF[type_]:
            return type_
        raise NotInColumnsError
    if not kinds:
        return pa.null()
    if len(kinds) > 1:
        if kinds == {"int", "float"}:
            return pa.float64()
        raise NotInColumnsError
    (kind,) = kinds
    if kind == "object":
        return pa.struct([*_fields(seen, way, wanted, level + 1)])
    if kind == "list":
        assert seen.element is not None
        if level > MOST_LEVELS:
            raise NotInColumnsError
        return pa.list_(_learned(seen.element, (*way, ""), {}, level + 1))
    return _PLAIN[kind]


_KINDS_OF = {
    pa.string(): {"str"},
    pa.int64(): {"int"},
    pa.float64(): {"int", "float"},
    pa.bool_(): {"bool"},
}


def _is_safe(block: bytes, lines: Lines) -> bool:
    """Whether each line is at least one object, and nothing but objects.

    An object ends with its line then, since nothing that begins with a brace may follow a brace in
    it; a null between two objects is a row more than there are lines. (A null at the very begin of
    a text would end the process.)
    """
    data = np.frombuffer(block, np.uint8)
    if not (data[lines.begins] == _FIRST).all():
        return False
    last = data[lines.ends - 1]
    if b"\r" in block:
        if block.count(b"\r") != block.count(b"\r\n"):
            return False
        last = np.where(last == _RETURN, data[np.maximum(lines.ends - 2, 0)], last)
    return bool((last == _LAST).all()) and b"\0" not in block


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_no_number(columns: Sequence[pa.Array]) -> bool:
    """Whether a real, at any depth, is infinite or no number, which the parser takes."""
    for column in columns:
        if pa.types.is_floating(column.type):
            values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
            if not np.isfinite(values).all():
                return True
        elif pa.types.is_struct(column.type):
            if _has_no_number(column.flatten()):
                return True
        elif pa.types.is_list(column.type) and _has_no_number([column.flatten()]):
            return True
    return False
