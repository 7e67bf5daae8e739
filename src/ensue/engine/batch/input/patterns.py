"""MATCHES and EXTRACT over a column of texts: RE2, by Arrow instead of text by text.

In come texts and a pattern that the checker accepts; out goes which texts have a match, or the text
of a group in each. Arrow wants every group to have a name, and says an empty text for a group that
has no part in a match: the group that is asked for is made the only one, and empty texts are asked
again one by one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.core.numbering import Mask
from ensue.lang.expressions.builtins.patterns import extracted, group_number, pattern_problem

_ONLY = "only"
_GROUP_OR_NONE = re.compile(
    r"""
      \\Q.*?(?:\\E|\Z)              # a quotation
    | \\.                           # an escaped sign
    | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]      # a class
    | (?P<group>\((?!\?)|\(\?P?<\w+>)
    """,
    re.VERBOSE | re.DOTALL,
)


def matching(texts: pa.Array, pattern: str) -> Mask | None:
    """Whether each text has a match; None if the pattern cannot be read."""
    if pattern_problem(pattern) is not None:
        return None
    found = pc.match_substring_regex(texts, pattern)
    return np.asarray(pc.fill_null(found, False))


def extracting(
    texts: pa.Array, pattern: str, group: int | str | None
) -> tuple[pa.Array, Mask] | None:
    """The group in each text, and where there is none; None if that is better asked singly."""
    if pattern_problem(pattern) is not None:
        return None
    try:
        number = group_number(pattern, group)
    except LookupError:
        return None
    found = pc.extract_regex(texts, alone(pattern, number))
    parts = found.field(_ONLY)
    missing = np.asarray(found.is_null())
    if number:
        doubtful = np.flatnonzero(np.asarray(pc.equal(parts, "")) & ~missing)
        for row, text in zip(doubtful.tolist(), texts.take(doubtful).to_pylist(), strict=True):
            missing[row] = extracted(text, pattern, number) is None
    return parts, missing


@lru_cache(maxsize=1024)
def alone(pattern: str, number: int) -> str:
    """The pattern with one group only, which has a name; group 0 is all of it."""
    if number == 0:
        return f"(?P<{_ONLY}>{_without_groups(pattern, 0)})"
    return _without_groups(pattern, number)


def _without_groups(pattern: str, kept: int) -> str:
    count = 0

    def changed(found: re.Match[str]) -> Any:
        nonlocal count
        if found["group"] is None:
            return found[0]
        count += 1
        return f"(?P<{_ONLY}>" if count == kept else "(?:"

    return _GROUP_OR_NONE.sub(changed, pattern)
