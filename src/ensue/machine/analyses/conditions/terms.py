"""Expressions as linear forms: sums of unknowns with factors, and a constant.

Integers are computed exactly, or not at all (an overflow is an error, and then no condition holds),
so that their sums and differences are linear forms. Reals are rounded at each step: `x + 1.0` is an
unknown of its own, of which only the order relative to `x` is known. An integer that is compared
with a real is rounded, so that such a comparison is used only where one side is a constant that
rounding does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from ensue.events.times import microseconds_of
from ensue.lang.expressions import Call, Expression, Literal, Name
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Arithmetic, Negate
from ensue.lang.expressions.values import EXACT_IN_DOUBLES

KindOf = Callable[[Name], str | None]
"""The kind of a name by its declared type; None for a name that is not declared."""


@dataclass
class LinearForm:
    """The sum of unknowns with factors (`terms`) and a constant; `kind` is that of the sum."""

    kind: str
    terms: dict[str, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @property
    def is_constant(self) -> bool:
        return not self.terms


class Forms:
    """Linear forms of expressions.

    `shifted` has, for each unknown of a real, the unknowns that are this one plus a constant.
    """

    def __init__(self, kind_of: KindOf, aggregate_kind: Callable[[Call], str | None]) -> None:
        self._kind_of = kind_of
        self._aggregate_kind = aggregate_kind
        self._texts: dict[str, int] = {}
        self.shifted: dict[str, dict[Fraction, str]] = {}

    def of(self, x: Expression) -> LinearForm | None:
        match x:
            case Literal(value):
                return self._literal(value)
            case Name():
                return self._unknown(x, self._kind_of(x))
            case Call(function) if function in AGGREGATES:
                return self._unknown(x, self._aggregate_kind(x))
            case Call(function) if function in FUNCTIONS:
                result = FUNCTIONS[function].result
                return self._unknown(x, result if result in ("integer", "string") else None)
            case Negate(operand):
                inner = self.of(operand)
                if inner is None or inner.kind not in ("integer", "real"):
                    return None
                return _scaled(inner, Fraction(-1))
            case Arithmetic():
                return self._arithmetic(x)
            case _:
                return None

    def _literal(self, value: object) -> LinearForm:
        match value:
            case bool():
                return LinearForm("boolean", constant=Fraction(value))
            case int():
                return LinearForm("integer", constant=Fraction(value))
            case float():
                return LinearForm("real", constant=Fraction(value))
            case datetime():
                return LinearForm("timestamp", constant=Fraction(microseconds_of(value)))
        # Texts are only compared for equality: each text has a number of its own.
        return LinearForm(
            "string", constant=Fraction(self._texts.setdefault(str(value), len(self._texts)))
        )

    def _unknown(self, x: Expression, kind: str | None) -> LinearForm | None:
        if kind not in ("integer", "real", "timestamp", "string", "boolean"):
            return None
        return LinearForm(kind, {print_expression(x): Fraction(1)})

    def _arithmetic(self, x: Arithmetic) -> LinearForm | None:
        parts = [self.of(x.first), *(self.of(operand) for _, operand in x.rest)]
        known = [each for each in parts if each is not None]
        kinds = {each.kind for each in known}
        if len(known) < len(parts):
            return None
        operators = [operator for operator, _ in x.rest]
        if kinds == {"integer"}:
            return self._integers(x, known, operators)
        if kinds == {"timestamp"} and operators == ["-"]:
            return self._unknown(x, "real")
        if kinds <= {"integer", "real"}:
            return self._reals(x, known, operators)
        return None

    def _integers(
        self, x: Arithmetic, parts: list[LinearForm], operators: list[str]
    ) -> LinearForm | None:
        total = parts[0]
        for operator, part in zip(operators, parts[1:], strict=True):
            if operator in "+-":
                total = _added(total, part, 1 if operator == "+" else -1)
            elif operator == "*" and (part.is_constant or total.is_constant):
                one, factor = (total, part) if part.is_constant else (part, total)
                total = _scaled(one, factor.constant)
            else:
                return self._unknown(x, "integer")
        return total

    def _reals(
        self, x: Arithmetic, parts: list[LinearForm], operators: list[str]
    ) -> LinearForm | None:
        found = self._unknown(x, "real")
        if found is not None and len(parts) == 2 and operators[0] in "+-":
            first, second = parts
            if first.kind == "real" and _is_single(first) and second.is_constant:
                (unknown,), (name,) = first.terms, found.terms
                shift = second.constant * (1 if operators[0] == "+" else -1)
                self.shifted.setdefault(unknown, {})[shift] = name
        return found


def comparable(left: LinearForm, right: LinearForm) -> bool:
    """Whether a comparison of two forms compares exactly the numbers that they stand for."""
    kinds = {left.kind, right.kind}
    if kinds == {"integer"} or (len(kinds) == 1 and left.kind in ("real", "timestamp")):
        return True
    if kinds != {"integer", "real"}:
        return False
    real, integer = (left, right) if left.kind == "real" else (right, left)
    # Of an integer and a real, one must be a constant that both kinds hold exactly.
    constant = real if real.is_constant else integer
    return constant.is_constant and abs(constant.constant) < EXACT_IN_DOUBLES


def equatable(left: LinearForm, right: LinearForm) -> bool:
    """Whether two forms that are `=` stand for one number."""
    if left.kind == right.kind and left.kind in ("string", "boolean"):
        return True
    return comparable(left, right)


def difference(left: LinearForm, right: LinearForm) -> tuple[Mapping[str, Fraction], Fraction]:
    """The unknowns and the constant of one form minus another."""
    result = _added(left, right, -1)
    return {name: value for name, value in result.terms.items() if value}, result.constant


def _is_single(form: LinearForm) -> bool:
    return list(form.terms.values()) == [1] and not form.constant


def _added(left: LinearForm, right: LinearForm, sign: int) -> LinearForm:
    terms = dict(left.terms)
    for name, value in right.terms.items():
        terms[name] = terms.get(name, Fraction(0)) + sign * value
    return LinearForm(left.kind, terms, left.constant + sign * right.constant)


def _scaled(form: LinearForm, factor: Fraction) -> LinearForm:
    return LinearForm(
        form.kind,
        {name: value * factor for name, value in form.terms.items()},
        form.constant * factor,
    )
