"""Publications that a filter matches, chosen so that few other filters match them all.

The first is whatever satisfies the filter. Two more have, for each name, the least and the largest
of the numbers around the filter's constants with which it still matches: the corners of what it
asks for. Another range that does not contain this one misses one of the corners.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ensue.events.event import Event
from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.nesting import names_in, parts_of
from ensue.lang.expressions.tree import Expression, Literal
from ensue.subscriptions import Filter
from ensue.subscriptions.covering import counterexample

NOTHING = Filter(Literal(False))
MOST_NUMBERS = 16
CORE = ("id", "source", "type", "time", "specversion")


def witnesses_of(filter_: Filter, ontology: Ontology | None) -> tuple[Event, ...]:
    """Publications that match; none where none was found."""
    first = counterexample(NOTHING, filter_, ontology=ontology)
    if first is None:
        return ()
    numbers = sorted(set(_around(filter_.expression)))
    names = dict.fromkeys(
        each.parts for each in names_in(filter_.expression) if each.parts[0] not in CORE
    )
    if not numbers or len(numbers) > 5 * MOST_NUMBERS:
        return (first,)
    corners = [first]
    for values in (numbers, numbers[::-1]):
        event = first
        for name in names:
            event = _moved(filter_, event, name, values, ontology)
        if event not in corners:
            corners.append(event)
    return tuple(corners[1:] or corners)


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


def _with(event: Event, name: tuple[str, ...], value: float) -> dict[str, Any]:
    data: dict[str, Any] = dict(event.data) if isinstance(event.data, dict) else {}
    inner = data
    for part in name[:-1]:
        below = inner.get(part)
        inner[part] = inner = dict(below) if isinstance(below, dict) else {}
    inner[name[-1]] = value
    return data


def _around(expression: Expression) -> Iterator[float]:
    """The numbers of an expression, and those next to them."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        waiting.extend(parts_of(current))
        if isinstance(current, Literal) and type(current.value) in (int, float):
            number: Any = current.value
            if math.isfinite(number) and abs(number) < 2**53:
                yield from (number, number - 1, number + 1)
                yield from (math.nextafter(number, -math.inf), math.nextafter(number, math.inf))
