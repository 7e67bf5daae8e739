"""The syntax tree of a CESQL expression.

Chains are flat, so that an expression of ten thousand terms is no deeper than one of two:
`a + b - c` is `Arithmetic(a, (("+", b), ("-", c)))`, read from the left; `a AND b OR c` is
`Logic((a, b, c), ("AND", "OR"))`, which CESQL reads from the right: `a AND (b OR c)`. The nodes of
history, ontologies and bags stand in `terms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ensue.lang.expressions.terms import Term
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
    operand: Expression
    pattern: str
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


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
    """A function; its name is kept in upper case, for case does not matter."""

    function: str
    arguments: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


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
