"""Where in a TOML file a key stands: the line of each table and key, for messages.

In comes the text of a file that `tomllib` has read; out goes the line of a path such as
`("token", 1, "roles")`. `tomllib` tells no lines. Only headers and keys at the beginning of a line
are looked for, outside of texts of several lines; a path inside of an inline table has the line of
the key that holds it.
"""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]

_header = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$").match
_key = re.compile(
    r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"))*)\s*="
).match
_QUOTES = ('"""', "'''")


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of every table and key."""
    found: dict[Path, int] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    table: Path = ()
    open_quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if open_quote:
            if open_quote in line:
                open_quote = ""
            continue
        if header := _header(line):
            names = _names(header[2])
            table = names
            if header[1] == "[[":
                table = (*names, seen[names])
                seen[names] += 1
            found.setdefault(table, number)
            found.setdefault(names, number)
        elif key := _key(line):
            found.setdefault((*table, *_names(key[1])), number)
        open_quote = next((each for each in _QUOTES if line.count(each) % 2), "")
    return found


def line_of(places: dict[Path, int], path: Path) -> int:
    """The line of a path, or of the nearest table around it; 1 if there is none."""
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            return places[path[:length]]
    return 1


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(each.strip().strip("\"'") for each in dotted.split("."))
