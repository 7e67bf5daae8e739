"""The syntax tree of a CESQL expression.

Chains are flat, so that an expression of ten thousand terms is no deeper than one of two:
`a + b - c` is `Arithmetic(a, (("+", b), ("-", c)))`, read from the left; `a AND b OR c` is
`Logic((a, b, c), ("AND", "OR"))`, which CESQL reads from the right: `a AND (b OR c)`.

Terms need more than the values of the publication. Temporal terms (`After`, `Before`, `During`,
`Compared`, `Related`) ask the publications in a history; concept terms (`IsA`, `Subsumes`,
`SameAs`, `OntologyProperty`) ask an ontology; `Has` tests a bag, a sequence in the data. `Has` is
computed in `evaluation`, the others by a history or an ontology, through `scopes.AnsweringScope`.
Every node is immutable, hashable and compares by its content, without its place in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ensue.lang.expressions.terms import Concept, ConceptBag, Quantifier, Reference, ValueTest
from ensue.lang.source import NOWHERE, Span

Value = bool | int | float | str | datetime


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Booleans, integers, reals, strings and timestamps are told apart by type."""

    value: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    # 1, 1.0 and TRUE are equal in Python and are three different literals here.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and type(other.value) is type(self.value)
            and other.value == self.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Name:
    """A bare or dotted name, as its parts."""

    parts: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def text(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A chain of `*` `/` `%`, or one of `+` `-`, evaluated from the left."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A chain of `=` `!=` `<` `<=` `>` `>=`, evaluated from the left. `<>` is written `!=`."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """A chain of `AND`, `OR` and `XOR`, of one precedence, evaluated from the right."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    """`parameter` is the one that has the pattern, until it has its value."""

    operand: Expression
    pattern: str
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parameter: Name | None = None


@dataclass(frozen=True, slots=True)
class In:
    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    name: Name
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function; its name is in upper case, since case does not matter."""

    function: str
    arguments: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- temporal terms ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class After:
    """`start AFTER(10 s, 3 TIMES) (filter)`: at least `times` stored Y end before the reference.

    `limit` is in microseconds: Y ended at most so long before; None, written `start AFTER (...)`,
    lets any time pass. `parameter` is the one that has it, until it has its value.
    """

    reference: Reference
    limit: int | None
    filter: Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parameter: Name | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """`end BEFORE(10 s) (filter)`: at least `times` stored Y start after the reference.

    `limit` is in microseconds: Y starts at most so long after; None lets any time pass.
    """

    reference: Reference
    limit: int | None
    filter: Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parameter: Name | None = None


@dataclass(frozen=True, slots=True)
class During:
    """`start DURING (filter)`: the reference lies between the start and the end of a stored Y.

    Both ends belong to Y; a Y without an end goes on. At least `times` of them.
    """

    reference: Reference
    filter: Expression
    times: int = 1
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compared:
    """`name FILTER(op, limit) (filter)`: X's value of `name` stands in `op` to a stored Y's value.

    `operator` is a comparison of CESQL or one of `CONCEPT_TESTS`. Y is one of the `limit` latest
    stored publications, by arrival, that match the filter; any of them where `limit` is None.
    """

    name: Name
    operator: str
    limit: int | None
    filter: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Related:
    """`OVERLAPS (filter)`: the interval of X stands in a relation of Allen to that of a stored Y.

    With a reference (`start MEETS (filter)`), the instant at that end of X takes the place of X.
    `reference AFTER`, `BEFORE` and `DURING` are the operators of those names, not relations.
    """

    relation: str
    filter: Expression
    reference: Reference | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- concept terms, and bags -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IsA:
    """`name IS_A concept`: the value is that concept, an equivalent or a more specific one."""

    name: Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subsumes:
    """`name SUBSUMES concept`: the value is that concept, an equivalent or a less specific one."""

    name: Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SameAs:
    """`name SAME_AS concept`: the value is that concept or an equivalent one."""

    name: Name
    concept: Concept | ConceptBag
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OntologyProperty:
    """`ONTPROP<property>(name) operator concept`: some value of the property stands in `operator`.

    The property is read at the concept that is the value of `name`. `operator` is one of
    `CONCEPT_TESTS`, or a comparison: of concepts only `=` and `!=`, of constants any.
    """

    property: str
    name: Name
    operator: str
    concept: Concept | ConceptBag | Literal
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundTerm:
    """A concept term that is bound to an ontology. It reads and prints as the term."""

    term: IsA | Subsumes | SameAs | OntologyProperty
    test: ValueTest = field(repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> Name:
        return self.term.name


@dataclass(frozen=True, slots=True)
class Has:
    """`name HAS ALL ('a', 'b')`: a test of a bag, a sequence in the data or a single value."""

    name: Name
    quantifier: Quantifier
    options: tuple[Literal, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


TemporalTerm = After | Before | During | Compared | Related
ConceptTerm = IsA | Subsumes | SameAs | OntologyProperty
Term = TemporalTerm | ConceptTerm | BoundTerm | Has

Expression = (
    Literal
    | Name
    | Not
    | Negate
    | Arithmetic
    | Comparison
    | Logic
    | Like
    | In
    | Exists
    | Call
    | Term
)
