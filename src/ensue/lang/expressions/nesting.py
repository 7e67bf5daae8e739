"""How deep an expression is, found without going deep.

Everything that works on a tree (`printing`, `evaluation`, `kinds`) walks it by recursion. That is
safe because no expression passes this gate that is nested deeper than `Limits.nesting`; the walk
here keeps its own stack and so survives any tree. Chains are flat and count as one level.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.tree import (
    After,
    Arithmetic,
    Before,
    BoundTerm,
    Call,
    Compared,
    Comparison,
    During,
    Exists,
    Expression,
    Has,
    In,
    IsA,
    Like,
    Logic,
    Name,
    Negate,
    Not,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
)
from ensue.lang.limits import DEFAULT_LIMITS, Limits, report_limit
from ensue.lang.source import Span


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that stand directly in this one, from left to right."""
    match expression:
        case Not(operand) | Negate(operand) | Like(operand):
            return (operand,)
        case Arithmetic(first, rest) | Comparison(first, rest):
            return (first, *(operand for _, operand in rest))
        case Logic(operands):
            return operands
        case In(operand, options):
            return (operand, *options)
        case Exists(name):
            return (name,)
        case Call(_, arguments):
            return arguments
        case After() | Before() | During() | Compared() | Related():
            return (expression.filter,)
        case _:
            return ()


def nodes_in(expression: Expression) -> Iterator[Expression]:
    """An expression and everything in it, the filters of its terms included."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(parts_of(current))


def names_in(expression: Expression) -> Iterator[Name]:
    """The names that are read from the event itself, from left to right.

    A filter inside a temporal term reads stored publications, so its names are not among them.
    """
    waiting = [expression]
    while waiting:
        match current := waiting.pop():
            case Name():
                yield current
            case After() | Before() | During() | Related():
                continue
            case (
                Has()
                | Compared()
                | IsA()
                | Subsumes()
                | SameAs()
                | OntologyProperty()
                | BoundTerm()
            ):
                yield current.name
            case _:
                waiting.extend(reversed(parts_of(current)))


def report_nesting(
    expression: Expression, diagnostics: Diagnostics, limits: Limits = DEFAULT_LIMITS
) -> bool:
    """Report an expression that is nested too deep, where it is; tell whether it is not."""
    deepest, place = 0, expression
    waiting = [(1, expression)]
    while waiting:
        depth, current = waiting.pop()
        if depth > deepest:
            deepest = depth
            # The first node past the limit is what a person has to look at.
            place = current if depth <= limits.nesting + 1 else place
        waiting.extend((depth + 1, part) for part in reversed(parts_of(current)))
    if deepest <= limits.nesting:
        return True
    # Marking all of it would mark thousands of characters.
    start = Span(place.span.start, place.span.start + 1)
    report_limit(diagnostics, limits, "nesting", deepest, start)
    return False
