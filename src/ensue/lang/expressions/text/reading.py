"""From the parser's reductions to expression trees.

`ExpressionReading` has one method for each expression rule of `grammar.lark`. It is mixed into the
transformer that the LALR parser calls while it reads, so that no tree of tokens is walked and deep
input needs no Python stack. The grammar keeps operators as tokens, so that every node knows its
span; brackets only widen the span of the node inside. The rules under `term` are read by the
subclass in `term_reading`.

Only a literal that no tree can hold is refused here, as `UnreadableError`. Numbers out of range are
left to `checking.kinds`, too deep nesting to `nesting`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ensue.events.times import datetime_of, parse_time
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
from ensue.lang.source import Span

if TYPE_CHECKING:
    from lark import Token

# A node, a token of lark, or `None` where an optional sign was left out.
Child: TypeAlias = "Expression | Token | None"

# Longer numbers are out of range in any case, and Python refuses to read very long ones.
_MOST_DIGITS = 20


class UnreadableError(Exception):
    """A literal that has the right shape and no value, such as the 30th of February."""

    def __init__(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.code = code
        self.message = message
        self.span = span
        self.hint = hint
        super().__init__(code, message, span, hint)


class ExpressionReading:
    """The expression rules of the grammar; each method takes the children of its rule."""

    def parameter_name(self, token: Token, of: str) -> Name:
        """The name of a parameter, which only a library has, where a constant is needed."""
        raise UnreadableError(
            "bad-constant",
            f"{of} takes a constant here, and `{token}` is a name",
            span_over([token]),
            "write the constant itself, a text in quotes",
        )

    def logic(self, children: Sequence[Child]) -> Expression:
        operators = tuple(each.upper() for each in signs_in(children))
        return Logic(tuple(nodes_in(children)), operators, span_over(children))

    def comparison(self, children: Sequence[Child]) -> Expression:
        operators = ["!=" if each == "<>" else str(each) for each in signs_in(children)]
        first, *others = nodes_in(children)
        return Comparison(first, tuple(zip(operators, others, strict=True)), span_over(children))

    def additive(self, children: Sequence[Child]) -> Expression:
        first, *others = nodes_in(children)
        operators = [str(each) for each in signs_in(children)]
        return Arithmetic(first, tuple(zip(operators, others, strict=True)), span_over(children))

    multiplicative = additive

    def like(self, children: Sequence[Child]) -> Expression:
        (operand,) = nodes_in(children)
        token = signs_in(children)[-1]
        negated, span = _is_negated(children), span_over(children)
        if token.type == "NAME":
            return Like(operand, "", negated, span, self.parameter_name(token, "`LIKE`"))
        return Like(operand, unquoted(token), negated, span)

    def in_set(self, children: Sequence[Child]) -> Expression:
        operand, *options = nodes_in(children)
        return In(operand, tuple(options), _is_negated(children), span_over(children))

    def matches(self, children: Sequence[Child]) -> Expression:
        (operand,) = nodes_in(children)
        token = signs_in(children)[-1]
        pattern: Expression
        if token.type == "NAME":
            pattern = self.parameter_name(token, "`MATCHES`")
        else:
            pattern = Literal(unquoted(token), span_over([token]))
        found = Call("MATCHES", (operand, pattern), span_over(children))
        return Not(found, found.span) if _is_negated(children) else found

    def is_null(self, children: Sequence[Child]) -> Expression:
        (operand,) = nodes_in(children)
        found = Call("IS_NULL", (operand,), span_over(children))
        return Not(found, found.span) if _is_negated(children) else found

    def between(self, children: Sequence[Child]) -> Expression:
        operands = tuple(nodes_in(children))
        link = signs_in(children)[-1]
        if link.upper() != "AND":
            raise UnreadableError(
                "between-without-and",
                f"`BETWEEN` has two bounds, joined by `AND`, and `{link}` was found",
                Span(link.start_pos or 0, link.end_pos or 0),
                "write `x BETWEEN low AND high`",
            )
        return Call("BETWEEN", operands, span_over(children))

    def not_between(self, children: Sequence[Child]) -> Expression:
        found = self.between(children)
        return Not(found, found.span)

    def not_(self, children: Sequence[Child]) -> Expression:
        (operand,) = nodes_in(children)
        return Not(operand, span_over(children))

    def negate(self, children: Sequence[Child]) -> Expression:
        (operand,) = nodes_in(children)
        return Negate(operand, span_over(children))

    def exists(self, children: Sequence[Child]) -> Expression:
        (name,) = nodes_in(children)
        assert isinstance(name, Name), "the grammar lets only a name follow EXISTS"
        return Exists(name, span_over(children))

    def call(self, children: Sequence[Child]) -> Expression:
        return Call(signs_in(children)[0].upper(), tuple(nodes_in(children)), span_over(children))

    def bracket(self, children: Sequence[Child]) -> Expression:
        (inside,) = nodes_in(children)
        return replace(inside, span=span_over(children))

    def true_literal(self, children: Sequence[Child]) -> Expression:
        return Literal(True, span_over(children))

    def false_literal(self, children: Sequence[Child]) -> Expression:
        return Literal(False, span_over(children))

    def integer(self, children: Sequence[Child]) -> Expression:
        digits = signs_in(children)[0].lstrip("0") or "0"
        value = int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
        return Literal(value, span_over(children))

    def real(self, children: Sequence[Child]) -> Expression:
        return Literal(float(signs_in(children)[0]), span_over(children))

    def timestamp(self, children: Sequence[Child]) -> Expression:
        span = span_over(children)
        try:
            return Literal(datetime_of(parse_time(str(signs_in(children)[0]))), span)
        except ValueError as error:
            raise UnreadableError("no-such-time", str(error), span) from None

    def string(self, children: Sequence[Child]) -> Expression:
        return Literal(unquoted(signs_in(children)[0]), span_over(children))

    def name(self, children: Sequence[Child]) -> Expression:
        parts = tuple(str(each) for each in signs_in(children) if each.type == "NAME")
        return Name(parts, span_over(children))


def signs_in(children: Sequence[Child]) -> list[Token]:
    # A token is a string and a node is not, so that lark need not be imported here.
    return [each for each in children if isinstance(each, str)]


def nodes_in(children: Sequence[Child]) -> list[Expression]:
    return [each for each in children if each is not None and not isinstance(each, str)]


def _is_negated(children: Sequence[Child]) -> bool:
    return any(each.type == "NOT" for each in signs_in(children))


def span_over(children: Sequence[Child]) -> Span:
    present = [each for each in (children[0], children[-1]) if each is not None]
    return Span(_start(present[0]), _end(present[-1]))


def _start(child: Expression | Token) -> int:
    return (child.start_pos or 0) if isinstance(child, str) else child.span.start


def _end(child: Expression | Token) -> int:
    return (child.end_pos or 0) if isinstance(child, str) else child.span.end


def unquoted(text: str) -> str:
    """A backslash escapes only a quote and itself: LIKE patterns need all others as they are."""
    return re.sub(rf"\\([\\{text[0]}])", r"\1", text[1:-1])
