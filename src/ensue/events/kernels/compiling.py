"""How loops are compiled: once, and kept on disk, so that a new process only loads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as a loop that is compiled at its first call, and kept on disk from then on.

    Where there is no place to keep it (a container that is read-only and has no home, an executor
    of a cluster) every process compiles it for itself.
    """
    kept: Callable[..., Any]
    try:
        kept = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        kept = njit(nogil=True, **options)(function)
    return kept


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled loop that makes no arrays, so that no references to arrays are counted in it.

    Each array that is handed from one loop to another would be counted otherwise, which costs many
    times what a step of the loop does.
    """
    return compiled(function, _nrt=False)
