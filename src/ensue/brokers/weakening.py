"""What a filter asks of single events, and which events it needs in a history.

A broker answers temporal terms from its own history. What it asks its neighbours for is therefore
not the filter but content alone: what the filter asks besides its temporal terms, and the filters
inside of the terms, so that what they look for comes in and is kept. Where
these are met, the broker's history answers as that of a broker that sees all events.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ensue.lang.expressions.nesting import nodes_in, parts_of
from ensue.lang.expressions.tree import (
    BoundTerm,
    ConceptTerm,
    Exists,
    Expression,
    Literal,
    Logic,
    Name,
    TemporalTerm,
)
from ensue.subscriptions import Filter

Kinds = tuple[type, ...]

TEMPORAL: Kinds = TemporalTerm.__args__
CONCEPTS: Kinds = (*ConceptTerm.__args__, BoundTerm)

MOST_ANSWERS = 1 << 17
"""Filters of which it is remembered what they ask, which brokers want to know at every change."""

HALVES = Filter(Exists(Name(("phase",))))
"""The starts and ends of intervals: an end may lack the attributes that its start has."""


@lru_cache(MOST_ANSWERS)
def needs_of(filter_: Filter) -> tuple[Filter, ...]:
    """The filters over single events that a broker needs to answer this one, itself first."""
    if not _is_temporal(filter_.expression):
        return (filter_,)
    found: dict[Filter, None] = {}
    waiting = [filter_.expression]
    while waiting:
        expression = waiting.pop(0)
        found[Filter(weakened(expression, _is_temporal))] = None
        waiting += [term.filter for term in _temporal_terms(expression)]
    found[HALVES] = None
    return tuple(found)


@lru_cache(MOST_ANSWERS)
def asks_concepts(filter_: Filter) -> bool:
    return _has(filter_.expression, CONCEPTS)


def without_concepts(filter_: Filter) -> Filter:
    """A filter for brokers without an ontology, which matches all that this one does."""
    if not asks_concepts(filter_):
        return filter_
    return Filter(weakened(filter_.expression, lambda each: _has(each, CONCEPTS)))


def weakened(x: Expression, is_beyond: Callable[[Expression], bool]) -> Expression:
    """An expression that holds wherever this one does, without parts that are `is_beyond`.

    Only what every match must meet is kept, the operands of an outer AND. Inside of OR or NOT no
    single term can be replaced: where it decides, what stands beside it is not evaluated, and might
    meet an error, which no filter survives.
    """
    if not is_beyond(x):
        return x
    if not isinstance(x, Logic) or set(x.operators) != {"AND"}:
        return Literal(True)
    weaker = (weakened(each, is_beyond) for each in x.operands)
    kept = tuple(each for each in weaker if each != Literal(True))
    if len(kept) < 2:
        return kept[0] if kept else Literal(True)
    return Logic(kept, ("AND",) * (len(kept) - 1))


def _temporal_terms(expression: Expression) -> list[TemporalTerm]:
    """The terms of a filter, those inside of their filters left out."""
    found: list[TemporalTerm] = []
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        if isinstance(current, TemporalTerm):
            found.append(current)
        else:
            waiting.extend(parts_of(current))
    return found


def _is_temporal(expression: Expression) -> bool:
    return _has(expression, TEMPORAL)


def _has(expression: Expression, kinds: Kinds) -> bool:
    return any(isinstance(each, kinds) for each in nodes_in(expression))
