"""The text of one file, read as far as it goes, and places in it as editors count them.

In comes text, out comes a `Document`: its definitions with their outlines and words. The text is
cut into definitions first, and a definition is read again only if its own text has changed, so a
keystroke in a large file costs what one definition costs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lark import Tree

from ensue.editor.mentions import DefinitionOutline, Mention, outlines
from ensue.editor.reading import COMMENT, UNKNOWN, TextReading, Word, read
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.parsing import cutting
from ensue.lang.parsing.cutting import Piece

_LOOSE = re.compile(r"(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))|\S+?(?=\s|//|/\*|\Z)")
_LINE_END = re.compile("\r\n|\n|\r")
# What is longer is no rule that a person edits; reading it again at each keystroke takes too long.
LONGEST_DEFINITION = 200_000


@dataclass(frozen=True, slots=True)
class Definition:
    """A stretch of a file, read by itself; places inside `reading` count from `start`."""

    start: int
    end: int
    reading: TextReading
    outlines: tuple[DefinitionOutline, ...]


@dataclass(frozen=True, slots=True)
class FoundMention:
    """A mention at its place in the file, with the outline of the definition that holds it."""

    mention: Mention
    start: int
    end: int
    definition: Definition
    outline: DefinitionOutline


class Document:
    """`name` is the path of the file, as messages show it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """All of the text: what stands between definitions is a stretch without an outline."""
        found: list[Definition] = []
        at = 0
        for each in self._read():
            found += self._gap(at, each.start)
            found.append(each)
            at = each.end
        return (*found, *self._gap(at, len(self.text)))

    def _gap(self, start: int, end: int) -> Iterator[Definition]:
        """Comments, or a definition that is too long to be read."""
        text = self.text[start:end]
        if text.strip():
            words = tuple(_loose_words(text))
            yield Definition(start, end, TextReading(Tree("library", []), words, False), ())

    def _read(self) -> Iterator[Definition]:
        nesting = DEFAULT_LIMITS.nesting
        for piece in cutting.by_depth(self.text, nesting):
            whole = self._definition(piece)
            if whole is not None and whole.reading.is_whole:
                yield whole
                continue
            # Its brackets cannot be trusted: the words say where the next definition begins.
            parts = list(cutting.by_words(self.text, piece, nesting))
            if len(parts) == 1 and whole is not None:
                yield whole
                continue
            for part in parts:
                found = self._definition(part)
                if found is not None:
                    yield found

    def _definition(self, piece: Piece) -> Definition | None:
        if piece.too_deep is not None or piece.end - piece.start > LONGEST_DEFINITION:
            return None
        reading, found = _read_text(self.text[piece.start : piece.end])
        return Definition(piece.start, piece.end, reading, found)

    @cached_property
    def found(self) -> tuple[FoundMention, ...]:
        """All mentions, from top to bottom."""
        every = [
            FoundMention(each, start + each.start, start + each.end, definition, outline)
            for definition in self.definitions
            for start in (definition.start,)
            for outline in definition.outlines
            for each in outline.mentions
            if each.end > each.start
        ]
        return tuple(sorted(every, key=lambda each: each.start))

    def found_at(self, offset: int) -> FoundMention | None:
        """The mention at a place, or just before it; a short one wins over one around it."""
        near = [each for each in self.found if each.start <= offset <= each.end]
        return min(near, key=lambda each: (offset == each.end, each.end - each.start), default=None)

    def words(self) -> Iterator[Word]:
        """Words and comments at their places in the file."""
        for definition in self.definitions:
            for word in definition.reading.words:
                start = definition.start
                yield Word(word.type, word.text, word.start + start, word.end + start)

    def word_at(self, offset: int) -> Word | None:
        return next((each for each in self.words() if each.start <= offset < each.end), None)

    # --- places ----------------------------------------------------------------------------------

    @cached_property
    def line_starts(self) -> Sequence[int]:
        return [0, *(each.end() for each in _LINE_END.finditer(self.text))]

    def line_of(self, offset: int) -> int:
        """The line of a place, from 0."""
        return bisect_right(self.line_starts, offset) - 1

    def line_text(self, line: int) -> str:
        starts = self.line_starts
        if line >= len(starts):
            return ""
        end = starts[line + 1] if line + 1 < len(starts) else len(self.text)
        return self.text[starts[line] : end].rstrip("\r\n")

    def offset_of(self, line: int, column: int) -> int:
        """The place of a line and a column in characters, both from 0, kept inside the text."""
        if line >= len(self.line_starts):
            return len(self.text)
        return self.line_starts[line] + min(column, len(self.line_text(line)))

    def offset_of_finding(self, line: int, column: int) -> int:
        """The place of a diagnostic, which counts from 1 and knows no line end but `\\n`."""
        starts = self._plain_line_starts
        return min(starts[min(line, len(starts)) - 1] + column - 1, len(self.text))

    @cached_property
    def _plain_line_starts(self) -> Sequence[int]:
        return [0, *(each.end() for each in re.finditer("\n", self.text))]


def _loose_words(text: str) -> Iterator[Word]:
    for found in _LOOSE.finditer(text):
        type_ = COMMENT if found.lastgroup == "comment" else UNKNOWN
        yield Word(type_, found[0], *found.span())


@lru_cache(maxsize=4_096)
def _read_text(text: str) -> tuple[TextReading, tuple[DefinitionOutline, ...]]:
    reading = read(text)
    return reading, tuple(outlines(reading.tree, text))
