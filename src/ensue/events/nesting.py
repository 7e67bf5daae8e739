"""Attributes inside nested data: `host.name` is `name` in the mapping that stands at `host`.

In come data and the name of an attribute as it is declared; out goes its value, or data with
another value there. Only names joined by dots lead inside, as a library can declare them; any other
name, also an odd one of a column, is that of an attribute of the data itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_NESTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")


@lru_cache(maxsize=10_000)
def path_of(name: str) -> tuple[str, ...]:
    """The names on the way to an attribute."""
    return tuple(name.split(".")) if is_nested(name) else (name,)


def is_nested(name: str) -> bool:
    return "." in name and _NESTED.fullmatch(name) is not None


def value_at(data: Any, name: str) -> tuple[bool, Any]:
    """Whether an attribute is there, and its value; inside of a null everything is null."""
    for depth, part in enumerate(path_of(name)):
        if data is None and depth:
            return True, None
        if not isinstance(data, Mapping) or part not in data:
            return False, None
        data = data[part]
    return True, data


def nested(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values by the names of their attributes, as data; itself if no name leads inside."""
    if not any(map(is_nested, values)):
        return values
    return with_values({}, values)


def with_values(data: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Data with other values for some attributes; what stands around them is copied."""
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
    """Data in which every attribute is there, null if it was not."""
    missing = [name for name in names if not value_at(data, name)[0]]
    return with_values(data, dict.fromkeys(missing)) if missing else data


def without(names: Iterable[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Data less some attributes, and less what holds nothing else."""
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
