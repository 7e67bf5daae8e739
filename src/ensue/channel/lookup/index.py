"""The look-up of a channel with filtering: wants in buckets, and a plan for each kind of event.

Every want of every target is in a bucket by type and source (`bucket`), where predicates are
indexed. For the first event of a type and source, the buckets of the type and its supertypes are
collected in a plan; later events of that kind cost one dictionary access. A plan has the targets
without a predicate as a finished tuple. A change of wants discards the plans and changes the
buckets in place.

Python tests are not called here: they may be slow, and run in their consumer's turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic

from ensue.channel.lookup.bucket import Bucket
from ensue.channel.lookup.lookup import Ranked, Target
from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event
from ensue.events.types import TypeSystem

Kind = tuple[str | None, str | None]
KINDS_KEPT = 100_000
"""How many plans are kept: a source may be a device, of which there are many."""


class TargetIndex(Generic[Target]):
    """A `Lookup` by type, source and predicate."""

    def __init__(self, types: TypeSystem, kinds_kept: int = KINDS_KEPT) -> None:
        self._types = types
        self._kinds_kept = kinds_kept
        self._wants: dict[Target, tuple[EventWant, ...]] = {}
        self._buckets: dict[Kind, Bucket[Target]] = {}
        self._sources_of: dict[str | None, int] = {}
        self._lock = threading.Lock()
        self._clear_plans()

    def put(self, target: Target, wants: Iterable[EventWant]) -> None:
        """Replace the wants of a target."""
        given = tuple(wants)
        with self._lock:
            before = self._wants.get(target, ())
            self._wants[target] = given
            for each in given:
                kind = (each.type, each.source)
                if kind not in self._buckets:
                    self._buckets[kind] = Bucket()
                    self._sources_of[each.type] = self._sources_of.get(each.type, 0) + 1
                self._buckets[kind].add(target, each.where)
            # The new wants are added before the old ones are removed, so that an event that is
            # wanted before and after always finds the target. A thread that used an old plan
            # meanwhile sees that the plans have changed, and looks the event up again.
            self._clear_plans()
            kept = {(each.type, each.source, each.where) for each in given}
            self._drop(target, before, kept)
            self._clear_plans()

    def remove(self, target: Target) -> None:
        with self._lock:
            self._drop(target, self._wants.pop(target, ()), ())
            self._clear_plans()

    def _clear_plans(self) -> None:
        # New dictionaries, so that a plan computed from old wants cannot enter the new ones.
        self._plans: dict[tuple[str, str], TargetPlan[Target]] = {}
        self.ready: dict[str, dict[str, Sequence[Target] | None]] = {}

    def _drop(self, target: Target, wants: Iterable[EventWant], kept: Collection[object]) -> None:
        for each in wants:
            kind = (each.type, each.source)
            bucket = self._buckets.get(kind)
            if bucket is not None and (*kind, each.where) not in kept:
                bucket.remove(target, each.where)
                if not bucket:
                    del self._buckets[kind]
                    self._sources_of[each.type] -= 1

    def find(self, event: Event) -> Sequence[Target]:
        """The targets that want the event, each once, in order of rank."""
        while True:
            plans = self._plans
            plan = plans.get((event.type, event.source))
            if plan is None:
                plan = self._plan(event.type, event.source)
            if not plan.with_predicates:
                return plan.always
            found = plan.find(event)
            if plans is self._plans:
                return found

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

    def _plan(self, type_: str, source: str) -> TargetPlan[Target]:
        with self._lock:
            kinds = [
                (each, origin)
                for each in (*self._types.lineage(type_), None)
                for origin in (source, None)
            ]
            plan = TargetPlan([self._buckets[kind] for kind in kinds if kind in self._buckets])
            if len(self._plans) >= self._kinds_kept:
                self._clear_plans()
            self._plans[(type_, source)] = plan
            by_source = self.ready.setdefault(type_, {})
            by_source[source] = None if plan.with_predicates else plan.always
            return plan


class TargetPlan(Generic[Target]):
    """The targets of events of one type and source: without a predicate, and by predicate."""

    def __init__(self, buckets: Sequence[Bucket[Target]]) -> None:
        always = {target: None for bucket in buckets for target in tuple(bucket.always)}
        self.always = tuple(sorted(always, key=_rank))
        self.with_predicates = tuple(bucket for bucket in buckets if bucket.has_predicates)
        self._always = always

    def find(self, event: Event) -> Sequence[Target]:
        hits: set[Target] = set()
        for bucket in self.with_predicates:
            hits.update(bucket.matching(event))
        hits.difference_update(self._always)
        return sorted((*self.always, *hits), key=_rank) if hits else self.always


_rank: Callable[[Ranked], tuple[int, ...]] = lambda target: target.rank  # noqa: E731
