"""Which events of other channels have arrived already, so that none is taken twice.

An event can come twice where a link ended without acknowledging it and it was sent another way.
Identities are random, so that nobody can use up those of another channel's events in advance, and
each neighbour has a window of its own, so that none can push out what others have brought.
"""

from __future__ import annotations

IDENTITIES_A_NEIGHBOUR = 32_768
WINDOWS_KEPT = 64
"""For so many neighbours that have left, the identities they brought are still remembered."""

Key = tuple[str, int]


class Window:
    """The last identities of one neighbour, in two generations: half of the window, or all."""

    __slots__ = ("_older", "_recent")

    def __init__(self) -> None:
        self._recent: set[Key] = set()
        self._older: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        return key in self._recent or key in self._older

    def add(self, key: Key) -> None:
        if len(self._recent) >= IDENTITIES_A_NEIGHBOUR // 2:
            self._older, self._recent = self._recent, set()
        self._recent.add(key)


class DuplicateFilter:
    """The identities of events that have arrived, by the neighbour that brought them."""

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}

    def add(self, neighbour: str, origin: str, identity: int) -> bool:
        """Remember an event. False if it has arrived before."""
        key = (origin, identity)
        if any(key in window for window in self._windows.values()):
            return False
        window = self._windows.get(neighbour)
        if window is None:
            window = self._windows[neighbour] = Window()
        window.add(key)
        return True

    def keep(self, neighbours: tuple[str, ...]) -> None:
        """Forget the windows of neighbours that left longest ago, if there are too many."""
        left = [name for name in self._windows if name not in neighbours]
        for name in left[: max(0, len(left) - WINDOWS_KEPT)]:
            del self._windows[name]
