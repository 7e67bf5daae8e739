"""Reads the files of a library.

In come paths of files, or of folders with `*.cor` files; out come a `Source` of these files and of
what they import, and problems of the files themselves: imports that are not there, bytes that are
no UTF-8, a NUL, too many bytes. A file that cannot be opened is a
`UsageError`. A byte order mark is dropped; line ends may be of either kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from ensue.errors import UsageError
from ensue.lang.diagnostics import Diagnostic, Diagnostics, did_you_mean
from ensue.lang.limits import DEFAULT_LIMITS, Limits, report_limit
from ensue.lang.parsing.importing import Gathering, NotImportedError, SourceFile
from ensue.lang.source import Source, Span


def read_source(
    paths: Sequence[str | PathLike[str]],
    limits: Limits = DEFAULT_LIMITS,
    inside: str | PathLike[str] | Sequence[Path] | None = None,
) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The texts of the files and of all that they import, and why they cannot be parsed.

    Imports from outside of the folder `inside`, or of several, are refused, if it is given.
    """
    if not paths:
        raise UsageError("no file was given, and a library is read from at least one")
    folders = [inside] if isinstance(inside, str | PathLike) else inside
    real = None if folders is None else [os.path.realpath(each) for each in folders]
    reader = _Reader(limits.bytes, real)
    gathering = Gathering(reader.imported)
    try:
        for path in (file for given in paths for file in _files(given)):
            gathering.add([reader.read(fspath(path))])
    except _TooLargeError as error:
        source = Source(((str(error), ""),))
        diagnostics = Diagnostics(source)
        report_limit(diagnostics, limits, "bytes", f"more than {limits.bytes:,}", Span(0, 1))
        return source, diagnostics.in_order()
    return gathered_source(gathering, reader.contents)


def gathered_source(
    gathering: Gathering, contents: Mapping[str, bytes] | None = None
) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The source of gathered files, and the problems of their imports and of their bytes."""
    files = gathering.files
    lost = frozenset((each.file, each.path) for each in gathering.problems)
    source = Source(tuple((each.name, each.text) for each in files), True, lost)
    diagnostics = Diagnostics(source)
    starts: dict[str, int] = {}
    start = 0
    for each in files:
        starts[each.name] = start
        if contents is not None:
            _report_encoding(contents[each.identity], start, diagnostics)
        start += len(each.text) + 1
    for problem in gathering.problems:
        at = starts[problem.file]
        span = Span(at + problem.start, at + problem.end)
        diagnostics.error("import-not-found", problem.error.message, span, problem.error.hint)
    return source, diagnostics.in_order()


def _identity(name: str) -> str:
    """What is equal for two names of one file."""
    try:
        return os.path.realpath(name)
    except ValueError:
        # A name that no file can have; to read it says why.
        return name


class _TooLargeError(Exception):
    """The files of a library have too many bytes; the text is the file with which they have."""


class _Reader:
    """Reads files, up to so many bytes in all; `contents` has their bytes."""

    def __init__(self, most: int, inside: Sequence[str] | None) -> None:
        self.contents: dict[str, bytes] = {}
        self._left = most
        self._inside = inside

    def read(self, name: str) -> SourceFile:
        identity = _identity(name)
        if identity not in self.contents:
            # One byte more than allowed shows that there are too many; the rest is not read.
            content = _read(name, self._left + 1)
            self._left -= len(content)
            if self._left < 0:
                raise _TooLargeError(name)
            self.contents[identity] = content
        return SourceFile(name, identity, self.contents[identity].decode("utf-8-sig", "replace"))

    def imported(self, importer: SourceFile, path: str) -> SourceFile:
        name = os.path.normpath(os.path.join(os.path.dirname(importer.name), path))
        identity = os.path.realpath(os.path.join(os.path.dirname(importer.identity), path))
        if self._inside is not None and not any(map(Path(identity).is_relative_to, self._inside)):
            raise NotImportedError(
                f"`{path}` lies outside of the folder of the library, from which alone is imported",
                "put the file into that folder",
            )
        folder = Path(identity).parent
        if not Path(identity).is_file():
            beside = [each.name for each in folder.glob("*.cor")] if folder.is_dir() else []
            known = did_you_mean(Path(path).name, beside) if beside else "there is no library there"
            raise NotImportedError(f"there is no file `{path}` to import", known)
        try:
            return self.read(name if Path(name).exists() else identity)
        except UsageError as error:
            raise NotImportedError(str(error)) from None


def _files(path: str | PathLike[str]) -> Iterator[str | PathLike[str]]:
    """The path itself, or the files of a folder by their names."""
    if not Path(path).is_dir():
        yield path
        return
    inside = sorted(Path(path).rglob("*.cor"))
    if not inside:
        raise UsageError(f"there is no library (*.cor) in the folder `{fspath(path)}`")
    yield from inside


def _read(path: str | PathLike[str], most: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"the file `{fspath(path)}` cannot be read: {reason.lower()}") from None


def _report_encoding(content: bytes, start: int, diagnostics: Diagnostics) -> None:
    """Report the first byte of a file that is no text; `start` is where the file begins."""
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Places of the codec do not count the byte order mark, and neither does the text.
        readable = error.object[: error.start].decode("utf-8")
        at = start + len(readable)
        bad = error.object[error.start]
        diagnostics.error(
            "encoding",
            f"the byte 0x{bad:02X} is no UTF-8, and a library is UTF-8 text",
            Span(at, at + 1),
            "save the file as UTF-8",
        )
        return
    text = content.decode("utf-8-sig")
    nul = text.find("\0")
    if nul >= 0:
        diagnostics.error(
            "encoding",
            "there is a NUL character, and a library is plain text",
            Span(start + nul, start + nul + 1),
            "save the file as UTF-8 text",
        )
