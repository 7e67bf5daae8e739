"""What `having` asked of the events that came, and what it found, in words.

In come a condition and what its names and aggregates stand for; out go its parts with their values:
`count(f)` is 4. Nothing is decided here: whether the condition holds is asked in `filters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions import Call, Expression, Name
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.evaluation import Scope, evaluate
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.values import text_of

PARTS_SHOWN = 6


def found_values(having: Expression, scope: Scope) -> str:
    """What the names and aggregates of a condition are: "`count(f)` is 4, `a.v` is null"."""
    parts = list(dict.fromkeys(_asked(having)))
    shown = [f"`{print_expression(each)}` is {_value(each, scope)}" for each in parts[:PARTS_SHOWN]]
    more = len(parts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


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
