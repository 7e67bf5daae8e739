"""The parts of an expression at any depth, and the limit of its nesting.

All functions on trees (`printing`, `evaluation`, `kinds`) recurse. That is safe because
`report_nesting` refuses an expression that is nested deeper than `Limits.nesting`; the functions
here have their own stack and take any tree. Chains are flat and count as one level.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.tree import (
    After,
    Arithmetic,
    Before,
    Call,
    Compared,
    Comparison,
    During,
    Exists,
    Expression,
    In,
    Like,
    Logic,
    Negate,
    Not,
    Related,
)
from ensue.lang.limits import DEFAULT_LIMITS, Limits, report_limit
from ensue.lang.source import Span


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an expression, from left to right."""
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
    """An expression and all of its parts, the filters of terms included."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(parts_of(current))


def report_nesting(
    expression: Expression, diagnostics: Diagnostics, limits: Limits = DEFAULT_LIMITS
) -> bool:
    """Report an expression that is nested too deep; true if it is not."""
    deepest, place = 0, expression
    waiting = [(1, expression)]
    while waiting:
        depth, current = waiting.pop()
        if depth > deepest:
            deepest = depth
            # The first node past the limit is reported.
            place = current if depth <= limits.nesting + 1 else place
        waiting.extend((depth + 1, part) for part in reversed(parts_of(current)))
    if deepest <= limits.nesting:
        return True
    # The whole node may have thousands of characters: only the first is marked.
    start = Span(place.span.start, place.span.start + 1)
    report_limit(diagnostics, limits, "nesting", deepest, start)
    return False
