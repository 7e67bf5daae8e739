"""The look-up of a channel with filtering: wants in buckets, and a plan for each kind of event.

Every want of every target is in a bucket by type and source. The first event of a type and source
merges the buckets of the type and its supertypes into a plan; later events of that kind cost one
dictionary access. In a plan, targets without a predicate are a finished tuple; predicates that
compare a name with a constant (`SourceID = 17`) are found by the event's value; a predicate that
several targets share is evaluated once. A change of wants discards the plans and keeps the buckets.

Python tests are not called here: they may be slow, and run in their consumer's turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic

from ensue.channel.lookup.lookup import Ranked, Target
from ensue.channel.lookup.wants import Want
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Comparison, Expression, Literal, Logic, Name
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.scopes import MISSING, EventScope

Kind = tuple[str | None, str | None]
KINDS_KEPT = 100_000
"""How many plans are kept: a source may be a device, of which there are many."""
EXACT_INTEGERS = 2**53
"""Up to this value an integer and a double are equal in Python exactly where they are in CESQL."""


class Index(Generic[Target]):
    """A `Lookup` by type, source and predicate."""

    def __init__(self, types: TypeSystem) -> None:
        self._types = types
        self._wants: dict[Target, tuple[Want, ...]] = {}
        self._buckets: dict[Kind, dict[Target, set[Expression | None]]] = {}
        self._sources_of: dict[str | None, int] = {}
        self._lock = threading.Lock()
        self._clear_plans()

    def put(self, target: Target, wants: Iterable[Want]) -> None:
        """Replace the wants of a target."""
        given = tuple(wants)
        with self._lock:
            self._drop(target)
            self._wants[target] = given
            for each in given:
                kind = (each.type, each.source)
                if kind not in self._buckets:
                    self._buckets[kind] = {}
                    self._sources_of[each.type] = self._sources_of.get(each.type, 0) + 1
                self._buckets[kind].setdefault(target, set()).add(each.where)
            self._clear_plans()

    def remove(self, target: Target) -> None:
        with self._lock:
            self._drop(target)
            self._clear_plans()

    def _clear_plans(self) -> None:
        # New dictionaries: a plan computed meanwhile from old wants must not enter the new ones.
        self._plans: dict[tuple[str, str], Plan[Target]] = {}
        self.ready: dict[str, dict[str, Sequence[Target] | None]] = {}

    def _drop(self, target: Target) -> None:
        for each in self._wants.pop(target, ()):
            kind = (each.type, each.source)
            bucket = self._buckets.get(kind)
            if bucket is not None:
                bucket.pop(target, None)
                if not bucket:
                    del self._buckets[kind]
                    self._sources_of[each.type] -= 1

    def find(self, event: Event) -> Sequence[Target]:
        """The targets that want the event, each once, in order of rank."""
        plan = self._plans.get((event.type, event.source))
        if plan is None:
            plan = self._plan(event.type, event.source)
        return plan.always if plan.predicates is None else plan.find(event)

    def prepare(self, type_: str, source: str) -> None:
        """Compute the plan of a kind of event before its first event comes."""
        if (type_, source) not in self._plans:
            self._plan(type_, source)

    def is_wanted(self, type_: str, source: str | None) -> bool:
        """Whether any target might want an event of a type (from a source, if one is given)."""
        lineage = (*self._types.lineage(type_), None)
        if source is None:
            return any(self._sources_of.get(each) for each in lineage)
        return any((each, s) in self._buckets for each in lineage for s in (source, None))

    def _plan(self, type_: str, source: str) -> Plan[Target]:
        with self._lock:
            found: dict[Target, set[Expression | None]] = {}
            for each in (*self._types.lineage(type_), None):
                for origin in (source, None):
                    for target, predicates in self._buckets.get((each, origin), {}).items():
                        found.setdefault(target, set()).update(predicates)
            plan = Plan(found)
            if len(self._plans) >= KINDS_KEPT:
                self._clear_plans()
            self._plans[(type_, source)] = plan
            by_source = self.ready.setdefault(type_, {})
            by_source[source] = plan.always if plan.predicates is None else None
            return plan


class Plan(Generic[Target]):
    """The targets of events of one type and source: some always, others by a predicate."""

    def __init__(self, found: dict[Target, set[Expression | None]]) -> None:
        by_rank = sorted(found, key=_rank)
        self.always = tuple(each for each in by_rank if None in found[each])
        by_predicate: dict[Expression, list[Target]] = {}
        for target in by_rank:
            for predicate in found[target]:
                if predicate is not None and None not in found[target]:
                    by_predicate.setdefault(predicate, []).append(target)
        self.predicates = Predicates(by_predicate) if by_predicate else None

    def find(self, event: Event) -> Sequence[Target]:
        hits = set(self.predicates.matching(event)) if self.predicates else None
        return sorted((*self.always, *hits), key=_rank) if hits else self.always


class Predicates(Generic[Target]):
    """The predicates over one kind of event; those with an equality are found by value."""

    def __init__(self, by_predicate: dict[Expression, list[Target]]) -> None:
        self._unindexed: list[tuple[Expression, list[Target]]] = []
        self._equalities: dict[tuple[str, ...], Equalities[Target]] = {}
        for predicate, targets in by_predicate.items():
            equality = equality_in(predicate)
            if equality is None:
                self._unindexed.append((predicate, targets))
            else:
                name, value = equality
                self._equalities.setdefault(name, Equalities()).add(value, predicate, targets)

    def matching(self, event: Event) -> Iterable[Target]:
        scope = EventScope(event)
        for predicate, targets in self._unindexed:
            if holds(predicate, scope):
                yield from targets
        for name, equalities in self._equalities.items():
            for predicate, targets in equalities.candidates(scope.lookup(name)):
                if holds(predicate, scope):
                    yield from targets


class Equalities(Generic[Target]):
    """Predicates that require one name to equal a constant, by the constant."""

    def __init__(self) -> None:
        self._by_value: dict[object, list[tuple[Expression, list[Target]]]] = {}
        self._families: set[type] = set()

    def add(self, value: Any, predicate: Expression, targets: list[Target]) -> None:
        self._by_value.setdefault(value, []).append((predicate, targets))
        self._families.add(_family(value))

    def candidates(self, value: Any) -> Iterable[tuple[Expression, list[Target]]]:
        if value is MISSING:
            return ()
        # CESQL casts between types. A value of another type may equal any constant, so that every
        # predicate has to be evaluated.
        if self._families != {_family(value)} or not _is_exact(value):
            return (each for asked in self._by_value.values() for each in asked)
        return self._by_value.get(value, ())


def equality_in(predicate: Expression) -> tuple[tuple[str, ...], Any] | None:
    """A name and a constant that must be equal for the predicate to hold; None if it has none."""
    if isinstance(predicate, Logic) and set(predicate.operators) == {"AND"}:
        found = (equality_in(each) for each in predicate.operands)
        return next((each for each in found if each is not None), None)
    if not isinstance(predicate, Comparison) or len(predicate.rest) != 1:
        return None
    left, (operator, right) = predicate.first, predicate.rest[0]
    if isinstance(left, Literal):
        left, right = right, left
    if operator != "=" or not isinstance(left, Name) or not isinstance(right, Literal):
        return None
    if not isinstance(right.value, str | int | float) or isinstance(right.value, bool):
        return None
    return (left.parts, right.value) if _is_exact(right.value) else None


def _family(value: object) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def _is_exact(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, int | float) and abs(value) <= EXACT_INTEGERS


_rank: Callable[[Ranked], tuple[int, ...]] = lambda target: target.rank  # noqa: E731
