"""What a file holds, told by its first bytes and the ending of its name.

In come a name and the first bytes of a file; out go its compression, its format and the delimiter
of its cells. Bytes that begin only files of one kind (gzip, Zstandard, Parquet, Arrow) go before
the name; the name goes before a guess from text. A text of which neither tells anything is JSON
lines, as the standard input is.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from ensue.errors import UsageError

LINES = "jsonl"
"""JSON lines: what the standard input holds, and a file of which nothing else is known."""

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".psv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSIONS = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
"""Delimiters that have a name, since a shell makes them hard to write."""
HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""

_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_BY_ENDING = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_GUESSED = ",\t;|"
_QUOTED = re.compile('"[^"]*"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def check_format(format_: str) -> str:
    """Raises `UsageError` for a format that is not read."""
    if format_ not in FORMATS.values():
        allowed = ", ".join(f"`{each}`" for each in dict.fromkeys(FORMATS.values()))
        raise UsageError(f"there is no event format `{format_}`: choose one of {allowed}")
    return format_


def delimiter_of(text: str) -> str:
    """The delimiter that a person has named. Raises `UsageError` for what cannot part cells."""
    found = DELIMITERS.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        names = ", ".join(f"`{name}`" for name in DELIMITERS if name[0] != "\\")
        raise UsageError(
            f"`{text}` is no delimiter: it is one character, as `;`, or one of {names}"
        )
    return found


def header_of(text: str) -> tuple[str, ...]:
    """The names of columns that a person has given. Raises `UsageError` for one that is empty."""
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise UsageError(
            f"`{text}` does not name every column: write their names with commas between them, as"
            " `client,user,time,status`"
        )
    return names


def compression_of(head: bytes) -> str | None:
    return next((name for sign, name in _PACKED.items() if head.startswith(sign)), None)


def format_of_ending(name: str) -> str | None:
    """The format that a name tells, behind the ending of a compression."""
    return FORMATS.get(_ending(name))


def format_of(name: str, head: bytes, is_csv: bool = False) -> str:
    """The format of a file; `head` is unpacked, and `is_csv` if a person speaks of cells."""
    for sign, known in _BINARY.items():
        if head.startswith(sign):
            return known
    told = format_of_ending(name)
    if told is not None:
        return told
    if is_csv or _looks_like_a_header(_first_line(head)):
        return "csv"
    return LINES


def guess_delimiter(name: str, head: bytes) -> str:
    """The delimiter of a file of CSV: by its ending, or the likeliest in its first line."""
    if (known := _BY_ENDING.get(_ending(name))) is not None:
        return known
    return max(_GUESSED, key=_QUOTED.sub("", _first_line(head)).count)


def _ending(name: str) -> str:
    *_, before, last = ["", "", *PurePath(name).suffixes]
    return (before if last.lower() in COMPRESSIONS else last).lower()


def _first_line(head: bytes) -> str:
    line, _, _ = head.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n").partition(b"\n")
    return line.rstrip(b"\r").decode("utf-8", "replace")


def _looks_like_a_header(line: str) -> bool:
    """Whether a line of a text without a telling name can only be the names of columns."""
    if line[:1] in ("{", "[", ""):
        return False
    delimiter = max(_GUESSED, key=_QUOTED.sub("", line).count)
    names = [cell.strip().strip('"') for cell in line.split(delimiter)]
    return (
        len(names) > 1
        and len(set(names)) == len(names)
        and all(name and name.replace(".", "_").replace("@", "_").isidentifier() for name in names)
    )
