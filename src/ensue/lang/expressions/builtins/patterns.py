"""MATCHES and EXTRACT: regular expressions in the syntax of RE2, matched in linear time.

In come a text and a pattern; out goes whether the pattern is found anywhere in the text (`^` and
`$` anchor it), or the text of one of its groups. A pattern that RE2 does not read (with
backreferences or lookaround), that would need too much memory, or that lacks a group that is asked
for, is refused when a library is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

LONGEST_PATTERN = 1_000
"""The most characters of a pattern."""


def is_found(text: str, pattern: str) -> bool:
    """Whether a pattern matches some part of a text. Raises ValueError for a lone surrogate."""
    # A text with a lone surrogate is no Unicode text, and RE2 reads UTF-8.
    return _compiled(pattern).search(text) is not None


class Groups(NamedTuple):
    """The groups of a pattern: how many there are, and the numbers of those with a name."""

    total: int
    numbers: Mapping[str, int]


def groups_of(pattern: str) -> Groups:
    """The groups of a pattern that RE2 reads."""
    compiled = _compiled(pattern)
    return Groups(compiled.groups, compiled.groupindex)


def group_number(pattern: str, group: int | str | None) -> int:
    """The group that is asked for, 0 for the whole match. Raises LookupError if there is none.

    Without a group asked for, it is the first one, or the whole match of a pattern without groups.
    """
    total, numbers = groups_of(pattern)
    if group is None:
        return min(1, total)
    if isinstance(group, str):
        return numbers[group]
    if not 0 <= group <= total:
        raise LookupError(group)
    return group


def extracted(text: str, pattern: str, group: int | str | None = None) -> str | None:
    """The text of a group at the first match; None without a match, or if the group has no part.

    Raises ValueError for a lone surrogate, and LookupError for a group that is not there.
    """
    number = group_number(pattern, group)
    found = _compiled(pattern).search(text)
    part: str | None = None if found is None else found.group(number)
    return part


def extraction_problem(constants: Sequence[Any]) -> str | None:
    """What is wrong with the last one of a pattern and a group; None if nothing is."""
    pattern, *group = constants
    if not group:
        return pattern_problem(pattern)
    if not isinstance(pattern, str) or pattern_problem(pattern) is not None:
        return None
    try:
        group_number(pattern, group[0])
    except LookupError:
        return _no_group(pattern, group[0])
    return None


def _no_group(pattern: str, group: int | str) -> str:
    total, numbers = groups_of(pattern)
    if isinstance(group, str):
        known = ", ".join(f"`{name}`" for name in numbers)
        has = f"its groups are {known}" if known else "a group has a name as `(?P<name>...)`"
        return f"the pattern has no group `{group}`: {has}"
    if not total:
        return f"the pattern has no group {group}: put round brackets around the part that is meant"
    return f"the pattern has no group {group}: its groups are 1 to {total}, and 0 is all of it"


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern; None if nothing is."""
    if len(pattern) > LONGEST_PATTERN:
        return f"the pattern has {len(pattern):,} characters, and {LONGEST_PATTERN:,} are allowed"
    try:
        _compiled(pattern)
    except UnicodeEncodeError:
        return "the pattern has half a character in it (a lone surrogate)"
    except ValueError as error:
        return f"RE2 cannot read this pattern: {error}"
    return None


def _shown(reason: Any) -> str:
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    # Loaded only where a library has patterns.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise ValueError(_shown(reason)) from None
