"""Contradictions in a condition: comparisons in it that exclude each other.

A condition holds if it is true and its evaluation meets no null and no error. So each comparison
that decides it compares values that exist. What these values must satisfy is a list of
alternatives, each a set of inequalities (`linear`); the condition never holds if no alternative has
a solution. A part that is no arithmetic may be true or false. Known facts are added to each
alternative: the range of aggregates, and what a window and a filter allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

from ensue.lang.expressions import Call, Expression, Literal, Name
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Comparison, In, Logic, Not
from ensue.machine.analyses.conditions.linear import Inequality, core
from ensue.machine.analyses.conditions.terms import (
    Forms,
    KindOf,
    LinearForm,
    comparable,
    difference,
    equatable,
)

MOST_ALTERNATIVES = 64
MOST_INEQUALITIES = 128
"""The most inequalities of an alternative; past that nothing is known."""
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A comparison that always holds, and the reason in words for users."""

    comparison: Expression
    reason: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The comparisons that exclude each other, and the facts that they contradict."""

    parts: tuple[str, ...]
    facts: tuple[str, ...]

    def __str__(self) -> str:
        shown = " and ".join(f"`{each}`" for each in self.parts[:4])
        if self.facts:
            return f"{shown} cannot be: {', and '.join(self.facts)}"
        if len(self.parts) == 1:
            return f"{shown} is never true"
        return f"{shown} exclude each other"


def contradiction_in(
    condition: Expression,
    kind_of: KindOf,
    aggregate_kind: Callable[[Call], str | None] = lambda _: None,
    facts: Iterable[Fact] = (),
) -> Contradiction | None:
    """Why a condition never holds; None if it may hold, or if that is not known."""
    return _ContradictionSearch(Forms(kind_of, aggregate_kind), facts).contradiction(condition)


Alternative = tuple[Inequality, ...]
OPEN: tuple[Alternative, ...] = ((),)
"""One alternative without inequalities: nothing is required."""


class _TooManyError(Exception):
    """There are more alternatives than are examined."""


class _ContradictionSearch:
    """The alternatives of one condition, and the texts of the comparisons they come from."""

    def __init__(self, forms: Forms, facts: Iterable[Fact]) -> None:
        self._forms = forms
        self._facts = list(facts)
        self._sources: list[tuple[str, str | None]] = []

    def contradiction(self, condition: Expression) -> Contradiction | None:
        try:
            alternatives = self._holding(condition, True)
        except _TooManyError:
            return None
        known = list(self._known())
        needed: set[int] = set()
        for alternative in alternatives:
            found = core([*alternative, *known])
            if found is None:
                return None
            needed |= found
        told = [self._sources[number] for number in sorted(needed)]
        parts = dict.fromkeys(text for text, reason in told if reason is None)
        facts = dict.fromkeys(reason for _, reason in told if reason)
        return Contradiction(tuple(parts), tuple(facts)) if parts else None

    def _holding(self, x: Expression, wanted: bool) -> Sequence[Alternative]:
        """The alternatives in which an expression comes out as wanted."""
        match x:
            case Not(operand):
                return self._holding(operand, not wanted)
            case Logic(operands, operators):
                return self._logic(operands, operators, wanted)
            case Comparison(first, ((operator, second),)):
                return self._compared(operator if wanted else OPPOSITE[operator], first, second)
            case Call("BETWEEN", (value, low, high)) if wanted:
                return self._of_all(
                    [self._compared(">=", value, low, x), self._compared("<=", value, high, x)]
                )
            case In(operand, options, negated) if wanted is not negated:
                if len(options) > MOST_ALTERNATIVES:
                    raise _TooManyError
                return [
                    alternative
                    for each in options
                    for alternative in self._compared("=", operand, each, x)
                ]
            case Literal(bool() as value):
                return OPEN if value is wanted else ()
            case Name():
                return self._compared("=", x, Literal(wanted))
            case _:
                return OPEN

    def _logic(
        self, operands: Sequence[Expression], operators: Sequence[str], wanted: bool
    ) -> Sequence[Alternative]:
        if len(operands) > MOST_INEQUALITIES:
            raise _TooManyError
        # Read from the right: `a AND b OR c` is `a AND (b OR c)`.
        *others, rest = [self._both(each) for each in operands]
        for other, operator in zip(others[::-1], operators[::-1], strict=True):
            rest = _joined(operator, other, rest)
        found = rest[wanted]
        if found is None:
            raise _TooManyError
        return found

    def _both(self, x: Expression) -> FalseAndTrue:
        """The alternatives in which an expression is false, and in which it is true."""
        found: list[Sequence[Alternative] | None] = []
        for wanted in (False, True):
            try:
                found.append(self._holding(x, wanted))
            except _TooManyError:
                found.append(None)
        return found[0], found[1]

    def _of_all(self, parts: Sequence[Sequence[Alternative]]) -> Sequence[Alternative]:
        found: Sequence[Alternative] | None = OPEN
        for part in parts:
            found = _all(found, part)
        if found is None:
            raise _TooManyError
        return found

    def _compared(
        self,
        operator: str,
        first: Expression,
        second: Expression,
        written: Expression | None = None,
    ) -> Sequence[Alternative]:
        left, right = self._forms.of(first), self._forms.of(second)
        if left is None or right is None:
            return OPEN
        compares = equatable if operator in ("=", "!=") else comparable
        if not compares(left, right):
            return OPEN
        asked = Comparison(first, ((operator, second),)) if written is None else written
        source = self._source(print_expression(asked))
        return [
            tuple(_inequality(left, right, each, source) for each in way) for way in _WAYS[operator]
        ]

    def _source(self, text: str, reason: str | None = None) -> int:
        self._sources.append((text, reason))
        return len(self._sources) - 1

    def _known(self) -> Iterator[Inequality]:
        """The inequalities that hold in every alternative."""
        for fact in self._facts:
            match fact.comparison:
                case Comparison(first, ((operator, second),)):
                    before = len(self._sources)
                    (alternative,) = self._compared(operator, first, second)
                    if len(self._sources) > before:
                        self._sources[-1] = (self._sources[-1][0], fact.reason)
                    yield from alternative
        # Rounding keeps the order: with a larger constant added, a real is not smaller.
        for unknown, shifts in self._forms.shifted.items():
            ordered = sorted([(Fraction(0), unknown), *shifts.items()])
            for (_, lower), (_, upper) in pairwise(ordered):
                terms = {lower: Fraction(1), upper: Fraction(-1)}
                yield Inequality(terms, Fraction(0), False, frozenset())


_WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "=": (("<=", ">="),),
    "!=": (("<",), (">",)),
    **{each: ((each,),) for each in ("<", "<=", ">", ">=")},
}


def _inequality(left: LinearForm, right: LinearForm, operator: str, source: int) -> Inequality:
    low, high = (left, right) if operator in ("<", "<=") else (right, left)
    terms, constant = difference(low, high)
    found = Inequality(terms, constant, operator in ("<", ">"), frozenset({source}))
    return found.sharpened() if {left.kind, right.kind} == {"integer"} else found


FalseAndTrue = tuple[Sequence[Alternative] | None, Sequence[Alternative] | None]
"""Alternatives for false, and for true; None where there are too many."""


def _joined(operator: str, left: FalseAndTrue, right: FalseAndTrue) -> FalseAndTrue:
    if operator == "AND":
        return _any(left[False], right[False]), _all(left[True], right[True])
    if operator == "OR":
        return _all(left[False], right[False]), _any(left[True], right[True])
    alike = _any(_all(left[True], right[True]), _all(left[False], right[False]))
    differ = _any(_all(left[True], right[False]), _all(left[False], right[True]))
    return alike, differ


def _all(
    left: Sequence[Alternative] | None, right: Sequence[Alternative] | None
) -> Sequence[Alternative] | None:
    if left is None or right is None or len(left) * len(right) > MOST_ALTERNATIVES:
        return None
    joined = [one + other for one, other in product(left, right)]
    return None if any(len(each) > MOST_INEQUALITIES for each in joined) else joined


def _any(
    left: Sequence[Alternative] | None, right: Sequence[Alternative] | None
) -> Sequence[Alternative] | None:
    if left is None or right is None or len(left) + len(right) > MOST_ALTERNATIVES:
        return None
    return [*left, *right]
