"""Which filters of a link may cover a filter, or be covered by it, without comparing each.

Every filter has witnesses where some are found: publications that it matches. A filter that covers
another matches the other's witnesses. So the filters that may cover a new one are the filters that
match its witnesses, which an index finds; where very many match each of them, as with wide ranges,
the boxes of their numbers tell which match all. Filters that a new one may cover are found by their
witnesses: by a value that it asks for, by how a text begins, and by their numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal

from ensue.brokers.boxes import Boxes
from ensue.brokers.covering import Covering
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.tree import Comparison, Expression, Like, Name
from ensue.lang.expressions.tree import Literal as Constant
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.lang.matching.patterns import shape_of
from ensue.subscriptions import Filter, Index
from ensue.subscriptions.implying import conjuncts_of

Parts = tuple[str, ...]
Kind = Literal["text", "number", "other"]
KINDS: tuple[Kind, ...] = ("text", "number", "other")
FEW = 64
"""As many filters are asked one by one."""


class CandidateFilters:
    """Filters with their witnesses, in the order in which they were added."""

    def __init__(self, covering: Covering) -> None:
        self._covering = covering
        self._witnesses: dict[Filter, tuple[Event, ...]] = {}
        self._index = Index(ontology=covering.ontology)
        self._unindexed: dict[Filter, None] = {}
        self._without_witness: dict[Filter, None] = {}
        self._by_value: dict[tuple[Parts, Kind], dict[Hashable, dict[Filter, None]]] = {}
        self._texts: dict[Parts, list[str]] = {}
        self._boxes = Boxes()
        self._many_match = False

    def add(self, added: Filter) -> None:
        witnesses = self._witnesses[added] = self._covering.witnesses(added)
        if not witnesses:
            self._without_witness[added] = None
        try:
            self._index.add(added, added)
        except UsageError:
            # It asks for concepts that are not known here.
            self._unindexed[added] = None
        self._boxes.add(added, witnesses)
        for place, value in _values(added, witnesses):
            values = self._by_value.setdefault(place, {})
            if isinstance(value, str) and value not in values:
                insort(self._texts.setdefault(place[0], []), value)
            values.setdefault(value, {})[added] = None

    def remove(self, removed: Filter) -> None:
        witnesses = self._witnesses.pop(removed)
        self._without_witness.pop(removed, None)
        self._boxes.remove(removed)
        if removed in self._unindexed:
            del self._unindexed[removed]
        else:
            self._index.remove(removed)
        for place, value in _values(removed, witnesses):
            values = self._by_value[place]
            del values[value][removed]
            if not values[value]:
                del values[value]
                if isinstance(value, str):
                    texts = self._texts[place[0]]
                    del texts[bisect_left(texts, value)]
            if not values:
                del self._by_value[place]
                self._texts.pop(place[0] if place[1] == "text" else (), None)

    def that_may_cover(self, wanted: Filter) -> Iterable[Filter]:
        witnesses = self._covering.witnesses(wanted)
        if not witnesses:
            return list(self._witnesses)
        if self._many_match:
            found = self._boxes.containing(witnesses)
            if len(found) <= FEW:
                return [each for each in found if self._may_match_all(each, witnesses)]
        first, *others = [dict.fromkeys(self._index.match(each)) for each in witnesses]
        self._many_match = len(first) > FEW
        found = [each for each in first if all(each in other for other in others)]
        return [*found, *self._unindexed]

    def that_may_be_covered_by(self, wanted: Filter) -> list[Filter]:
        groups = self._with_value(wanted)
        found: Iterable[Filter] | None = None
        if _size(groups) > FEW:
            found = self._boxes.inside(wanted.expression)
        if found is None:
            found = {each: None for group in groups for each in group}
        return [each for each in found if self._may_match_all(wanted, self._witnesses[each])]

    def _may_match_all(self, filter_: Filter, witnesses: Iterable[Event]) -> bool:
        if filter_ in self._unindexed:
            return True
        return all(self._covering.may_match(filter_, event) for event in witnesses)

    def _with_value(self, wanted: Filter) -> list[dict[Filter, Any]]:
        """Groups of filters whose first witness has a value that is asked for; all if none is."""
        fewest: list[dict[Filter, Any]] = [self._witnesses]
        for name, kind, values in self._asked_values(wanted):
            groups: list[dict[Filter, Any]] = [self._without_witness]
            groups += [self._by_value[name, kind][value] for value in values]
            # By CESQL's casts, a value of another kind may be equal.
            for other in KINDS:
                if other != kind:
                    groups += self._by_value.get((name, other), {}).values()
            fewest = min(fewest, groups, key=_size)
        return fewest

    def _asked_values(self, wanted: Filter) -> Iterator[tuple[Parts, Kind, list[Hashable]]]:
        """For each name that must have one of some values: which of these witnesses have."""
        for each in conjuncts_of(wanted.expression):
            if (equal := _equality_in(each)) is not None:
                name, value = equal
                kind = _kind(value)
                known = self._by_value.get((name, kind), {})
                yield name, kind, [value] if value in known else []
            elif isinstance(each, Like) and isinstance(each.operand, Name) and not each.negated:
                name = each.operand.parts
                yield name, "text", list(_matching(each.pattern, self._texts.get(name, [])))


def _size(groups: Iterable[dict[Filter, Any]]) -> int:
    return sum(map(len, groups))


def _matching(pattern: str, texts: Sequence[str]) -> Iterable[str]:
    """The texts, of a sorted list, that may match a pattern of LIKE."""
    shape = shape_of(pattern)
    start = shape.prefix if shape.exact is None else shape.exact
    begin = bisect_left(texts, start)
    stop = bisect_right(texts, start, lo=begin, key=lambda text: text[: len(start)])
    # How a text begins is found by the order; what else stands in it is looked for.
    return (each for each in texts[begin:stop] if shape.suffix in each and shape.inner in each)


def _values(
    filter_: Filter, witnesses: tuple[Event, ...]
) -> Iterator[tuple[tuple[Parts, Kind], Hashable]]:
    """The names that a filter asks about, each with its value in the first witness."""
    if not witnesses:
        return
    scope = EventScope(witnesses[0])
    for name in dict.fromkeys(names_in(filter_.expression)):
        value: Any = scope.lookup(name)
        if value is not MISSING:
            kind = _kind(value)
            yield (name, kind), None if kind == "other" else value


def _kind(value: object) -> Kind:
    if isinstance(value, str):
        return "text"
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < EXACT_IN_DOUBLES
    ):
        return "number"
    return "other"


def _equality_in(predicate: Expression) -> tuple[Parts, str | float] | None:
    """A name that must equal a constant for a comparison to hold; None if there is none."""
    if not isinstance(predicate, Comparison) or len(predicate.rest) != 1:
        return None
    left, (operator, right) = predicate.first, predicate.rest[0]
    if isinstance(left, Constant):
        left, right = right, left
    if operator != "=" or not isinstance(left, Name) or not isinstance(right, Constant):
        return None
    value = right.value
    return None if _kind(value) == "other" else (left.parts, value)  # type: ignore[return-value]
