"""Imports: the files that a library names, and those that they name in turn.

In come the files that are read, and a way to find what an import names; out come all files, each
once, what is imported before what imports it, and the problems of imports: a file that is not
there, or that lies where it must not be read. Only the head of each text is looked at here: imports
are the first thing in a file, and `ensue.lang.expanding` reports those that are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ensue.lang.expressions.text.reading import unquoted
from ensue.lang.parsing.cutting import COMMENT

_GAPS = rf"(?>\s+|{COMMENT})*+"
_HEAD = re.compile(
    rf"""(?>\s+|;|{COMMENT})*+(?P<word>import){_GAPS}"""
    r"""(?P<path>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
)
_ENDING = re.compile(rf"{_GAPS};")


class SourceFile(NamedTuple):
    """A file of a library: its name for messages, what tells it apart, and its text."""

    name: str
    identity: str
    text: str


class NotImportedError(Exception):
    """An import that names nothing which can be read; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


Finder = Callable[[SourceFile, str], SourceFile]
"""Finds what a file imports by a path. Raises `NotImportedError`."""


@dataclass(frozen=True)
class ImportProblem:
    """An import of a path that cannot be read, with its place in the text of the file."""

    file: str
    path: str
    start: int
    end: int
    error: NotImportedError


@dataclass
class Gathering:
    """All files of a library, in the order in which they are read."""

    find: Finder
    files: list[SourceFile] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, given: Iterable[SourceFile]) -> None:
        """Files with all that they import, what is imported first; each file once."""
        for root in given:
            self._add(root)

    def _add(self, root: SourceFile) -> None:
        # A chain of imports may be long, so this does not call itself.
        if root.identity in self._seen:
            return
        self._seen.add(root.identity)
        pending = [(root, imports_of(root.text))]
        while pending:
            file, imports = pending[-1]
            following = next(imports, None)
            if following is None:
                self.files.append(file)
                pending.pop()
                continue
            path, start, end = following
            try:
                found = self.find(file, path)
            except NotImportedError as error:
                self.problems.append(ImportProblem(file.name, path, start, end, error))
                continue
            if found.identity not in self._seen:
                self._seen.add(found.identity)
                pending.append((found, imports_of(found.text)))


def imports_of(text: str) -> Iterator[tuple[str, int, int]]:
    """The paths that the head of a text imports, each with its place."""
    at = 0
    while found := _HEAD.match(text, at):
        yield unquoted(found["path"]), found.start("path"), found.end("path")
        at = found.end()


def without_imports(text: str) -> str:
    """A text without the imports in its head."""
    kept: list[str] = []
    at = copied = 0
    while found := _HEAD.match(text, at):
        kept.append(text[copied : found.start("word")])
        at = found.end()
        ending = _ENDING.match(text, at)
        copied = at if ending is None else ending.end()
    return "".join([*kept, text[copied:]])
