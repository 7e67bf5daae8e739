"""An ontology at one moment: names, codes, the hierarchy of concepts, and properties.

In comes what the files say, out come sets of codes, one for each question that a filter can ask of
a value. A snapshot never changes; an ontology that is read again makes a new one and puts it in
the place of the old (`ontology`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from rdflib.term import Node

from ensue.errors import OntologyError
from ensue.knowledge.classification import Classification, classify
from ensue.knowledge.codes import UNKNOWN, CodeSet
from ensue.knowledge.names import Names
from ensue.knowledge.reasoning.closure import entailed
from ensue.knowledge.reasoning.vocabulary import STANDARD_PREFIXES, VOCABULARIES
from ensue.knowledge.relations import Relations
from ensue.knowledge.sources import ReadTriples
from ensue.lang.expressions.comparing import stands_in

Constant = bool | int | float | str | datetime


class OntologySnapshot:
    """`generation` counts the readings of one ontology, from 1."""

    def __init__(self, reading: ReadTriples, generation: int) -> None:
        reading.declare({p: n for p, n in STANDARD_PREFIXES.items() if p not in reading.prefixes})
        self.generation = generation
        self.prefixes = {prefix: tuple(spaces) for prefix, spaces in reading.prefixes.items()}
        facts = entailed(reading.graph, Names((), self.prefixes).shown)
        classified: Classification = classify(facts)
        self._below, self._above = classified.below, classified.above
        self._same = classified.same
        self.concepts = tuple(str(each) for each in classified.concepts)
        self.names = Names(self.concepts, self.prefixes)
        codes: dict[Node, int] = {concept: code for code, concept in enumerate(classified.concepts)}
        self._relations = Relations(facts, codes)

    def passing(self, test: str, code: int) -> CodeSet:
        """The concepts x for which `x test concept` holds; the tests are those of filters."""
        match test:
            case "IS_A":
                return self._below[code]
            case "SUBSUMES":
                return self._above[code]
            case "SAME_AS" | "=":
                return self._same[code]
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

    def values_passing(self, of_property: int, test: str, code: int) -> CodeSet:
        """The values of a property for which `value test concept` holds, `!=` included."""
        if test == "!=":
            return self._relations.all_values(of_property) - self._same[code]
        return self.passing(test, code)

    def having(self, of_property: int, values: CodeSet) -> CodeSet:
        """The concepts that have one of these as a value of the property."""
        return self._relations.having(of_property, values)

    def with_constant(self, of_property: int, comparison: str, constant: Constant) -> CodeSet:
        """The concepts that have a constant of the property that compares so, as in CESQL."""
        return self._relations.having_constant(
            of_property, lambda value: stands_in(comparison, value, constant)
        )

    @cached_property
    def everything(self) -> CodeSet:
        return CodeSet.of(range(len(self.concepts)))

    # What filters ask, by codes and texts: `ensue.lang.expressions.asking.Ontology`.

    def code(self, text: str) -> int | None:
        """The code of a concept; None for a text that names none, or that is ambiguous."""
        found = self.names.code(text)
        return None if found == UNKNOWN else found

    def test(self, word: str, left: int, right: int) -> bool:
        """Whether `left IS_A right`, `left SUBSUMES right` or `left SAME_AS right`."""
        return left in self.passing(word, right)

    def above(self, code: int) -> Sequence[int]:
        """The concepts that this one IS_A: itself, equivalents, and what is less specific."""
        return tuple(self._above[code])

    def related(self, prop: str, code: int) -> Sequence[int]:
        """The concepts that a concept has as values of a property."""
        found = self.names.code(prop)
        return self._relations.values(found, code) if found in self._relations.properties else ()

    def constants(self, prop: str, code: int) -> Sequence[Any]:
        """The constants that a concept has as values of a property."""
        found = self.names.code(prop)
        return self._relations.constants(found, code) if found in self._relations.properties else ()

    def knows_property(self, prop: str) -> bool:
        return self.names.code(prop) in self._relations.properties

    def advice(self, text: str) -> str:
        """What to write in place of a text that names no concept, or no property."""
        if self.names.code(text) in range(len(self.concepts)):
            return f"`{text}` is a concept, and nothing has it as a property"
        return self.names.advice(text)
