"""When a predicate comes out true, as conjunctions of signed atoms.

CESQL has three outcomes: true, false, and in error. An error spoils whatever has read it; AND and
OR read their right side only where the left one does not decide. So a predicate holds exactly if
one of a number of conjunctions does, in which each atom is asked to come out true, or to come out
false: `a OR b` holds if `a` is true, or if `a` is false and `b` true. These conjunctions exclude
each other by construction. An atom that is asked to be false is not the complement of the one that
is asked to be true: in both cases its evaluation must have met no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.evaluation import Outcome, evaluate
from ensue.lang.expressions.nesting import names_in, nodes_in
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
    """An atom that is to come out true, or to come out false; in both cases without an error."""

    atom: Expression
    positive: bool


Conjunction = tuple[Signed, ...]


class TooManyConjunctionsError(Exception):
    """The predicate has more conjunctions than are worth writing out."""


class Nowhere:
    """A scope in which every name is missing, for expressions without names."""

    def lookup(self, parts: tuple[str, ...]) -> Any:  # noqa: ARG002 - part of the protocol
        return MISSING


def conjunctions(predicate: Expression) -> list[Conjunction] | None:
    """The conjunctions of which exactly one holds where the predicate does; None if too many."""
    if is_uncast(predicate):
        # At the top nothing is cast: only the value TRUE itself passes.
        constant = constant_outcome(predicate)
        if constant is None:
            return [(Signed(predicate, True),)]
        return [()] if constant.value is True and not constant.errors else []
    try:
        return _when(predicate, True)
    except TooManyConjunctionsError:
        return None


def is_uncast(predicate: Expression) -> bool:
    """Whether a whole predicate is a value that may be no boolean: only TRUE itself passes then."""
    if isinstance(predicate, Call):
        function = FUNCTIONS.get(predicate.function)
        return function is None or function.result != "boolean"
    return isinstance(predicate, Name | Arithmetic | Negate | Literal)


def in_plain_terms(expression: Expression) -> Expression | None:
    """An expression of the same outcomes by operators alone, for functions that have one."""
    match expression:
        case Call("IS_NULL", (Name() as name,)):
            return Not(Exists(name))
        case Call("BETWEEN", (value, low, high)):
            above, below = Comparison(value, ((">=", low),)), Comparison(value, (("<=", high),))
            # XOR reads both sides, so that an error of either is an error of the whole.
            apart = Logic((above, below), ("XOR",))
            return Logic((Not(apart), above), ("AND",))
        case _:
            return None


def truth(outcome: Outcome) -> bool | None:
    """What AND, OR and NOT make of an outcome: true, false, or None for an error."""
    if outcome.errors:
        return None
    try:
        return to_boolean(outcome.value)
    except FaultError:
        return None


def constant_outcome(expression: Expression) -> Outcome | None:
    """The outcome of an expression that asks neither names nor a history nor an ontology."""
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
    """When an expression, cast to a boolean, comes out as wanted."""
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
    """`a AND b OR c` is `a AND (b OR c)`: from the right, both outcomes of what stands behind."""
    if set(operators) == {"AND" if wanted else "OR"}:
        # All must come out as wanted, and what the other outcome would take is of no interest.
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
            # Only one of the two may be needed, and the other may be the one that grows.
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
            # An atom cannot come out both ways.
            if len({each.positive for each in both}) < 2 or not any(
                Signed(each.atom, not each.positive) in both for each in both
            ):
                joined.append(tuple(both))
            if len(both) > MOST_ATOMS or len(joined) > 2 * MOST_CONJUNCTIONS:
                # None of this would be written out: a chain of thousands must not take hours.
                return [_TOO_MANY]
    return joined


def _within(found: list[Conjunction]) -> list[Conjunction]:
    if len(found) > MOST_CONJUNCTIONS or any(
        len(each) > MOST_ATOMS or _TOO_MANY[0] in each for each in found
    ):
        raise TooManyConjunctionsError
    return found
