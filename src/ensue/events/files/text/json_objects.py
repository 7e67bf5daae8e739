"""Blocks of JSON lines as Python objects, one a line, decoded by `msgspec`.

A line that is no object, or names a member twice, is None: it is read singly, to say why not. The
decoder is that of single records (`cloudevents.read_json`), so that both take the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ensue.errors import EventError
from ensue.events.cloudevents import NESTING_LIMIT, has_escaped_colons, read_object
from ensue.events.columns import DATA_COLUMN
from ensue.events.files.chunk import Mask
from ensue.events.files.text.found import PythonFound
from ensue.events.files.text.lines import Lines
from ensue.events.files.text.wanted import ABSENT, Wanted, WantedValues, Way, value_in

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

Members = dict[str, Any]

_EXTENSIONS = {str, int, bool, type(None)}
_BRACE, _BRACKET, _COLON = ord("{"), ord("["), ord(":")


def decoded(line: bytes) -> Members | None:
    """The members of a line; None if it is no object."""
    try:
        return read_object(line.strip())
    except EventError:
        return None


def objects_of(block: bytes, lines: Lines) -> list[Members | None]:
    """The members of each line of a block."""
    texts = lines.texts(block)
    try:
        found: list[Any] = list(map(_decode, texts))
    except (ValueError, RecursionError):
        found = [_decoded_or_not(each) for each in texts]
    for row in _doubtful_rows(block, lines, texts, found):
        found[row] = decoded(texts[row])
    return found


def _decoded_or_not(text: bytes) -> Any:
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        # Among these are lines with white space around them that JSON does not know.
        return None


def _colons(text: bytes) -> int:
    # Quicker than `bytes.count` for a byte that is frequent.
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON))


def _doubtful_rows(
    block: bytes, lines: Lines, texts: Sequence[bytes], found: Sequence[Any]
) -> set[int]:
    """The lines that may be no objects, name a member twice, or be nested too deeply."""
    rows = set[int]()
    if set(map(type, found)) != {dict}:
        rows.update(row for row, each in enumerate(found) if type(each) is not dict)
    # A name that is given twice is once in the object, and so is its colon.
    has_escapes = has_escaped_colons(block)
    if has_escapes or _colons(_encode(found)) != _colons(block):
        rows.update(
            row
            for row, (text, members) in enumerate(zip(texts, found, strict=True))
            if (has_escapes and has_escaped_colons(text))
            or _encode(members).count(b":") != text.count(b":")
        )
    if block.count(b"{") + block.count(b"[") > len(found) + NESTING_LIMIT:
        data = np.frombuffer(block, np.uint8)
        opening = np.flatnonzero((data == _BRACE) | (data == _BRACKET))
        levels = np.searchsorted(opening, lines.ends) - np.searchsorted(opening, lines.begins)
        rows.update(np.flatnonzero(levels > NESTING_LIMIT).tolist())
    return rows


class ParsedObjects:
    """A block as objects."""

    def __init__(self, found: Sequence[Members | None], wanted: WantedValues) -> None:
        self.count = len(found)
        self._refused = np.array([each is None for each in found], np.bool_)
        self._members = [{} if each is None else each for each in found]
        self._wanted = wanted
        self._is_plain = wanted.mapping.is_plain
        self._with_objects: dict[str, bool] = {}

    def is_refused(self) -> Mask:
        """The lines that are no objects, or have members that no event has."""
        if not self._is_plain:
            for name in self._other_names:
                values = [members.get(name) for members in self._members]
                if not set(map(type, values)) <= _EXTENSIONS:
                    self._refused |= np.array([type(each) not in _EXTENSIONS for each in values])
        return self._refused

    @cached_property
    def _other_names(self) -> set[str]:
        own = {way[0] for each in self._wanted.all for way in each.ways} | {DATA_COLUMN}
        return self._names - own

    @cached_property
    def _names(self) -> set[str]:
        return set[str]().union(*self._members)

    def found(self, wanted: Wanted) -> PythonFound:
        ways, inner = wanted.ways, wanted.in_data
        values = self._values(ways)
        if any(self._has_objects(way[0]) for way in inner):
            values = [
                value if value is not None else _given(members, inner)
                for value, members in zip(values, self._members, strict=True)
            ]
        return PythonFound(values, partial(self._is_absent, ways))

    def names(self) -> frozenset[str]:
        """The names in the lines, and in their `data`."""
        if not self._has_objects(DATA_COLUMN):
            return frozenset(self._names)
        held = (members.get(DATA_COLUMN) for members in self._members)
        return frozenset(self._names.union(*(each for each in held if type(each) is dict)))

    def _has_objects(self, name: str) -> bool:
        """Whether an object has an object of this name."""
        if name not in self._with_objects:
            found = any(type(members.get(name)) is dict for members in self._members)
            self._with_objects[name] = found
        return self._with_objects[name]

    def _values(self, ways: Sequence[Way]) -> list[Any]:
        ways = [way for way in ways if way[0] in self._names]
        if not ways:
            return [None] * self.count
        if len(ways) == 1 and len(ways[0]) == 1:
            (name,) = ways[0]
            return [members.get(name) for members in self._members]
        if len(ways) == 1 and len(ways[0]) == 2:
            outer, name = ways[0]
            return [
                held.get(name) if type(held := members.get(outer)) is dict else None
                for members in self._members
            ]
        return [_given(members, ways) for members in self._members]

    def _is_absent(self, ways: Sequence[Way], row: int) -> bool:
        below = 0 if self._is_plain else 1
        return value_in(self._members[row], ways, below) is ABSENT

    def has_others(self) -> tuple[bool, bool, bool]:
        """Whether lines have members, and data, that are not wanted, or clashing names."""
        inner = {way[1] for each in self._wanted.all for way in each.ways if len(way) == 2}
        held = [members.get(DATA_COLUMN) for members in self._members]
        data = set[str]().union(*(each for each in held if type(each) is dict))
        declared = {each.name for each in self._wanted.declared.all}
        others = self._other_names
        return bool(others), bool(data - inner), bool(others & declared)


def _given(members: Members, ways: Sequence[Way]) -> Any:
    found = value_in(members, ways, 0)
    return None if found is ABSENT else found
