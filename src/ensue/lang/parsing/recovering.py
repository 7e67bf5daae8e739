"""The units of a definition with a mistake, which are left out to find further mistakes.

In comes the text of a definition whose brackets match; out come its units: the attributes of an
event type, the ports, the filter, the clauses and the statements of a correlation, and the operands
of an expression. A unit with a mistake is blanked, or replaced by a harmless text that is not
longer, so that all offsets stay the same, and the text is parsed again. Nothing that is read in
this way becomes part of a library: only the mistakes in it are reported (`parser`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ensue.lang.parsing.cutting import Piece
from ensue.lang.source import Span

_TOKEN = re.compile(
    r"""//[^\n]* | /\*[\s\S]*?(?:\*/|\Z)
      | (?P<text>"(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?)
      | (?P<count>\{\s*\d+\s*(?:,\s*\d*\s*)?\})
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>\S)""",
    re.VERBOSE,
)
_CLAUSES = frozenset({"within", "by", "bind", "keep", "unless", "having"})
_STATEMENTS = frozenset({"push", "abort", "revive", "toggle"})
_OPENING, _CLOSING = frozenset("({"), frozenset(")}")

_PORT_CONDITION = re.compile(r"\b(?:from|where|if|when)\b|\[|\(")

PartKind = Literal["attribute", "port", "head", "statement"]
"""A head is a filter with its clauses."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a definition and its stand-in; the first word of a `starter` only begins units."""

    start: int
    end: int
    stand_in: str = ""
    starter: bool = False
    kind: PartKind | None = None


@dataclass(frozen=True, slots=True)
class DefinitionPart:
    """A part of a definition that can be rewritten by itself, and the ports that it may name."""

    start: int
    end: int
    kind: PartKind
    ports: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


def units_of(text: str, piece: Piece) -> list[Unit]:
    """The units of a definition in order; none if its brackets do not match."""
    tokens = [
        _Token(found.group(), found.start(), found.end())
        for found in _TOKEN.finditer(text, piece.start, piece.end)
        if found.lastgroup is not None
    ]
    if not _is_balanced(tokens):
        return []
    words = [each.text for each in tokens[:3]]
    if words[:1] == ["eventtype"]:
        return list(_attributes(tokens))
    if len(words) == 3 and words[1] in ("correlation", "ecl"):
        return list(_parts(tokens, is_ecl=words[1] == "ecl"))
    return []


def blanked(text: str, unit: Unit) -> str | None:
    """The text with a stand-in for a unit; None if there is no room for it."""
    room = unit.end - unit.start
    if len(unit.stand_in) > room:
        return None
    return text[: unit.start] + unit.stand_in.ljust(room) + text[unit.end :]


def unit_with(units: Sequence[Unit], place: int) -> Unit | None:
    """The unit with a mistake that was noticed at a place."""
    before: Unit | None = None
    for unit in units:
        if unit.start > place:
            break
        if unit.start == place and unit.starter and before is not None:
            # The first word of a unit is right: the mistake is in the unit before it.
            break
        before = unit
    return before


def part_around(text: str, piece: Piece, place: int) -> DefinitionPart | None:
    """The part with a mistake that was noticed at a place; a filter together with its clauses."""
    units = units_of(text, piece)
    unit = unit_with(units, place)
    if unit is None or unit.kind is None:
        return None
    start, end = unit.start, unit.end
    if unit.kind == "head":
        heads = [each for each in units if each.kind == "head"]
        start, end = heads[0].start, heads[-1].end
    elif unit.kind == "statement" and (following := _missing_colon(text, units, unit)):
        end = following.end
    declared = [text[each.start : each.end] for each in units if each.kind == "port"]
    # Types and other words are included, since a port may itself be written in a wrong way.
    ports = [re.findall(r"\w+", _PORT_CONDITION.split(each, 1)[0]) for each in declared]
    return DefinitionPart(start, end, unit.kind, frozenset(name for each in ports for name in each))


def _missing_colon(text: str, units: Sequence[Unit], unit: Unit) -> Unit | None:
    """The statement behind the head of a case that has no `:`."""
    written = text[unit.start : unit.end]
    at = units.index(unit) + 1
    is_head = written.startswith("case") and ":" not in written
    return units[at] if is_head and at < len(units) else None


def _is_balanced(tokens: Sequence[_Token]) -> bool:
    opened: list[str] = []
    for token in tokens:
        if token.text in _OPENING:
            opened.append(token.text)
        elif token.text in _CLOSING and (
            not opened or (opened.pop() == "(") != (token.text == ")")
        ):
            return False
    return not opened


def _depths(tokens: Sequence[_Token]) -> Iterator[tuple[_Token, int]]:
    """Each token with the number of brackets around it; a bracket is inside of itself."""
    depth = 0
    texts = [token.text for token in tokens]
    has_squares = texts.count("[") == texts.count("]")
    opening = _OPENING | {"["} if has_squares else _OPENING
    closing = _CLOSING | {"]"} if has_squares else _CLOSING
    for token in tokens:
        depth += token.text in opening
        yield token, depth
        depth -= token.text in closing


def _attributes(tokens: Sequence[_Token]) -> Iterator[Unit]:
    opening = next((n for n, each in enumerate(tokens) if each.text == "{"), 0)
    if opening > 1:
        yield Unit(tokens[1].start, tokens[opening - 1].end, "A")
    start: int | None = None
    end = 0
    for token, depth in _depths(tokens):
        if depth != 1 or token.text in ("{", "}"):
            continue
        start = token.start if start is None else start
        end = token.end
        if token.text == ";":
            yield Unit(start, end, kind="attribute")
            start = None
    if start is not None:
        yield Unit(start, end, kind="attribute")


def _parts(tokens: Sequence[_Token], *, is_ecl: bool) -> Iterator[Unit]:
    opening = next((n for n, each in enumerate(tokens) if each.text == "("), None)
    if opening is None:
        return
    depth, closing = 0, opening
    for number, token in enumerate(tokens[opening:], opening):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0:
            closing = number
            break
    yield from _ports(tokens[opening + 1 : closing])
    body = next(
        (n for n, (each, d) in enumerate(_depths(tokens)) if each.text == "{" and d == 1), None
    )
    if body is None or body < closing:
        return
    heads = _clauses(tokens[closing + 1 : body])
    yield from (replace(each, kind=None) for each in heads) if is_ecl else heads
    inside = tokens[body + 1 : -1] if tokens[-1].text == "}" else tokens[body + 1 :]
    inside = [each for each in inside if each.start < tokens[-1].start]
    yield from _operands(inside) if is_ecl else _statements(inside)


def _operands(tokens: Sequence[_Token]) -> Iterator[Unit]:
    """The operands of an expression without operands of their own, and the words before braces."""
    first: _Token | None = None
    round_brackets = end = 0
    for token in tokens:
        round_brackets += (token.text == "(") - (token.text == ")")
        if token.text in "{}" or (token.text in ",;" and not round_brackets):
            if first is not None:
                yield Unit(first.start, end, "select" if token.text == "{" else "a")
            first = None
            continue
        first = token if first is None else first
        end = token.end
    if first is not None:
        yield Unit(first.start, end, "a")


def _ports(tokens: Sequence[_Token]) -> Iterator[Unit]:
    start: int | None = None
    end = 0
    for token, depth in _depths(tokens):
        if depth == 0 and token.text == ",":
            if start is not None:
                yield Unit(start, end, "A a", kind="port")
            start = None
            continue
        start = token.start if start is None else start
        end = token.end
    if start is not None:
        yield Unit(start, end, "A a", kind="port")


def _clauses(tokens: Sequence[_Token]) -> Iterator[Unit]:
    """The filter, then each clause from its word to the next.

    Clauses that stand before the filter are one unit with it: one mistake, and not one for each.
    """
    first: _Token | None = None
    if tokens and tokens[0].text in _CLAUSES:
        yield Unit(tokens[0].start, tokens[-1].end, "a", kind="head")
        return
    end = 0
    for token, depth in _depths(tokens):
        if first is None:
            first = token
        elif depth == 0 and token.text in _CLAUSES:
            yield _clause(first, end)
            first = token
        end = token.end
    if first is not None:
        yield _clause(first, end)


def _clause(first: _Token, end: int) -> Unit:
    is_clause = first.text in _CLAUSES
    return Unit(first.start, end, "" if is_clause else "a", is_clause, "head")


def _statements(tokens: Sequence[_Token]) -> Iterator[Unit]:
    """Statements, and the heads of cases up to their `:`."""
    first: _Token | None = None
    end = 0
    for token, depth in _depths(tokens):
        begins = depth == 0 and (token.text in _STATEMENTS or token.text == "case")
        if first is not None and begins:
            yield _statement(first, end)
            first = None
        first = token if first is None else first
        end = token.end
        ends_head = token.text == ":" and first.text == "case"
        if depth == 0 and (token.text == ";" or ends_head):
            yield _statement(first, end)
            first = None
    if first is not None:
        yield _statement(first, end)


def _statement(first: _Token, end: int) -> Unit:
    # Without the head of a case, its statements belong to the case before it, or to none.
    return Unit(first.start, end, "", first.text in _STATEMENTS | {"case"}, "statement")


def place_of(error: UnexpectedInput, end: int) -> Span:
    """The place of a mistake; for a text that ends too early, the end of its last word."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start = error.token.start_pos or 0
        return Span(start, error.token.end_pos or start + 1)
    if isinstance(error, UnexpectedCharacters):
        # Lark declares it to be None, and always sets it.
        at = cast(int, error.pos_in_stream)
        return Span(at, at + 1)
    return Span(end, end)
