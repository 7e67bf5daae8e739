"""Values of expressions, and casts between their kinds.

A value is a boolean, an integer, a real, a string or a timestamp (an aware datetime). Event data
also has sequences, mappings and values of no CESQL type; these can be passed on and tested by
EXISTS, and every cast of them fails. A cast that fails raises `FaultError`.
Implicit casts are the casts that operators and functions apply to their operands. Only INT, BOOL
and DOUBLE, which a user writes, also round a real to an integer, take a number for a boolean and
an integer for a real.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ensue.events.times import datetime_of, format_time, microseconds_of, parse_time

SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**63 - 1
# `unsigned long long` attributes may be larger than any result of arithmetic.
LARGEST_IN_DATA: Final = 2**64 - 1
EXACT_IN_DOUBLES: Final = 2**53
"""Integers below it, and above its negative, are exact as doubles."""
BEYOND_INTEGERS: Final = 2.0**70
"""Larger than any integer of an event."""

_is_integer_text = re.compile(r"[+-]?[0-9]+").fullmatch
_is_real_text = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch
_MOST_DIGITS = 20


class FaultError(Exception):
    """An error of CESQL: its kind, and the value to go on with if that is not the zero."""

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value
        super().__init__(kind, value)


def kind_of(value: object) -> str | None:
    """The kind of a value, as in `ValueType.kind`; None for a value of no CESQL type."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer" if SMALLEST_INTEGER <= value <= LARGEST_IN_DATA else None
        case float():
            return "real"
        case str():
            return "string"
        case datetime():
            return "timestamp" if value.tzinfo is not None else None
        case _:
            return None


def to_boolean(value: Any) -> bool:
    match kind_of(value):
        case "boolean":
            return bool(value)
        case "string" if value.lower() in ("true", "false"):
            return bool(value.lower() == "true")
    raise FaultError("cast")


def to_integer(value: Any) -> int:
    match kind_of(value):
        case "boolean" | "integer":
            return int(value)
        case "string":
            return _integer_of(value)
    raise FaultError("cast")


def to_number(value: Any) -> int | float:
    """A number. The text of an integer is cast to an integer, other numbers in text to a real."""
    match kind_of(value):
        case "real":
            return float(value)
        case "string" if not _is_integer_text(value):
            return _real_of(value)
    return to_integer(value)


def to_timestamp(value: Any) -> datetime:
    match kind_of(value):
        case "timestamp":
            assert isinstance(value, datetime)
            return value
        case "string":
            try:
                return datetime_of(parse_time(value))
            except (ValueError, OverflowError):
                raise FaultError("cast") from None
    raise FaultError("cast")


def to_string(value: Any) -> str:
    match kind_of(value):
        case "boolean":
            return "true" if value else "false"
        case "integer":
            return str(value)
        case "real":
            return repr(float(value))
        case "string":
            return str(value)
        case "timestamp":
            try:
                return format_time(microseconds_of(value))
            except (ValueError, OverflowError):
                raise FaultError("cast") from None
    raise FaultError("cast")


def to_any(value: Any) -> Any:
    return value


def truncate(value: Any) -> int:
    """INT: as the implicit cast, and a real loses its fraction."""
    if kind_of(value) != "real":
        return to_integer(value)
    if not math.isfinite(value) or not SMALLEST_INTEGER <= int(value) <= LARGEST_INTEGER:
        raise FaultError("cast")
    return int(value)


def to_real(value: Any) -> float:
    """DOUBLE: as the implicit cast to a number, and an integer becomes a real."""
    return float(to_number(value))


def to_truth(value: Any) -> bool:
    """BOOL: as the implicit cast, and a number is true unless it is zero."""
    return value != 0 if kind_of(value) in ("integer", "real") else to_boolean(value)


CASTS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": to_boolean,
    "integer": to_integer,
    "number": to_number,
    "real": to_number,
    "timestamp": to_timestamp,
    "string": to_string,
    "group": to_any,
    "any": to_any,
}
"""The implicit cast to each kind; `number` is an integer or a real, `group` a number or a name."""

ZEROS: Mapping[str, Any] = {
    "any": False,
    "boolean": False,
    "integer": 0,
    "number": 0,
    "real": 0.0,
    "string": "",
    "timestamp": datetime_of(0),
}
"""The value of an operator or function in error, by the kind of its result."""


def text_of(value: object) -> str:
    """A value as text by STRING; a value that STRING cannot cast, by Python."""
    try:
        return to_string(value)
    except FaultError:
        return str(value)


def _integer_of(text: str) -> int:
    # Python refuses to read very long numbers, even if most of the digits are leading zeros.
    digits = text.lstrip("+-0") or "0"
    if not _is_integer_text(text) or len(digits) > _MOST_DIGITS:
        raise FaultError("cast")
    number = -int(digits) if text[0] == "-" else int(digits)
    if not SMALLEST_INTEGER <= number <= LARGEST_INTEGER:
        raise FaultError("cast")
    return number


def _real_of(text: str) -> float:
    if not _is_real_text(text) or math.isinf(number := float(text)):
        raise FaultError("cast")
    return number


def wholes_equal_to(constant: int | float) -> tuple[int, int]:
    """The least and the largest integer that equal a constant; the first is larger if none does.

    An integer is compared with a real as a real, so that beyond 2^53 several are equal to one.
    """
    if isinstance(constant, int) or not EXACT_IN_DOUBLES <= abs(constant) < BEYOND_INTEGERS:
        return math.ceil(constant), math.floor(constant)
    ends = []
    for away in (-math.inf, math.inf):
        half = (int(constant) + int(math.nextafter(constant, away))) // 2
        ends.append(half if float(half) == constant else half + (1 if away < 0 else -1))
    return ends[0], ends[1]
