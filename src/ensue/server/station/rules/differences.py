"""What differs between two texts of a library: line by line, and in what becomes of its rules.

In come two texts, or two libraries; out go a unified difference with its counts, and the names of
rules that keep their state, change, come and go. Nothing is run or changed here.
"""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import Final

import msgspec

from ensue.engine.changing import is_unchanged
from ensue.library import Library

CONTEXT: Final = 3
HUNK: Final = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")
MOST_COMPARED: Final = 4_000
"""Lines of each text that are compared, behind what is equal at the beginning and at the end."""


class TextDifference(msgspec.Struct, frozen=True):
    """`unified` is empty for equal texts."""

    unified: str
    added_lines: int
    removed_lines: int


class RuleEffects(msgspec.Struct, frozen=True):
    """Names of rules by what becomes of them. Those that are kept keep their state."""

    kept: list[str]
    changed: list[str]
    added: list[str]
    removed: list[str]


def text_difference(old: str, new: str, old_name: str, new_name: str) -> TextDifference:
    """The difference of two texts, as `diff -u` writes it."""
    before, after = _lines(old), _lines(new)
    first = _equal(before, after)
    last = _equal(before[first:][::-1], after[first:][::-1])
    if max(len(before), len(after)) - first - last > MOST_COMPARED:
        # Comparing takes quadratic time: such a part is shown as replaced.
        lines = _replaced(before, after, first, last)
    else:
        lines = _compared(before, after, first, last)
    added = sum(each.startswith("+") for each in lines)
    removed = sum(each.startswith("-") for each in lines)
    shown = [f"--- {old_name}", f"+++ {new_name}", *lines] if lines else []
    return TextDifference("".join(f"{each}\n" for each in shown), added, removed)


def _lines(text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n") if text else []
    if lines and not text.endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _compared(before: list[str], after: list[str], first: int, last: int) -> list[str]:
    """Hunks of texts that are equal in their first and last lines, which are not compared."""
    begin, end = max(0, first - CONTEXT), max(0, last - CONTEXT)
    old, new = before[begin : len(before) - end], after[begin : len(after) - end]

    def moved(head: re.Match[str]) -> str:
        return f"@@ -{int(head[1]) + begin}{head[2]} +{int(head[3]) + begin}{head[4]} @@"

    lines = list(unified_diff(old, new, n=CONTEXT, lineterm=""))[2:]
    return [HUNK.sub(moved, each) if each.startswith("@@") else each for each in lines]


def _equal(some: list[str], others: list[str]) -> int:
    """How many lines are equal from the beginning on."""
    count = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def _replaced(before: list[str], after: list[str], first: int, last: int) -> list[str]:
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    head = f"@@ -{first + bool(old)},{len(old)} +{first + bool(new)},{len(new)} @@"
    return [head, *(f"-{each}" for each in old), *(f"+{each}" for each in new)]


def rule_effects(old: Library | None, new: Library | None) -> RuleEffects:
    """What a library does to the rules of another that runs; None is of a library that does not."""
    before = {each.name: each for each in old.correlations} if old else {}
    after = {each.name: each for each in new.correlations} if new else {}
    kept: set[str] = set()
    if old is not None and new is not None:
        types = old.checked.types, new.checked.types
        both = before.keys() & after.keys()
        kept = {each for each in both if is_unchanged(before[each], after[each], *types)}
    return RuleEffects(
        [each for each in after if each in kept],
        [each for each in after if each in before and each not in kept],
        [each for each in after if each not in before],
        [each for each in before if each not in after],
    )
