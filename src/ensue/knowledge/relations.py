"""What concepts have by their properties.

In come closed facts and the codes of concepts; for a property and a test of its values, out goes
the set of concepts that have such a value. A value is a concept or a constant.

A class has, besides its own statements, what every member of it has: the value of an `owl:hasValue`
and the class of an `owl:someValuesFrom` above it, also by a wider property, and through a
transitive one. So `IfDown` with `rdfs:subClassOf [ owl:onProperty :causes ; owl:someValuesFrom
:LinkDown ]` has `LinkDown` as a value of `causes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from rdflib.term import Literal, Node

from ensue.knowledge.codes import CodeSet
from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.reasoning.vocabulary import (
    DOMAIN,
    HAS_VALUE,
    ON_PROPERTY,
    PROPERTY,
    RANGE,
    SOME_VALUES,
    SUB_CLASS,
    SUB_PROPERTY,
    TRANSITIVE,
    TYPE,
    VOCABULARIES,
)


class Relations:
    """For each property, by its code: which concepts have which values."""

    def __init__(self, facts: Triples, codes: Mapping[Node, int]) -> None:
        self._concepts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._constants: dict[int, dict[tuple[type, object], set[int]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self._owners: dict[int, set[int]] = defaultdict(set)
        for predicate in facts.predicates:
            if predicate in codes:
                for owner, value in facts.pairs(predicate):
                    if owner in codes:
                        self._add(codes[owner], codes[predicate], value, codes)
        self._add_those_of_classes(facts, codes)
        self.properties = frozenset(
            {*self._owners, *(codes[each] for each in _declared(facts) if each in codes)}
        )

    def having(self, of_property: int, values: CodeSet) -> CodeSet:
        """The concepts that have a value of the property among these concepts."""
        by_value = self._concepts.get(of_property, {})
        return CodeSet.of(
            owner for value, owners in by_value.items() if value in values for owner in owners
        )

    def all_values(self, of_property: int) -> CodeSet:
        """The concepts that are a value of the property."""
        return CodeSet.of(self._concepts.get(of_property, {}))

    def having_constant(self, of_property: int, test: Callable[[object], bool]) -> CodeSet:
        """The concepts that have a constant as a value of the property that passes a test."""
        by_value = self._constants.get(of_property, {})
        return CodeSet.of(
            owner for (_, value), owners in by_value.items() if test(value) for owner in owners
        )

    def values(self, of_property: int, owner: int) -> list[int]:
        """The concepts that one concept has as values of the property."""
        by_value = self._concepts.get(of_property, {})
        return sorted(value for value, owners in by_value.items() if owner in owners)

    def constants(self, of_property: int, owner: int) -> list[object]:
        """The constants that one concept has as values of the property."""
        by_value = self._constants.get(of_property, {})
        return [value for (_, value), owners in by_value.items() if owner in owners]

    def _add(self, owner: int, of_property: int, value: Node, codes: Mapping[Node, int]) -> bool:
        if isinstance(value, Literal):
            constant = _constant(value)
            owners = self._constants[of_property][type(constant), constant]
        elif value in codes:
            owners = self._concepts[of_property][codes[value]]
        else:
            return False
        self._owners[of_property].add(owner)
        is_new = owner not in owners
        owners.add(owner)
        return is_new

    def _add_those_of_classes(self, facts: Triples, codes: Mapping[Node, int]) -> None:
        transitive = {codes[each] for each in facts.members(TRANSITIVE) if each in codes}
        changed = set()
        for owner, on_property, value in _inherited(facts):
            for each in {on_property, *facts.objects(on_property, SUB_PROPERTY)}:
                known = owner in codes and each in codes
                if known and self._add(codes[owner], codes[each], value, codes):
                    changed.add(codes[each])
        for of_property in changed & transitive:
            self._close(of_property)

    def _close(self, of_property: int) -> None:
        by_value = self._concepts[of_property]
        for value in list(by_value):
            reached, waiting = set(by_value[value]), list(by_value[value])
            while waiting:
                further = by_value.get(waiting.pop(), set()) - reached
                reached |= further
                waiting += further
            by_value[value] = reached


def _constant(literal: Literal) -> object:
    """A literal as a value that filters compare; one of another kind as its text."""
    value = literal.toPython()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value if isinstance(value, bool | int | float) else str(literal)


def _inherited(facts: Triples) -> Iterator[tuple[Node, Node, Node]]:
    """Class, property and value of every restriction above a class."""
    for kind in (HAS_VALUE, SOME_VALUES):
        for restriction, value in facts.pairs(kind):
            for on_property in facts.objects(restriction, ON_PROPERTY):
                for narrower in {restriction, *facts.subjects(SUB_CLASS, restriction)}:
                    yield narrower, on_property, value


def _declared(facts: Triples) -> set[Node]:
    """Properties that are declared, used or not."""
    kinds = {
        kind
        for _, kind in facts.pairs(TYPE)
        if str(kind).startswith(VOCABULARIES) and str(kind).endswith("Property")
    }
    found = {each for kind in {*kinds, PROPERTY} for each in facts.members(kind)}
    for predicate in (SUB_PROPERTY, DOMAIN, RANGE):
        found |= facts.by_subject(predicate).keys()
    return found | {wide for _, wide in facts.pairs(SUB_PROPERTY)}
