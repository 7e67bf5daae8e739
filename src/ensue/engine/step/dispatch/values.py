"""Values and keys of an event, read in full: what routines ask where an event is not plain.

In comes an event and names; out comes what they stand for, as `ensue.engine.ports` and the
expressions of the language say it. Routines read the attributes of a plain event themselves.
"""

from __future__ import annotations

from typing import Any

from ensue.engine.core.instances.keys import FastKey, fast_key
from ensue.engine.ports import key_of
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import MISSING, EventScope
from ensue.lang.expressions.values import LARGEST_IN_DATA, SMALLEST_INTEGER


def found(event: Event, name: str) -> Any:
    """The value of a name, None where it is missing. An integer beyond 64 bits is no integer."""
    value = EventScope(event).lookup((name,))
    if value is MISSING:
        return None
    if type(value) is int and not SMALLEST_INTEGER <= value <= LARGEST_IN_DATA:
        return _Beyond
    return value


class _Beyond:
    """Stands for an integer that is too large for CESQL: it is there, and of no type."""


def key_under(event: Event, names: tuple[str, ...]) -> FastKey | None:
    key = key_of(event, names)
    return None if key is None else fast_key(key)
