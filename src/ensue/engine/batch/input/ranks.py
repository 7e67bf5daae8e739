"""Numbers that lie close to each other: which there are, and how many come before each.

Readings are numbered one after the other, so those that are held somewhere are seldom far apart.
Then a mark for each number between the first and the last tells what a sort would, many times as
fast; where they are far apart, they are sorted.
"""

from __future__ import annotations

import numpy as np

from ensue.engine.batch.input.column import Rows

_MOST_MARKS = 8
"""For each number, past which marks cost more than sorting."""


def distinct(numbers: Rows) -> Rows:
    """The numbers in their order, each once."""
    if not numbers.size:
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _MOST_MARKS * numbers.size:
        # Sorted by hand: for millions of them that is several times as fast as `np.unique`.
        held = np.sort(numbers)
        return held[np.r_[True, held[1:] != held[:-1]]]
    seen = np.zeros(high - low + 1, np.bool_)
    seen[numbers - low] = True
    return np.flatnonzero(seen) + low


def ranks_in(known: Rows, numbers: Rows) -> Rows:
    """Of each number how many of the known ones come before it, if it is known itself.

    The known ones are distinct and in order. What is not known has any rank.
    """
    if not known.size or int(known[-1] - known[0]) > _MOST_MARKS * known.size:
        return np.searchsorted(known, numbers)
    low, high = int(known[0]), int(known[-1])
    rank_of = np.zeros(high - low + 1, np.int64)
    rank_of[known - low] = np.arange(known.size)
    return rank_of[np.clip(numbers, low, high) - low]
