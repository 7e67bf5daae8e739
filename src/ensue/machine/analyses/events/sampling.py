"""Sample events of a type: a few values of each attribute, combined in all ways.

In come the predicates and keys of correlations; out go `Points`, one for each type: the names that
predicates mention, and values of each that stand for all (`values`, `classes`). A combination of
values is an event, with the predicates that hold for it. `loose` has the predicates that samples do
not decide, with the reason in words. The ports that an event matches are found in `alphabet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from random import Random
from typing import Any

from ensue.events.event import Event
from ensue.events.nesting import nested
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.evaluation import EventScope, Outcome, Scope, evaluate, holds
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.text.printing import print_expression
from ensue.machine.analyses.deadline import UndecidableError
from ensue.machine.analyses.events.classes import Classes, facts_about
from ensue.machine.analyses.events.mentions import (
    CLOCK_AND_IDENTITY,
    Mentions,
    is_plain,
    mentions_in,
)
from ensue.machine.analyses.events.realising import Realising
from ensue.machine.analyses.events.values import ordinary_value, values_of

ALPHABET_EVENTS = 20_000
"""The most combinations of values; past that a sample of them is drawn."""

SAMPLE = 500
"""The size of that sample."""

OTHER_SOURCE = "ensue/any"
SOURCE = ("source",)
FIXED = frozenset({"type", "specversion"})
"""Attributes whose value follows from the declared type, or is always the same."""


@dataclass(frozen=True, slots=True)
class Points:
    """The names that matter on events of a type, and the values of each.

    `told` has the predicates that mention one name only, by their number: the place of that name
    among `names`, and for which of its values the predicate holds.
    """

    type_name: str
    names: list[Parts]
    choices: list[list[Any]]
    told: dict[int, tuple[int, list[bool]]]

    @property
    def size(self) -> int:
        return prod(len(each) for each in self.choices)


@dataclass(frozen=True, slots=True)
class Sample:
    """An event, what names stand for in it, and which predicates hold for it.

    What is worked out from its data may have been given a value instead: then it is not `real`.
    """

    event: Event
    scope: Scope
    holding: list[bool]
    is_real: bool


@dataclass(frozen=True, slots=True)
class GivenScope:
    """The names of an event, some with given values."""

    event: Event
    given: Mapping[Parts, Any]

    def lookup(self, parts: Parts) -> Any:
        if parts in self.given:
            value = self.given[parts]
            return MISSING if value is None else value
        return EventScope(self.event).lookup(parts)


class SampleEvents:
    """Sample events for predicates, over ports with these sources.

    `key_names` has the names in each key; `same_keys` says that all correlations have equal keys.
    """

    def __init__(
        self,
        predicates: Sequence[Expression],
        sources: Sequence[str],
        key_names: Sequence[Sequence[str]],
        same_keys: bool,
        types: TypeSystem,
    ) -> None:
        self._predicates = predicates
        self._key_names = key_names
        self._same_keys = same_keys
        self._types = types
        self._names = [frozenset(names_in(each)) for each in predicates]
        self._mentions = mentions_in(predicates)
        self._mentions.setdefault(SOURCE, Mentions()).constants += sources
        self._declared = {own.name: own.type for each in types for own in each.attributes}
        keys = ((name,) for name in chain(*key_names))
        asked = dict.fromkeys((*chain(*self._names), *keys))
        self.derived = [str(parts[0]) for parts in asked if derived_name(parts) is not None]
        self.loose: dict[Expression, str] = {}
        for predicate in predicates:
            if not is_plain(predicate):
                shown = print_expression(predicate)
                self.loose[predicate] = f"`{shown}` is more than names compared with constants"

    def asks_about(self, name: str) -> bool:
        """Whether some predicate mentions a name."""
        return (name,) in self._mentions

    def check_size(self, largest: int) -> None:
        """Mark all predicates as loose if there are more combinations than the budget allows."""
        if largest > ALPHABET_EVENTS:
            if any((name,) in self._mentions for name in chain(*self._key_names)):
                raise UndecidableError(f"predicates ask about the key in {largest:,} combinations")
            why = f"{largest:,} combinations of values are more than {ALPHABET_EVENTS:,}"
            for predicate in self._predicates:
                self.loose.setdefault(predicate, why)

    def combinations(self, point: Points) -> Iterator[tuple[int, ...]]:
        """The combinations of values, by their places.

        Past the budget these are a sample, which is equal every time and has every source.
        """
        sizes = [range(len(each)) for each in point.choices]
        if point.size <= ALPHABET_EVENTS:
            yield from product(*sizes)
            return
        random = Random(0)
        source = point.names.index(SOURCE)
        for number in range(max(SAMPLE, len(sizes[source]))):
            drawn = [random.choice(each) for each in sizes]
            drawn[source] = number % len(sizes[source])
            yield tuple(drawn)

    def points(self, type_name: str) -> Points:
        point = Points(type_name, [], [], {})
        for parts, mentions in self._asked_of_events().items():
            values, exact = self._values(type_name, parts, mentions)
            if not exact:
                self._loosen(parts, "is compared in ways that a few values cannot show")
            point.names.append(parts)
            point.choices.append(values)
            self._tell_apart(point)
        return point

    def _tell_apart(self, point: Points) -> None:
        """Keep one value of each class of the last name, and add to `told`.

        All values stay where a predicate is not plain, and where it matters whether several
        attributes of a key are equal.
        """
        parts, *_ = point.names[-1:]
        asking = [n for n, names in enumerate(self._names) if parts in names]
        if parts == SOURCE or any(self._predicates[n] in self.loose for n in asking):
            return
        values = [each for each in point.choices[-1] if each is not None]

        def outcome(fact: Expression, value: Any) -> Outcome:
            return evaluate(fact, self._assigned(point.type_name, {parts: value}))

        classes = Classes(values, outcome)
        if self._alike(parts) == 1:
            facts = chain(*(facts_about(parts, self._predicates[n]) for n in asking))
            values = classes.one_of_each(facts)
        point.choices[-1] = [*values, None]
        for number in asking:
            if self._names[number] == {parts}:
                truths = classes.truths(self._predicates[number], values)
                if truths is not None:
                    missing = outcome(self._predicates[number], None)
                    truths.append(missing.value is True and not missing.errors)
                    point.told[number] = (len(point.names) - 1, truths)

    def samples_at(self, point: Points, places: Sequence[int]) -> Iterator[Sample]:
        """An event of these values, and events from which derived attributes get them.

        The first is real if nothing is worked out; all others are.
        """
        chosen = [each[at] for each, at in zip(point.choices, places, strict=True)]
        values = dict(zip(point.names, chosen, strict=True))
        scope = self._assigned(point.type_name, values)
        holding = []
        for number, predicate in enumerate(self._predicates):
            told = point.told.get(number)
            if told is None:
                holding.append(holds(predicate, scope))
            else:
                name, truths = told
                holding.append(truths[places[name]])
        yield Sample(scope.event, scope, holding, is_real=not scope.given)
        if not scope.given:
            return
        plain = {parts: value for parts, value in values.items() if parts not in scope.given}
        realising = Realising(point.type_name, self._types.attributes(point.type_name))
        for data in realising.data_for(scope.given, plain):
            event = self._event(point.type_name, data)
            found = [holds(each, event) for each in self._predicates]
            yield Sample(event, EventScope(event), found, is_real=True)

    def _assigned(self, type_name: str, values: dict[Parts, Any]) -> GivenScope:
        """An event of these values; derived names are given theirs."""
        given = {parts: v for parts, v in values.items() if self._is_derived(type_name, parts)}
        plain = {parts: value for parts, value in values.items() if parts not in given}
        return GivenScope(self._event(type_name, plain), given)

    def _is_derived(self, type_name: str, parts: Parts) -> bool:
        derived = derived_name(parts)
        return derived is not None and type_name in derived.values

    def _values(self, type_name: str, parts: Parts, mentions: Mentions) -> tuple[list[Any], bool]:
        if parts == SOURCE:
            if not mentions.constants and not mentions.patterns:
                return [OTHER_SOURCE], True
            values, exact = values_of(ValueType("string"), mentions)
            return [each for each in values if each] or [OTHER_SOURCE], exact
        declared = self._types.attributes(type_name)
        # Events may have attributes that their type does not declare.
        name = ".".join(parts)
        type_ = declared.get(name, self._declared.get(name))
        if (derived := derived_name(parts)) is not None and type_name in derived.values:
            type_ = derived.values[type_name].type
        if not self._same_keys and len(parts) == 1 and parts[0] in chain(*self._key_names):
            return [ordinary_value(type_) if type_ else "x", None], True
        values, exact = values_of(type_, mentions, self._alike(parts))
        return [*values, None], exact

    def _alike(self, parts: Parts) -> int:
        """The number of values that are needed of each class: attributes of a key may differ."""
        return max((len({*own}) for own in self._key_names if parts[0] in own), default=1)

    def _asked_of_events(self) -> dict[Parts, Mentions]:
        """The mentions of each attribute; those of a key have two values at least."""
        asked = {
            parts: mentions
            for parts, mentions in self._mentions.items()
            if parts[-1].lower() not in FIXED | CLOCK_AND_IDENTITY
        }
        for own in self._key_names:
            mentioned = [self._mentions[name,] for name in own if (name,) in self._mentions]
            together = [constant for each in mentioned for constant in each.constants]
            for name in own:
                is_plain_key = len(set(own)) == 1 and self._same_keys
                if not is_plain_key or (name,) in self._mentions or name in self.derived:
                    asked[name,] = _joined(asked.get((name,)), together)
        return asked

    def _loosen(self, parts: Parts, why: str) -> None:
        for predicate, names in zip(self._predicates, self._names, strict=True):
            if parts in names:
                self.loose.setdefault(predicate, f"`{'.'.join(parts)}` {why}")

    def _event(self, type_name: str, values: dict[Parts, Any]) -> Event:
        declared = self._types.attributes(type_name)
        data: dict[str, Any] = dict(
            nested({name: ordinary_value(each) for name, each in declared.items()})
        )
        keys = {
            name.lower()
            for name in chain(*self._key_names)
            if name not in declared and not self._is_derived(type_name, (name,))
        }
        extensions: dict[str, Any] = dict.fromkeys(keys - {"source", "type"}, "x")
        source = OTHER_SOURCE
        for parts, value in values.items():
            if parts == SOURCE:
                source = value
            elif len(parts) > 1:
                _put(data, parts, value)
            elif parts[0] in declared:
                data[parts[0]] = value
            elif value is None:
                extensions.pop(parts[0].lower(), None)
            elif parts[0] in self._declared:
                data[parts[0]] = value
            else:
                extensions[parts[0].lower()] = value
        return Event("e", source, type_name, 0, data, extensions)


def _joined(one: Mentions | None, constants: list[Any]) -> Mentions:
    if one is None:
        return Mentions(constants)
    return replace(one, constants=[*one.constants, *constants])


def _put(data: dict[str, Any], parts: Parts, value: Any) -> None:
    *path, last = parts
    for part in path:
        inner = data.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        data = inner
    data[last] = value
