"""Warnings of expressions that are correct and misleading: their meaning is not what it seems.

In come a tree and the declared types of its names; into the `Diagnostics` go comparisons that are
constant by their form, texts that an operator takes for numbers, `NOT` that binds tighter than it
seems to, `AND` and `OR` without brackets, and patterns with the wildcards of another language.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.text.printing import print_expression, quote
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.source import NOWHERE

_LONGEST_READING = 120
_MOST_OPERANDS_SHOWN = 12


def warn_constant(
    whole: Comparison, left: Expression, right: Expression, diagnostics: Diagnostics
) -> None:
    """Warn of a comparison that is constant by its form: of a value with itself, or of constants.

    Both sides must be sums and products of numbers and of one and the same name.
    """
    names, others = _plain_names(left), _plain_names(right)
    if names is None or names != others or len(names) > 1:
        return
    if names:
        (parts,) = names
        what = f"both sides are computed from `{'.'.join(parts)}` alone"
        hint = (
            "to compare two events, give each its port and ask in the clause `having`: "
            f"`having b.{parts[-1]} < a.{parts[-1]}`"
        )
    else:
        what, hint = "both sides are constants", "compare an attribute with a constant"
        quoted = next((each for each in (left, right) if _is_name_in_quotes(each)), None)
        if isinstance(quoted, Literal):
            hint = f"an attribute stands without quotes: `{quoted.value}`"
    diagnostics.warning(
        "constant-comparison",
        f"{what}, so this comparison does not depend on which events came",
        whole.span,
        hint,
    )


def warn_chained(whole: Comparison, diagnostics: Diagnostics) -> None:
    """Warn of `3 < n < 5`, which compares the truth of `3 < n` with 5."""
    (first_sign, middle), (second_sign, last), *_ = whole.rest
    first, second = print_expression(whole.first), print_expression(middle)
    third = print_expression(last)
    hint = "ask each by itself, joined by `AND`"
    if len(first + second + third) <= _LONGEST_READING:
        read = f"({first} {first_sign} {second}) {second_sign} {third}"
        meant = f"{first} {first_sign} {second} AND {second} {second_sign} {third}"
        hint = f"it is read as `{read}`; write `{meant}`"
    diagnostics.warning(
        "chained-comparison",
        "comparisons in a row are read from the left: the second one compares what is true or"
        " false",
        whole.span,
        hint,
    )


def _is_name_in_quotes(x: Expression) -> bool:
    return (
        isinstance(x, Literal)
        and isinstance(x.value, str)
        and re.fullmatch(r"[A-Za-z_]\w*", x.value) is not None
    )


def warn_text_as_number(
    sign: str, name: Name, other: Expression, others_kind: str | None, diagnostics: Diagnostics
) -> None:
    """Warn of an attribute that is text, where an operator reads it as a number."""
    text, given = name.text, print_expression(other)
    if sign == "+":
        hint = f"texts are joined by `CONCAT({text}, ...)`; a number in it is `INT({text})`"
    elif sign in ("=", "!="):
        hint = f"write `{text} {sign} {_as_text(other, given)}` to compare texts"
    elif sign in ("<", "<=", ">", ">="):
        number = f"INT({given})" if others_kind == "string" else given
        hint = (
            f"texts have no order; write `INT({text}) {sign} {number}` if it holds integers, or "
            "declare it as a number"
        )
    else:
        hint = f"write `INT({text})` if it holds integers, or declare it as a number"
    diagnostics.warning(
        "text-as-number",
        f"`{text}` is a string, and `{sign}` reads it as a number: this is an error where it holds "
        "none",
        name.span,
        hint,
    )


def _as_text(x: Expression, shown: str) -> str:
    return f"'{shown}'" if isinstance(x, Literal | Negate) else f"STRING({shown})"


def warn_wildcards(whole: Like, diagnostics: Diagnostics) -> None:
    """Warn of a pattern of `LIKE` with the wildcards of a shell: `'x*'`."""
    pattern = whole.pattern
    if "*" in pattern and not re.search(r"(?<!\\)[%_]", pattern):
        diagnostics.warning(
            "star-in-pattern",
            "`*` stands for itself in a pattern of `LIKE`, and this one has no `%` and no `_`",
            whole.span,
            f"write `LIKE {quote(pattern.replace('*', '%'))}`: `%` stands for any text, `_` for "
            "one character",
        )


def warn_not_binds_tightest(
    whole: Comparison | Like | In | Call, operand: Expression, diagnostics: Diagnostics
) -> None:
    """Warn of `NOT x = y`, which is read as `(NOT x) = y`."""
    text = diagnostics.source.text
    if not isinstance(operand, Not) or operand.span == NOWHERE:
        return
    # The span of an operand in brackets begins with the bracket.
    if text[operand.span.start : operand.span.start + 1] == "(":
        return
    inner = print_expression(operand.operand)
    match whole:
        case Comparison(_, ((sign, right), *_)):
            shown = f"(NOT {inner}) {sign} {print_expression(right)}"
            instead = f"NOT ({inner} {sign} {print_expression(right)})"
        case Like(_, pattern, negated):
            sign = "NOT LIKE" if negated else "LIKE"
            shown = f"(NOT {inner}) {sign} {quote(pattern)}"
            instead = f"{inner} {'LIKE' if negated else 'NOT LIKE'} {quote(pattern)}"
        case In(_, _, negated):
            sign = "NOT IN" if negated else "IN"
            shown = f"(NOT {inner}) {sign} (...)"
            instead = f"{inner} {'IN' if negated else 'NOT IN'} (...)"
        case Call(_, (_, *others)):
            written = replace(whole, arguments=(operand.operand, *others))
            first = print_expression(operand)
            shown = f"({first}){print_expression(whole).removeprefix(first)}"
            instead = print_expression(Not(written))
        case _:
            return
    hint = f"it is read as `{shown}`; to negate the whole, write `{instead}`"
    if len(shown) > _LONGEST_READING:
        hint = "put brackets around what is to be negated"
    diagnostics.warning(
        "not-binds-tightest", "`NOT` binds tighter than what follows", whole.span, hint
    )


def warn_mixed(logic: Logic, diagnostics: Diagnostics) -> None:
    """Warn of `AND` and `OR` beside each other without brackets."""
    if len(set(logic.operators)) > 1:
        diagnostics.warning(
            "mixed-logic",
            f"{' and '.join(f'`{each}`' for each in sorted(set(logic.operators)))} are mixed "
            "without brackets, have one precedence and are read from the right",
            logic.span,
            _reading_of(logic),
        )


def _plain_names(x: Expression) -> frozenset[tuple[str, ...]] | None:
    """The names in a sum or product of names and constants; None for any other expression."""
    match x:
        case Name(parts):
            return frozenset({parts})
        case Literal():
            return frozenset()
        case Negate(operand):
            return _plain_names(operand)
        case Arithmetic(first, rest) if all(sign != "%" for sign, _ in rest):
            found = [_plain_names(each) for each in (first, *(operand for _, operand in rest))]
            inside = [each for each in found if each is not None]
            return frozenset().union(*inside) if len(inside) == len(found) else None
        case _:
            return None


def _reading_of(logic: Logic) -> str:
    if len(logic.operands) > _MOST_OPERANDS_SHOWN:
        return "put brackets around the parts that belong together"
    operands = [print_expression(each) for each in logic.operands]
    operands = [
        f"({text})" if isinstance(each, Logic) else text
        for each, text in zip(logic.operands, operands, strict=True)
    ]
    text = operands[0]
    opened = 0
    for index, (sign, operand) in enumerate(zip(logic.operators, operands[1:], strict=True)):
        following = logic.operators[index + 1 : index + 2]
        changes = bool(following) and following[0] != sign
        opened += changes
        text += f" {sign} {'(' if changes else ''}{operand}"
    text += ")" * opened
    if len(text) > _LONGEST_READING:
        return "put brackets around the parts that belong together"
    return f"it is read as `{text}`"
