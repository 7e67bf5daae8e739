"""Which filters of a link may cover a filter, or be covered by it, without comparing each.

Every filter has witnesses where some are found: publications that it matches. A filter that covers
another matches the other's witnesses. So the filters that may cover a new one are those that match
its witnesses, which an index finds. Those that it may cover are the ones whose witnesses it
matches; if it asks for one value of a name, only witnesses with that value come into question.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Literal

from ensue.brokers.covering import Covering
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.lang.expressions.nesting import names_in
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.tree import Comparison, Expression, Logic, Name
from ensue.lang.expressions.tree import Literal as Constant
from ensue.subscriptions import Filter, Index

Parts = tuple[str, ...]
Kind = Literal["text", "number", "other"]
KINDS: tuple[Kind, ...] = ("text", "number", "other")
EXACT = 2**53
"""Below it, whole numbers and doubles are equal in Python exactly where they are in CESQL."""


class Candidates:
    """Filters with their witnesses, in the order in which they were added."""

    def __init__(self, covering: Covering) -> None:
        self._covering = covering
        self._witnesses: dict[Filter, tuple[Event, ...]] = {}
        self._index = Index(ontology=covering.ontology)
        self._unindexed: dict[Filter, None] = {}
        self._without_witness: dict[Filter, None] = {}
        self._by_value: dict[tuple[Parts, Kind], dict[Hashable, dict[Filter, None]]] = {}

    def add(self, added: Filter) -> None:
        witnesses = self._witnesses[added] = self._covering.witnesses(added)
        if not witnesses:
            self._without_witness[added] = None
        try:
            self._index.add(added, added)
        except UsageError:
            # It asks for concepts that are not known here.
            self._unindexed[added] = None
        for place, value in _values(added, witnesses):
            self._by_value.setdefault(place, {}).setdefault(value, {})[added] = None

    def remove(self, removed: Filter) -> None:
        witnesses = self._witnesses.pop(removed)
        self._without_witness.pop(removed, None)
        if removed in self._unindexed:
            del self._unindexed[removed]
        else:
            self._index.remove(removed)
        for place, value in _values(removed, witnesses):
            values = self._by_value[place]
            del values[value][removed]
            if not values[value]:
                del values[value]
            if not values:
                del self._by_value[place]

    def that_may_cover(self, wanted: Filter) -> Iterable[Filter]:
        witnesses = self._covering.witnesses(wanted)
        if not witnesses:
            return list(self._witnesses)
        first, *others = [dict.fromkeys(self._index.match(each)) for each in witnesses]
        found = [each for each in first if all(each in other for other in others)]
        return [*found, *self._unindexed]

    def that_may_be_covered_by(self, wanted: Filter) -> list[Filter]:
        return [
            each
            for each in self._with_value(wanted)
            if all(self._covering.may_match(wanted, event) for event in self._witnesses[each])
        ]

    def _with_value(self, wanted: Filter) -> Iterable[Filter]:
        equal = _equality_in(wanted.expression)
        if equal is None:
            return list(self._witnesses)
        name, wanted_value = equal
        kind = _kind(wanted_value)
        found = dict(self._by_value.get((name, kind), {}).get(wanted_value, {}))
        # By CESQL's casts, a value of another kind may be equal.
        for other in KINDS:
            if other != kind:
                for filters in self._by_value.get((name, other), {}).values():
                    found |= filters
        found |= self._without_witness
        return found


def _values(
    filter_: Filter, witnesses: tuple[Event, ...]
) -> Iterator[tuple[tuple[Parts, Kind], Hashable]]:
    """The names that a filter asks about, each with its value in the first witness."""
    if not witnesses:
        return
    scope = EventScope(witnesses[0])
    for name in {each.parts: None for each in names_in(filter_.expression)}:
        value: Any = scope.lookup(name)
        if value is not MISSING:
            kind = _kind(value)
            yield (name, kind), None if kind == "other" else value


def _kind(value: object) -> Kind:
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < EXACT:
        return "number"
    return "other"


def _equality_in(predicate: Expression) -> tuple[Parts, str | float] | None:
    """A name that must equal a constant for the predicate to hold; None if there is none."""
    if isinstance(predicate, Logic) and set(predicate.operators) == {"AND"}:
        found = (_equality_in(each) for each in predicate.operands)
        return next((each for each in found if each is not None), None)
    if not isinstance(predicate, Comparison) or len(predicate.rest) != 1:
        return None
    left, (operator, right) = predicate.first, predicate.rest[0]
    if isinstance(left, Constant):
        left, right = right, left
    if operator != "=" or not isinstance(left, Name) or not isinstance(right, Constant):
        return None
    value = right.value
    return None if _kind(value) == "other" else (left.parts, value)  # type: ignore[return-value]
