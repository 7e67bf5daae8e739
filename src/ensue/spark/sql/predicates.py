"""CESQL predicates as Spark SQL, with exactly the results of `ensue.lang.expressions.evaluation`.

In come an expression and the SQL value of each name; out goes a `Column`. SQL's null stands for an
error of CESQL: operators of both pass errors on, except AND, OR and IN, which are written out.
Nothing here can throw, with ANSI mode on or off. What SQL would compute differently (the text of a
real, Python's upper case, numbers in text) raises `NotInSqlError`, and Python evaluates it in the
worker. Values and operators stand in `values` and `operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

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
from ensue.lang.expressions.evaluation import evaluate
from ensue.spark.sql.operators import (
    arithmetic,
    comparison,
    function_call,
    like_pattern,
    membership,
    negation,
)
from ensue.spark.sql.values import (
    NotInSqlError,
    Sql,
    as_boolean,
    as_number,
    as_string,
    error,
    literal,
)

_CONSTANTS_WORTH_FOLDING = 64
_LARGEST_WEIGHT = 5000
_LONGEST_CHAIN = 200

Resolve = Callable[[tuple[str, ...]], Sql | None]
"""The value of a name; None if no event can have it. May raise `NotInSqlError`."""


def holds(expression: Expression, resolve: Resolve) -> Column:
    """True where the predicate holds, false or null elsewhere."""
    _check_size(expression)
    found = _Translation(resolve).sql(expression)
    return found.column if found.kind == "boolean" else sf.lit(False)


def in_sql(expression: Expression, resolve: Resolve) -> Sql:
    """The value of an expression, null where it has an error."""
    _check_size(expression)
    return _Translation(resolve).sql(expression)


def _check_size(expression: Expression) -> None:
    chain = len(expression.operands) if isinstance(expression, Logic) else 0
    if chain > _LONGEST_CHAIN or weight(expression) > _LARGEST_WEIGHT:
        raise NotInSqlError("it is too large")


class _Translation:
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    def sql(self, expression: Expression) -> Sql:
        match expression:
            case Literal():
                return _constant(expression)
            case Name(parts):
                return self._resolve(parts) or error()
            case Exists(name):
                found = self._resolve(name.parts)
                return Sql("boolean", sf.lit(False) if found is None else found.column.isNotNull())
        if _is_constant(expression):
            return _constant(expression)
        match expression:
            case Not(operand):
                return Sql("boolean", ~as_boolean(self.sql(operand)))
            case Negate(operand):
                return negation(as_number(self.sql(operand)))
            case Like(operand, pattern, negated):
                matched = as_string(self.sql(operand)).like(like_pattern(pattern))
                return Sql("boolean", ~matched if negated else matched)
            case In(operand, options, negated):
                among = membership(self.sql(operand), [self.sql(each) for each in options])
                return Sql("boolean", ~among if negated else among)
            case Arithmetic(first, rest):
                result = self.sql(first)
                for sign, operand in rest:
                    right = self.sql(operand)
                    if sign == "-" and "timestamp" in (result.kind, right.kind):
                        raise NotInSqlError("timestamps are subtracted")
                    result = arithmetic(sign, as_number(result), as_number(right))
                return result
            case Comparison(first, rest):
                result = self.sql(first)
                for sign, operand in rest:
                    result = Sql("boolean", comparison(sign, result, self.sql(operand)))
                return result
            case Logic(operands, operators):
                return Sql("boolean", self._logic(operands, operators))
            case Call(function, arguments):
                return function_call(function, [self.sql(each) for each in arguments])
            case _:
                raise NotInSqlError("it asks a history, an ontology or a bag")

    def _logic(self, operands: Sequence[Expression], operators: Sequence[str]) -> Column:
        """Built from the right. Only an operand that is evaluated can make the whole an error."""
        result = as_boolean(self.sql(operands[-1]))
        for operand, sign in zip(reversed(operands[:-1]), reversed(operators), strict=True):
            left = as_boolean(self.sql(operand))
            if sign == "AND":
                # SQL's own AND is false where the left is null and the right false.
                result = sf.when(left.isNotNull(), left & result)
            elif sign == "OR":
                result = left | (~left & result)
                # Where the left is null, `null OR (null AND false)` is null as well.
            else:
                result = left != result
        return result


def weight(expression: Expression) -> int:
    """An estimate of the SQL nodes of an expression; some are written twice."""
    match expression:
        case Literal() | Name() | Exists():
            return 1
        case Not(operand) | Negate(operand) | Like(operand, _, _):
            return 1 + 2 * weight(operand)
        case In(operand, options, _) if all(isinstance(each, Literal) for each in options):
            return 1 + weight(operand) + len(options) // 10
        case In(operand, options, _):
            return 1 + sum(weight(operand) + 2 * weight(each) for each in options)
        case Arithmetic(first, rest) | Comparison(first, rest):
            total = weight(first)
            for _, each in rest:
                total = 1 + 2 * total + 2 * weight(each)
            return total
        case Logic(operands, _):
            return sum(1 + 2 * weight(each) for each in operands)
        case Call(_, arguments):
            return 1 + 2 * sum(map(weight, arguments))
        case _:
            return 1


def conjuncts(expression: Expression) -> list[Expression]:
    """The parts of a chain of AND, all of which must hold for the whole to hold.

    A filter built from them part by part is one that Spark can push down to a file.
    """
    if isinstance(expression, Logic) and set(expression.operators) == {"AND"}:
        return [part for operand in expression.operands for part in conjuncts(operand)]
    return [expression]


# --- constants ----------------------------------------------------------------------------------


def _is_constant(expression: Expression) -> bool:
    match expression:
        case Literal():
            return True
        case Name() | Exists():
            return False
        case Not(operand) | Negate(operand) | Like(operand, _, _):
            return _is_constant(operand)
        case In(operand, options, _):
            return len(options) <= _CONSTANTS_WORTH_FOLDING and all(
                map(_is_constant, (operand, *options))
            )
        case Arithmetic(first, rest) | Comparison(first, rest):
            return _is_constant(first) and all(_is_constant(each) for _, each in rest)
        case Logic(operands, _):
            return all(map(_is_constant, operands))
        case Call(_, arguments):
            return all(map(_is_constant, arguments))
        case _:
            return False


class _Nothing:
    def lookup(self, parts: tuple[str, ...]) -> Any:
        raise AssertionError(parts)


def _constant(expression: Expression) -> Sql:
    outcome = evaluate(expression, _Nothing())
    return error() if outcome.errors else literal(outcome.value)
