"""The names that an expression mentions."""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Logic,
    Name,
    Negate,
    Not,
)

Parts = tuple[str, ...]
"""A dotted name, part by part."""


def names_in(x: Expression) -> Iterator[Parts]:
    """Every name in an expression, in the order of its text; a name may come several times."""
    match x:
        case Name(parts):
            yield parts
        case Exists(name):
            yield name.parts
        case Not(operand) | Negate(operand) | Like(operand):
            yield from names_in(operand)
        case In(operand, options):
            for each in (operand, *options):
                yield from names_in(each)
        case Arithmetic(first, rest) | Comparison(first, rest):
            for each in (first, *(operand for _, operand in rest)):
                yield from names_in(each)
        case Logic(operands):
            for each in operands:
                yield from names_in(each)
        case Call(_, arguments):
            for each in arguments:
                yield from names_in(each)
