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
    kept: Callable[..., Any]
    try:
        kept = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kept = njit(nogil=True)(function)
    return kept
