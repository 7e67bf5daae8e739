"""Which events of other channels have arrived already, so that none is taken twice.

An event can come twice where a link ended without acknowledging it and it was sent another way.
Identities are random, so that no neighbour can guess the identities of events to come, and each
neighbour has its own window, so that none can push out what others have brought.
"""

from __future__ import annotations

IDENTITIES_A_NEIGHBOUR = 32_768
WINDOWS_KEPT = 64
"""For so many neighbours that have left, the identities they brought are still remembered."""


class IdentityWindow:
    """The last identities of one neighbour, in two generations: half of the window, or all."""

    __slots__ = ("older", "recent")

    def __init__(self) -> None:
        self.recent: set[int] = set()
        self.older: set[int] = set()


class DuplicateFilter:
    """The identities of events that have arrived, by the neighbour that brought them."""

    def __init__(self) -> None:
        self._windows: dict[str, IdentityWindow] = {}

    def add(self, neighbour: str, identity: int) -> bool:
        """Remember an event. False if it has arrived before."""
        for window in self._windows.values():
            if identity in window.recent or identity in window.older:
                return False
        own = self._windows.get(neighbour)
        if own is None:
            own = self._windows[neighbour] = IdentityWindow()
        elif len(own.recent) >= IDENTITIES_A_NEIGHBOUR // 2:
            own.older, own.recent = own.recent, set()
        own.recent.add(identity)
        return True

    def keep(self, neighbours: tuple[str, ...]) -> None:
        """Forget the windows of neighbours that left longest ago, if there are too many."""
        left = [name for name in self._windows if name not in neighbours]
        for name in left[: max(0, len(left) - WINDOWS_KEPT)]:
            del self._windows[name]
