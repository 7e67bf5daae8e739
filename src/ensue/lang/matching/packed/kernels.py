"""The compiled loops of the index: walks through buckets and intervals, and checks of conjunctions.

The facts of an event are six cells for each name: its number, the code of its text, its truth, its
time, its time if it is a timestamp, and whether there is a value; a cell without a value is NaN.
Every atom is then a test of one kind: whether a cell lies between two numbers, or not.

An entry is a conjunction: a row of 64 bytes, one cache line. It has the next entry of its bucket,
the number of its atoms, and two atoms; further atoms are in `spill`. The loops return the entries
that hold, marked if Python has to evaluate more. A value that a cell cannot hold (a number beyond
2^53) makes its event `odd`: then an atom on a cell without a value leaves the entry to Python.

Loops that are called for every event take arrays one by one, since to unpack a named tuple takes
several microseconds; loops over many events take named tuples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ensue.events.kernels.compiling import compiled

# Cells of a name in `facts`.
NUMBER, TEXT, TRUTH, TIME, OWN_TIME, PRESENT = range(6)
CELLS = 6
OTHER_TEXT = -1.0
"""The code of a text that is in no atom."""
BLANK = np.array([np.nan] * 5 + [0.0])

# Columns of an entry's row. The head has the number of atoms, two marks, and the place in `spill`
# of the atoms that are not in the row. An atom is 2 * cell + whether it is turned, and two ends.
FOLLOWING, HEAD, FIRST_ATOM = range(3)
INLINE, ATOM, ROW = 2, 3, 8
ASKS_MORE, REMOVED = 256, 512
# Marks on entries that were found.
MORE_TO_ASK, ALL_TO_ASK = 1 << 40, 1 << 41
ENTRY = (1 << 40) - 1


class Entries(NamedTuple):
    """The rows of entries, read as integers and as reals, and the atoms that are not in a row."""

    rows: npt.NDArray[np.int64]
    real_rows: npt.NDArray[np.float64]
    spill: npt.NDArray[np.float64]


class IntervalArrays(NamedTuple):
    """Intervals with their entries; the first `in_order` of `total` are sorted by lower ends.

    `highest` has the largest upper end of each subtree (`fill_highest`).
    """

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    highest: npt.NDArray[np.float64]
    entries: npt.NDArray[np.int32]
    in_order: int
    total: int


class FactRows(NamedTuple):
    """The facts of many events, `width` cells for each, and which events are odd."""

    facts: npt.NDArray[np.float64]
    width: int
    odd: npt.NDArray[np.bool_]


class Opened(NamedTuple):
    """The lists of buckets that each event opens.

    `lists` has a row for each kind of list, with the number of a list for each event; `starts` has
    the place in `buckets` at which a list begins, `heads` the first entry of each bucket.
    """

    lists: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]


class Stabbed(NamedTuple):
    """A value for each event, whether it is `valid`, and room for the entries of one event."""

    values: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]
    candidates: npt.NDArray[np.int64]


class FoundRows(NamedTuple):
    """Room for results: events, and the entries that hold for them."""

    events: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int64]


@njit(inline="always")
def _fails(meta: Any, low: Any, high: Any, facts: Any, first: Any) -> Any:
    value = facts[first + (meta >> 1)]
    # Comparisons with NaN are false: a cell without a value fails by the second condition.
    return (low <= value <= high) == ((meta & 1) == 1) or value != value


@njit(inline="always")
def checked(entry: Any, entries: Any, facts: Any, first: Any, odd: Any) -> Any:
    """The entry if all its atoms hold, marked if Python has to evaluate more; -1 otherwise.

    `first` is the cell of `facts` at which the event begins.
    """
    rows, real_rows, spill = entries
    head = rows[entry, HEAD]
    count = head & 255
    marked = entry
    if head & ASKS_MORE:
        marked |= MORE_TO_ASK
    if head & REMOVED:
        marked = -1
    for at in range(min(count, INLINE)):
        place = FIRST_ATOM + ATOM * at
        meta = rows[entry, place]
        if _fails(meta, real_rows[entry, place + 1], real_rows[entry, place + 2], facts, first):
            if odd and np.isnan(facts[first + (meta >> 1)]):
                marked |= ALL_TO_ASK
            else:
                marked = -1
                break
    if marked >= 0 and count > INLINE:
        for at in range(head >> 16, (head >> 16) + count - INLINE):
            meta = np.int64(spill[at, 0])
            if _fails(meta, spill[at, 1], spill[at, 2], facts, first):
                if odd and np.isnan(facts[first + (meta >> 1)]):
                    marked |= ALL_TO_ASK
                else:
                    marked = -1
                    break
    return marked


@compiled
def walk_buckets(
    buckets: Any,
    heads: Any,
    rows: Any,
    real_rows: Any,
    spill: Any,
    facts: Any,
    odd: Any,
    found: Any,
) -> Any:
    """Write the entries of buckets that hold for one event to `found`; their number."""
    total, entries = 0, Entries(rows, real_rows, spill)
    for place in range(buckets.size):
        entry = np.int64(heads[buckets[place]])
        while entry >= 0:
            marked = checked(entry, entries, facts, 0, odd)
            if marked >= 0:
                found[total] = marked
                total += 1
            entry = rows[entry, FOLLOWING]
    return total


# --- intervals -----------------------------------------------------------------------------------


@compiled
def fill_highest(high: Any, highest: Any) -> None:
    """Fill in the largest upper end of each subtree, over intervals sorted by lower ends.

    The tree is implicit: the middle of a range of places is its root.
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


@compiled
def stab(value: Any, intervals: Any, found: Any, total: Any) -> Any:
    """Write the entries whose interval contains a value behind `total`; the new total.

    The intervals behind `in_order` are not sorted.
    """
    low, high, highest, entries, sorted_count, count = intervals
    if value != value:
        # NaN has no order: every interval is a candidate, since its atom may have to be false.
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


@compiled
def stab_and_check(
    value: Any,
    low: Any,
    high: Any,
    highest: Any,
    entries: Any,
    sorted_count: Any,
    count: Any,
    rows: Any,
    real_rows: Any,
    spill: Any,
    facts: Any,
    odd: Any,
    found: Any,
    total: Any,
) -> Any:
    """Write the entries that hold for one event, of those whose interval contains a value."""
    end = stab(
        value, IntervalArrays(low, high, highest, entries, sorted_count, count), found, total
    )
    held = Entries(rows, real_rows, spill)
    for place in range(total, end):
        marked = checked(found[place], held, facts, 0, odd)
        if marked >= 0:
            found[total] = marked
            total += 1
    return total


# --- many events ---------------------------------------------------------------------------------


@compiled
def walk_rows(begin: Any, opened: Any, entries: Any, events: Any, found: Any) -> Any:
    """As `walk_buckets`, for many events from `begin` on, each with the lists that it opens.

    Returns the event to go on with, if the room in `found` was not enough, and the number found.
    """
    lists, starts, buckets, heads = opened
    facts, width, odd = events
    total = 0
    for event in range(begin, odd.size):
        before = total
        for place in range(lists.shape[0]):
            list_ = lists[place, event]
            for at in range(starts[list_], starts[list_ + 1]):
                entry = np.int64(heads[buckets[at]])
                while entry >= 0:
                    marked = checked(entry, entries, facts, event * width, odd[event])
                    if marked >= 0:
                        if total == found.entries.size:
                            return event, before
                        found.events[total] = event
                        found.entries[total] = marked
                        total += 1
                    entry = entries.rows[entry, FOLLOWING]
    return odd.size, total


@compiled
def stab_rows(
    begin: Any, stabbed: Any, intervals: Any, entries: Any, events: Any, found: Any
) -> Any:
    """As `stab_and_check`, for many events; the result is that of `walk_rows`."""
    values, valid, candidates = stabbed
    facts, width, odd = events
    total = 0
    for event in range(begin, values.size):
        if not valid[event]:
            continue
        before = total
        many = stab(values[event], intervals, candidates, 0)
        for place in range(many):
            entry = np.int64(candidates[place])
            marked = checked(entry, entries, facts, event * width, odd[event])
            if marked >= 0:
                if total == found.entries.size:
                    return event, before
                found.events[total] = event
                found.entries[total] = marked
                total += 1
    return values.size, total
