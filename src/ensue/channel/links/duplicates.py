"""The filter that recognises events of other channels which have arrived before.

An event can arrive twice if a link ended before the event was acknowledged, and another link sent
it again. Identities are random, so that no neighbour can guess the identities of future events.
Each neighbour has its own window, so that no neighbour can displace identities that others have
brought.
"""

from __future__ import annotations

IDENTITIES_A_NEIGHBOUR = 32_768
WINDOWS_KEPT = 64
"""The number of neighbours without a link whose windows are still kept."""


class IdentityWindow:
    """The latest identities of one neighbour, in two generations of half a window each."""

    __slots__ = ("older", "recent")

    def __init__(self) -> None:
        self.recent: set[int] = set()
        self.older: set[int] = set()


class DuplicateFilter:
    """The identities of events that have arrived, by the neighbour that brought them."""

    def __init__(self) -> None:
        self._windows: dict[str, IdentityWindow] = {}

    def add(self, neighbour: str, identity: int) -> bool:
        """Record the identity of an event. False if the event has arrived before."""
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
        """Delete the oldest windows beyond the limit, of neighbours that have no link any more."""
        left = [name for name in self._windows if name not in neighbours]
        for name in left[: max(0, len(left) - WINDOWS_KEPT)]:
            del self._windows[name]
