"""The deadline of an analysis, and the errors of an analysis without an answer.

Budgets of work bound the searches; a deadline bounds everything else: a rule with thousands of
ports, terms or labels, on a computer of any speed. The context manager `deadline` sets the time,
and every loop of an analysis calls `poll`, which raises an error once the time has passed. The
caller of the analysis turns that error into an undecided answer.

A deadline holds for the thread that set it. It is no argument of searches and steps, because each
of them would only pass it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

ANALYSIS_SECONDS = 60.0
"""The time for one analysis that a user asked for."""

CHECK_SECONDS = 5.0
"""The time for all analyses of `check` together."""


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
    """Sets the deadline of the analyses inside; None leaves the present one."""
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
    """The time until the deadline; None without a deadline."""
    current = _current.get()
    return None if current is None else max(0.0, current.end - monotonic())
