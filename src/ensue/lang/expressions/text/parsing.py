"""The parser of a single expression.

In comes the text of a predicate or a value; out goes its tree, or a `LibraryError` with the place
of the mistake and what is allowed there. Expressions inside a library are read by the same grammar
and the same `TermReading`, through `ensue.lang.parsing.parser`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from importlib.resources import files
from typing import cast

from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.nesting import report_nesting
from ensue.lang.expressions.text.reading import UnreadableError
from ensue.lang.expressions.text.term_reading import TermReading
from ensue.lang.expressions.tree import Expression
from ensue.lang.source import Source, Span


def parse_expression(text: str, name: str = "<expression>") -> Expression:
    """The tree of an expression. Raises `LibraryError` for a mistake, or too deep nesting."""
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
        hint = window_hint(text[:start]) or expected_words(error.accepts or error.expected)
        diagnostics.error("syntax", what, span, hint)
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
    "DURATION": "a duration such as `10 s`",
    "INTEGER": "a whole number",
    "QUANTIFIER": "`ANY`, `ALL` or `ONLY`",
    "CONCEPT_TEST": "`IS_A`, `SUBSUMES` or `SAME_AS`",
    "CURIE": "a name with a prefix such as `wine:Red`",
    "COMPARE": "a comparison",
    "_TIMES": "`TIMES`",
    "$END": "the end of the expression",
}
_OPERAND = frozenset({"NAME", "INTEGER", "STRING"})
_OPERATOR = frozenset({"LOGIC", "ADDITIVE", "MULTIPLICATIVE"})


def expected_words(terminals: Collection[str]) -> str | None:
    """The allowed words in a message: kinds of things rather than every terminal."""
    kinds = set(terminals)
    words = []
    if kinds >= _OPERAND:
        words.append("a value (a name, a constant, a function, `NOT`, `-`, `EXISTS` or `(`)")
        kinds = {"RPAR"} & kinds
    if kinds & _OPERATOR:
        words.append("an operator")
        kinds -= {"_LIKE", "_IN", "LPAR", "DOT", "COMPARE", "CONCEPT_TEST"}
    words.extend(words_of for sign, words_of in _SIGNS.items() if sign in kinds)
    return f"expected {' or '.join(words)}" if words else None


def window_hint(before: str) -> str | None:
    """The hint for `AFTER(10) (...)`, which lacks a unit; `before` ends at the second bracket."""
    if re.search(r"\b(after|before)\s*\(\s*[\d.]+\s*\)\s*\Z", before[-100:], re.IGNORECASE):
        return "give the duration a unit: ms, s, min, h or d"
    return None


@cache
def _parser() -> Callable[[str], Expression]:
    from lark import Lark, Transformer

    class ExpressionTransformer(TermReading, Transformer[object, Expression]):
        pass

    lark = Lark(
        files("ensue.lang.parsing").joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        start="predicate",
        propagate_positions=True,
        maybe_placeholders=True,
        transformer=ExpressionTransformer(),
    )
    return lambda text: cast(Expression, lark.parse(text))
