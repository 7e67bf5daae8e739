"""Expressions with other expressions in their places.

In come a tree and what stands for some of its parts; out goes a tree in which it does. Terms that
ask a history or an ontology stay as they are: nothing inside of them is of the event itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Expression,
    In,
    Like,
    Logic,
    Negate,
    Not,
)


def replaced(x: Expression, by: Mapping[Expression, Expression]) -> Expression:
    """The expression, with each part that is a key of `by` replaced by its value."""
    if x in by:
        return by[x]
    match x:
        case Not(operand) | Negate(operand) | Like(operand):
            return replace(x, operand=replaced(operand, by))
        case Arithmetic(first, rest) | Comparison(first, rest):
            others = tuple((sign, replaced(each, by)) for sign, each in rest)
            return replace(x, first=replaced(first, by), rest=others)
        case Logic(operands):
            return replace(x, operands=tuple(replaced(each, by) for each in operands))
        case In(operand, options):
            others_in = tuple(replaced(each, by) for each in options)
            return replace(x, operand=replaced(operand, by), options=others_in)
        case Call(_, arguments):
            return replace(x, arguments=tuple(replaced(each, by) for each in arguments))
    return x
