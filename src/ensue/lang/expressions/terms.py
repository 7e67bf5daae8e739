"""Words and operands of terms, which are nodes of `tree`.

Temporal terms have a reference and relations of Allen; concept terms have concepts, and bags of
concepts. `ValueTest` is the test that an ontology makes of a concept term, and `TextSets` is such a
test without the ontology.
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
    """A concept term as sets of texts, in every spelling, as of one moment of an ontology.

    A bag passes if each set of `needs` contains one of its values, `only` contains all of them, and
    `never` none.
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
    """The test that an ontology makes of a concept term."""

    def holds(self, value: Any) -> bool:
        """Whether a value, or a bag of values, passes; a value that names no concept does not."""

    def texts(self) -> TextSets:
        """The test without the ontology, as of now."""
