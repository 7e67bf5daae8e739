"""Which events a group of rules wants, and the buckets of their keys.

In come events that fit their types; out go the buckets that read them. The step engine compiles
the predicates of all ports into one routine for each event type, so that a distinct predicate is
evaluated once, and only for events whose type a port takes. The route that follows from a
combination of results is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.engine.batch.input.key_hashes import bucket_of
from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.ports import KeyNames
from ensue.engine.step.dispatch.plans import PLANS_REMEMBERED, TypeTests
from ensue.engine.step.dispatch.routines import look_routine
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.wiring import takes_author
from ensue.lang.syntax import EventPort
from ensue.spark.plan import JobPlan, PlannedRule, RuleGroup
from ensue.spark.worker.ordered_group import ALL_KEYS, NO_KEYS

BUCKETS_REMEMBERED = 1 << 16
"""How many buckets are cached by key, since a digest costs more than everything else here."""


@dataclass(frozen=True, slots=True)
class _Route:
    """The rules that want an event, with the keys of each and the bits of their ports."""

    names: tuple[str, ...]
    keys: tuple[tuple[tuple[int, int], ...], ...]
    only: tuple[int, int] | None
    """The one key that all rules share, if they do, with the bits of all ports."""


class _TypeRoutes(TypeTests):
    """The tests that the rules of a group make of events of one type."""

    def __init__(
        self,
        name: str,
        types: TypeSystem,
        rules: Sequence[PlannedRule],
        bits: Mapping[KeyNames, int],
        author: str | None,
    ) -> None:
        super().__init__(name, types, author)
        self.keys: dict[KeyNames, int] = {}
        self.plans: dict[int, _Route | tuple[()]] = {}
        self._wants: list[tuple[str, list[tuple[int, int, int]]]] = []
        for rule in rules:
            ports = [
                (self.needed(port), self._key(rule.key_names(port)), _bit(bits, rule, port))
                for port in rule.event_ports
                if types.is_subtype(name, port.type) and takes_author(port, author)
            ]
            if ports:
                self._wants.append((rule.name, ports))

    @property
    def is_wanted(self) -> bool:
        return bool(self._wants)

    def make_plan(self, tests: int) -> _Route | tuple[()]:
        """The route of an event for which exactly these tests hold."""
        wants = [
            (name, tuple((key, bit) for needed, key, bit in ports if needed & tests == needed))
            for name, ports in self._wants
        ]
        wants = [each for each in wants if each[1]]
        plan: _Route | tuple[()] = ()
        if wants:
            pairs = [pair for _, keys in wants for pair in keys]
            together = 0
            for _, bit in pairs:
                together |= bit
            is_one = len({key for key, _ in pairs}) == 1
            plan = _Route(
                tuple(name for name, _ in wants),
                tuple(keys for _, keys in wants),
                (pairs[0][0], together) if is_one else None,
            )
        if len(self.plans) < PLANS_REMEMBERED:
            self.plans[tests] = plan
        return plan

    def _key(self, names: KeyNames) -> int:
        return self.keys.setdefault(names, len(self.keys))


def _bit(bits: Mapping[KeyNames, int], rule: PlannedRule, port: EventPort) -> int:
    return bits[rule.key_names(port)] if bits else 1


class EventRouter:
    """Routes events to the buckets of a group."""

    def __init__(self, plan: JobPlan, group: RuleGroup, keep_unkeyed: bool) -> None:
        self._types = plan.library.types
        self._rules = group.rules
        self._bits = {names: 1 << place for place, names in enumerate(group.key_set)}
        self._keyed = group.is_keyed
        self._keep_unkeyed = keep_unkeyed
        self._looks: dict[
            tuple[str, str | None], Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]
        ] = {}
        self._buckets: dict[FastKey, int] = {}
        self.matched: tuple[str, ...] = ()
        """The rules that read the last event: a port matches and, with `by`, it has a key."""

    def buckets(self, event: Event, author: str | None = None) -> dict[int, int]:
        """The buckets that read an event, each with the mask of its ports there.

        `author` is the correlation that has put the event out, if one has.
        """
        self.matched = ()
        look = self._looks.get((event.type, author))
        if look is None:
            if event.type not in self._types:
                return {}
            look = self._looks[event.type, author] = self._look_for(event.type, author)
        plan, keys = look(event)
        if not plan:
            return {}
        if not self._keyed:
            self.matched = plan.names
            return {0: ALL_KEYS}
        if plan.only is None:
            return self._under_keys(plan, keys)
        number, bits = plan.only
        key = keys[number]
        if key is None:
            return {-1: NO_KEYS} if self._keep_unkeyed else {}
        self.matched = plan.names
        bucket = self._buckets.get(key)
        return {self._bucket(key) if bucket is None else bucket: bits}

    def _under_keys(self, plan: _Route, keys: Sequence[FastKey | None]) -> dict[int, int]:
        """The buckets where ports have different keys, each of which may be missing."""
        found: dict[int, int] = {}
        matched = []
        for name, pairs in zip(plan.names, plan.keys, strict=True):
            given = [(key, bit) for number, bit in pairs if (key := keys[number]) is not None]
            if given:
                matched.append(name)
            for key, bit in given:
                bucket = self._bucket(key)
                found[bucket] = found.get(bucket, 0) | bit
        if len(matched) < len(plan.names) and self._keep_unkeyed:
            # Counted once, even if other rules read the event.
            found.setdefault(-1, NO_KEYS)
        self.matched = tuple(matched)
        return found

    def _bucket(self, key: FastKey) -> int:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = bucket_of(whole_key(key))
            if len(self._buckets) < BUCKETS_REMEMBERED:
                self._buckets[key] = bucket
        return bucket

    def _look_for(
        self, type_: str, author: str | None
    ) -> Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]:
        routes = _TypeRoutes(type_, self._types, self._rules, self._bits, author)
        return look_routine(routes) if routes.is_wanted else _unwanted


def _unwanted(_: Event) -> tuple[tuple[()], tuple[()]]:
    return (), ()
