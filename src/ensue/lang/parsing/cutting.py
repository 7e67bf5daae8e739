"""Cuts the text of a library into definitions, so that a mistake in one does not hide the others.

In comes text; out come pieces, each a definition by its brackets and first words; text between two
definitions belongs to the piece before it. Nothing is parsed here. There are two cuts: `by_depth`
trusts the brackets and is exact for every correct text, in which a definition begins where no
bracket is open; `by_words` is for a piece that did not parse, probably because of its brackets, and
also cuts where the words say that a definition begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# There is only one way to match any text, so that a lookahead with it never takes long.
COMMENT = r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/"
_COUNT = r"\{\s*\d+\s*(?:,\s*\d*\s*)?\}"
_GAP = rf"(?>\s+|{COMMENT})"
# `where correlation in (...)` begins like a definition and is none.
_IN_A_BODY = re.compile(
    rf"{_NAME}{_GAP}+(?:correlation|ecl){_GAP}+(?:(?i:and|or|xor|in)|abort|revive|toggle)\b"
)
_ONLY_GAPS = re.compile(rf"{_GAP}*")
_WORD_OR_SIGN = re.compile(
    rf"""(?:{_GAP})*(/\*[\s\S]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|[A-Za-z0-9_.]+|[^\s]|\Z)"""
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text. `too_deep` is the place at which its nesting passes the limit, if any."""

    start: int
    end: int
    too_deep: int | None = None


@cache
def _scanner(nesting: int) -> re.Pattern[str]:
    """A pattern for brackets, words and comments.

    A `run` is a chain of more than `nesting` prefix operators. Consecutive closing brackets are
    found together: a text may have millions of them.
    """
    more = f"{{{nesting},}}"
    return re.compile(
        rf"""
          (?P<runs>{_COUNT}(?:\s*{_COUNT}){more})
        | (?P<skip>//[^\n]* | /\*[\s\S]*?(?:\*/|\Z)
                 | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?
                 | {_COUNT})
        | (?P<open>[({{])
        | (?P<close>[)}}](?:\s*[)}}])*)
        | (?P<run>!(?:\s*!){more} | -(?:\s*-){more} | (?i:not)(?:\s+(?i:not)\b){more}
                | {_NAME}\s*:(?:\s*{_NAME}\s*:){more})
        | (?P<definition>eventtype\b(?={_GAP}+{_NAME}{_GAP}*[=:{{])
                | (?:(?:internal|template)\b{_GAP}+)?{_NAME}
                  (?={_GAP}+(?:correlation|ecl)\b{_GAP}+{_NAME}{_GAP}*\()
                | (?:internal\b{_GAP}+)?use\b(?={_GAP}+{_NAME}{_GAP}+as\b)
                | import\b(?={_GAP}*["'])
                | parameter\b(?={_GAP}+(?!correlation\b|ecl\b){_NAME}))
        | (?P<eventtype>eventtype\b)
        | (?P<word>[A-Za-z0-9_]+)
        """,
        re.VERBOSE,
    )


def by_depth(text: str, nesting: int) -> list[Piece]:
    """The definitions of a text whose brackets can be trusted."""
    return list(_cut(text, 0, len(text), nesting, trust_brackets=True))


def by_words(text: str, piece: Piece, nesting: int) -> Iterator[Piece]:
    """The definitions inside a piece that did not parse, one by one: there may be very many."""
    return _cut(text, piece.start, piece.end, nesting, trust_brackets=False)


def words_past(text: str, piece: Piece, most: int) -> int | None:
    """The place of the first word or sign of a piece past `most`, if there is one."""
    if piece.end - piece.start <= most:
        return None
    found = _WORD_OR_SIGN.finditer(text, piece.start, piece.end)
    beyond = next(islice(found, most, None), None)
    # The end of the text matches too, so that no word is searched from each space before it.
    return beyond.start(1) if beyond is not None and beyond.group(1) else None


def is_blank(text: str, start: int, end: int) -> bool:
    """Whether a part of the text is only white space and comments."""
    return _ONLY_GAPS.fullmatch(text, start, end) is not None


def begins_with_word(text: str, piece: Piece) -> bool:
    """Whether the first thing in a piece is a word, as in every definition."""
    gap = _ONLY_GAPS.match(text, piece.start, piece.end)
    first = gap.end() if gap else piece.start
    return text[first : first + 1].isidentifier()


def _cut(text: str, start: int, end: int, nesting: int, trust_brackets: bool) -> Iterator[Piece]:
    depth = 0
    too_deep: int | None = None
    # A body adds two levels of brackets that are no nesting: its own, and that of `push new`.
    deepest = nesting + 2
    for match in _scanner(nesting).finditer(text, start, end):
        kind = match.lastgroup
        at = match.start()
        if kind == "open":
            depth += 1
            if depth > deepest and too_deep is None:
                too_deep = at
        elif kind == "close":
            closed = None if trust_brackets else _closes_definition(match, depth)
            if closed is None:
                depth -= sum(map(match.group().count, ")}"))
                continue
            after = _end_of_definition(text, match.end(), end)
            if closed < match.end():
                # More brackets than were open: one piece, however many they are.
                yield Piece(start, closed, too_deep)
                start, too_deep = closed, None
            yield Piece(start, after, too_deep)
            start, depth, too_deep = after, 0, None
        elif kind in {"run", "runs"} and too_deep is None:
            too_deep = at
        elif kind == "definition" or (kind == "eventtype" and not trust_brackets):
            begins = depth <= 0 or (
                kind == "definition" and not trust_brackets and not _IN_A_BODY.match(text, at)
            )
            if begins and at > start:
                if not is_blank(text, start, at):
                    yield Piece(start, at, too_deep)
                    too_deep = None
                start, depth = at, 0
    if not is_blank(text, start, end):
        yield Piece(start, end, too_deep)


def _closes_definition(closing: re.Match[str], depth: int) -> int | None:
    """The end of the closing bracket, of several, that ends a definition."""
    for place, sign in enumerate(closing.group(), closing.start() + 1):
        if sign in ")}":
            depth -= 1
            if depth <= 0 and sign == "}":
                return place
    return None


_SEMICOLONS = re.compile(rf"(?:{_GAP}*;)*")


def _end_of_definition(text: str, start: int, end: int) -> int:
    """Past the semicolons that may follow the bracket that closed a definition."""
    match = _SEMICOLONS.match(text, start, end)
    return match.end() if match else start


def open_brackets(text: str, start: int, end: int) -> list[int]:
    """The places of the brackets that are still open at `end`, the outermost first."""
    found: list[int] = []
    for match in _scanner(1_000_000).finditer(text, start, end):
        if match.lastgroup == "open":
            found.append(match.start())
        elif match.lastgroup == "close":
            closed = sum(map(match.group().count, ")}"))
            del found[max(0, len(found) - closed) :]
    return found


def last_written(text: str, start: int, end: int) -> int:
    """The place of the last character that is neither white space nor in a comment."""
    last = start
    at = start
    while at < end:
        gap = _ONLY_GAPS.match(text, at, end)
        if gap and gap.end() > at:
            at = gap.end()
            continue
        last = at
        at += 1
    return last
