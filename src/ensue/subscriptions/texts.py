"""Which patterns of LIKE a text can match together, each combination with a text that shows it.

All patterns are walked side by side, letter by letter: a situation is, for each pattern, the places
that a text may have come to. Letters that no pattern names are alike, so that one stands for all.
What comes out is every combination there is, unless there are too many situations to look at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ensue.lang.matching.patterns import ANY, ONE, elements_of

MOST_SITUATIONS = 4_000

Situation = tuple[frozenset[int], ...]


def combinations(patterns: Sequence[str]) -> tuple[dict[tuple[bool, ...], str], bool]:
    """For each combination of matches a text; and whether these are all combinations."""
    programs = [elements_of(each) for each in patterns]
    letters = {each for program in programs for each in program if isinstance(each, str)}
    other = next(chr(code) for code in range(ord("q"), 0x10000) if chr(code) not in letters)
    alphabet = [*sorted(letters), other]
    first = tuple(_closed(program, (0,)) for program in programs)
    texts: dict[tuple[bool, ...], str] = {}
    waiting = deque([(first, "")])
    seen = {first}
    while waiting:
        places, text = waiting.popleft()
        matched = tuple(len(p) in at for p, at in zip(programs, places, strict=True))
        texts.setdefault(matched, text)
        for letter in alphabet:
            after = tuple(
                _closed(program, _advanced(program, at, letter))
                for program, at in zip(programs, places, strict=True)
            )
            if after not in seen:
                if len(seen) >= MOST_SITUATIONS:
                    return texts, False
                seen.add(after)
                waiting.append((after, text + letter))
    return texts, True


def pattern_for(text: str) -> str:
    """The pattern that only the text itself matches."""
    return "".join(f"\\{each}" if each in "%_" else each for each in text)


def _closed(program: list[object], places: Iterable[int]) -> frozenset[int]:
    reached = set(places)
    for place in sorted(reached):
        while place < len(program) and program[place] is ANY:
            place += 1
            reached.add(place)
    return frozenset(reached)


def _advanced(program: list[object], places: frozenset[int], letter: str) -> set[int]:
    after = set()
    for place in places:
        if place < len(program):
            if program[place] is ANY:
                after.add(place)
            elif program[place] is ONE or program[place] == letter:
                after.add(place + 1)
    return after
