"""How often a caller may do something: a bucket that fills at a rate, and holds two seconds."""

from __future__ import annotations

import math
import time
from typing import Final

BURST_SECONDS: Final = 2.0


class Rate:
    """A limit on calls a second. Not for several threads."""

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._full = per_second * BURST_SECONDS
        self._left = self._full
        self._at = time.monotonic()

    def take(self, count: int = 1) -> int:
        """0 if there was room, and else the seconds after which there is."""
        now = time.monotonic()
        self._left = min(self._full, self._left + (now - self._at) * self.per_second)
        self._at = now
        # One that takes more than the bucket can ever hold may do so when the bucket is full.
        needed = min(count, self._full)
        if self._left >= needed:
            self._left -= count
            return 0
        return max(1, math.ceil((needed - self._left) / self.per_second))
