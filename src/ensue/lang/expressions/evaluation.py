"""The evaluation of an expression over one event, or over the events bound to ports.

In come a tree and a `Scope`; out goes an `Outcome`: a value and the kinds of errors that were met.
CESQL is total: an operator or function whose operand is missing, in error or of a kind that cannot
be cast has the zero value of its result, passes the errors on, and evaluation goes on. Nothing is
raised. The only exception to the zero is NOT: CESQL negates the `false` of a failed cast. Whether a
predicate holds is stricter (`holds`).

Only AND and OR may leave an operand unread. Sets are unordered, so that IN reads all of its
options. Only EXISTS, IS NULL and COALESCE accept a null. Comparisons are in `comparing`, functions
in `builtins.functions`, aggregates in `aggregates`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from ensue.events.event import Event
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.builtins.like import matches
from ensue.lang.expressions.comparing import COMPARISONS, has, is_among
from ensue.lang.expressions.scopes import (
    MISSING,
    AnsweringScope,
    ComputedScope,
    EventScope,
    PortScope,
    Scope,
    StretchScope,
    TimerScope,
)
from ensue.lang.expressions.tree import (
    After,
    Arithmetic,
    Before,
    BoundTerm,
    Call,
    Compared,
    Comparison,
    ConceptTerm,
    During,
    Exists,
    Expression,
    Has,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
    Related,
    TemporalTerm,
)
from ensue.lang.expressions.values import (
    CASTS,
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    ZEROS,
    FaultError,
    kind_of,
    text_of,
    to_boolean,
    to_number,
    to_string,
    to_timestamp,
)

__all__ = [
    "MISSING",
    "EventScope",
    "Outcome",
    "PortScope",
    "Scope",
    "StretchScope",
    "TimerScope",
    "evaluate",
    "holds",
    "text_of",
]

NO_ERRORS: frozenset[str] = frozenset()
NULL = frozenset({"missingAttribute"})
"""The errors of an operand that is null, or is computed from a null and has no other error."""

_N = TypeVar("_N", int, float)


class Outcome(NamedTuple):
    """A value, and the kinds of errors met on the way to it.

    The kinds are `missingAttribute`, `cast`, `math`, `missingFunction` and `functionEvaluation`,
    and `missingHistory` and `missingOntology` for terms that nothing can answer.
    """

    value: Any
    errors: frozenset[str] = NO_ERRORS


SCOPE_OF: ContextVar[Callable[[Event], Scope]] = ContextVar("scope_of", default=EventScope)
"""Makes the scope of an event for predicates. A run with a history sets it."""


def holds(expression: Expression, event: Event | Scope) -> bool:
    """Whether a predicate holds for an event: its value is true, and there was no error."""
    scope = SCOPE_OF.get()(event) if isinstance(event, Event) else event
    outcome = evaluate(expression, scope)
    return outcome.value is True and not outcome.errors


def evaluate(expression: Expression, scope: Scope) -> Outcome:
    """The outcome of an expression, which must not be deeper than `Limits.nesting`."""
    match expression:
        case Literal(value):
            return _literal(value)
        case Name(parts):
            value = scope.lookup(parts)
            return _failed("boolean", "missingAttribute") if value is MISSING else Outcome(value)
        case Exists(name):
            return Outcome(scope.lookup(name.parts) is not MISSING)
        case Not(operand):
            return _not(evaluate(operand, scope))
        case Negate(operand):
            return _apply("number", lambda x: _bounded(-to_number(x)), evaluate(operand, scope))
        case Like(operand, pattern, negated):
            return _apply(
                "boolean",
                lambda x: matches(to_string(x), pattern) is not negated,
                evaluate(operand, scope),
            )
        case In(operand, options, negated):
            return _apply(
                "boolean",
                lambda x, *others: is_among(x, others) is not negated,
                evaluate(operand, scope),
                *(evaluate(each, scope) for each in options),
            )
        case Arithmetic(first, rest):
            return _chain("number", _ARITHMETIC, first, rest, scope)
        case Comparison(first, rest):
            return _chain("boolean", COMPARISONS, first, rest, scope)
        case Logic(operands, operators):
            return _logic(operands, operators, scope)
        case Call(name, arguments):
            return _call(name, arguments, scope)
        case Has(name, quantifier, options):
            return _apply(
                "boolean",
                lambda bag: has(bag, quantifier, [each.value for each in options]),
                evaluate(name, scope),
            )
        case BoundTerm(term, test):
            return _apply("boolean", test.holds, evaluate(term.name, scope))
        case _:
            return _ask(expression, scope)


def _ask(term: TemporalTerm | ConceptTerm, scope: Scope) -> Outcome:
    answer = scope.answer(term) if isinstance(scope, AnsweringScope) else None
    if answer is None:
        temporal = isinstance(term, After | Before | During | Compared | Related)
        return _failed("boolean", "missingHistory" if temporal else "missingOntology")
    if isinstance(term, ConceptTerm) and scope.lookup(term.name.parts) is MISSING:
        return _failed("boolean", "missingAttribute")
    return Outcome(answer)


def _failed(kind: str, *errors: str) -> Outcome:
    return Outcome(ZEROS[kind], frozenset(errors))


def _apply(kind: str, compute: Callable[..., Any], *operands: Outcome) -> Outcome:
    """An operator or function over its operands: the rule for errors, in one place."""
    errors = NO_ERRORS.union(*(each.errors for each in operands))
    if errors:
        return Outcome(ZEROS[kind], errors)
    try:
        return Outcome(compute(*(each.value for each in operands)))
    except FaultError as fault:
        value = ZEROS[kind] if fault.value is None else fault.value
        return Outcome(value, frozenset({fault.kind}))


def _literal(value: Any) -> Outcome:
    is_real = isinstance(value, float)
    if kind_of(value) is None or (is_real and not math.isfinite(value)):
        return Outcome(0.0 if is_real else 0, frozenset({"math"}))
    return Outcome(value)


def _not(operand: Outcome) -> Outcome:
    if operand.errors:
        return Outcome(False, operand.errors)
    try:
        return Outcome(not to_boolean(operand.value))
    except FaultError as fault:
        return Outcome(True, frozenset({fault.kind}))


def _chain(
    kind: str,
    operators: Mapping[str, Callable[[Any, Any], Any]],
    first: Expression,
    rest: Sequence[tuple[str, Expression]],
    scope: Scope,
) -> Outcome:
    result = evaluate(first, scope)
    for sign, operand in rest:
        result = _apply(kind, operators[sign], result, evaluate(operand, scope))
    return result


def _logic(operands: Sequence[Expression], operators: Sequence[str], scope: Scope) -> Outcome:
    """`a AND b OR c` is `a AND (b OR c)`: each operator decides whether its right side is read."""
    errors = NO_ERRORS
    flips = False
    value = False
    for operand, sign in zip(operands, (*operators, None), strict=True):
        outcome = _apply("boolean", to_boolean, evaluate(operand, scope))
        errors |= outcome.errors
        value = outcome.value
        if (sign == "AND" and not value) or (sign == "OR" and value):
            break
        if sign == "XOR":
            flips ^= value
    return Outcome(not errors and value is not flips, errors)


def _call(name: str, arguments: Sequence[Expression], scope: Scope) -> Outcome:
    if name in AGGREGATES:
        return _aggregate(name, arguments, scope)
    function = FUNCTIONS.get(name)
    if function is None or not function.accepts(len(arguments)):
        return _failed("boolean", "missingFunction")

    def compute(*values: Any) -> Any:
        return function.compute(
            *(CASTS[function.parameter(i)](each) for i, each in enumerate(values))
        )

    outcomes = [evaluate(each, scope) for each in arguments]
    if function.takes_null:
        outcomes = [Outcome(MISSING) if each.errors == NULL else each for each in outcomes]
    return _apply(function.result, compute, *outcomes)


def _aggregate(name: str, arguments: Sequence[Expression], scope: Scope) -> Outcome:
    """An aggregate over the events of a port, which the scope must know."""
    match arguments:
        case [Name(parts)] if isinstance(scope, StretchScope):
            try:
                return Outcome(AGGREGATES[name].compute(scope.stretch(parts)))
            except FaultError as fault:
                return Outcome(fault.value, frozenset({fault.kind}))
        case [Name(parts)] if isinstance(scope, ComputedScope):
            found = scope.computed[name, parts]
            if isinstance(found, FaultError):
                return Outcome(found.value, frozenset({found.kind}))
            return Outcome(found)
    return _failed("boolean", "missingFunction")


# --- arithmetic --------------------------------------------------------------------------------


def _arithmetic(
    integers: Callable[[int, int], int], reals: Callable[[float, float], float]
) -> Callable[[Any, Any], int | float]:
    def compute(left: Any, right: Any) -> int | float:
        x, y = to_number(left), to_number(right)
        if isinstance(x, int) and isinstance(y, int):
            return _bounded(_or_math_error(integers, x, y, 0))
        return _bounded(_or_math_error(reals, float(x), float(y), 0.0))

    return compute


def _difference(left: Any, right: Any) -> int | float:
    """`-`: with a timestamp on either side, the seconds between two timestamps."""
    if "timestamp" in (kind_of(left), kind_of(right)):
        return (to_timestamp(left) - to_timestamp(right)).total_seconds()
    return _subtract(left, right)


def _or_math_error(compute: Callable[[_N, _N], _N], x: _N, y: _N, zero: _N) -> _N:
    try:
        return compute(x, y)
    except (ArithmeticError, ValueError):
        raise FaultError("math", zero) from None


def _bounded(number: int | float) -> int | float:
    if isinstance(number, float):
        if not math.isfinite(number):
            raise FaultError("math", 0.0)
    elif not SMALLEST_INTEGER <= number <= LARGEST_INTEGER:
        raise FaultError("math", 0)
    return number


def _quotient(x: int, y: int) -> int:
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def _remainder(x: int, y: int) -> int:
    return x - y * _quotient(x, y)


_subtract = _arithmetic(operator.sub, operator.sub)
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _arithmetic(operator.add, operator.add),
    "-": _difference,
    "*": _arithmetic(operator.mul, operator.mul),
    "/": _arithmetic(_quotient, operator.truediv),
    "%": _arithmetic(_remainder, math.fmod),
}
