"""Events that did not reach one consumer: counted by reason, and reported to `on_drop`.

Drops are noted while the mailbox is locked and reported after it is unlocked, since the callback
may use the channel. `mailbox` and `receiver` decide which events are dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from ensue.channel.policies import Reason
from ensue.events.event import Event

OnDrop = Callable[[str, Event, Reason], None]


class Drops:
    """The drops of one consumer."""

    def __init__(self, consumer: str, on_drop: OnDrop | None) -> None:
        self.counts: Counter[Reason] = Counter()
        self.unreported: deque[tuple[Event, Reason]] = deque()
        self._consumer = consumer
        self._on_drop = on_drop

    def note(self, event: Event, reason: Reason) -> None:
        self.counts[reason] += 1
        if self._on_drop is not None:
            self.unreported.append((event, reason))

    def report(self) -> None:
        """Call `on_drop` for drops not reported yet. Several threads may do so at once."""
        while self.unreported and self._on_drop is not None:
            try:
                event, reason = self.unreported.popleft()
            except IndexError:
                return
            self._on_drop(self._consumer, event, reason)
