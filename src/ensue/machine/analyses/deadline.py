"""The time by which analyses have to end, and why one can end without an answer.

Budgets of work bound what is foreseen; a deadline bounds all the rest: a rule with thousands of
ports, terms or labels, on a machine of any speed. `deadline` says how long what is inside it may
take, `poll` is asked wherever an analysis goes round, and raises once the time has passed. Who
started the analysis turns that into an answer that is undecided and says so.

A deadline holds for the thread that set it. It is no argument of every search and step, because
each of them would only hand it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

ANALYSIS_SECONDS = 60.0
"""How long one analysis may take that was asked for by name."""

CHECK_SECONDS = 5.0
"""How long all analyses of `check` may take together."""


class UndecidableError(Exception):
    """An analysis that cannot be made exactly; the message says why."""


class OutOfTimeError(UndecidableError):
    """An analysis that did not end by its deadline."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    seconds: float
    end: float


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Analyses inside of it end within so many seconds; None sets no further deadline."""
    outer = _current.get()
    inner = outer
    if seconds is not None:
        end = monotonic() + seconds
        inner = _Deadline(seconds, end) if outer is None or end < outer.end else outer
    token = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(token)


def poll() -> None:
    """Raise `OutOfTimeError` if the deadline has passed."""
    current = _current.get()
    if current is not None and monotonic() >= current.end:
        raise OutOfTimeError(f"the analysis did not end within {current.seconds:.3g} s")


def seconds_left() -> float | None:
    """How much time there is until the deadline; None if there is none."""
    current = _current.get()
    return None if current is None else max(0.0, current.end - monotonic())
