"""A bound on the work of one question to a history, set by the caller.

In comes a function; inside of `bounded_by` it is called for each publication that is looked at, at
whatever depth of a filter, and for each event that is replayed. It raises to end the search: a
search that finds nothing gives its caller no other moment to look at the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Look = Callable[[], None]


def _look_away() -> None:
    """The bound of a caller that sets none: nothing ends the search."""


_BOUND: ContextVar[Look] = ContextVar("bound", default=_look_away)


@contextmanager
def bounded_by(look: Look) -> Iterator[None]:
    """Have `look` called whenever something is looked at, in this thread."""
    before = _BOUND.set(look)
    try:
        yield
    finally:
        _BOUND.reset(before)


def bound() -> Look:
    """What is to be called for each publication that is looked at."""
    return _BOUND.get()
