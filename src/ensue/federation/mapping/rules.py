"""What a mapping is told to do, read from a table and checked.

[[map]]
at = "office"
direction = "out"                   # events that go to the service; "in": that come from it
where = "type = 'Speed'"            # others pass as they are
split = "{kind}.{city}"             # the subject (the type) taken apart into parameters
rename = { velocity = "speed" }     # from old to new
remove = ["internal"]
retype = { speed = "double" }       # string, long, double, boolean or timestamp
compute = { kmh = "speed * 3.6" }   # CESQL over the event as it is by then
subject = "Traffic.{city}"
plugin = "package.module:function"  # Event in; Event out, or None to drop it
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ensue.errors import EnsueError
from ensue.events.cloudevents import plain_json
from ensue.events.event import Event
from ensue.events.times import datetime_of, parse_time
from ensue.federation.mapping.templates import Template, as_text
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.scopes import EventScope
from ensue.lang.expressions.tree import Expression
from ensue.subscriptions import Filter

Direction = Literal["in", "out"]
Mapped = Callable[[Event], Event | None]


class MappingError(EnsueError):
    """An event that a mapping cannot be carried out on."""


@dataclass(frozen=True)
class MappingRule:
    """One `[[map]]` table."""

    at: str
    direction: Direction
    where: Filter | None = None
    split: Template | None = None
    rename: dict[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    retype: dict[str, str] = field(default_factory=dict)
    compute: dict[str, Expression] = field(default_factory=dict)
    subject: Template | None = None
    plugin: Mapped | None = None


def load_plugin(text: str) -> Mapped:
    """The function that `package.module:function` names. Raises `ValueError`."""
    module, _, name = text.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"`{text}` cannot be loaded: {error}") from None
    if not callable(found):
        raise ValueError(f"`{text}` is no function")
    loaded: Mapped = found
    return loaded


def computed(name: str, expression: Expression, event: Event) -> Any:
    """The value of a computed parameter. Raises `MappingError`."""
    outcome = evaluate(expression, EventScope(event))
    if outcome.errors:
        raise MappingError(f"`{name}` cannot be computed: {', '.join(outcome.errors)}")
    return plain_json(outcome.value)


def retyped(name: str, value: Any, wanted: str) -> Any:
    """A value as another type. Raises `MappingError` where that would lose something."""
    try:
        return RETYPE[wanted](value)
    except (ValueError, TypeError, OverflowError):
        raise MappingError(f"`{name}` is `{value!r}`, which is no {wanted}") from None


def _long(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return int(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False, "1": True, "0": False}[as_text(value).lower()]


def _boolean_or_error(value: Any) -> bool:
    try:
        return _boolean(value)
    except KeyError:
        raise ValueError(value) from None


def _timestamp(value: Any) -> str:
    """As RFC 3339 text; a number counts seconds since 1970."""
    if isinstance(value, str):
        instant = parse_time(value)
    elif isinstance(value, datetime):
        return str(plain_json(value))
    elif isinstance(value, bool):
        raise TypeError(value)
    else:
        instant = round(value * 1_000_000)
    return str(plain_json(datetime_of(instant)))


RETYPE: dict[str, Callable[[Any], Any]] = {
    "string": as_text,
    "long": _long,
    "double": float,
    "boolean": _boolean_or_error,
    "timestamp": _timestamp,
}
