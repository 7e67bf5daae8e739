"""Mentions of attributes in predicates: the constants and patterns that each is compared with.

In come predicates; out come the mentions of each name. A predicate is *plain* if it combines, by
AND, OR, XOR and NOT, comparisons of one name with constants, `IN` constants, `LIKE`, `EXISTS` and
bare names: then a few values of each attribute show all of its outcomes. Arithmetic, functions and
comparisons of two names are not plain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.names import Parts, names_in

CLOCK_AND_IDENTITY = frozenset({"id", "time"})
"""Attributes with a value of its own in each event, which no sample stands for."""


@dataclass(slots=True)
class Mentions:
    """The constants and patterns that one attribute is compared with, and how.

    `ordered`: it is compared as a number or a time. `listed`: it stands before `IN`, which casts
    the constants and never the attribute. `cast`: it is compared for equality with a constant that
    is no text, and is cast to the constant's type if it is text itself. `bare`: it is a condition
    by itself.
    """

    constants: list[Any] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    ordered: bool = False
    listed: bool = False
    cast: bool = False
    bare: bool = False


def is_plain(x: Expression) -> bool:
    """Whether a few values of each attribute show all outcomes of a predicate."""
    match x:
        case Literal() | Exists() | Call("IS_NULL", (Name(),)):
            return True
        case Name(parts):
            return parts[-1].lower() not in CLOCK_AND_IDENTITY or len(parts) > 1
        case Not(operand):
            return is_plain(operand)
        case Logic(operands):
            return all(is_plain(each) for each in operands)
        case Comparison(first, ((_, second),)):
            return _is_one_name(first, second)
        case In(operand, options):
            return _is_one_name(operand, *options)
        case Like(Name() as operand):
            return is_plain(operand)
        case _:
            return False


def _is_one_name(*operands: Expression) -> bool:
    names = [each for each in operands if isinstance(each, Name)]
    others = [each for each in operands if not isinstance(each, Name)]
    return (
        len(names) <= 1
        and all(is_plain(each) for each in names)
        and all(constant_of(each) is not None for each in others)
    )


def constant_of(x: Expression) -> Any:
    """The value of a literal, with a minus before it or not; None for anything else."""
    match x:
        case Literal(value):
            return value
        case Negate(Literal(value)) if isinstance(value, int | float):
            return -value
        case _:
            return None


def mentions_in(predicates: Iterable[Expression]) -> dict[Parts, Mentions]:
    found: dict[Parts, Mentions] = {}
    for predicate in predicates:
        _collect(predicate, found)
    return found


def _collect(x: Expression, found: dict[Parts, Mentions]) -> None:
    match x:
        case Name(parts):
            found.setdefault(parts, Mentions()).bare = True
        case Exists(name) | Call("IS_NULL", (Name() as name,)):
            found.setdefault(name.parts, Mentions())
        case Not(operand) | Negate(operand):
            _collect(operand, found)
        case Logic(operands):
            for each in operands:
                _collect(each, found)
        case Call(_, arguments):
            for each in arguments:
                _collect(each, found)
        case Like(operand, pattern):
            for parts in names_in(operand):
                found.setdefault(parts, Mentions()).patterns.append(pattern)
        case In(operand, options):
            _compared((operand, *options), found, ordered=False, listed=True)
        case Comparison(first, rest):
            ordered = any(sign not in ("=", "!=") for sign, _ in rest)
            _compared((first, *(each for _, each in rest)), found, ordered=ordered, listed=False)
        case Arithmetic(first, rest):
            _compared((first, *(each for _, each in rest)), found, ordered=True, listed=False)


def _compared(
    operands: Iterable[Expression], found: dict[Parts, Mentions], *, ordered: bool, listed: bool
) -> None:
    """Add every constant among the operands to every name among them, or inside of them."""
    operands = list(operands)
    constants = [value for each in operands if (value := constant_of(each)) is not None]
    for each in operands:
        for parts in names_in(each):
            mentions = found.setdefault(parts, Mentions())
            mentions.constants += constants
            mentions.ordered |= ordered
            mentions.listed |= listed
            mentions.cast |= not listed and not all(isinstance(value, str) for value in constants)
