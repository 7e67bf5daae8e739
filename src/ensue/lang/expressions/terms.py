"""Words and operands of terms: what a term of `tree` is made of, besides expressions.

Temporal terms have a reference and the relations of Allen; concept terms have concepts as they were
written, and bags of them. `ValueTest` is what an ontology makes of a concept term, and `TextSets`
is such a test without the ontology. The terms themselves are nodes of `tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from ensue.lang.source import NOWHERE, Span

Reference = Literal["start", "end"]
"""The point of the publication that a temporal term compares."""

Quantifier = Literal["ANY", "ALL", "ONLY"]
"""ANY: some value meets some option. ALL: each option is met by some value. ONLY: there is a
value, and each value meets some option."""

REFERENCES: Final = ("start", "end")
RELATIONS: Final = (
    *("BEFORE", "AFTER", "MEETS", "MET_BY", "OVERLAPS", "OVERLAPPED_BY", "STARTS", "STARTED_BY"),
    *("DURING", "CONTAINS", "FINISHES", "FINISHED_BY", "EQUALS"),
)
"""The thirteen relations of Allen, in the words of the language."""

CONCEPT_TESTS: Final = ("IS_A", "SUBSUMES", "SAME_AS")


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept as it was written: `Red`, `wine:Red`, or an IRI in quotes."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConceptBag:
    """`ANY (Red, wine:White)`; the quantifier is ANY where none is written."""

    quantifier: Quantifier
    concepts: tuple[Concept, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextSets:
    """A concept term as sets of texts, in every spelling, as an ontology has them at a moment.

    A bag passes if each set of `needs` has one of its values, no value is outside of `only`, and
    none is in `never`.
    """

    needs: tuple[frozenset[str], ...]
    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()

    @property
    def singly(self) -> frozenset[str]:
        """The texts that pass by themselves."""
        first, *others = self.needs
        passing = first.intersection(*others) - self.never
        return passing if self.only is None else passing & self.only


class ValueTest(Protocol):
    """What an ontology makes of a concept term: a test of one value, by its code."""

    def holds(self, value: Any) -> bool:
        """Whether a value, or a bag of values, passes. Of any kind; what names nothing does not."""

    def texts(self) -> TextSets:
        """The test without the ontology, as it stands now."""
