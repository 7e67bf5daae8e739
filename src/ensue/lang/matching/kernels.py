"""The compiled loops of the index: walking buckets and intervals, and checking conjunctions.

An entry is a conjunction. Its atoms stand one behind the other in arrays; `checked` asks them of
one event, whose values stand in `facts` (integers) and `reals` (numbers as doubles), a row a name.
A bucket is a list of entries, linked through `following`. Out go the entries that hold, with -1 - e
in place of e for an entry that these loops cannot judge, so that Python has to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Columns of `facts`.
NUMBER_KIND, NUMBER, TEXT, TRUTH, TIME, KIND = range(6)
WIDTH = 6
# Kinds of numbers.
NO_NUMBER, INTEGER, REAL, ODD_NUMBER = range(4)
# Codes of texts that are no constant's: another text, no text at all, a timestamp.
OTHER_TEXT, NO_TEXT, ODD_TEXT = -1, -2, -3
NO_TRUTH = 2
NO_TIME = -(2**63)
# Kinds of values.
MISSING_VALUE, SOME_VALUE, TIMESTAMP = range(3)

# What an atom looks at.
ON_NUMBER, ON_REAL, ON_TEXT, ON_TRUTH, ON_TIME, ON_OWN_TIME, ON_PRESENCE, ON_NOTHING = range(8)
EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL = range(5)
# An atom's `form` is 16 * what it looks at + 2 * its sign + whether it is to come out true.

BLANK = np.array([NO_NUMBER, 0, NO_TEXT, NO_TRUTH, NO_TIME, MISSING_VALUE], np.int64)

FAILS, HOLDS, UNSURE = range(3)


@njit(cache=True, inline="always")
def _compare_integers(sign: Any, left: Any, right: Any) -> Any:
    if sign == EQUAL:
        return left == right
    if sign == LESS:
        return left < right
    if sign == LESS_OR_EQUAL:
        return left <= right
    if sign == GREATER:
        return left > right
    return left >= right


@njit(cache=True, inline="always")
def _compare_reals(sign: Any, left: Any, right: Any) -> Any:
    if sign == EQUAL:
        return left == right
    if sign == LESS:
        return left < right
    if sign == LESS_OR_EQUAL:
        return left <= right
    if sign == GREATER:
        return left > right
    return left >= right


@njit(cache=True)
def asked(form: Any, constant: Any, real: Any, facts: Any, reals: Any, row: Any) -> Any:
    """The outcome of one atom for the values in a row of `facts`."""
    view, sign, wanted = form >> 4, (form >> 1) & 7, (form & 1) == 1
    if view == ON_NOTHING:
        return FAILS
    if view == ON_PRESENCE:
        return HOLDS if (facts[row, KIND] != MISSING_VALUE) == wanted else FAILS
    if view == ON_NUMBER or view == ON_REAL:
        kind = facts[row, NUMBER_KIND]
        if kind == NO_NUMBER:
            return FAILS
        if kind == ODD_NUMBER:
            return UNSURE
        if kind == INTEGER and view == ON_NUMBER:
            found = _compare_integers(sign, facts[row, NUMBER], constant)
        else:
            found = _compare_reals(sign, reals[row], real)
        return HOLDS if found == wanted else FAILS
    if view == ON_TEXT:
        code = facts[row, TEXT]
        if code == NO_TEXT:
            return FAILS
        if code == ODD_TEXT:
            return UNSURE
        return HOLDS if (code == constant) == wanted else FAILS
    if view == ON_TRUTH:
        truth = facts[row, TRUTH]
        if truth == NO_TRUTH:
            return FAILS
        return HOLDS if (truth == constant) == wanted else FAILS
    if facts[row, TIME] == NO_TIME or (view == ON_OWN_TIME and facts[row, KIND] != TIMESTAMP):
        return FAILS
    found = _compare_integers(sign, facts[row, TIME], constant)
    return HOLDS if found == wanted else FAILS


@njit(cache=True)
def checked(
    entry: Any,
    begins: Any,
    counts: Any,
    slots: Any,
    forms: Any,
    constants: Any,
    real_constants: Any,
    facts: Any,
    reals: Any,
    first_row: Any,
) -> Any:
    """Whether all atoms of an entry hold; `first_row` is the row of name 0."""
    outcome = HOLDS
    for at in range(begins[entry], begins[entry] + counts[entry]):
        found = asked(
            forms[at], constants[at], real_constants[at], facts, reals, first_row + slots[at]
        )
        if found == FAILS:
            return FAILS
        if found == UNSURE:
            outcome = UNSURE
    return outcome


@njit(cache=True)
def walk_buckets(
    buckets: Any,
    many: Any,
    heads: Any,
    following: Any,
    begins: Any,
    counts: Any,
    slots: Any,
    forms: Any,
    constants: Any,
    real_constants: Any,
    facts: Any,
    reals: Any,
    found: Any,
) -> Any:
    """The entries of some buckets that hold for one event; out goes how many are in `found`."""
    total = 0
    for place in range(many):
        entry = heads[buckets[place]]
        while entry >= 0:
            outcome = checked(
                entry,
                begins,
                counts,
                slots,
                forms,
                constants,
                real_constants,
                facts,
                reals,
                0,
            )
            if outcome != FAILS:
                found[total] = entry if outcome == HOLDS else -1 - entry
                total += 1
            entry = following[entry]
    return total


@njit(cache=True)
def check_entries(
    entries: Any,
    many: Any,
    begins: Any,
    counts: Any,
    slots: Any,
    forms: Any,
    constants: Any,
    real_constants: Any,
    facts: Any,
    reals: Any,
    found: Any,
    total: Any,
) -> Any:
    """As `walk_buckets`, for entries that are listed; what holds goes behind `total`."""
    for place in range(many):
        entry = entries[place]
        outcome = checked(
            entry,
            begins,
            counts,
            slots,
            forms,
            constants,
            real_constants,
            facts,
            reals,
            0,
        )
        if outcome != FAILS:
            found[total] = entry if outcome == HOLDS else -1 - entry
            total += 1
    return total


# --- intervals -----------------------------------------------------------------------------------


@njit(cache=True)
def fill_highest(high: Any, highest: Any) -> None:
    """Over intervals in the order of their lower ends: the largest upper end of each subtree.

    The tree is implicit: the middle of a stretch is the root of the stretch.
    """
    stack = np.empty((128, 3), np.int64)
    depth = 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, high.size, 0
    while depth >= 0:
        low, end, state = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if low >= end:
            depth -= 1
            continue
        middle = (low + end) // 2
        if state == 0:
            stack[depth, 2] = 1
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = low, middle, 0
        elif state == 1:
            stack[depth, 2] = 2
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = middle + 1, end, 0
        else:
            most = high[middle]
            if middle > low:
                most = max(most, highest[(low + middle) // 2])
            if end > middle + 1:
                most = max(most, highest[(middle + 1 + end) // 2])
            highest[middle] = most
            depth -= 1


@njit(cache=True)
def stab(
    value: Any,
    low: Any,
    high: Any,
    highest: Any,
    entries: Any,
    sorted_count: Any,
    count: Any,
    found: Any,
) -> Any:
    """The entries whose interval holds a value; those behind `sorted_count` are in no order."""
    total = 0
    if value != value:
        # What is no number lies in no order, and may still make an atom come out false.
        for place in range(count):
            found[total] = entries[place]
            total += 1
        return total
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, sorted_count
    depth = 0
    while depth >= 0:
        begin, end = stack[depth, 0], stack[depth, 1]
        depth -= 1
        if begin >= end:
            continue
        middle = (begin + end) // 2
        if highest[middle] < value:
            continue
        if low[middle] <= value:
            if high[middle] >= value:
                found[total] = entries[middle]
                total += 1
            depth += 1
            stack[depth, 0], stack[depth, 1] = middle + 1, end
        depth += 1
        stack[depth, 0], stack[depth, 1] = begin, middle
    for place in range(sorted_count, count):
        if low[place] <= value <= high[place]:
            found[total] = entries[place]
            total += 1
    return total
