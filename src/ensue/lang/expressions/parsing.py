"""One expression as text, read by itself.

In comes the text of a predicate or a value, out goes its tree, or a `LibraryError` that says where
the text stops being one and what could stand there. Expressions inside a library are read by the
same grammar and the same `ExpressionReading`, through `ensue.lang.parser`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib.resources import files
from typing import cast

from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.nesting import report_nesting
from ensue.lang.expressions.reading import ExpressionReading, UnreadableError
from ensue.lang.expressions.tree import Expression
from ensue.lang.source import Source, Span


def parse_expression(text: str, name: str = "<expression>") -> Expression:
    """Read one expression. Raises `LibraryError` if it is none, or nested too deep."""
    # lark takes longer to import than the rest of the package; trees built in Python need none.
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    diagnostics = Diagnostics(Source.of(text, name))
    try:
        expression = _parser()(text)
    except UnreadableError as error:
        diagnostics.error(error.code, error.message, error.span, error.hint)
    except UnexpectedToken as error:
        start, found = error.token.start_pos or 0, str(error.token)
        what = f"`{found}` cannot stand here"
        if error.token.type == "$END":
            start, found, what = len(text.rstrip()), "", "the expression ends here"
        span = Span(start, start + len(found))
        diagnostics.error("syntax", what, span, expected_words(error.accepts or error.expected))
    except UnexpectedCharacters as error:
        # lark declares the place as None.
        start = cast(int, error.pos_in_stream)
        if text[start] in "'\"":
            what, hint = "this string does not end", f"close it with `{text[start]}` on its line"
        else:
            what, hint = f"`{text[start]}` is no sign of the language", "take it out"
        diagnostics.error("syntax", what, Span(start, start + 1), hint)
    else:
        if report_nesting(expression, diagnostics):
            return expression
    raise LibraryError(diagnostics.in_order())


_SIGNS = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "STRING": "a string",
    "NAME": "a name",
    "_LIKE": "`LIKE`",
    "_IN": "`IN`",
    "$END": "the end of the expression",
}
_OPERAND = frozenset({"NAME", "INTEGER", "STRING"})
_OPERATOR = frozenset({"LOGIC", "COMPARE", "ADDITIVE", "MULTIPLICATIVE"})


def expected_words(terminals: Collection[str]) -> str | None:
    """What could have stood there, for a person: kinds of things rather than every terminal."""
    kinds = set(terminals)
    words = []
    if kinds >= _OPERAND:
        words.append("a value (a name, a constant, a function, `NOT`, `-`, `EXISTS` or `(`)")
        kinds = {"RPAR"} & kinds
    if kinds & _OPERATOR:
        words.append("an operator")
        kinds -= {"_LIKE", "_IN", "LPAR", "DOT"}
    words.extend(words_of for sign, words_of in _SIGNS.items() if sign in kinds)
    return f"expected {' or '.join(words)}" if words else None


@cache
def _parser() -> Callable[[str], Expression]:
    from lark import Lark, Transformer

    class Reading(ExpressionReading, Transformer[object, Expression]):
        pass

    lark = Lark(
        files("ensue.lang").joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        start="predicate",
        propagate_positions=True,
        maybe_placeholders=True,
        transformer=Reading(),
    )
    return lambda text: cast(Expression, lark.parse(text))
