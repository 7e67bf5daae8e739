"""Syntax errors of Lark as messages in the words of the language.

In come Lark's exception and the piece of text that was parsed; out goes one diagnostic: what was
found, what is allowed there, and a hint for a typical mistake. Names of terminals are never shown
to users.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from lark.exceptions import UnexpectedCharacters, UnexpectedInput
from lark.lexer import TerminalDef

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.cutting import Piece, last_written, open_brackets
from ensue.lang.parsing.hints import Mistake, hint_for
from ensue.lang.parsing.recovering import place_of
from ensue.lang.parsing.rewriting.suggestion import Parses
from ensue.lang.source import Span

_MOST_ALTERNATIVES = 6
_LONGEST_SHOWN = 30

_OPERATORS = frozenset(["LOGIC", "COMPARE", "ADDITIVE", "MULTIPLICATIVE", "_LIKE", "_IN"])
_MORE_OPERATORS = frozenset(["NOT", "_MATCHES", "_IS", "_BETWEEN", "_NOT_BETWEEN"])
_CLAUSES = frozenset(["_WITHIN", "_BY", "_BIND", "_KEEP", "_UNLESS", "_HAVING"])
_VALUES = frozenset(
    ["STRING", "INTEGER", "REAL", "TIMESTAMP", "TRUE", "FALSE", "_EXISTS", "_MINUS"]
)
_TERMS = frozenset(
    ["AFTER", "BEFORE", "DURING", "RELATION", "_FILTER", "CONCEPT_TEST", "_HAS", "ONTPROP"]
)
_EXPRESSIONS = frozenset(
    [
        "GROUP",
        "ROUND",
        "_DO",
        "_FAIL",
        "_NOTIFY",
        "_MODES",
        "_TIMEOUT",
        "LESSTHAN",
        "_TRUE_WORD",
        "_FALSE_WORD",
        "_PUSH",
    ]
)
_TYPES = frozenset(
    [
        "SHORT",
        "LONG",
        "UNSIGNED",
        "FLOAT",
        "DOUBLE",
        "BOOLEAN",
        "CHAR",
        "OCTET",
        "STRING_TYPE",
        "TIMESTAMP_TYPE",
        "_SEQUENCE",
    ]
)

# Terminals that are named together: if all of the first are allowed, the second are left out and
# the text is shown.
_TOGETHER: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (
        frozenset({"PLUS", "SEMICOLON", "VBAR"}),
        frozenset({"PLUS", "SEMICOLON", "VBAR", "COLON", "_REPEAT", "_OR_BRANCH"}),
        "an operator such as `+` or `;`",
    ),
    (_EXPRESSIONS, _EXPRESSIONS | {"NAME"}, "an expression such as a port or `accumulate`"),
    (_VALUES, _VALUES | {"NAME", "NOT", "LPAR", "ONTPROP"}, "a value"),
    (_OPERATORS, _OPERATORS | _MORE_OPERATORS | _TERMS | {"NOT"}, "an operator"),
    (_CLAUSES, _CLAUSES, "a clause such as `within`"),
    (_TYPES, _TYPES, "a type such as `long` or `string`"),
    (
        frozenset({"DURATION", "LENGTH_NAME"}),
        frozenset({"DURATION", "LENGTH_NAME"}),
        "a duration such as `10 s`",
    ),
    (
        frozenset({"_PUSH", "ABORT", "REVIVE", "TOGGLE"}),
        frozenset({"_PUSH", "ABORT", "REVIVE", "TOGGLE"}),
        "a statement such as `push`",
    ),
    (
        frozenset({"_EVENTTYPE", "NAME"}),
        frozenset(("_EVENTTYPE", "NAME", "INTERNAL", "TEMPLATE", "_IMPORT", "_PARAMETER", "_USE")),
        "a definition such as `eventtype A {}`",
    ),
)
_PLAIN = {
    "NAME": "a name",
    "INTEGER": "a whole number",
    "REAL": "a number",
    "DURATION": "a duration such as `10 s`",
    "STRING": "a text in quotes",
    "CONCEPT_TEST": "`IS_A`, `SUBSUMES` or `SAME_AS`",
    "CURIE": "a name with a prefix such as `wine:Red`",
    "QUANTIFIER": "`ANY`, `ALL` or `ONLY`",
    "RELATION": "a relation such as `OVERLAPS`",
    "CLOSE_ANGLE": "`>`",
    "_REPEAT": "a count such as `{3}`",
    "FIRST": "`first`",
    "LAST": "`last`",
    "LATEST": "`latest`",
    "NONE": "`none`",
    "ALL": "`all`",
    "_FILTER_TIMEOUT": "`timeout`",
    "_NOT_BETWEEN": "`NOT BETWEEN`",
    "LOGIC": "`AND` or `OR`",
    "COMPARE": "a comparison",
    "_MINUS": "`-`",
    "_NEXT_SOURCE": "`,`",
    "$END": "the end of the definition",
}


def report_syntax_error(
    error: UnexpectedInput,
    grammar_terminals: Iterable[TerminalDef],
    piece: Piece,
    diagnostics: Diagnostics,
    parses: Parses,
) -> None:
    """Report why a piece of the text could not be parsed."""
    text = diagnostics.source.text
    span = place_of(error, piece.end)
    accepted = _accepted(error)
    terminals = {each.name: each for each in grammar_terminals}
    rest = text[span.start : piece.end]
    if rest[:1] in {'"', "'"} and isinstance(error, UnexpectedCharacters):
        line_end = text.find("\n", span.start)
        span = Span(span.start, line_end if line_end >= 0 else len(text))
        quote = rest[0]
        message = "this text in quotes is not closed on its line"
        diagnostics.error("syntax", message, span, f"close it with `{quote}`")
        return
    if rest.startswith("/*"):
        span = Span(span.start, span.start + 2)
        diagnostics.error("syntax", "this comment is not closed", span, "close it with `*/`")
        return
    still_open = open_brackets(text, piece.start, span.start)
    if span.start >= piece.end:
        _report_early_end(text, piece, still_open, accepted, terminals, diagnostics)
        return
    found = rest[: span.end - span.start]
    words = frozenset(_keyword(each, terminals) for each in accepted if each not in _PLAIN)
    hint = hint_for(Mistake(text, piece, span.start, found, accepted, words), parses)
    if hint is None and found in {")", "}", "{"} and still_open:
        opener = still_open[-1]
        if ("RPAR" if text[opener] == "(" else "RBRACE") in accepted:
            place = diagnostics.source.position(opener)
            hint = f"`{text[opener]}` in line {place.line}, column {place.column} is not closed yet"
    message = f"found {_shown(found)}, expected {_listed(accepted, terminals)}"
    diagnostics.error("syntax", message, span, hint)


def _report_early_end(
    text: str,
    piece: Piece,
    still_open: list[int],
    accepted: frozenset[str],
    terminals: Mapping[str, TerminalDef],
    diagnostics: Diagnostics,
) -> None:
    expected = _listed(accepted, terminals)
    if still_open:
        opener = still_open[-1]
        closer = ")" if text[opener] == "(" else "}"
        diagnostics.error(
            "syntax",
            f"`{text[opener]}` is not closed: the definition ends, expected {expected}",
            Span(opener, opener + 1),
            f"close it with `{closer}`",
        )
        return
    at = last_written(text, piece.start, piece.end)
    message = f"the definition ends here, expected {expected}"
    hint = None
    if {"LBRACE", "_WITHIN"} <= accepted:
        hint = "a rule ends with its body: `{ case true: push new Out { name = a.name }; }`"
    diagnostics.error("syntax", message, Span(at, at + 1), hint)


def _accepted(error: UnexpectedInput) -> frozenset[str]:
    """The terminals that are allowed at the mistake."""
    parser = getattr(error, "interactive_parser", None)
    return frozenset(parser.accepts() if parser is not None else ())


def _shown(found: str) -> str:
    if found.isspace() or not found.isprintable():
        return f"the character U+{ord(found[0]):04X}"
    if not found[0].isascii():
        # A letter of another script may look like a correct one.
        name = unicodedata.name(found[0], "").lower()
        return f"`{found[0]}` (U+{ord(found[0]):04X}{', ' if name else ''}{name})"
    shortened = found if len(found) <= _LONGEST_SHOWN else f"{found[: _LONGEST_SHOWN - 3]}..."
    return f"`{shortened}`"


def _listed(accepted: frozenset[str], terminals: Mapping[str, TerminalDef]) -> str:
    """The alternatives in words, the most telling first."""
    left = set(accepted)
    if len(left) > 1:
        # A definition can end almost anywhere, and a name can go on with a dot: neither is what was
        # missing.
        left -= {"$END", "DOT"}
    words: list[str] = []
    for needed, covered, name in _TOGETHER:
        if needed <= left:
            left -= covered
            words.append(name)
    if "an operator" in words or "RBRACE" in left:
        optional = {"SEMICOLON"} if len(left) > 1 and "COMMA" not in left else set()
        left -= optional
    words += sorted({_in_words(each, terminals) for each in left})
    if len(words) > _MOST_ALTERNATIVES:
        words = [*words[: _MOST_ALTERNATIVES - 1], "something else that fits"]
    if not words:
        return "nothing more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _in_words(terminal: str, terminals: Mapping[str, TerminalDef]) -> str:
    if terminal in _PLAIN:
        return _PLAIN[terminal]
    return f"`{_keyword(terminal, terminals)}`"


def _keyword(terminal: str, terminals: Mapping[str, TerminalDef]) -> str:
    """The word or sign that a terminal stands for."""
    definition = terminals.get(terminal)
    if definition is None:
        return terminal.strip("_").lower()
    pattern = str(definition.pattern.value)
    return re.sub(r"\\b$|\\", "", pattern)
