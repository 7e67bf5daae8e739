"""The names that an expression mentions, as their parts."""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions import nesting
from ensue.lang.expressions.tree import Expression

Parts = tuple[str, ...]
"""A dotted name, part by part."""


def names_in(expression: Expression) -> Iterator[Parts]:
    """Every name that is read from the event itself; a name may come several times."""
    return (name.parts for name in nesting.names_in(expression))


def is_time(name: Parts) -> bool:
    """Whether a name is that of an event's time, which a timer has too."""
    return len(name) == 1 and name[0].lower() == "time"
