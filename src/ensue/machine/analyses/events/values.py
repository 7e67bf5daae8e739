"""A few values of an attribute that stand for all of its values in plain predicates.

In come the type of an attribute and its mentions in predicates; out come representative values, and
whether they are certainly enough: every value of the attribute has the outcomes of one of them in
each plain predicate. For numbers and times these are the constants, and numbers between and around
them; for text, one string for each set of patterns and constants that a text can match.
"""

from __future__ import annotations

import math
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, pairwise
from typing import Any

from ensue.events.conformance import fits
from ensue.events.times import datetime_of, parse_time
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions.values import FaultError, to_number, to_string, wholes_equal_to
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.events.mentions import Mentions

LARGEST_FLOAT = math.nextafter((2 - 2**-24) * 2.0**127, 0)
"""The largest number that rounds to a finite 32-bit float."""
TEXTS = 400
"""The most situations of patterns that are examined; past that texts may be missing."""

Situation = tuple[frozenset[int], ...]
"""For each pattern, the places in it that a text may have reached."""


def values_of(
    type_: ValueType | None, mentions: Mentions, alike: int = 1
) -> tuple[list[Any], bool]:
    """The values (without null), and whether they stand for all.

    Of values that no predicate tells apart there are up to `alike`: several are needed where it
    matters whether two attributes are equal.
    """
    kind = type_.kind if type_ else None
    if type_ is not None and kind == "boolean":
        return [False, True], True
    if type_ is not None and kind in ("integer", "real"):
        return _numbers(type_, mentions, alike)
    if type_ is not None and kind == "timestamp":
        return _times(mentions, alike)
    if type_ is not None and kind == "sequence":
        return [[]], not mentions.patterns and not mentions.listed
    return _texts(type_, mentions, alike)


def ordinary_value(type_: ValueType) -> Any:
    """A value for an attribute that no predicate mentions."""
    ordinary: dict[str, Any] = {
        "integer": 1,
        "real": 1.0,
        "boolean": True,
        "string": "x",
        "sequence": [],
        "timestamp": datetime_of(0),
    }
    return ordinary[type_.kind]


# --- numbers and times --------------------------------------------------------------------------


def _numbers(type_: ValueType, mentions: Mentions, alike: int) -> tuple[list[Any], bool]:
    constants: list[int | float] = []  # no set: beyond 2^53, 1 and 1.0 are not the same
    for constant in mentions.constants:
        try:
            constants.append(to_number(constant))
        except FaultError:
            continue  # no number is equal to it, nor comparable with it
    if type_.name in INTEGER_RANGES:
        near = _whole_numbers(constants or [1], *INTEGER_RANGES[type_.name], alike)
    else:
        near = _reals({float(each) for each in constants} or {1.0}, type_, alike)
    return _distinct(near), not mentions.patterns


def _whole_numbers(constants: Iterable[int | float], low: int, high: int, alike: int) -> list[Any]:
    """One number, or `alike`, of each range whose numbers compare alike with the constants."""
    begins: set[int] = set()
    for constant in constants:
        least, most = wholes_equal_to(constant)
        begins |= {least, most + 1}
    inside = sorted(each for each in begins if low < each <= high)
    if not inside:
        return [each for each in range(1, 1 + alike) if low <= each <= high]
    first = [inside[0] - 1 - each for each in range(alike) if inside[0] - 1 - each >= low]
    stretches = pairwise([*inside, high + 1])
    return first + [each for a, b in stretches for each in range(a, min(a + alike, b))]


def _reals(constants: Iterable[float], type_: ValueType, alike: int) -> list[Any]:
    """The constants, and numbers in every gap between and around them, as far as they fit."""
    ordered = sorted(constants)
    near = [ordered[0] - 1, ordered[-1] + 1]
    if near[0] == ordered[0] or near[1] == ordered[-1]:
        near = [math.nextafter(ordered[0], -math.inf), math.nextafter(ordered[-1], math.inf)]
    # The midpoint of two neighbouring floats is one of them: then no number lies between.
    between = [middle for a, b in pairwise(ordered) if a < (middle := a / 2 + b / 2) < b]
    apart = [*near, *between]
    for each in (*near, *between):
        for _ in range(alike - 1):
            each = math.nextafter(each, math.copysign(math.inf, each - ordered[0]))
            apart.append(each)
    wanted = sorted({*ordered, *apart})
    fitting = [each for each in wanted if fits(each, type_)]
    if len(fitting) < len(wanted):
        largest = LARGEST_FLOAT if type_.name == "float" else sys.float_info.max
        fitting += [1.0, -largest, largest]
    return fitting


def _times(mentions: Mentions, alike: int) -> tuple[list[Any], bool]:
    constants = []
    for constant in mentions.constants:
        if isinstance(constant, datetime):
            constants.append(constant)
        elif isinstance(constant, str):
            try:
                constants.append(datetime_of(parse_time(constant)))
            except ValueError:
                continue
    earliest, latest = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    tick = timedelta(microseconds=1)
    near = list(constants)
    for count in range(1, alike + 1):
        near += [each - count * tick for each in constants if each - earliest >= count * tick]
        near += [each + count * tick for each in constants if latest - each >= count * tick]
    anywhere = [datetime_of(count) for count in range(alike)]
    return _distinct(sorted(near) or anywhere), not mentions.patterns


# --- text ---------------------------------------------------------------------------------------


def _texts(type_: ValueType | None, mentions: Mentions, alike: int) -> tuple[list[Any], bool]:
    constants = [to_string(each) for each in mentions.constants]
    # Text is compared with a number as a number, except in IN.
    exact = not (mentions.ordered or mentions.cast or mentions.bare)
    exact = exact and (type_ is not None or not mentions.listed)
    length = 1 if type_ is not None and type_.name == "char" else None
    if mentions.patterns:
        patterns = [*map(_literally, constants), *mentions.patterns]
        texts, all_found = texts_for(patterns, length, alike)
    else:
        texts, all_found = _texts_apart(constants, length, alike), True
    extra = ["true", "0", "x"] if not exact and length is None else []
    return _distinct([*texts, *extra]), exact and all_found


def _texts_apart(constants: list[str], length: int | None, alike: int) -> list[str]:
    """The constants, and some texts that equal none of them."""
    known = set(constants)
    others = list(islice((each for each in _others() if each not in known), alike))
    return [*others, *(each for each in constants if length is None or len(each) == length)]


def _literally(text: str) -> str:
    return re.sub(r"([%_])", r"\\\1", text)


def texts_for(
    patterns: list[str], length: int | None = None, alike: int = 1
) -> tuple[list[str], bool]:
    """Shortest texts for each set of LIKE patterns that a text can match, and whether that is all.

    The patterns run side by side, as sets of places, over the characters in them and `alike` other
    characters.
    """
    programs = [_program(each) for each in patterns]
    letters = sorted({each for program in programs for each in program if len(each) == 1})
    others = islice((letter for letter in _others() if letter not in letters), alike)
    alphabet = [*others, *letters]
    found: dict[tuple[bool, ...], list[str]] = {}

    def note(places: Situation, text: str) -> None:
        if length is None or len(text) == length:
            matched = tuple(len(p) in at for p, at in zip(programs, places, strict=True))
            texts = found.setdefault(matched, [])
            # An empty text is replaced where another one serves as well.
            if "" in texts and len(texts) == alike:
                texts.remove("")
            if len(texts) < alike:
                texts.append(text)

    first = tuple(_closed(program, {0}) for program in programs)
    note(first, "")
    waiting: deque[tuple[Situation, str]] = deque([(first, "")])
    seen = {(first, 0)}
    while waiting:
        poll()
        places, text = waiting.popleft()
        if length is not None and len(text) >= length:
            continue
        for letter in alphabet:
            after = tuple(
                _closed(program, _advanced(program, at, letter))
                for program, at in zip(programs, places, strict=True)
            )
            note(after, text + letter)
            situation = (after, 0 if length is None else len(text) + 1)
            if situation not in seen:
                if len(seen) >= TEXTS:
                    return list(chain(*found.values())), False
                seen.add(situation)
                waiting.append((after, text + letter))
    return list(chain(*found.values())), True


def _others() -> Iterator[str]:
    """Characters that may be in no pattern, the plainest first."""
    yield from "xyz"
    yield from map(chr, range(0x61, 0x110000))


def _program(pattern: str) -> list[str]:
    """The elements of a pattern: `ANY` for `%`, `ONE` for `_`, else a character."""
    elements = re.findall(r"\\[%_]|.", pattern, re.DOTALL)
    wild = {"%": "ANY", "_": "ONE"}
    return [wild.get(each, each[-1]) for each in elements]


def _closed(program: list[str], places: Iterable[int]) -> frozenset[int]:
    reached = set(places)
    for place in sorted(reached):
        while place < len(program) and program[place] == "ANY":
            place += 1
            reached.add(place)
    return frozenset(reached)


def _advanced(program: list[str], places: frozenset[int], letter: str) -> Iterator[int]:
    for place in places:
        if place < len(program):
            if program[place] == "ANY":
                yield place
            elif program[place] in ("ONE", letter):
                yield place + 1


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, in order; 1, 1.0 and True are three values."""
    kept = {(type(value).__name__, repr(value)): value for value in values}
    return list(kept.values())
