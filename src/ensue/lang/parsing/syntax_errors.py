"""What Lark could not parse, in the words of the person who wrote it.

In comes Lark's exception and the piece of text that was parsed, out goes one diagnostic: what was
found, what could have stood there, and a hint where a typical mistake can be recognised. The names
of terminals never leave this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import TerminalDef

from ensue.lang.diagnostics import Diagnostics, close_match
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.text.parsing import window_hint
from ensue.lang.parsing.cutting import Piece, last_written, open_brackets
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

# Terminals that are best named together: if all of the first are possible, the second are left
# out and the words are shown.
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
        frozenset({"_PUSH", "ABORT", "REVIVE", "TOGGLE"}),
        frozenset({"_PUSH", "ABORT", "REVIVE", "TOGGLE"}),
        "a statement such as `push`",
    ),
    (
        frozenset({"_EVENTTYPE", "NAME"}),
        frozenset({"_EVENTTYPE", "NAME"}),
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
    "$END": "the end of the definition",
}


def place_of(error: UnexpectedInput, end: int) -> Span:
    """Where the text stops making sense; for a text that stops too early, past its last word."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start = error.token.start_pos or 0
        return Span(start, error.token.end_pos or start + 1)
    if isinstance(error, UnexpectedCharacters):
        # Lark declares it to be None, and always sets it.
        at = cast(int, error.pos_in_stream)
        return Span(at, at + 1)
    return Span(end, end)


def report_syntax_error(
    error: UnexpectedInput,
    grammar_terminals: Iterable[TerminalDef],
    piece: Piece,
    diagnostics: Diagnostics,
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
    hint = _hint(text, span, found, accepted, terminals)
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
    terminals: dict[str, TerminalDef],
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
    diagnostics.error("syntax", message, Span(at, at + 1))


def _accepted(error: UnexpectedInput) -> frozenset[str]:
    """The terminals that could have stood there."""
    parser = getattr(error, "interactive_parser", None)
    return frozenset(parser.accepts() if parser is not None else ())


def _shown(found: str) -> str:
    if found.isspace() or not found.isprintable():
        return f"the character U+{ord(found[0]):04X}"
    shortened = found if len(found) <= _LONGEST_SHOWN else f"{found[: _LONGEST_SHOWN - 3]}..."
    return f"`{shortened}`"


def _listed(accepted: frozenset[str], terminals: dict[str, TerminalDef]) -> str:
    """The alternatives in words, the most telling first."""
    left = set(accepted)
    if len(left) > 1:
        # A definition can end almost anywhere, and a `;` is never what was missing there; nor is
        # the dot with which a name goes on.
        left -= {"$END", "DOT"}
    words: list[str] = []
    for needed, covered, name in _TOGETHER:
        if needed <= left:
            left -= covered
            words.append(name)
    if "an operator" in words or "RBRACE" in left:
        optional = {"SEMICOLON"} if len(left) > 1 and "COMMA" not in left else set()
        left -= optional
    words += sorted(_in_words(each, terminals) for each in left)
    if len(words) > _MOST_ALTERNATIVES:
        words = [*words[: _MOST_ALTERNATIVES - 1], "something else that fits"]
    if not words:
        return "nothing more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _in_words(terminal: str, terminals: dict[str, TerminalDef]) -> str:
    if terminal in _PLAIN:
        return _PLAIN[terminal]
    return f"`{_keyword(terminal, terminals)}`"


def _keyword(terminal: str, terminals: dict[str, TerminalDef]) -> str:
    """The word or sign that a terminal stands for."""
    definition = terminals.get(terminal)
    if definition is None:
        return terminal.strip("_").lower()
    pattern = str(definition.pattern.value)
    return re.sub(r"\\b$|\\", "", pattern)


_ARROWS = ("->", "=>", "~>")
_OTHER_TYPES = {
    "int": "long",
    "integer": "long",
    "byte": "octet",
    "real": "double",
    "bool": "boolean",
    "str": "string",
    "text": "string",
    "date": "timestamp",
    "datetime": "timestamp",
}


def _hint(
    text: str,
    span: Span,
    found: str,
    accepted: frozenset[str],
    terminals: dict[str, TerminalDef],
) -> str | None:
    """What was probably meant, where that can be told."""
    here = text[span.start : span.start + 2]
    in_filter = "PLUS" in accepted
    in_labels = "AMPERSAND" in accepted
    before = text[span.start - 1 : span.start]
    word = found.lower()
    if here in _ARROWS and in_filter:
        return "`a ; b` says that `b` comes after `a`"
    if in_filter and (here in {"&&", "& "} or word in {"&", "and"}):
        return "`a + b` asks for both in any order, `a ; b` for one after the other"
    if in_filter and word == "or":
        return "`a | b` asks for one of them"
    if in_filter and word == ",":
        return "ports are joined by `+`, `;` or `|`"
    if (in_labels and word in {"and", "or", "||"}) or (before == found and found in {"&", "|"}):
        return "labels are joined by `&` and `|`, and `!` stands for not"
    if "LOGIC" in accepted and here in {"&&", "||"}:
        return "conditions are joined by `AND` and `OR`"
    if "_EXISTS" in accepted and before == "=" and found == "=":
        return "values are compared by a single `=`"
    if "_EXISTS" in accepted and found == "!":
        return "a condition is turned around by `NOT`"
    if "DURATION" in accepted and found[:1].isdigit():
        return _duration_hint(text[span.start : span.start + 40])
    if "_FILTER_TIMEOUT" in accepted and found == "!":
        return _ABSENCE
    if in_filter and _LAST_WORD_IS_NOT.search(text[max(0, span.start - 10) : span.start]):
        return _ABSENCE
    called = _word_before(text, span.start).lower()
    if in_filter and found == "(" and called.upper() in AGGREGATES:
        return f"what is counted or added up is asked in a clause: `having {called}(...)`"
    if found == "." and (hint := _dotted_type_hint(text, span.start, accepted)):
        return hint
    if found == "(" and (unit := window_hint(text[: span.start])) is not None:
        return unit
    if accepted == {"COMMA", "SEMICOLON", "DOT"}:
        return "an attribute ends with `;`"
    if accepted >= _TYPES and found in _OTHER_TYPES:
        return f"the type is called `{_OTHER_TYPES[found]}` here"
    if "_ATTRIBUTE" in accepted and _is_word(found) and not close_match(found, ["attribute"]):
        return f"an attribute begins with its word: `attribute {found} ...;`"
    if _is_word(found):
        hint = _misspelt(found, accepted, terminals)
        if hint is not None:
            return hint
    return _misspelt_before(text, span.start, found, accepted)


_ABSENCE = (
    "what must not come is named in a clause: `a ; c` with `unless b` is c after a with no b "
    "between, and `a ; timeout(30 s)` with `unless b` is a with no b for so long"
)
_LAST_WORD_IS_NOT = re.compile(r"\bnot\s+\Z", re.IGNORECASE)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_UNITS = {
    **dict.fromkeys(("m", "mn", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
}


def _duration_hint(rest: str) -> str:
    found = _QUANTITY.match(rest)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found and unit:
        return f"write `{found[1]} {unit}`"
    return "give the duration a unit: ms, s, min, h or d"


_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def _word_before(text: str, at: int) -> str:
    before = _LAST_WORD.search(text[max(0, at - 100) : at])
    return before[1] if before else ""


def _dotted_type_hint(text: str, dot: int, accepted: frozenset[str]) -> str | None:
    """A type with dots in its name, where it is declared or where a port or a rule names it."""
    is_declared = accepted == {"EQUAL", "COLON", "LBRACE"}
    if not is_declared and accepted != {"NAME"} and accepted != {"_CORRELATION", "_ECL"}:
        return None
    first = _word_before(text, dot)
    found = _DOTTED.match(text, dot - len(first))
    if found is None:
        return None
    name = found[0].rpartition(".")[2]
    written = f'eventtype {name[:1].upper()}{name[1:]} = "{found[0]}"'
    if is_declared:
        return f"a type has a name without dots, and says which one events carry: `{written} {{}}`"
    return f"declare the type by a name without dots, `{written} {{ ... }}`, and use that here"


def _is_word(found: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", found) is not None


_LAST_WORD = re.compile(r"(\w+)\s*\Z")
_BLOCKS = (
    *("accumulate", "select", "sequential", "parallel", "repeat", "persist", "loop"),
    *("notify", "fail", "modes", "timeout"),
)


def _misspelt_before(text: str, at: int, found: str, accepted: frozenset[str]) -> str | None:
    """A misspelt word is taken for a name, and only what follows it looks wrong."""
    # A word of the language is short, so there is no need to look back far.
    before = _LAST_WORD.search(text[max(0, at - 100) : at])
    word = before[1] if before else ""
    if accepted == {"_CORRELATION", "_ECL"}:
        match = close_match(word, ["eventtype"])
        begin = "a definition begins with `eventtype`, or with `Type correlation Name (`"
        return f"did you mean `{match}`?" if match else begin
    if found in {"{", "("} and "RBRACE" in accepted:
        match = close_match(word, _BLOCKS)
        return f"did you mean `{match}`?" if match and match != word else None
    return None


def _misspelt(
    found: str, accepted: frozenset[str], terminals: dict[str, TerminalDef]
) -> str | None:
    words = {_keyword(each, terminals) for each in accepted if each not in _PLAIN}
    words |= {"accumulate", "select", "sequential", "parallel"} if "GROUP" in accepted else set()
    words |= {"repeat", "persist", "loop"} if "ROUND" in accepted else set()
    match = close_match(found, {each for each in words if each.isalpha()} - {found})
    return f"did you mean `{match}`?" if match else None
