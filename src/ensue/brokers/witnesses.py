"""Publications that a filter matches, chosen so that few other filters match them all.

The first is whatever satisfies the filter: a guess from its constants, which most filters match, or
what is found by the search that decides covering, which takes milliseconds. Two more have, for each
name, the least and the largest of the numbers around the filter's constants with which it still
matches: the corners of what it asks for. Another range that does not contain this one misses one of
the corners.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ensue.events.event import Event
from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.nesting import nodes_in, parts_of
from ensue.lang.expressions.tree import (
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Name,
)
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.subscriptions import Filter
from ensue.subscriptions.covering import counterexample

NOTHING = Filter(Literal(False))
MOST_NUMBERS = 16
CORE = ("id", "source", "type", "time", "specversion")


def witnesses_of(filter_: Filter, ontology: Ontology | None) -> tuple[Event, ...]:
    """Publications that match; none where none was found."""
    first = _guessed(filter_, ontology)
    if first is None:
        first = counterexample(NOTHING, filter_, ontology=ontology)
    if first is None:
        return ()
    numbers = sorted(set(_around(filter_.expression)))
    names = dict.fromkeys(each for each in names_in(filter_.expression) if each[0] not in CORE)
    if not numbers or len(numbers) > 5 * MOST_NUMBERS:
        return (first,)
    corners: list[Event] = []
    for values in (numbers, numbers[::-1]):
        event = first
        for name in names:
            event = _moved(filter_, event, name, values, ontology)
        if event not in corners:
            corners.append(event)
    return tuple(corners)


def _guessed(filter_: Filter, ontology: Ontology | None) -> Event | None:
    """A publication with a value for each name that its first atom asks for, if that matches."""
    values: dict[tuple[str, ...], Any] = {}
    waiting = [filter_.expression]
    while waiting:
        current = waiting.pop(0)
        waiting.extend(parts_of(current))
        match current:
            case Comparison(Name(parts), ((sign, Literal(value)),)):
                values.setdefault(parts, _beside(value, sign))
            case Like(Name(parts), pattern):
                values.setdefault(parts, pattern.replace("%", "").replace("_", "a"))
            case In(Name(parts), (Literal(value), *_)):
                values.setdefault(parts, value)
            case Exists(Name(parts)):
                values.setdefault(parts, 1)
    core = {name: values.pop((name,), name) for name in ("id", "source", "type")}
    if any(parts[0] in CORE for parts in values) or not all(
        isinstance(each, str) and each for each in core.values()
    ):
        return None
    event = Event(**core, time=0)
    for parts, value in values.items():
        event = Event(**core, time=0, data=_with(event, parts, value))
    return event if filter_.matches(event, ontology=ontology) else None


def _beside(value: Any, sign: str) -> Any:
    """A value that stands in a comparison to a constant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if sign in ("=", "<=", ">=") else f"{value}x"
    if sign in (">", "!="):
        return math.nextafter(value, math.inf)
    return math.nextafter(value, -math.inf) if sign == "<" else value


def _moved(
    filter_: Filter,
    event: Event,
    name: tuple[str, ...],
    values: Sequence[float],
    ontology: Ontology | None,
) -> Event:
    """The publication with the first of some values for a name with which it still matches."""
    for value in values:
        changed = Event(event.id, event.source, event.type, event.time, _with(event, name, value))
        if filter_.matches(changed, ontology=ontology):
            return changed
    return event


def _with(event: Event, name: tuple[str, ...], value: Any) -> dict[str, Any]:
    data: dict[str, Any] = dict(event.data) if isinstance(event.data, dict) else {}
    inner = data
    for part in name[:-1]:
        below = inner.get(part)
        inner[part] = inner = dict(below) if isinstance(below, dict) else {}
    inner[name[-1]] = value
    return data


def _around(expression: Expression) -> Iterator[float]:
    """The numbers in an expression, and for each the numbers next to it."""
    for node in nodes_in(expression):
        if isinstance(node, Literal) and type(node.value) in (int, float):
            number: Any = node.value
            if math.isfinite(number) and abs(number) < EXACT_IN_DOUBLES:
                yield from (number, number - 1, number + 1)
                yield from (math.nextafter(number, -math.inf), math.nextafter(number, math.inf))
