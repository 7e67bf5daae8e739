"""Which events of other channels have arrived already, so that none is taken twice.

Each channel numbers what it publishes. Numbers are remembered by origin, in a bounded window; what
is older than all of it counts as known. Which way an event came is not known here.
"""

from __future__ import annotations

REMEMBERED_NUMBERS = 65_536


class Arrivals:
    """The numbers of events that have arrived, by origin, in a bounded window."""

    def __init__(self) -> None:
        self._by_origin: dict[str, tuple[int, set[int]]] = {}

    def add(self, origin: str, sequence: int) -> bool:
        """Remember an event. False if it is known, or older than all that are remembered."""
        oldest, seen = self._by_origin.setdefault(origin, (0, set()))
        if sequence <= oldest or sequence in seen:
            return False
        seen.add(sequence)
        if len(seen) > REMEMBERED_NUMBERS:
            kept = sorted(seen)[REMEMBERED_NUMBERS // 2 :]
            self._by_origin[origin] = (kept[0] - 1, set(kept))
        return True
