"""Checks that an event fits its declared type, and a value its attribute.

In comes an event as a codec has read it; out goes the same event, or a copy with values in normal
form (integers for integer attributes, floats for reals, aware datetimes in UTC for timestamps). An
event that does not fit is an `EventError` with all problems at once. An event of an undeclared type
passes as it is, and so do attributes that its type does not declare. Text is not converted to
numbers here: only CSV needs that, in `columns`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.events.nesting import value_at, with_values
from ensue.events.times import EXAMPLE, datetime_of, parse_time
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType


def conform(event: Event, types: TypeSystem) -> Event:
    """The event with its data in normal form; itself if nothing had to change.

    Raises `EventError` with all problems if the event's type is declared and its data do not fit.
    """
    if event.type not in types.types:
        return event
    attributes = types.attributes(event.type)
    data = event.data
    if data is None and not attributes:
        return event
    if not isinstance(data, Mapping):
        raise EventError([_no_mapping(event, attributes)])

    changed: dict[str, Any] = {}
    problems: list[str] = []
    for name, type_ in attributes.items():
        value = value_at(data, name)[1] if "." in name else data.get(name)
        if value is None:
            if not value_at(data, name)[0]:
                problems.append(
                    f"attribute `{name}` of `{event.type}` is missing:"
                    f" {describe(type_)} is needed, or null"
                )
            continue
        try:
            held = _CHECKS[type_.name](with_whole_numbers(value, type_), type_)
        except ValueError as error:
            problems.append(f"attribute `{name}` of `{event.type}`: {error}")
        else:
            if held is not value:
                changed[name] = held
    if problems:
        raise EventError(problems)
    if not changed:
        return event
    return msgspec.structs.replace(event, data=with_values(data, changed))


LARGEST_EXACT = 2**53 - 1
"""The largest integer up to which every integer has a double of its own."""


def with_whole_numbers(value: Any, type_: ValueType) -> Any:
    """A real without a fraction as an integer, if the attribute is an integer.

    JSON has one kind of number, and a column of integers with nulls becomes a column of reals. A
    larger real may be another number than the original, and is left as it is.
    """
    if isinstance(value, float):
        is_whole = type_.kind == "integer" and value.is_integer() and abs(value) <= LARGEST_EXACT
        return int(value) if is_whole else value
    if type_.element and isinstance(value, list | tuple):
        held = [with_whole_numbers(each, type_.element) for each in value]
        return held if any(a is not b for a, b in zip(held, value, strict=True)) else value
    return value


def conform_value(value: Any, type_: ValueType) -> Any:
    """The value in normal form. Raises `ValueError` if it does not fit; a null fits."""
    return None if value is None else _CHECKS[type_.name](value, type_)


def fits(value: Any, type_: ValueType) -> bool:
    """Whether `conform_value` accepts the value."""
    try:
        conform_value(value, type_)
    except ValueError:
        return False
    return True


def describe(type_: ValueType) -> str:
    """The allowed values of a type, in words, for error messages."""
    if type_.element:
        return f"a list, each element {describe(type_.element)}"
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        article = "an" if type_.name[0] in "ou" else "a"
        return f"{article} `{type_}` (a whole number from {low} to {high})"
    return _DESCRIPTIONS[type_.name]


def _no_mapping(event: Event, attributes: Mapping[str, ValueType]) -> str:
    given = "there is none" if event.data is None else f"{_shown(event.data)} was given"
    allowed = ", ".join(f"`{name}`" for name in attributes) or "no attributes"
    return f"`data` of `{event.type}` must be an object with {allowed}, but {given}"


def _misfit(value: Any, type_: ValueType) -> ValueError:
    is_number = type_.kind in ("integer", "real")
    has_comma = is_number and isinstance(value, str) and _has_comma(value)
    hint = ", with a point in place of the comma" if has_comma else ""
    if type_.kind == "integer" and isinstance(value, str) and _is_fraction(value):
        hint = ": declare the attribute as a `double` where it has fractions"
    return ValueError(f"{_shown(value)} was given, {describe(type_)} is needed{hint}")


def _integer(value: Any, type_: ValueType) -> int:
    # A boolean is an `int` in Python, but no integer here.
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(value, type_)
    low, high = INTEGER_RANGES[type_.name]
    if not low <= value <= high:
        raise _misfit(value, type_)
    return value


def _double(value: Any, type_: ValueType) -> float:
    if isinstance(value, float):
        held = value
    elif isinstance(value, int) and not isinstance(value, bool):
        try:
            held = float(value)
        except OverflowError:
            raise _misfit(value, type_) from None
    else:
        raise _misfit(value, type_)
    if not math.isfinite(held):
        raise _misfit(value, type_)
    return held


def _float(value: Any, type_: ValueType) -> float:
    held = _double(value, type_)
    try:
        # Packing refuses exactly the numbers beyond the range of 32-bit floats. The double is kept.
        _FLOAT32.pack(held)
    except OverflowError:
        raise _misfit(value, type_) from None
    return held


def _boolean(value: Any, type_: ValueType) -> bool:
    if not isinstance(value, bool):
        raise _misfit(value, type_)
    return value


def _string(value: Any, type_: ValueType) -> str:
    if not isinstance(value, str):
        raise _misfit(value, type_)
    return value


def _char(value: Any, type_: ValueType) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise _misfit(value, type_)
    return value


def _timestamp(value: Any, type_: ValueType) -> datetime:
    if isinstance(value, str):
        return datetime_of(parse_time(value))
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise _misfit(value, type_)
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise _misfit(value, type_) from None


def _sequence(value: Any, type_: ValueType) -> list[Any]:
    if not isinstance(value, list | tuple) or type_.element is None:
        raise _misfit(value, type_)
    held = []
    for place, each in enumerate(value):
        try:
            held.append(conform_value(each, type_.element))
        except ValueError as error:
            raise ValueError(f"at place {place}, {error}") from None
    if isinstance(value, list) and all(a is b for a, b in zip(value, held, strict=True)):
        return value
    return held


def _shown(value: Any) -> str:
    """A value as JSON, shortened for messages: a bad event may have megabytes."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = f"a Python `{type(value).__name__}`"
    if isinstance(value, float) and not math.isfinite(value):
        text = repr(value)
    if isinstance(value, datetime) and value.utcoffset() is None:
        text = f"the datetime `{value}` without a time zone"
    return text if len(text) <= 60 else f"{text[:60]}..."


_has_comma = re.compile(r"\s*[+-]?[0-9.]*,[0-9]+\s*").fullmatch
_is_fraction = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+\s*").fullmatch
_FLOAT32 = struct.Struct("<f")

_CHECKS: Mapping[str, Callable[[Any, ValueType], Any]] = {
    **dict.fromkeys(INTEGER_RANGES, _integer),
    "float": _float,
    "double": _double,
    "boolean": _boolean,
    "char": _char,
    "string": _string,
    "timestamp": _timestamp,
    "sequence": _sequence,
}

_DESCRIPTIONS: Mapping[str, str] = {
    "float": "a `float` (a finite number of at most 3.4028235e38 in size)",
    "double": "a `double` (a finite number)",
    "boolean": "a `boolean` (true or false)",
    "char": "a `char` (text of exactly one character)",
    "string": "a `string`",
    "timestamp": f"a `timestamp` (RFC 3339 text such as `{EXAMPLE}`)",
}
