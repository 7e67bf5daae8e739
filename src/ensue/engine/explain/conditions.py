"""A condition after `having` in words, with the values that it met.

In come a condition and a scope with the values of its names and aggregates; out go sentences:
"`count(f)` is 4, asked is more than 5". Of a condition that was false, only the comparisons that
made it false are told. Whether a condition holds is decided in `ensue.engine.reference.filters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions import Call, Expression, Literal, Name
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.evaluation import Scope, evaluate
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Comparison, Logic, Not
from ensue.lang.expressions.values import text_of

PARTS_SHOWN = 6
ASKED = {
    ">": "more than",
    ">=": "at least",
    "<": "less than",
    "<=": "at most",
    "=": "just",
    "!=": "other than",
}
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def why_false(having: Expression, scope: Scope) -> str:
    """The parts that made a condition false: "`count(f)` is 4, asked is more than 5"."""
    return _listed([told for told, was_met in _told(having, scope, True) if not was_met])


def why_true(having: Expression, scope: Scope) -> str:
    """The parts that made a condition true: "`count(f)` is 6, asked is more than 5"."""
    return _listed([told for told, was_met in _told(having, scope, True) if was_met])


def _listed(told: list[str]) -> str:
    parts = list(dict.fromkeys(told))
    more = len(parts) - PARTS_SHOWN
    return "; ".join(parts[:PARTS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _told(x: Expression, scope: Scope, wanted: bool) -> Iterator[tuple[str, bool]]:
    """The comparisons in a condition in words, and whether each came out as wanted."""
    match x:
        case Not(operand):
            yield from _told(operand, scope, not wanted)
        case Logic(operands, operators) if "XOR" not in operators:
            for operand in operands:
                yield from _told(operand, scope, wanted)
        case Comparison(first, ((operator, second),)):
            asked = operator if wanted else OPPOSITE[operator]
            yield _compared(first, asked, second, scope), _came_out(x, scope, wanted)
        case _:
            found = ", ".join(
                f"`{print_expression(each)}` is {_value(each, scope)}"
                for each in dict.fromkeys(_asked(x))
            )
            was_met = _came_out(x, scope, wanted)
            truth = "true" if was_met is wanted else "false"
            told = f"`{print_expression(x)}` is {truth}"
            yield (f"{told} ({found})" if found else told), was_met


def _came_out(x: Expression, scope: Scope, wanted: bool) -> bool:
    outcome = evaluate(x, scope)
    return not outcome.errors and outcome.value is wanted


def _compared(first: Expression, operator: str, second: Expression, scope: Scope) -> str:
    """A comparison in words: the value of its first side, and what the second side asks of it."""
    if isinstance(first, Literal) and not isinstance(second, Literal):
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        return _compared(second, turned.get(operator, operator), first, scope)
    told = f"`{print_expression(first)}` is {_value(first, scope)}, asked is {ASKED[operator]} "
    if isinstance(second, Literal):
        return told + _value(second, scope)
    return f"{told}{_value(second, scope)}, which is `{print_expression(second)}`"


def _asked(x: Expression) -> Iterator[Expression]:
    """The names and aggregates in an expression, from left to right."""
    if isinstance(x, Name) or (isinstance(x, Call) and x.function in AGGREGATES):
        yield x
    else:
        for part in parts_of(x):
            yield from _asked(part)


def _value(x: Expression, scope: Scope) -> str:
    outcome = evaluate(x, scope)
    if outcome.errors:
        return "null" if outcome.errors == {"missingAttribute"} else "in error"
    return f"'{outcome.value}'" if isinstance(outcome.value, str) else text_of(outcome.value)
