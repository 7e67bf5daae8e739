"""What an attribute of a type holds of a value."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ensue.events.types import INTEGER_RANGES, ValueType

LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")


def fitted(value: Any, kind: ValueType) -> Any:
    """The value as an attribute of that type holds it, or None where it does not fit."""
    if kind.kind == "integer":
        low, high = INTEGER_RANGES[kind.name]
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return value if good else None
    if kind.kind == "real":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if kind.name == "double" or abs(value) <= LARGEST_FLOAT else None
    if kind.kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind.kind == "timestamp":
        return value if isinstance(value, datetime) else None
    if kind.name == "char":
        return value if isinstance(value, str) and len(value) == 1 else None
    return value if isinstance(value, str) else None
