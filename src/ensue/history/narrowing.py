"""From a filter to the keys under which a store can look for what may match it.

In comes an expression; out go clauses, all of which must be met: each is a list of ranges of keys
(`postings`), of which a publication must have one. Whatever matches the filter meets every clause;
the reverse is not promised, so the filter is asked again about what was found. Parts that say
nothing about keys (negations, arithmetic, terms that ask a history or an ontology) give no clause.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ensue.history import postings
from ensue.history.postings import KeyRange
from ensue.lang.expressions.tree import (
    Comparison,
    Exists,
    Expression,
    Has,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
)
from ensue.lang.expressions.values import FaultError, to_number

Clause = tuple[KeyRange, ...]
Clauses = tuple[Clause, ...]

MOST_RANGES: Final = 64
"""Ranges in one clause; a longer list is no help to a store."""
_INFINITY: Final = float("inf")
MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def narrowed(expression: Expression) -> Clauses:
    """The clauses of a filter, those of single keys first; none if it says nothing about keys."""
    clauses = [each for each in _clauses(expression) if len(each) <= MOST_RANGES]
    return tuple(sorted(clauses, key=lambda clause: any(low != high for low, high in clause)))


def compared(name: tuple[str, ...], sign: str, value: Any) -> Clauses:
    """The clauses of `name sign value`: which values of a name may stand so to a constant."""
    if not postings.is_listed(name) or isinstance(value, datetime):
        return ()
    if sign == "=":
        if isinstance(value, str | int | float):
            return (tuple(postings.at_value(name, value)),)
        return ()
    try:
        number = float(to_number(value))
    except (FaultError, OverflowError):
        # Texts that are times can be ordered too, and keys do not know their order.
        return (tuple(postings.present(name)),)
    if isinstance(value, str) or sign == "!=":
        return (tuple(postings.present(name)),)
    low, high = (-_INFINITY, number) if sign in ("<", "<=") else (number, _INFINITY)
    return (tuple(postings.between(name, low, high)),)


def _clauses(expression: Expression) -> Clauses:
    match expression:
        case Logic(operands, operators):
            return _logic(operands, operators)
        case Comparison(left, ((sign, right),)):
            return _comparison(left, sign, right)
        case In(Name(parts), options, False) if postings.is_listed(parts):
            return _options(parts, options)
        case Like(Name(parts), pattern, False) if postings.is_listed(parts):
            start = pattern
            for special in "%_\\":
                start = start.partition(special)[0]
            ranges = postings.beginning(parts, start)
            return (tuple(ranges),) if ranges else (tuple(postings.present(parts)),)
        case Exists(Name(parts)) | Has(Name(parts)) if postings.is_listed(parts):
            return (tuple(postings.present(parts)),)
        case _:
            return ()


def _logic(operands: tuple[Expression, ...], operators: tuple[str, ...]) -> Clauses:
    """Read from the right, as CESQL does: `a AND b OR c` is `a AND (b OR c)`."""
    found = _clauses(operands[-1])
    for operand, sign in zip(operands[-2::-1], operators[::-1], strict=True):
        first = _clauses(operand)
        if sign == "AND":
            found = first + found
        elif sign == "OR" and first and found:
            # Either side has a clause of its own that must be met: one of the two is.
            found = (_shortest(first) + _shortest(found),)
        else:
            found = ()
    return found


def _shortest(clauses: Clauses) -> Clause:
    return min(clauses, key=lambda clause: (any(low != high for low, high in clause), len(clause)))


def _comparison(left: Expression, sign: str, right: Expression) -> Clauses:
    match left, right:
        case Name(parts), _ if (value := _constant(right)) is not None:
            return compared(parts, sign, value)
        case _, Name(parts) if (value := _constant(left)) is not None:
            return compared(parts, MIRRORED[sign], value)
        case _:
            return ()


def _options(parts: tuple[str, ...], options: tuple[Expression, ...]) -> Clauses:
    values = [_constant(each) for each in options]
    if any(value is None or isinstance(value, datetime) for value in values):
        return ()
    ranges = [each for value in values for each in postings.at_value(parts, value)]
    return (tuple(dict.fromkeys(ranges)),)


def _constant(expression: Expression) -> Any:
    match expression:
        case Literal(value):
            return value
        case Negate(Literal(int() | float() as value)) if not isinstance(value, bool):
            return -value
        case _:
            return None
