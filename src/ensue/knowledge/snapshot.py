"""An ontology as it stands at one moment: names, codes, what is below what, and properties.

In comes what the files say, out come sets of codes, one for each question that a filter can ask of
a value. A snapshot never changes; an ontology that is read again makes a new one and puts it in
the place of the old (`ontology`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from rdflib.term import Node

from ensue.errors import OntologyError
from ensue.knowledge.classification import Classification, classify
from ensue.knowledge.codes import UNKNOWN, CodeSet
from ensue.knowledge.names import Names
from ensue.knowledge.reasoning import entailed
from ensue.knowledge.relations import Relations
from ensue.knowledge.sources import Reading
from ensue.knowledge.vocabulary import STANDARD_PREFIXES, VOCABULARIES

Constant = bool | int | float | str | datetime

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Snapshot:
    """`version` counts the readings of one ontology, from 1."""

    def __init__(self, reading: Reading, version: int) -> None:
        reading.declare({p: n for p, n in STANDARD_PREFIXES.items() if p not in reading.prefixes})
        self.version = version
        self.prefixes = {prefix: tuple(spaces) for prefix, spaces in reading.prefixes.items()}
        facts = entailed(reading.graph, Names((), self.prefixes).shown)
        classified: Classification = classify(facts)
        self._below, self._above = classified.below, classified.above
        self._same = classified.same
        self.concepts = tuple(str(each) for each in classified.concepts)
        self.names = Names(self.concepts, self.prefixes)
        codes: dict[Node, int] = {concept: code for code, concept in enumerate(classified.concepts)}
        self._relations = Relations(facts, codes)

    def below(self, code: int) -> CodeSet:
        """The concepts that are this one, equivalent, or more specific."""
        return self._below[code]

    def above(self, code: int) -> CodeSet:
        """The concepts that are this one, equivalent, or less specific."""
        return self._above[code]

    def same(self, code: int) -> CodeSet:
        """The concepts that are this one or equivalent."""
        return self._same[code]

    def passing(self, test: str, code: int) -> CodeSet:
        """The concepts x for which `x test concept` holds; the tests are those of filters."""
        match test:
            case "IS_A":
                return self.below(code)
            case "SUBSUMES":
                return self.above(code)
            case "SAME_AS" | "=":
                return self.same(code)
        raise AssertionError(test)

    def is_built_in(self, code: int) -> bool:
        """Whether the concept is `owl:Thing` or `owl:Nothing`."""
        return self.concepts[code].startswith(VOCABULARIES)

    def property_code(self, name: str) -> int:
        """Raises `OntologyError` for a name that is unknown, ambiguous or no property."""
        properties = self._relations.properties
        code = self.names.find(name, "property", properties)
        if code not in properties:
            raise OntologyError(
                [f"`{name}` is no property: nothing declares it as one, and nothing has it"]
            )
        return code

    def with_concept(self, of_property: int, test: str, code: int) -> CodeSet:
        """The concepts that have a value of the property that passes a test."""
        if test == "!=":
            return self._relations.having_other(of_property, self.same(code))
        return self._relations.having(of_property, self.passing(test, code))

    def with_constant(self, of_property: int, comparison: str, constant: Constant) -> CodeSet:
        """The concepts that have a constant of the property that compares so."""
        order = _ORDERS[comparison]
        kind = _kind(constant)
        return self._relations.having_constant(
            of_property, lambda value: _kind(value) is kind and order(value, constant)
        )

    def values(self, of_property: int, owner: int) -> list[int]:
        return self._relations.values(of_property, owner)

    def is_a(self, narrow: int, wide: int) -> bool:
        return UNKNOWN not in (narrow, wide) and narrow in self._below[wide]

    def is_same(self, one: int, other: int) -> bool:
        return UNKNOWN not in (one, other) and one in self._same[other]


def _kind(value: object) -> type:
    """Values of different kinds do not compare; integers and reals are of one."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
