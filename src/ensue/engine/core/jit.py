"""How loops are compiled.

A kernel takes plain arrays, or named tuples of them, and returns how far it came. Where it meets
what it cannot go on with (an entry of a table that has not been worked out, a full array) it stops
there; Python mends that and calls it again from the same place. Compiled code is cached on disk, so
that a new process only loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import intrinsic

FAR = 2**62
"""The start of what needs no earlier event; its negative says that a state is not active."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
inlined: Decorator = njit(inline="always")
lowered: Decorator = intrinsic


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a loop that is compiled at its first call, and kept on disk from then on.

    Where there is no place to keep it (a container that is read-only and has no home, an executor
    of a cluster) every process compiles it for itself.
    """
    return _kept(function)


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled loop that makes no arrays, so that no references to arrays are counted in it.

    Each array that is handed to an inlined function would be counted otherwise, which costs ten
    times what the step of a cell does.
    """
    return _kept(function, _nrt=False)


def _kept(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    kept: Callable[..., Any]
    try:
        kept = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        kept = njit(nogil=True, **options)(function)
    return kept
