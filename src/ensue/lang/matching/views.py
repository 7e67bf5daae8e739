"""The views of a value: the value after a cast of CESQL; None where the cast fails."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ensue.events.times import microseconds_of
from ensue.lang.expressions.values import (
    FaultError,
    kind_of,
    to_boolean,
    to_number,
    to_string,
    to_timestamp,
)


def number_view(value: Any) -> int | float | None:
    if value.__class__ is int or value.__class__ is float:
        return value if kind_of(value) is not None else None
    try:
        return to_number(value)
    except FaultError:
        return None


def text_view(value: Any) -> str | None:
    """The text of a value; None for a timestamp, which is compared with text as a time."""
    if value.__class__ is str:
        return value
    return None if isinstance(value, datetime) else pattern_view(value)


def pattern_view(value: Any) -> str | None:
    try:
        return to_string(value)
    except FaultError:
        return None


def truth_view(value: Any) -> bool | None:
    try:
        return to_boolean(value)
    except FaultError:
        return None


def time_view(value: Any) -> int | None:
    try:
        return microseconds_of(to_timestamp(value))
    except (FaultError, ValueError, OverflowError):
        return None
