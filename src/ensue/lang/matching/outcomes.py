"""Predicates as conjunctions of signed atoms.

CESQL has three outcomes: true, false, and in error. An expression that reads an error is in error;
AND and OR read their right side only if the left side does not decide. So a predicate holds exactly
if one of several conjunctions holds, in which each atom must be true, or must be false: `a OR b`
holds if `a` is true, or if `a` is false and `b` is true. At most one of these conjunctions holds.
An atom that must be false is not the complement of an atom that must be true: in both cases its
evaluation must be without error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.evaluation import Outcome, evaluate
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    ConceptTerm,
    Exists,
    Expression,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
    TemporalTerm,
)
from ensue.lang.expressions.values import FaultError, to_boolean

MOST_CONJUNCTIONS = 64
MOST_ATOMS = 32


class Signed(NamedTuple):
    """An atom that must be true (`positive`) or false, in both cases without an error."""

    atom: Expression
    positive: bool


Conjunction = tuple[Signed, ...]


class TooManyConjunctionsError(Exception):
    """The predicate has too many conjunctions."""


class Nowhere:
    """A scope in which every name is missing, for expressions without names."""

    def lookup(self, parts: tuple[str, ...]) -> Any:  # noqa: ARG002 - part of the protocol
        return MISSING


def conjunctions(predicate: Expression) -> list[Conjunction] | None:
    """The conjunctions of which exactly one holds if the predicate does; None if too many."""
    if is_uncast(predicate):
        # The value of a whole predicate is not cast: only TRUE itself passes.
        constant = constant_outcome(predicate)
        if constant is None:
            return [(Signed(predicate, True),)]
        return [()] if constant.value is True and not constant.errors else []
    try:
        return _when(predicate, True)
    except TooManyConjunctionsError:
        return None


def is_uncast(predicate: Expression) -> bool:
    """Whether the value of a whole predicate may be no boolean: then only TRUE itself passes."""
    if isinstance(predicate, Call):
        function = FUNCTIONS.get(predicate.function)
        return function is None or function.result != "boolean"
    return isinstance(predicate, Name | Arithmetic | Negate | Literal)


def in_plain_terms(expression: Expression) -> Expression | None:
    """A call of some functions as an expression of operators with equal outcomes; or None."""
    match expression:
        case Call("IS_NULL", (Name() as name,)):
            return Not(Exists(name))
        case Call("BETWEEN", (value, low, high)):
            above, below = Comparison(value, ((">=", low),)), Comparison(value, (("<=", high),))
            # XOR reads both sides, so that an error on either side is an error of the whole.
            apart = Logic((above, below), ("XOR",))
            return Logic((Not(apart), above), ("AND",))
        case _:
            return None


def truth(outcome: Outcome) -> bool | None:
    """The truth of an outcome for AND, OR and NOT: true, false, or None for an error."""
    if outcome.errors:
        return None
    try:
        return to_boolean(outcome.value)
    except FaultError:
        return None


def constant_outcome(expression: Expression) -> Outcome | None:
    """The outcome of an expression without names and terms; None for any other expression."""
    if isinstance(expression, Literal):
        return evaluate(expression, Nowhere())
    if isinstance(expression, Comparison) and isinstance(expression.first, Name):
        return None
    if next(names_in(expression), None) is not None or _asks(expression):
        return None
    return evaluate(expression, Nowhere())


def _asks(expression: Expression) -> bool:
    return any(isinstance(each, TemporalTerm | ConceptTerm) for each in nodes_in(expression))


def _when(expression: Expression, wanted: bool) -> list[Conjunction]:
    """The conjunctions in which an expression, cast to a boolean, is as wanted."""
    match expression:
        case Not(operand):
            return _when(operand, not wanted)
        case Logic(operands, operators):
            return _chain(operands, operators, wanted)
        case _:
            constant = constant_outcome(expression)
            plain = None if constant is not None else in_plain_terms(expression)
            if plain is not None:
                return _when(plain, wanted)
            if constant is None:
                return [(Signed(expression, wanted),)]
            return [()] if truth(constant) is wanted else []


def _chain(
    operands: Sequence[Expression], operators: Sequence[str], wanted: bool
) -> list[Conjunction]:
    """The conjunctions of a chain, from the right: `a AND b OR c` is `a AND (b OR c)`."""
    if set(operators) == {"AND" if wanted else "OR"}:
        # All operands must be as wanted; the conjunctions of the other outcome are not needed.
        joined: list[Conjunction] = [()]
        for operand in operands:
            joined = _both(joined, _when(operand, wanted))
            if len(joined) > MOST_CONJUNCTIONS:
                raise TooManyConjunctionsError
        return _within(joined)
    behind = {each: _when(operands[-1], each) for each in (True, False)}
    for operand, sign in zip(reversed(operands[:-1]), reversed(operators), strict=True):
        yes, no = _when(operand, True), _when(operand, False)
        match sign:
            case "AND":
                behind = {True: _both(yes, behind[True]), False: no + _both(yes, behind[False])}
            case "OR":
                behind = {True: yes + _both(no, behind[True]), False: _both(no, behind[False])}
            case _:
                behind = {
                    True: _both(yes, behind[False]) + _both(no, behind[True]),
                    False: _both(yes, behind[True]) + _both(no, behind[False]),
                }
        if max(map(len, behind.values())) > 2 * MOST_CONJUNCTIONS:
            # Perhaps only one of the two outcomes is needed, and the other has too many.
            behind = {each: _bounded(behind[each]) for each in behind}
    return _within(behind[wanted])


_TOO_MANY: Conjunction = (Signed(Literal(False), True),)


def _bounded(found: list[Conjunction]) -> list[Conjunction]:
    return [_TOO_MANY] if len(found) > 2 * MOST_CONJUNCTIONS else found


def _both(left: list[Conjunction], right: list[Conjunction]) -> list[Conjunction]:
    if _TOO_MANY in left or _TOO_MANY in right:
        return [_TOO_MANY] if left and right else []
    joined = []
    for one in left:
        for other in right:
            both = dict.fromkeys(one + other) if one else dict.fromkeys(other)
            # An atom cannot be both true and false.
            if len({each.positive for each in both}) < 2 or not any(
                Signed(each.atom, not each.positive) in both for each in both
            ):
                joined.append(tuple(both))
            if len(both) > MOST_ATOMS or len(joined) > 2 * MOST_CONJUNCTIONS:
                # There are too many already: a chain of thousands must not take hours.
                return [_TOO_MANY]
    return joined


def _within(found: list[Conjunction]) -> list[Conjunction]:
    if len(found) > MOST_CONJUNCTIONS or any(
        len(each) > MOST_ATOMS or _TOO_MANY[0] in each for each in found
    ):
        raise TooManyConjunctionsError
    return found
