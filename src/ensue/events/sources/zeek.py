"""Logs of Zeek, whose first lines, after a `#`, have the delimiter and the names of columns.

In comes the beginning of a file; out go its delimiter and the names of its columns, and any part of
it as CSV: lines with a `#` become blank, so that line numbers stay, cells without a value become
empty, and quotes are escaped as ordinary characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ensue.errors import UsageError

_FIRST = b"#separator "
_FIELDS = re.compile(rb"^#fields\t([^\r\n]+)\r?\n", re.MULTILINE)
_NOTES = re.compile(rb"^#[^\n]*", re.MULTILINE)
_UNSET = re.compile(rb"(?<![^\t\n])(?:-|\(empty\))(?![^\t\r\n])")
_QUOTED = re.compile(rb'(?<![^\t\n])"[^\t\r\n]*')


class Log(NamedTuple):
    delimiter: str
    header: tuple[str, ...]


def log_of(head: bytes) -> Log | None:
    """The delimiter and columns of a log; None if it is no log of Zeek with tabs."""
    if not head.startswith(_FIRST) or not head[len(_FIRST) :].startswith(b"\\x09"):
        return None
    fields = _FIELDS.search(head)
    return None if fields is None else Log("\t", _names(fields[1]))


def _names(fields: bytes) -> tuple[str, ...]:
    return tuple(fields.decode("utf-8", "replace").split("\t"))


def check_fields(lines: bytes, header: Sequence[str]) -> None:
    """Raises `UsageError` if lines of a log name other columns than `header`."""
    if b"#fields" not in lines:
        return
    for found in _FIELDS.finditer(lines):
        names = _names(found[1])
        if names != tuple(header):
            given, others = (", ".join(f"`{each}`" for each in of) for of in (header, names))
            raise UsageError(
                f"one of the logs names the columns {others}, and another one {given}: run logs of"
                " different columns apart"
            )


def cleaned(lines: bytes) -> bytes:
    """Complete lines of a log as CSV with tabs."""
    if b"#" in lines:
        lines = _NOTES.sub(b"", lines)
    lines = _UNSET.sub(b"", lines)
    if b'"' in lines:
        lines = _QUOTED.sub(lambda cell: b'"' + cell[0].replace(b'"', b'""') + b'"', lines)
    return lines
