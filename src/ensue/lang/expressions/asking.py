"""The interfaces of a history and of an ontology, and the scope in which terms ask them.

`ensue.history` and `ensue.knowledge` implement the two protocols. A history answers a temporal term
as a whole. An ontology answers tests of two concepts by their codes; the rules for bags, properties
and unknown values are the same for every ontology and stand in `concept_holds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ensue.events.event import Event
from ensue.lang.expressions.comparing import quantified, stands_in
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    ConceptTerm,
    During,
    IsA,
    Literal,
    OntologyProperty,
    Related,
    SameAs,
    TemporalTerm,
)


class TemporalStore(Protocol):
    """A store of publications that answers temporal terms."""

    def holds(self, term: TemporalTerm, publication: Event) -> bool | None:
        """Whether a term holds for a publication, over all stored publications but itself.

        None if the publication lacks what the term refers to, such as the end of an open interval.
        """


class Ontology(Protocol):
    """Classified concepts. Every concept has a code, and tests compare the codes of two concepts.

    A text names a concept as users write it: `Red`, `wine:Red` or a full IRI.
    """

    @property
    def generation(self) -> int:
        """A number that changes with every change of the ontology, codes included."""

    def code(self, text: str) -> int | None:
        """The code of a concept (class or individual), or None for a text that names none."""

    def test(self, word: str, left: int, right: int) -> bool:
        """Whether `left IS_A right`, `left SUBSUMES right` or `left SAME_AS right`."""

    def above(self, code: int) -> Sequence[int]:
        """All concepts that this one IS_A: itself, equivalent and less specific ones."""

    def related(self, prop: str, code: int) -> Sequence[int]:
        """The concepts that a property, by its text, has as values at a concept."""

    def constants(self, prop: str, code: int) -> Sequence[Any]:
        """The literal values of a property at a concept, as Python has them."""

    def knows_property(self, prop: str) -> bool:
        """Whether a text names a property."""

    def advice(self, text: str) -> str:
        """The advice, for a message, in place of a text that names no concept."""


def as_it_stands(ontology: Ontology | None) -> Ontology | None:
    """The ontology fixed for several questions: its present `snapshot`, if it makes snapshots."""
    return getattr(ontology, "snapshot", ontology)


@dataclass(frozen=True, slots=True)
class AskingScope:
    """One publication, with a history and an ontology where there are any."""

    event: Event
    history: TemporalStore | None = None
    ontology: Ontology | None = None

    def lookup(self, parts: tuple[str, ...]) -> Any:
        return EventScope(self.event).lookup(parts)

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        if isinstance(term, After | Before | During | Compared | Related):
            return None if self.history is None else self.history.holds(term, self.event)
        ontology = as_it_stands(self.ontology)
        if ontology is None:
            return None
        return concept_holds(term, self.lookup(term.name.parts), ontology)


def concept_holds(term: ConceptTerm, value: Any, ontology: Ontology) -> bool:
    """Whether a concept term holds for a value.

    A sequence is a bag of values. No test holds for a value that is missing or names no concept,
    nor for a concept that the ontology does not know.
    """
    codes = _codes(_bag(value), ontology)
    if not isinstance(term, OntologyProperty):
        word = "IS_A" if isinstance(term, IsA) else "SAME_AS"
        word = word if isinstance(term, IsA | SameAs) else "SUBSUMES"
        return _meets(word, codes, term.concept, ontology)
    known = [each for each in codes if each is not None]
    if isinstance(term.concept, Literal):
        constants = (each for code in known for each in ontology.constants(term.property, code))
        asked = term.concept.value
        return any(stands_in(term.operator, each, asked) for each in constants)
    objects = [each for code in known for each in ontology.related(term.property, code)]
    return _meets(term.operator, objects, term.concept, ontology)


def _meets(
    word: str, codes: Sequence[int | None], concept: Concept | ConceptBag, ontology: Ontology
) -> bool:
    bag = concept if isinstance(concept, ConceptBag) else ConceptBag("ANY", (concept,))
    options = _codes((each.text for each in bag.concepts), ontology)

    def is_met(value: int | None, option: int | None) -> bool:
        if value is None or option is None:
            return False
        if word == "!=":
            return not ontology.test("SAME_AS", value, option)
        return ontology.test("SAME_AS" if word == "=" else word, value, option)

    return quantified(bag.quantifier, codes, options, is_met)


def _bag(value: Any) -> Sequence[Any]:
    if value is MISSING:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _codes(texts: Iterable[Any], ontology: Ontology) -> list[int | None]:
    return [ontology.code(each) if isinstance(each, str) else None for each in texts]
