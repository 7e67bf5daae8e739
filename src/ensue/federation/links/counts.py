"""Figures of one link, and the events that it has seen lately."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_SEEN = 200_000


@dataclass
class ServiceCounts:
    """`filtered` events were wanted nowhere; `dropped` ones could not be passed on, by reason."""

    received: int = 0
    sent: int = 0
    filtered: int = 0
    duplicates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    reconnects: int = 0
    last_error: str = ""
    lag: int | None = None


class Seen:
    """Identities of the events that a service is known to have, the latest of them."""

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._most = most
        self._known: set[int] = set()
        self._order: deque[int] = deque()

    def __contains__(self, identity: int) -> bool:
        return identity in self._known

    def add(self, identity: int) -> None:
        if identity in self._known:
            return
        self._known.add(identity)
        self._order.append(identity)
        if len(self._order) > self._most:
            self._known.discard(self._order.popleft())

    def latest(self, most: int) -> list[int]:
        """The identities that were added last, in their order."""
        return list(self._order)[-most:]

    def update(self, identities: Iterable[int]) -> None:
        for each in identities:
            self.add(each)
