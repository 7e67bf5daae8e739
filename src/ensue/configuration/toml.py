"""TOML with bounds: whatever a file holds, out go its tables or one located `UsageError`.

In comes the path of a file, or its text. `tomllib` alone has no bounds: deep nesting ends it by
`RecursionError`, a number of 5,000 digits by a plain `ValueError`, and the parts of a dotted key
cost their number squared. So brackets, keys and numbers are looked at first, in one pass over the
text. What tables and keys mean, and which there are, is the reader's part.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ensue.configuration.bounded import read_text
from ensue.errors import UsageError

LARGEST_BYTES: Final = 1024 * 1024
"""What a file of settings may have; other files name another bound."""
DEEPEST: Final = 100
"""Brackets inside one another, the parts of one key, and tables inside tables."""
MOST_DIGITS: Final = 4_000
MOST_PROBLEMS: Final = 100
"""After so many mistakes a reader stops, and shows what it has found."""
STOPPED: Final = f"and perhaps more: reading has stopped at {MOST_PROBLEMS} mistakes"

# A text that does not end goes as far as a text can, so that no quote is looked at twice.
_BASIC = r'"(?:[^"\\\n]|\\[^\n])*+(?:"|(?=\n)|\Z|\\)'
_LITERAL = r"'[^'\n]*+(?:'|(?=\n)|\Z)"
_PART = rf"(?:[A-Za-z0-9_+-]++|{_BASIC}|{_LITERAL})"
_tokens = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}|\Z|\\)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r"|#[^\n]*+"
    rf"|(?P<key>{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+)"
    r"|(?P<open>[\[{])"
    r"|(?P<close>[\]}])",
    re.DOTALL,
).finditer
_parts = re.compile(_PART).findall
_place = re.compile(
    r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL
).fullmatch


@dataclass(frozen=True)
class TomlFile:
    """The tables of a file, and its text, in which a reader can look for lines."""

    tables: dict[str, Any]
    text: str


def read_toml(
    path: str | os.PathLike[str],
    hint: str = "give a TOML file",
    largest: int = LARGEST_BYTES,
    parse_float: Callable[[str], Any] = float,
) -> TomlFile:
    """The tables of a file. Raises `UsageError`, with the place of what is wrong."""
    place = Path(path)
    # As text is read elsewhere: a line may end with a carriage return as well.
    text = read_text(place, largest, hint).replace("\r\n", "\n")
    return TomlFile(parse_toml(text, str(place), parse_float), text)


def read_settings_file(path: str | os.PathLike[str], hint: str = "give a TOML file") -> TomlFile:
    """As `read_toml`, for settings: their texts are names, paths and addresses, without NUL."""
    file = read_toml(path, hint)
    for name, value in file.tables.items():
        if (found := _nul_in(value, name)) is not None:
            raise UsageError(f"{path}: `{_shown(found)}` has a NUL character in it: take it out")
    return file


def parse_toml(
    text: str, where: str = "", parse_float: Callable[[str], Any] = float
) -> dict[str, Any]:
    """The tables of a text. Raises `UsageError`; `where` stands before line and column."""
    _refuse_excess(text, where)
    try:
        tables = tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        raise _refusal(where, text, str(error)) from None
    except (RecursionError, ValueError, ArithmeticError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{_prefix(where)}no TOML that can be read: {reason}") from None
    for name, value in tables.items():
        if _is_too_deep(value):
            raise UsageError(
                f"{_prefix(where)}`{_shown(name)}` has tables or lists in more than {DEEPEST}"
                " others: make it flatter"
            )
    return tables


def _refuse_excess(text: str, where: str) -> None:
    """Refuse what `tomllib` would read without bounds."""
    depth = 0
    for token in _tokens(text):
        what = ""
        if token.lastgroup == "open":
            depth += 1
            if depth > DEEPEST:
                what = f"more than {DEEPEST} brackets are open: make it flatter"
        elif token.lastgroup == "close":
            depth = max(0, depth - 1)
        elif token.lastgroup == "key":
            what = _excess_of(token[0])
        if what:
            line = text.count("\n", 0, token.start()) + 1
            column = token.start() - text.rfind("\n", 0, token.start())
            raise UsageError(f"{_prefix(where, line, column)}{what}")


def _excess_of(key: str) -> str:
    """What is too much of a key or a number, if anything is."""
    if key.count(".") >= DEEPEST and (count := len(_parts(key))) > DEEPEST:
        return f"a key of {count:,} parts; at most {DEEPEST} are read"
    if len(key) > MOST_DIGITS and key.strip("+-")[:1].isdigit():
        return f"a number of {len(key):,} characters; at most {MOST_DIGITS:,} are read"
    return ""


def _is_too_deep(value: Any) -> bool:
    """Whether tables and lists stand in more than `DEEPEST` others. No recursion: it may be so."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _nul_in(value: Any, path: str) -> str | None:
    """The path of the first text with a NUL in it. Depth is bounded by now."""
    if "\0" in path or (isinstance(value, str) and "\0" in value):
        return path
    items = value.items() if isinstance(value, dict) else []
    if isinstance(value, list):
        items = [(str(number), each) for number, each in enumerate(value, 1)]
    found = (_nul_in(each, f"{path}.{name}") for name, each in items)
    return next((each for each in found if each is not None), None)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refusal(where: str, text: str, said: str) -> UsageError:
    found = _place(said)
    if found is None:
        return UsageError(f"{_prefix(where)}no TOML: {_lower(said)}")
    lines = text.split("\n")
    line, column = (found[2], found[3]) if found[2] else (len(lines), len(lines[-1]) + 1)
    return UsageError(f"{_prefix(where, line, column)}no TOML: {_lower(found[1])}")


def _prefix(where: str, *place: int | str) -> str:
    parts = [str(each) for each in (where, *place) if each != ""]
    if not where and place:
        parts = [f"line {place[0]}, column {place[1]}"]
    return f"{':'.join(parts)}: " if parts else ""


def _shown(text: str) -> str:
    """A name as a message can show it: printable, and no longer than a line."""
    plain = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return plain if len(plain) <= 60 else f"{plain[:57]}..."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
