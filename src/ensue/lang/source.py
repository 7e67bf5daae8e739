"""The text of a library, and places in it.

The files of a library are joined into one text, so that a place in any file is one offset; `Source`
knows the file, line and column of an offset.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a source, from the offset `start` up to `end`."""

    start: int
    end: int


NOWHERE = Span(0, 0)
"""The place of a node that was not read from text."""


class Position(NamedTuple):
    """A place for messages; line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """The names and texts of a library's files, in order. A string has a made-up name.

    `has_imports` says that the files which others import are among them, but for those that are
    `lost`: the importing file and the path.
    """

    files: tuple[tuple[str, str], ...]
    has_imports: bool = False
    lost: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, text: str, name: str = "<text>") -> Source:
        return cls(((name, text),))

    @cached_property
    def text(self) -> str:
        """All files, each followed by a line end, so that no token runs across two of them."""
        return "".join(f"{text}\n" for _, text in self.files)

    @cached_property
    def _file_starts(self) -> Sequence[int]:
        starts = [0]
        for _, text in self.files:
            starts.append(starts[-1] + len(text) + 1)
        return starts

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def position(self, offset: int) -> Position:
        file = min(bisect_right(self._file_starts, offset), len(self.files)) - 1
        line = bisect_right(self._line_starts, offset)
        first = bisect_right(self._line_starts, self._file_starts[file])
        return Position(
            self.files[file][0], line - first + 1, offset - self._line_starts[line - 1] + 1
        )

    def line_at(self, offset: int) -> str:
        """The line that contains an offset, without its line end."""
        number = bisect_right(self._line_starts, offset) - 1
        line = self._lines.get(number)
        if line is None:
            start = self._line_starts[number]
            end = self.text.find("\n", start)
            line = self.text[start : len(self.text) if end < 0 else end].rstrip("\r")
            self._lines[number] = line
        return line

    @cached_property
    def _lines(self) -> dict[int, str]:
        """A cache of lines: thousands of findings may stand in one very long line."""
        return {}
