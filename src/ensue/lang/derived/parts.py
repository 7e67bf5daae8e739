"""The parts of a filter, an expression or a transformer, at any depth.

In come filters; out go the filters and all their parts, from left to right, each before its own
parts. There is no recursion, since filters that are built in Python may be nested without a limit.
Of a correlation, out go the statements of its transformer, the labels that they change, and the
names of bound events that they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ensue.lang.expressions import Expression
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.syntax import (
    Both,
    Change,
    Correlation,
    Duration,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    PushNew,
    PushPort,
    Statement,
    Then,
    Timeout,
    Times,
)


def parts_of(filters: Iterable[Filter]) -> Iterator[Filter]:
    """The filters and all their parts."""
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


def count_places(node: Filter) -> int:
    """The number of ports in a filter in which every `x{n}` is written out."""
    match node:
        case PortRef() | Timeout():
            return 1
        case Labelled(body=body):
            return count_places(body)
        case Times(body=body, count=count):
            return count * count_places(body)
        case Both(parts=parts) | Either(parts=parts) | Then(parts=parts):
            return sum(map(count_places, parts))


def labels_in(filters: Iterable[Filter]) -> Iterator[Labelled]:
    """The labelled parts of filters."""
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


def statements_of(correlation: Correlation) -> list[Statement]:
    """All statements of a transformer; an ECL expression has none."""
    if not isinstance(correlation, FilterCorrelation):
        return []
    of_cases = (statement for case in correlation.cases for statement in case.statements)
    return [*correlation.initially, *of_cases]


def changed_labels(correlation: FilterCorrelation) -> frozenset[str]:
    """The labels that any statement aborts, revives or toggles."""
    changes = (each for each in statements_of(correlation) if isinstance(each, Change))
    return frozenset(label.name for change in changes for label in change.labels)


def values_in(statements: Iterable[Statement]) -> Iterator[Expression]:
    """The values that statements compute: of attributes, and behind `with`."""
    for statement in statements:
        if isinstance(statement, PushNew):
            yield from (each.value for each in statement.assignments)
        if isinstance(statement, PushNew | PushPort):
            yield from (each.value for each in statement.extensions)


def names_of_bound_events(correlation: Correlation) -> list[Parts]:
    """The names of attributes that outputs read of bound events, without the ports."""
    values = values_in(statements_of(correlation))
    return [parts[1:] for value in values for parts in names_in(value) if len(parts) > 1]


def sends_events(correlation: Correlation) -> bool:
    """Whether outputs are whole events that are sent on."""
    return any(isinstance(statement, PushPort) for statement in statements_of(correlation))
