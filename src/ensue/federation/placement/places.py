"""Places: the order in which one machine would read everything, whatever site it comes from.

A place is a tuple, and places are compared as tuples. Events are ordered by time, then by the rank
of their site, then as they came there. Timers that are due at a time come before its events, by the
number of their rule and by what their key has read last. What a rule puts out is read behind what
caused it, first in, first out: deeper outputs later, and at one depth in the order of the rules on
the way. So every site can put what reaches it from all the others in the order of a single machine,
without asking one.
"""

from __future__ import annotations

from collections.abc import Iterator

Place = tuple[int, int, int, int, int, int, tuple[int, ...]]
"""Time; timer, event or end; rank or rule; count or key; firing; depth; outputs on the way."""

Since = tuple[Place, int]
"""From which place on a start counts: the place itself (0), or only what lies behind it (1)."""

_TIMER, _EVENT, _END = range(3)

FIRST: Place = (-(1 << 62), 0, 0, 0, 0, 0, ())
ALWAYS: Since = (FIRST, 0)
"""Every start counts."""


class Numbers(Iterator[int]):
    """Counts on, and can say from where: `following` is the number that comes next."""

    def __init__(self, following: int = 0) -> None:
        self.following = following

    def __next__(self) -> int:
        self.following += 1
        return self.following - 1


def event_place(time: int, rank: int, count: int) -> Place:
    """The place of an event, the `count`-th that came to the site of that rank."""
    return (time, _EVENT, rank, count, 0, 0, ())


def timer_place(time: int, rule: int, key: int, firing: int) -> Place:
    """The place of a firing: the `firing`-th of one rule and key at one time."""
    return (time, _TIMER, rule, key, firing, 0, ())


def last_timers_before(place: Place) -> int:
    """The last time all of whose timers lie before a place."""
    return place[0] if place[1] > _TIMER else place[0] - 1


def output_place(cause: Place, rule: int, count: int) -> Place:
    """The place of the `count`-th output of a rule at what caused it."""
    time, kind, first, second, third, depth, way = cause
    return (time, kind, first, second, third, depth + 1, (*way, rule, count))


def end_of(time: int) -> Place:
    """Behind everything that can happen at a time."""
    return (time, _END, 0, 0, 0, 0, ())
