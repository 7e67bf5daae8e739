"""Terms of histories, ontologies and bags as Python values.

    b.start.after("10 s", b.attr("level") == "error", times=3)
    b.related("OVERLAPS", "type = 'outage'")
    b.is_a("wine", "wine:Red", "wine:White")
    b.has("tags", "ALL", "urgent", "paid")

Each function returns a `Value`, which `&`, `|` and `~` combine with others. A filter inside a term
is a `Value` or CESQL text.
"""

from __future__ import annotations

import re
from typing import Any, cast

from ensue.errors import UsageError
from ensue.lang.building.built import Length, count, duration, plain_text
from ensue.lang.building.values import Constant, Value, attr, predicate
from ensue.lang.expressions import tree
from ensue.lang.expressions.terms import (
    CONCEPT_TESTS,
    RELATIONS,
    Concept,
    ConceptBag,
    Quantifier,
    Reference,
)
from ensue.lang.expressions.text.term_reading import LARGEST_COUNT
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    During,
    Has,
    IsA,
    Name,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
)

Inner = str | bool | Value

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_QUANTIFIERS = ("ANY", "ALL", "ONLY")


class Point:
    """The start or the end of a publication, for comparison with stored publications."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def __repr__(self) -> str:
        return self._reference

    def after(self, limit: Length | None, filtered: Inner, times: int = 1) -> Value:
        return self._passed(After, limit, filtered, times)

    def before(self, limit: Length | None, filtered: Inner, times: int = 1) -> Value:
        return self._passed(Before, limit, filtered, times)

    def during(self, filtered: Inner, times: int = 1) -> Value:
        return Value(During(self._reference, predicate(filtered).node, _count(times)))

    def related(self, relation: str, filtered: Inner) -> Value:
        word = _one_of(relation, RELATIONS, "a relation")
        if word in ("AFTER", "BEFORE", "DURING"):
            raise UsageError(
                f"`{self._reference} {word}` is an operator of its own: "
                f"use `.{word.lower()}(...)` in place of `.related(...)`"
            )
        return Value(Related(word, predicate(filtered).node, self._reference))

    def _passed(
        self, kind: type[After | Before], limit: Length | None, filtered: Inner, times: int
    ) -> Value:
        length = None if limit is None else duration(limit)
        microseconds = None if length is None else length.microseconds
        name = None if length is None or length.parameter is None else Name((length.parameter,))
        node = predicate(filtered).node
        return Value(kind(self._reference, microseconds, node, _count(times), parameter=name))


start = Point("start")
end = Point("end")


def related(relation: str, filtered: Inner) -> Value:
    """A relation of Allen between the publication's interval and that of a stored one."""
    word = _one_of(relation, RELATIONS, "a relation")
    return Value(Related(word, predicate(filtered).node))


def compared(name: str, operator: str, filtered: Inner, limit: int | None = None) -> Value:
    """`name FILTER(operator, limit) (filtered)`."""
    sign = _one_of(operator, (*_COMPARISONS, *CONCEPT_TESTS), "an operator")
    latest = None if limit is None else _count(limit)
    return Value(Compared(_name(name), sign, latest, predicate(filtered).node))


def is_a(name: str, *concepts: str, quantifier: str = "ANY") -> Value:
    return Value(IsA(_name(name), _concepts(concepts, quantifier)))


def subsumes(name: str, *concepts: str, quantifier: str = "ANY") -> Value:
    return Value(Subsumes(_name(name), _concepts(concepts, quantifier)))


def same_as(name: str, *concepts: str, quantifier: str = "ANY") -> Value:
    return Value(SameAs(_name(name), _concepts(concepts, quantifier)))


def ontology_property(
    prop: str, name: str, operator: str, *concepts: str, quantifier: str = "ANY"
) -> Value:
    """`ONTPROP<prop>(name) operator concepts`. For a constant see `property_value`."""
    tests = CONCEPT_TESTS if len(concepts) != 1 else ("=", "!=", *CONCEPT_TESTS)
    sign = _one_of(operator, tests, "an operator")
    asked = _concepts(concepts, quantifier)
    if sign in ("=", "!=") and not _is_bare(asked):
        raise UsageError("an IRI is compared by `SAME_AS`: behind `=` it would be a text")
    return Value(OntologyProperty(_property(prop), _name(name), sign, asked))


def property_value(prop: str, name: str, operator: str, constant: Constant) -> Value:
    """`ONTPROP<prop>(name) operator constant`."""
    sign = _one_of(operator, _COMPARISONS, "an operator")
    return Value(OntologyProperty(_property(prop), _name(name), sign, tree.Literal(constant)))


def has(name: str, quantifier: str, *options: Constant) -> Value:
    """`name HAS quantifier (options)`: a test of a sequence."""
    if not options:
        raise UsageError("at least one value must be given to choose from")
    word = cast(Quantifier, _one_of(quantifier, _QUANTIFIERS, "a quantifier"))
    return Value(Has(_name(name), word, tuple(tree.Literal(each) for each in options)))


def _name(name: str) -> tree.Name:
    return cast(tree.Name, attr(name).node)


def _one_of(given: str, allowed: tuple[str, ...], what: str) -> str:
    word = plain_text(given, what).upper()
    if word not in allowed:
        raise UsageError(f"`{given}` is not {what}: give one of {', '.join(allowed)}")
    return word


def _count(given: Any) -> int:
    return count(given, "the count", LARGEST_COUNT)


def _concepts(concepts: tuple[str, ...], quantifier: str) -> Concept | ConceptBag:
    if not concepts:
        raise UsageError("at least one concept must be given")
    word = cast(Quantifier, _one_of(quantifier, _QUANTIFIERS, "a quantifier"))
    named = tuple(Concept(plain_text(each, "a concept")) for each in concepts)
    return named[0] if len(named) == 1 and word == "ANY" else ConceptBag(word, named)


def _is_bare(concept: Concept | ConceptBag) -> bool:
    pattern = r"([A-Za-z_][A-Za-z0-9_.-]*:[A-Za-z_][A-Za-z0-9_-]*|[A-Za-z_][A-Za-z0-9_]*)"
    return isinstance(concept, Concept) and re.fullmatch(pattern, concept.text) is not None


def _property(prop: str) -> str:
    text = plain_text(prop, "a property")
    if not re.fullmatch(r"[^<>\s\"']+", text):
        raise UsageError(f"`{prop}` is no property: give a name, `prefix:name` or an IRI")
    return text
