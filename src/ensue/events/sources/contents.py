"""The format of a file, by its first bytes and the ending of its name.

In come a name, the first bytes of a file and the options of the user (`Given`); out go its
compression and its `Content`: its format, and how the cells of CSV are read. The magic bytes of a
compression, of Parquet and of Arrow take precedence over the name; the name takes precedence over a
guess from text. All other text is JSON lines, and so is the standard input.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple, Self

from ensue.errors import UsageError
from ensue.events.sources import rest_of_line, zeek
from ensue.events.sources.rest_of_line import Clean

LINES = "jsonl"
"""JSON lines: the format of the standard input, and of a file without other signs."""

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
COMPRESSIONS = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bz2",
    ".xz": "xz",
}
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
"""Delimiters with a name, since some are hard to write in a shell."""
_LINES_FOR_A_GUESS = 20
HEAD_BYTES = 1 << 16
"""The first bytes of a file that are examined."""

_PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}
_NO_UTF8 = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_SEPARATOR = re.compile("sep=(.)", re.IGNORECASE)
_BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_BY_ENDING = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_GUESSED = ",\t;|"
_QUOTED = re.compile('"[^"]*"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Given:
    """The options of a user: the format of files, and for CSV how its cells are read.

    `header` has the names of the columns, of which the last may end in `...` and takes then the
    rest of each line; `nulls` are the texts that stand for a null.
    """

    format: str | None = None
    delimiter: str | None = None
    header: tuple[str, ...] | None = None
    nulls: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        format_: str | None,
        delimiter: str | None,
        header: str | None,
        nulls: Sequence[str] = (),
    ) -> Self:
        """The checked options. Raises `UsageError` for an option that cannot be used."""
        return cls(
            None if format_ is None else check_format(format_),
            None if delimiter is None else delimiter_of(delimiter),
            None if header is None else header_of(header),
            tuple(dict.fromkeys(nulls)),
        )

    @property
    def is_csv(self) -> bool:
        """Whether an option for CSV was given."""
        return self.delimiter is not None or self.header is not None or bool(self.nulls)

    @property
    def has_rest(self) -> bool:
        """Whether the last column takes the rest of each line."""
        return self.header is not None and self.header[-1].endswith(rest_of_line.SIGN)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns that were given."""
        if self.header is None:
            return None
        return (*self.header[:-1], self.header[-1].removesuffix(rest_of_line.SIGN))


def check_cells(given: Given, formats: Sequence[str]) -> None:
    """Raises `UsageError` for an option for CSV if no file is CSV."""
    if given.is_csv and "csv" not in formats:
        option = "--header" if given.delimiter is None else "--delimiter"
        option = "--null" if given.delimiter is None and given.header is None else option
        raise UsageError(
            f"`{option}` is for the cells of CSV, and what is read is {formats[0]}:"
            " leave it out, or say `--format csv`"
        )


class Content(NamedTuple):
    """The format of a file; `delimiter`, `header` and `nulls` are for CSV.

    `header` has the names of the columns if the first line does not, and `nulls` the texts that
    stand for a null beside the empty cell. A log of Zeek, and one whose last column takes the rest
    of each line (`has_rest`), is CSV after cleaning.
    """

    format: str
    delimiter: str = ","
    header: tuple[str, ...] | None = None
    is_zeek: bool = False
    has_rest: bool = False
    nulls: tuple[str, ...] = ()

    @property
    def clean(self) -> Clean | None:
        """The function from whole lines to lines of CSV; None if they are CSV as they are."""
        if self.is_zeek:
            return zeek.cleaned
        if self.has_rest:
            return rest_of_line.cleaner(self.delimiter, len(self.header or ()))
        return None


def content_of(name: str, head: bytes, given: Given) -> Content:
    """The content of a file, by the options, its first bytes (unpacked) and its name.

    Raises `UsageError` for text that is no UTF-8, and for a first line that only Excel writes.
    """
    for sign, encoding in _NO_UTF8.items():
        if head.startswith(sign):
            raise UsageError(
                f"`{name or 'stdin'}` is {encoding}, and text is read as UTF-8: convert it, as with"
                f" `iconv -f {encoding} -t UTF-8`"
            )
    log = zeek.log_of(head) if given.format in (None, "csv") else None
    if log is not None:
        delimiter, names = given.delimiter or log.delimiter, given.names or log.header
        return Content("csv", delimiter, names, True, nulls=given.nulls)
    found = given.format or format_of(name, head, given.is_csv)
    if found != "csv":
        return Content(found, header=given.names)
    first = _first_line(head)
    if given.has_rest:
        assert given.header is not None
        # The last line of the head may be cut off.
        lines = head.decode("utf-8", "replace").split("\n")[: 1 + _LINES_FOR_A_GUESS]
        guessed = rest_of_line.guess_delimiter(lines[:-1] or lines, len(given.header))
        delimiter = given.delimiter or guessed
        return Content(found, delimiter, given.names, False, True, given.nulls)
    if _SEPARATOR.fullmatch(first):
        raise UsageError(
            f"the first line of `{name or 'stdin'}`, `{first}`, is for Excel and names no columns:"
            " take it out, as with `tail -n +2`"
        )
    delimiter = given.delimiter or guess_delimiter(name, head)
    return Content(found, delimiter, given.names, nulls=given.nulls)


def check_format(format_: str) -> str:
    """The format. Raises `UsageError` for a format that cannot be read."""
    if format_ not in FORMATS.values():
        allowed = ", ".join(f"`{each}`" for each in dict.fromkeys(FORMATS.values()))
        raise UsageError(f"there is no event format `{format_}`: choose one of {allowed}")
    return format_


def delimiter_of(text: str) -> str:
    """The delimiter of an option. Raises `UsageError` for a text that cannot be a delimiter."""
    found = DELIMITERS.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        names = ", ".join(f"`{name}`" for name in DELIMITERS if name[0] != "\\")
        raise UsageError(
            f"`{text}` is no delimiter: it is one character, as `;`, or one of {names}"
        )
    return found


def header_of(text: str) -> tuple[str, ...]:
    """The names of columns of an option. Raises `UsageError` for an empty name."""
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise UsageError(
            f"`{text}` does not name every column: write their names with commas between them, as"
            " `client,user,time,status`"
        )
    if not names[-1].removesuffix(rest_of_line.SIGN) or any(
        each.endswith(rest_of_line.SIGN) for each in names[:-1]
    ):
        raise UsageError(
            f"`{text}`: only the last column takes the rest of the line, and it has a name, as in"
            " `Date,Time,Level,Message...`"
        )
    return names


def compression_of(head: bytes) -> str | None:
    return next((name for sign, name in _PACKED.items() if head.startswith(sign)), None)


def format_of_ending(name: str) -> str | None:
    """The format by the ending of a name, before the ending of a compression."""
    return FORMATS.get(_ending(name))


def format_of(name: str, head: bytes, is_csv: bool = False) -> str:
    """The format of a file; `head` is unpacked; `is_csv` if an option for CSV was given."""
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
    """The delimiter of a CSV file: by its ending, or the likeliest one in its first line."""
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
    """Whether a line of a text without a known ending can only be the names of columns."""
    if line[:1] in ("{", "[", ""):
        return False
    delimiter = max(_GUESSED, key=_QUOTED.sub("", line).count)
    names = [cell.strip().strip('"') for cell in line.split(delimiter)]
    return (
        len(names) > 1
        and len(set(names)) == len(names)
        and all(name and name.replace(".", "_").replace("@", "_").isidentifier() for name in names)
    )
