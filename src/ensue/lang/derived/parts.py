"""What stands inside a filter or an expression, whatever its depth.

In come filters; out come they and all their parts, from left to right, each before what it holds.
Nothing recurses: filters that are put together in Python may be nested without a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ensue.lang.syntax import (
    Both,
    Duration,
    Either,
    Filter,
    Labelled,
    PortRef,
    Then,
    Timeout,
    Times,
)


def parts_of(filters: Iterable[Filter]) -> Iterator[Filter]:
    """The filters and everything inside of them."""
    left = list(filters)[::-1]
    while left:
        part = left.pop()
        yield part
        match part:
            case Labelled(_, body) | Times(body, _):
                left.append(body)
            case Both(inside) | Either(inside) | Then(inside):
                left += reversed(inside)


def ports_in(filters: Iterable[Filter]) -> Iterator[str]:
    """The ports that have a place in filters."""
    return (part.name for part in parts_of(filters) if isinstance(part, PortRef))


def labels_in(filters: Iterable[Filter]) -> Iterator[Labelled]:
    """What has a label in filters."""
    return (part for part in parts_of(filters) if isinstance(part, Labelled))


def timeouts_in(said: object) -> Iterator[Duration]:
    """The durations of all timeouts in filters or in an expression."""
    left: list[Any] = [said]
    while left:
        part = left.pop()
        if isinstance(part, Timeout):
            yield part.after
        elif isinstance(part, tuple):
            left += part
        elif is_dataclass(part):
            left += [getattr(part, each.name) for each in fields(part) if each.compare]
