"""Terms of a predicate that ask more than one publication's own values.

Temporal terms (`After`, `Before`, `During`, `Compared`, `Related`) ask the publications that a
history has stored; concept terms (`IsA`, `Subsumes`, `SameAs`, `OntologyProperty`) ask an ontology;
`Has` asks a bag, a sequence in the publication's own data. Every node is immutable, hashable and
compares by meaning. What a term means is told where it is asked: `evaluation` for `Has`, a history
or an ontology for the others, reached through `scopes.Answering`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from ensue.lang.source import NOWHERE, Span

if TYPE_CHECKING:
    from ensue.lang.expressions import tree

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


# --- temporal terms ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class After:
    """`start AFTER(10 s, 3 TIMES) (filter)`: at least `times` stored Y end before the reference.

    `limit` is in microseconds: Y ended at most so long before; None, written `start AFTER (...)`,
    lets any time pass.
    """

    reference: Reference
    limit: int | None
    filter: tree.Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Before:
    """`end BEFORE(10 s) (filter)`: at least `times` stored Y start after the reference.

    `limit` is in microseconds: Y starts at most so long after; None lets any time pass.
    """

    reference: Reference
    limit: int | None
    filter: tree.Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class During:
    """`start DURING (filter)`: the reference lies between the start and the end of a stored Y.

    Both ends belong to Y; a Y without an end goes on. At least `times` of them.
    """

    reference: Reference
    filter: tree.Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compared:
    """`name FILTER(op, limit) (filter)`: X's value of `name` stands in `op` to a stored Y's value.

    `operator` is a comparison of CESQL or one of `CONCEPT_TESTS`. Y is one of the `limit` latest
    stored publications, by arrival, that match the filter; any of them where `limit` is None.
    """

    name: tree.Name
    operator: str
    limit: int | None
    filter: tree.Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Related:
    """`OVERLAPS (filter)`: the interval of X stands in a relation of Allen to that of a stored Y.

    With a reference (`start MEETS (filter)`), the instant at that end of X takes the place of X.
    `reference AFTER`, `BEFORE` and `DURING` are the operators of those names, not relations.
    """

    relation: str
    filter: tree.Expression
    reference: Reference | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- concept terms -----------------------------------------------------------------------------


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
class IsA:
    """`name IS_A concept`: the value is that concept, an equivalent or a more specific one."""

    name: tree.Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subsumes:
    """`name SUBSUMES concept`: the value is that concept, an equivalent or a less specific one."""

    name: tree.Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SameAs:
    """`name SAME_AS concept`: the value is that concept or an equivalent one."""

    name: tree.Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OntologyProperty:
    """`ONTPROP<property>(name) operator concept`: some value of the property stands in `operator`.

    The property is read at the concept that is the value of `name`. `operator` is one of
    `CONCEPT_TESTS`, or a comparison: of concepts only `=` and `!=`, of constants any.
    """

    property: str
    name: tree.Name
    operator: str
    concept: Concept | ConceptBag | tree.Literal
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


@dataclass(frozen=True, slots=True)
class BoundTerm:
    """A concept term that is bound to an ontology. It reads and prints as the term."""

    term: IsA | Subsumes | SameAs | OntologyProperty
    test: ValueTest = field(repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> tree.Name:
        return self.term.name


# --- bags --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Has:
    """`name HAS ALL ('a', 'b')`: a test of a sequence in the data; a single value is one of one."""

    name: tree.Name
    quantifier: Quantifier
    options: tuple[tree.Literal, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


TemporalTerm = After | Before | During | Compared | Related
ConceptTerm = IsA | Subsumes | SameAs | OntologyProperty
Term = TemporalTerm | ConceptTerm | BoundTerm | Has
