"""Delimited logs whose last column takes the rest of the line, however many delimiters are in it.

In come whole lines of a log and the number of its columns; out go the lines as CSV, with the rest
of each in quotes, so that everything that reads CSV reads such logs. Quotes in a log are ordinary
characters. Between columns a space stands for any number of spaces and tabs. A line with too few
columns stays one, and is refused where cells are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

SIGN = "..."
"""The end of the name of a column that takes the rest of the line."""
_GUESSED = (",", "\t", ";", "|")

Clean = Callable[[bytes], bytes]


@lru_cache(maxsize=64)
def cleaner(delimiter: str, width: int) -> Clean:
    """The function from lines of a log with so many columns to lines of CSV."""
    sign = delimiter.encode()
    is_space = delimiter == " "
    joint = rb"[ \t]+" if is_space else re.escape(sign)
    cell = rb'[^" \t\n]+' if is_space else rb'[^"\n%b]*' % re.escape(sign)
    firsts = joint.join([rb"(%b)" % cell] * (width - 1))
    # The rest may be missing.
    rest = rb"(?:%b([^\n]*))?$" % joint if width > 1 else rb"([^\n]+)$"
    usual = re.compile((rb"^[ \t]*" if is_space else rb"^") + firsts + rest, re.MULTILINE)
    template = sign.join([*(rb"\%d" % number for number in range(1, width)), rb'"\%d"' % width])
    between = re.compile(joint)

    def with_quotes(line: bytes) -> bytes:
        """A line that has quotes, in its last cell or before it."""
        found = usual.match(line)
        if found is not None:
            *before, last = found.groups(b"")
            return sign.join([*before, b'"%b"' % last.replace(b'"', b'""')])
        cells = between.split(line.strip(b" \t") if is_space else line, maxsplit=width - 1)
        return sign.join(b'"%b"' % each.replace(b'"', b'""') for each in cells)

    def clean(lines: bytes) -> bytes:
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n")
        if b'"' not in lines:
            return usual.sub(template, lines)
        return b"\n".join(
            with_quotes(line) if b'"' in line else usual.sub(template, line)
            for line in lines.split(b"\n")
        )

    return clean


def guess_delimiter(lines: Iterable[str], width: int) -> str:
    """The delimiter that stands often enough in each of the first lines; else a space."""
    given = [line for line in lines if line.strip()]
    for each in _GUESSED:
        if given and all(line.count(each) >= width - 1 for line in given):
            return each
    return " "
