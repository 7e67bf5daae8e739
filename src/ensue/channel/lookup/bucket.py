"""The wants for events of one type and source: targets without a predicate, and by predicate.

A predicate that several targets share is evaluated once. Two or more predicates are put into the
index that subscriptions use as well (`ensue.lang.matching`), so that an event visits only the
predicates that it may satisfy. A single predicate is evaluated directly: the compiled loops of the
index take a second to load, and would save only microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic

from ensue.channel.lookup.lookup import Target
from ensue.events.event import Event
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.scopes import EventScope

if TYPE_CHECKING:
    from ensue.lang.matching.index import PredicateIndex

INDEXED_FROM = 2
"""The number of predicates from which on the index is used."""


class Bucket(Generic[Target]):
    """Targets by predicate. Safe to use from several threads."""

    def __init__(self) -> None:
        self.always: dict[Target, None] = {}
        self._lock = threading.Lock()
        self._by_predicate: dict[Expression, dict[Target, None]] = {}
        self._numbers: dict[Expression, int] = {}
        self._by_number: dict[int, dict[Target, None]] = {}
        self._next_number = 0
        self._index: PredicateIndex | None = None

    def __bool__(self) -> bool:
        return bool(self.always or self._by_predicate)

    @property
    def has_predicates(self) -> bool:
        return bool(self._by_predicate)

    def add(self, target: Target, predicate: Expression | None) -> None:
        with self._lock:
            if predicate is None:
                self.always[target] = None
            elif predicate in self._by_predicate:
                self._by_predicate[predicate][target] = None
            else:
                self._by_predicate[predicate] = {target: None}
                if self._index is not None:
                    self._enter(self._index, predicate)
                elif len(self._by_predicate) >= INDEXED_FROM:
                    self._build()

    def remove(self, target: Target, predicate: Expression | None) -> None:
        with self._lock:
            if predicate is None:
                self.always.pop(target, None)
                return
            targets = self._by_predicate.get(predicate, {})
            targets.pop(target, None)
            if not targets and self._by_predicate.pop(predicate, None) is not None:
                number = self._numbers.pop(predicate, None)
                if number is not None and self._index is not None:
                    self._index.remove(number)
                    del self._by_number[number]

    def matching(self, event: Event) -> Iterable[Target]:
        """The targets whose predicates hold; a target may come more than once."""
        with self._lock:
            if self._index is not None:
                found = [self._by_number[each] for each in self._index.match(event)]
            else:
                scope = EventScope(event)
                by_predicate = self._by_predicate.items()
                found = [targets for each, targets in by_predicate if holds(each, scope)]
            return [target for targets in found for target in targets]

    def _build(self) -> None:
        from ensue.lang.matching.index import PredicateIndex

        index = PredicateIndex()
        for predicate in self._by_predicate:
            self._enter(index, predicate)
        # Load the compiled loops now, so that the first event does not wait for them.
        index.match(Event("", "", "", 0))
        self._index = index

    def _enter(self, index: PredicateIndex, predicate: Expression) -> None:
        number = self._numbers[predicate] = self._next_number
        self._next_number += 1
        self._by_number[number] = self._by_predicate[predicate]
        index.add(number, predicate)
