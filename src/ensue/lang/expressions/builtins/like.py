"""LIKE: `%` stands for any characters, also none, `_` for exactly one.

A backslash escapes a `%` or `_` behind it, and is an ordinary character elsewhere. The pattern
between two `%` is searched once, from the left, so that no pattern makes matching slow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_ELEMENT = re.compile(r"\\[%_]|.", re.DOTALL)


class _Stretch(NamedTuple):
    """The pattern between two `%`: of one length, with `_` for some characters."""

    expression: re.Pattern[str]
    length: int


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern matches the whole text."""
    first, *others = _stretches(pattern)
    if not others:
        return first.expression.fullmatch(text) is not None
    *middle, last = others
    if first.expression.match(text) is None:
        return False
    # The leftmost place of each stretch leaves the most room for those behind it.
    place = first.length
    for stretch in middle:
        found = stretch.expression.search(text, place)
        if found is None:
            return False
        place = found.end()
    begin = len(text) - last.length
    return begin >= place and last.expression.fullmatch(text, begin) is not None


@lru_cache(maxsize=1024)
def _stretches(pattern: str) -> tuple[_Stretch, ...]:
    stretches: list[list[str]] = [[]]
    for element in _ELEMENT.findall(pattern):
        if element == "%":
            stretches.append([])
        elif element == "_":
            stretches[-1].append(".")
        else:
            stretches[-1].append(re.escape(element[-1]))
    return tuple(_Stretch(re.compile("".join(each), re.DOTALL), len(each)) for each in stretches)
