"""Conversions between attribute types and Arrow types.

In comes a `ValueType` or an Arrow field; out goes its counterpart. The metadata of our fields have
the attribute type, so that the conversion back is exact; other fields are read by their Arrow type,
and a field that fits no attribute type is refused by name. Tables and events are converted in
`arrow`.
"""

from __future__ import annotations

import pyarrow as pa

from ensue.errors import UsageError
from ensue.events.types import INTEGER_RANGES, REALS, ValueType

MEANING = b"ensue.type"
"""The key of the attribute type in the metadata of a field."""

_ARROW = {
    "octet": pa.uint8(),
    "short": pa.int16(),
    "unsigned short": pa.uint16(),
    "long": pa.int32(),
    "unsigned long": pa.uint32(),
    "long long": pa.int64(),
    "unsigned long long": pa.uint64(),
    # A float is a double everywhere, so that comparisons have the same result everywhere.
    "float": pa.float64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "char": pa.string(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_NATIVE = {
    pa.int8(): "short",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.large_string(): "string",
    pa.string_view(): "string",
    **{each: name for name, each in _ARROW.items() if name not in ("float", "char")},
}
_EXACT_IN_DOUBLE = 2**53


def arrow_type(type_: ValueType) -> pa.DataType:
    return pa.list_(arrow_type(type_.element)) if type_.element else _ARROW[type_.name]


def field_of(name: str, type_: ValueType) -> pa.Field:
    """A nullable field with its attribute type in the metadata."""
    return pa.field(name, arrow_type(type_), metadata={MEANING: str(type_).encode()})


def value_type(field: pa.Field) -> ValueType:
    """The attribute type of a field. Raises `UsageError` if there is none."""
    meaning = (field.metadata or {}).get(MEANING)
    if meaning is not None:
        try:
            meant = ValueType.of(meaning.decode())
        except ValueError as error:
            raise UsageError(f"the metadata of the field `{field.name}`: {error}") from None
        # A column that has been cast since is read by its Arrow type.
        if arrow_type(meant) == field.type:
            return meant
    native = _native(field.type)
    if native is None:
        raise UsageError(
            f"the field `{field.name}` is `{field.type}`, which is no attribute type: cast it to"
            " an integer, a float, a boolean, a string, a timestamp, or a list of one of them"
        )
    return native


def _native(type_: pa.DataType) -> ValueType | None:
    if pa.types.is_dictionary(type_):
        return _native(type_.value_type)
    if pa.types.is_timestamp(type_):
        return ValueType("timestamp")
    if _is_list(type_):
        element = _native(type_.value_type)
        return ValueType("sequence", element) if element else None
    name = _NATIVE.get(type_)
    return ValueType(name) if name else None


_DIGITS_OF_64_BITS = 20


def held_type(field: pa.Field, where: str) -> pa.DataType:
    """The type to which a column is cast before its values become Python values.

    Instants are cast to microseconds in UTC (without a zone they count as UTC), decimals to
    doubles, and dates and times of day to text. Any other type is refused. A column of whole
    decimals stays one: `whole_numbers` makes integers of it.
    """
    if _is_whole_decimal(field.type):
        return field.type
    held = _held(field.type)
    if held is None:
        raise UsageError(
            f"the column `{field.name}` of {where} is `{field.type}`, which no event can hold:"
            " leave it out, or cast it to text or numbers"
        )
    return held


def _held(type_: pa.DataType) -> pa.DataType | None:
    kind = pa.types
    if kind.is_timestamp(type_):
        return _ARROW["timestamp"]
    if kind.is_dictionary(type_):
        return _held(type_.value_type)
    if kind.is_decimal(type_) or kind.is_float16(type_):
        return pa.float64()
    if kind.is_date(type_) or kind.is_time(type_):
        return pa.string()
    if type_ in _NATIVE or kind.is_null(type_):
        return type_
    if _is_list(type_):
        element = _held(type_.value_type)
        return element and pa.list_(element)
    if kind.is_map(type_):
        item = _held(type_.item_type)
        return item and pa.map_(type_.key_type, item)
    if kind.is_struct(type_):
        parts = {field.name: _held(field.type) for field in type_}
        return None if None in parts.values() else pa.struct(list(parts.items()))
    return None


def _is_whole_decimal(type_: pa.DataType) -> bool:
    """Whether values of a type are whole numbers that may all fit 64 bits."""
    return bool(
        pa.types.is_decimal(type_) and type_.scale == 0 and type_.precision <= _DIGITS_OF_64_BITS
    )


def whole_numbers(column: pa.Array) -> pa.Array:
    """A column of whole decimals as integers, which databases and Spark write as such.

    Where neither kind of integer has all of its values, they are doubles.
    """
    for wanted in (pa.int64(), pa.uint64()):
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid:
            continue
    return column.cast(pa.float64())


def _is_list(type_: pa.DataType) -> bool:
    kind = pa.types
    return bool(kind.is_list(type_) or kind.is_large_list(type_) or kind.is_fixed_size_list(type_))


def widen(one: ValueType, other: ValueType) -> ValueType | None:
    """The narrowest type that has every value of both types; `None` if there is none."""
    if one == other:
        return one
    if one.element and other.element:
        element = widen(one.element, other.element)
        return ValueType("sequence", element) if element else None
    names = {one.name, other.name}
    if names <= REALS:
        return ValueType("double")
    if names == {"char", "string"}:
        return ValueType("string")
    if names <= INTEGER_RANGES.keys():
        return _widen_integers(names)
    integers = names & INTEGER_RANGES.keys()
    if integers and names & REALS:
        low, high = INTEGER_RANGES[integers.pop()]
        exact = low >= -_EXACT_IN_DOUBLE and high <= _EXACT_IN_DOUBLE
        return ValueType("double") if exact else None
    return None


def _widen_integers(names: set[str]) -> ValueType | None:
    low = min(INTEGER_RANGES[name][0] for name in names)
    high = max(INTEGER_RANGES[name][1] for name in names)
    fitting = [
        (above - below, name)
        for name, (below, above) in INTEGER_RANGES.items()
        if below <= low and high <= above
    ]
    return ValueType(min(fitting)[1]) if fitting else None
