"""Reads the files of a library.

In come paths of files, or of folders with `*.cor` files; out come a `Source` and problems of the
files themselves: bytes that are no UTF-8, a NUL, too many bytes. A file that cannot be opened is a
`UsageError`. A byte order mark is dropped; line ends may be of either kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path

from ensue.errors import UsageError
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.limits import DEFAULT_LIMITS, Limits, report_limit
from ensue.lang.source import Source, Span


def read_source(
    paths: Sequence[str | PathLike[str]], limits: Limits = DEFAULT_LIMITS
) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The texts of the files, and the problems because of which they cannot be parsed."""
    if not paths:
        raise UsageError("no file was given, and a library is read from at least one")
    left = limits.bytes
    names: list[str] = []
    contents: list[bytes] = []
    for path in (file for given in paths for file in _files(given)):
        # One byte more than allowed shows that there are too many; the rest is not read.
        content = _read(path, left + 1)
        names.append(fspath(path))
        contents.append(content)
        left -= len(content)
        if left < 0:
            source = Source(((names[-1], ""),))
            diagnostics = Diagnostics(source)
            given = f"more than {limits.bytes:,}"
            report_limit(diagnostics, limits, "bytes", given, Span(0, 1))
            return source, diagnostics.in_order()
    texts = [each.decode("utf-8-sig", "replace") for each in contents]
    source = Source(tuple(zip(names, texts, strict=True)))
    diagnostics = Diagnostics(source)
    start = 0
    for content, text in zip(contents, texts, strict=True):
        _report_encoding(content, start, diagnostics)
        start += len(text) + 1
    return source, diagnostics.in_order()


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
