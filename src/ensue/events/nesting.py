"""Attributes inside nested data: `host.name` is `name` in the mapping `host`.

In come data and the declared name of an attribute; out goes its value, or data with another value.
Only identifiers joined by dots, as a library can declare them, lead into nested data; any other
name, such as that of a column with odd characters, is an attribute of the data itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_NESTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")


@lru_cache(maxsize=10_000)
def path_of(name: str) -> tuple[str, ...]:
    """The parts of the name of an attribute."""
    return tuple(name.split(".")) if is_nested(name) else (name,)


def is_nested(name: str) -> bool:
    return "." in name and _NESTED.fullmatch(name) is not None


def value_at(data: Any, name: str) -> tuple[bool, Any]:
    """Whether an attribute exists, and its value; all attributes inside of a null are null."""
    for depth, part in enumerate(path_of(name)):
        if data is None and depth:
            return True, None
        if not isinstance(data, Mapping) or part not in data:
            return False, None
        data = data[part]
    return True, data


def nested(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of values by attribute; the values themselves if no name is nested."""
    if not any(map(is_nested, values)):
        return values
    return with_values({}, values)


def with_values(data: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Data with other values for some attributes; the mappings around them are copied."""
    changed = dict(data)
    for name, value in values.items():
        *outer, last = path_of(name)
        inner = changed
        for part in outer:
            around = inner.get(part)
            inner[part] = dict(around) if isinstance(around, Mapping) else {}
            inner = inner[part]
        inner[last] = value
    return changed


def with_nulls(data: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """Data with all of these attributes; those that it lacks are null."""
    missing = [name for name in names if not value_at(data, name)[0]]
    return with_values(data, dict.fromkeys(missing)) if missing else data


def without(names: Iterable[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Data without some attributes, and without mappings that are empty then."""
    kept = dict(data)
    for name in names:
        first, *inner = path_of(name)
        held = kept.get(first)
        if inner and isinstance(held, Mapping):
            kept[first] = without([".".join(inner)], held)
            if kept[first]:
                continue
        kept.pop(first, None)
    return kept
