"""The wants for events of one type and source: targets without a predicate, and predicates.

A predicate that several targets share is asked once. From two predicates on they are in the index
that subscriptions have too (`ensue.lang.matching`), so that an event visits only predicates that it
may satisfy. A single one is evaluated: the index brings compiled loops with it, which take a second
to load, and gains microseconds where there is next to nothing to look up.
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

FEW = 2


class Bucket(Generic[Target]):
    """Changes and questions come from any thread."""

    def __init__(self) -> None:
        self.always: dict[Target, None] = {}
        self._lock = threading.Lock()
        self._asked: dict[Expression, dict[Target, None]] = {}
        self._numbers: dict[Expression, int] = {}
        self._by_number: dict[int, dict[Target, None]] = {}
        self._next_number = 0
        self._index: PredicateIndex | None = None

    def __bool__(self) -> bool:
        return bool(self.always or self._asked)

    @property
    def has_predicates(self) -> bool:
        return bool(self._asked)

    def add(self, target: Target, predicate: Expression | None) -> None:
        with self._lock:
            if predicate is None:
                self.always[target] = None
            elif predicate in self._asked:
                self._asked[predicate][target] = None
            else:
                self._asked[predicate] = {target: None}
                if self._index is not None:
                    self._enter(self._index, predicate)
                elif len(self._asked) >= FEW:
                    self._build()

    def remove(self, target: Target, predicate: Expression | None) -> None:
        with self._lock:
            if predicate is None:
                self.always.pop(target, None)
                return
            targets = self._asked.get(predicate, {})
            targets.pop(target, None)
            if not targets and self._asked.pop(predicate, None) is not None:
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
                found = [targets for each, targets in self._asked.items() if holds(each, scope)]
            return [target for targets in found for target in targets]

    def _build(self) -> None:
        from ensue.lang.matching.index import PredicateIndex

        index = PredicateIndex()
        for predicate in self._asked:
            self._enter(index, predicate)
        # The compiled loops are loaded now, and not with the first event.
        index.match(Event("", "", "", 0))
        self._index = index

    def _enter(self, index: PredicateIndex, predicate: Expression) -> None:
        number = self._numbers[predicate] = self._next_number
        self._next_number += 1
        self._by_number[number] = self._asked[predicate]
        index.add(number, predicate)
