"""A name's values over many events, as one typed array: what predicates and outputs compute with.

In come Python values or Arrow arrays; out goes a `Column` of one kind, with a mask of what is
missing. Values of several kinds, or of a kind that CESQL does not compute with, stay Python objects
(`object`), which are evaluated one by one. `fitted` brings the values of outputs to the types of
their attributes. Texts are bytes and offsets (`Texts`) where compiled loops read and write them
(`text_writing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input import text_writing
from ensue.engine.core.numbering import Mask, Rows
from ensue.engine.outputs import fitting_key
from ensue.events.conformance import conform_value
from ensue.events.times import datetime_of, microseconds_of
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER

LARGEST_OFFSET = 2**31 - 1
LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
"""From here on a real rounds to no 32-bit float."""
_MOST_REPEATED, _LONGEST_REPEATED = 1 << 18, 32
"""Up to so many copies of a text of up to so many characters, a repeated text is cached."""
_SPARE_ROOM, _FIRST_BYTES = 1.125, 256
"""Room for texts is a little more than expected, so that it seldom has to grow."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one kind: boolean, integer, real, string, timestamp or object.

    Strings are an Arrow array, timestamps microseconds since 1970, everything else a numpy array.
    `missing` is None where nothing is missing.
    """

    kind: str
    values: Any
    missing: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def missing_mask(self) -> Mask:
        return np.zeros(len(self), np.bool_) if self.missing is None else self.missing

    def to_list(self) -> list[Any]:
        if self.kind == "string":
            values = self.values.to_pylist()
        elif self.kind == "timestamp":
            values = [datetime_of(each) for each in self.values.tolist()]
        else:
            values = self.values.tolist()
        if self.missing is not None:
            values = [
                MISSING if gone else value
                for value, gone in zip(values, self.missing.tolist(), strict=True)
            ]
        return list(values)

    def take(self, rows: Rows) -> Column:
        missing = None if self.missing is None else self.missing[rows]
        if self.kind != "string":
            return Column(self.kind, self.values[rows], missing)
        # No caller reads the text of a missing row, so it may be any.
        return Column(self.kind, Texts.of(self.values).take(rows), missing)


def mask_of_rows(rows: npt.NDArray[np.integer[Any]], count: int) -> Mask:
    """A mask of `count` rows that is true for the given rows."""
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def absent(count: int) -> Column:
    """A name that no event of the batch has."""
    return Column("boolean", np.zeros(count, np.bool_), np.ones(count, np.bool_))


def column_of(values: Sequence[Any]) -> Column:
    """A column of Python values, typed if all are of one kind; `MISSING` marks absent values."""
    missing: Mask | None = np.fromiter((v is MISSING for v in values), np.bool_, len(values))
    present = [value for value in values if value is not MISSING]
    kinds = {type(value) for value in present}
    if len(present) == len(values):
        missing = None
    if not kinds:
        return absent(len(values))
    if len(kinds) == 1:
        typed = _typed(kinds.pop(), values, present, missing)
        if typed is not None:
            return typed
    held = np.empty(len(values), object)
    held[:] = values
    return Column("object", held, missing)


def _typed(
    kind: type, values: Sequence[Any], present: Sequence[Any], missing: Mask | None
) -> Column | None:
    def filled(zero: Any) -> list[Any]:
        return [zero if value is MISSING else value for value in values]

    if kind is bool:
        return Column("boolean", np.array(filled(False), np.bool_), missing)
    if kind is int and all(SMALLEST_INTEGER <= each <= LARGEST_INTEGER for each in present):
        return Column("integer", np.array(filled(0), np.int64), missing)
    if kind is float:
        return Column("real", np.array(filled(0.0), np.float64), missing)
    if kind is str:
        try:
            return Column("string", pa.array(filled(""), pa.string()), missing)
        except UnicodeEncodeError:  # a lone surrogate, which Arrow's UTF-8 cannot hold
            return None
    if kind is datetime and all(each.tzinfo is not None for each in present):
        instants = [0 if v is MISSING else microseconds_of(v) for v in values]
        return Column("timestamp", np.array(instants, np.int64), missing)
    return None


def joined(columns: Sequence[Column]) -> Column:
    """Columns one after the other. Where their kinds differ, as objects."""
    if len(columns) == 1:
        return columns[0]
    present = [each for each in columns if each.missing is None or not each.missing.all()]
    kinds = {each.kind for each in present}
    if len(kinds) > 1 or "object" in kinds:
        return column_of([value for column in columns for value in column.to_list()])
    if not kinds:
        return absent(sum(len(each) for each in columns))
    kind = kinds.pop()
    zero = present[0].values[:0]
    parts = [
        each.values if each.kind == kind else _zeros_like(kind, zero, len(each)) for each in columns
    ]
    missing = None
    if any(each.missing is not None for each in columns):
        missing = np.concatenate([each.missing_mask() for each in columns])
    values = pa.concat_arrays(parts) if kind == "string" else np.concatenate(parts)
    return Column(kind, values, missing)


def _zeros_like(kind: str, example: Any, count: int) -> Any:
    if kind == "string":
        return pa.array([""] * count, pa.string())
    return np.zeros(count, example.dtype)


def arrow_column(array: pa.Array) -> Column | None:
    """A plain Arrow array as a column; None if its type has no such reading."""
    kind = pa.types
    type_ = array.type
    if kind.is_dictionary(type_):
        return arrow_column(array.dictionary_decode())
    if kind.is_null(type_):
        return absent(len(array))
    missing = None
    if array.null_count:
        missing = np.asarray(array.is_null())
    if kind.is_string(type_):
        return Column("string", array, missing)
    if kind.is_large_string(type_) or kind.is_string_view(type_):
        return Column("string", array.cast(pa.string()), missing)
    if kind.is_boolean(type_):
        return Column("boolean", np.asarray(pc.fill_null(array, False)), missing)
    if kind.is_uint64(type_):
        if len(array) and (pc.max(array).as_py() or 0) > LARGEST_INTEGER:
            return None
        return Column("integer", _numbers(array, pa.int64(), 0), missing)
    if kind.is_integer(type_):
        return Column("integer", _numbers(array, pa.int64(), 0), missing)
    if kind.is_floating(type_):
        return Column("real", _numbers(array, pa.float64(), 0.0), missing)
    return None


def _numbers(array: pa.Array, type_: pa.DataType, zero: Any) -> Any:
    held = array if array.type == type_ else array.cast(type_)
    if held.null_count:
        held = pc.fill_null(held, zero)
    return held.to_numpy(zero_copy_only=False)


def attribute_column(array: pa.Array) -> Column | None:
    if pa.types.is_timestamp(array.type):
        instants = array.cast(pa.int64())
        return Column(
            "timestamp",
            pc.fill_null(instants, 0).to_numpy(zero_copy_only=False),
            np.asarray(array.is_null()) if array.null_count else None,
        )
    return arrow_column(array)


def range_of_reals(type_: ValueType) -> tuple[float, float]:
    """The smallest and the largest real that an attribute of a type holds."""
    largest = float(np.nextafter(LARGEST_FLOAT if type_.name == "float" else np.inf, 0))
    return -largest, largest


def outside(values: Any, low: float, high: float) -> Mask | None:
    """The rows of numbers that are not from `low` to `high`; None if all are, as mostly."""
    if len(values) and low <= values.min() and values.max() <= high:
        return None
    wrong: Mask = ~((values >= low) & (values <= high))
    return wrong


def fitted(column: Column, type_: ValueType) -> Column | None:
    """The column as its attribute holds it, null where it does not fit.

    None if that has to be asked value by value.
    """
    if type_.name in INTEGER_RANGES and column.kind == "integer":
        return _without(column, outside(column.values, *INTEGER_RANGES[type_.name]))
    if type_.kind == "real" and column.kind in ("integer", "real"):
        reals = Column("real", column.values.astype(np.float64, copy=False), column.missing)
        return _without(reals, outside(reals.values, *range_of_reals(type_)))
    if type_.name == column.kind and column.kind in ("boolean", "string", "timestamp"):
        return column
    return None


def _without(column: Column, wrong: Mask | None) -> Column:
    """The column with the wrong rows missing."""
    if wrong is None:
        return column
    gone = wrong if column.missing is None else wrong | column.missing
    return Column(column.kind, column.values, gone)


def fitted_keys(column: Column, type_: ValueType) -> Column:
    """Keys as an attribute holds them, null where they do not fit."""
    if column.kind == "string" and type_.name == "string":
        return column
    if column.kind == "integer" and type_.name in INTEGER_RANGES:
        held = fitted(column, type_)
        assert held is not None, "integers are fitted in columns"
        return held
    keys = [fitting_key(value, type_) for value in column.to_list()]
    return column_of([MISSING if value is None else value for value in keys])


def conformed(value: Any, type_: ValueType) -> Any:
    """A value as an attribute holds it, `MISSING` if it does not fit."""
    if value is MISSING:
        return MISSING
    try:
        return conform_value(value, type_)
    except ValueError:
        return MISSING


class Texts(NamedTuple):
    """Texts as bytes and offsets: text n is `data[offsets[n]:offsets[n + 1]]`."""

    data: Any
    offsets: Any

    @classmethod
    def of(cls, array: pa.Array) -> Texts:
        """The bytes and offsets of a string array, its own offset taken into account."""
        if not len(array):
            return NO_TEXTS
        _, offsets, data = array.buffers()
        width: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
        begin = array.offset
        ends = np.frombuffer(offsets, width)[begin : begin + len(array) + 1]
        held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return cls(read_only(held), read_only(ends))

    @classmethod
    def held(cls, data: Any, offsets: Any) -> Texts:
        """Texts whose bytes belong to another owner; read-only."""
        return cls(read_only(data), read_only(offsets))

    def take(self, index: Any, largest_offset: int = LARGEST_OFFSET) -> pa.Array:
        """The texts of these numbers; offsets are wide where they pass the largest narrow one."""
        loop = text_writing.take_texts
        return write_texts(loop, len(index), self.mean, self, index, largest_offset=largest_offset)

    @property
    def mean(self) -> float:
        """How many bytes a text has, on average."""
        return int(self.offsets[-1] - self.offsets[0]) / max(1, len(self.offsets) - 1)


def read_only(array: Any) -> Any:
    """The array, marked read-only: arrays of one kind need one compilation."""
    view = array.view()
    view.flags.writeable = False
    return view


def repeated_text(text: str, count: int) -> pa.Array:
    """An array that repeats one text. Arrays of short texts are cached, and cut to length."""
    if count > _MOST_REPEATED or len(text) > _LONGEST_REPEATED:
        return pa.repeat(pa.scalar(text), count)
    return _repeated(text, max(1024, 1 << (count - 1).bit_length()))[:count]


@lru_cache(maxsize=8)
def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def write_texts(
    loop: Callable[..., int],
    count: int,
    room: float,
    *given: Any,
    largest_offset: int = LARGEST_OFFSET,
) -> pa.Array:
    """An Arrow array of `count` texts, which a loop of `text_writing` writes.

    `room` is how many bytes a text is expected to have.
    """
    out: Any = np.empty(int(count * room * _SPARE_ROOM) + _FIRST_BYTES, np.uint8)
    ends: Any = np.zeros(count + 1, np.int32)
    row = 0
    while True:
        if len(out) > largest_offset:
            ends = ends.astype(np.int64)
        row = loop(*given, row, out, ends)
        if row == count:
            break
        used = int(ends[row])
        larger = np.empty(2 * len(out), np.uint8)
        larger[:used] = out[:used]
        out = larger
    used = int(ends[-1])
    type_ = pa.string()
    if used > largest_offset:
        type_ = pa.large_string()
    else:
        ends = ends.astype(np.int32, copy=False)
    # What was not needed is given back.
    out.resize(used, refcheck=False)
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(ends), pa.py_buffer(out)])


NO_TEXTS = Texts.held(np.empty(0, np.uint8), np.zeros(1, np.int32))
