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

from ensue.events.kernels.compiling import compiled, uncounted

__all__ = ["FAR", "compiled", "inlined", "lowered", "uncounted"]

FAR = 2**62
"""The start of what needs no earlier event; its negative says that a state is not active."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
inlined: Decorator = njit(inline="always")
lowered: Decorator = intrinsic
