"""Computed names: `LENGTH(x) = 5` is indexed like `x = 5`.

In comes an atom that compares an expression over names with constants; out goes a `Test` of a
computed name, which stands for the expression. The index evaluates the expression once for each
event, for all predicates with it, and finds their constants in its tables. If the expression is in
error, the name is missing: the atom is in error either way. An expression that needs more than the
attributes of one event (terms, aggregates, labels) has no computed name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ensue.events.event import Event
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import (
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
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.tests import Parts, Test, test_of

_COMPUTED: Final = (Call, Arithmetic, Negate)
_PLAIN: Final = (
    *(Arithmetic, Call, Comparison, Exists, In, Like),
    *(Literal, Logic, Name, Negate, Not),
)


class ComputedName(str):
    """The text of an expression as a name; it begins like no name of an event."""

    __slots__ = ("expression",)
    expression: Expression

    @classmethod
    def of(cls, expression: Expression) -> ComputedName:
        computed = cls("\x00" + print_expression(expression))
        computed.expression = expression
        return computed


def computed_test(signed: Signed) -> Test | str | None:
    """The test of a computed name that an atom is; None if it is none."""
    atom, positive = signed
    match atom:
        case Comparison(left, ((sign, right),)) if _is_computed(left):
            atom = Comparison(_named(left), ((sign, right),))
        case Comparison(left, ((sign, right),)) if _is_computed(right):
            atom = Comparison(left, ((sign, _named(right)),))
        case Like(operand) | In(operand) if _is_computed(operand):
            atom = replace(atom, operand=_named(operand))
        case _:
            return None
    return test_of(Signed(atom, positive))


def reader_of(expression: Expression) -> Callable[[Event], Any]:
    """The value of an expression for an event; `MISSING` where it is in error."""

    def read(event: Event) -> Any:
        outcome = evaluate(expression, EventScope(event))
        return MISSING if outcome.errors or outcome.value is None else outcome.value

    return read


def operand_of(parts: Parts) -> Expression:
    """The expression of a computed name; any other name stands for itself."""
    name = parts[0]
    return name.expression if isinstance(name, ComputedName) else Name(parts)


def keys_of(parts: Parts) -> set[str]:
    """Members of an event, one of which a name needs to have a value.

    Empty if the name may have a value without any of them.
    """
    name = parts[0]
    if not isinstance(name, ComputedName):
        return {name, name.lower()}
    if not all(_is_strict(each) for each in nodes_in(name.expression)):
        return set()
    needed = next(names_in(name.expression))[0]
    return {needed, needed.lower()}


def _named(expression: Expression) -> Name:
    return Name((ComputedName.of(expression),))


def _is_computed(expression: Expression) -> bool:
    if not isinstance(expression, _COMPUTED):
        return False
    nodes = list(nodes_in(expression))
    return any(isinstance(each, Name) for each in nodes) and all(
        isinstance(each, _PLAIN) and (not isinstance(each, Call) or _is_plain_call(each))
        for each in nodes
    )


def _is_plain_call(call: Call) -> bool:
    return call.function in FUNCTIONS and call.function not in AGGREGATES


def _is_strict(node: Expression) -> bool:
    """Whether a node is in error where a part of it is."""
    if isinstance(node, Call):
        return not FUNCTIONS[node.function].takes_null
    return isinstance(node, Arithmetic | Negate | Name | Literal)
