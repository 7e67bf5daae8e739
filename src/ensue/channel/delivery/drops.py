"""What did not reach one consumer: counted by its reason, and reported to whoever listens.

Losses are noted while a receiver's lock is held, and told once it is not: whoever listens may use
the channel. Why an event is lost is decided in `receivers`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from ensue.channel.policies import Reason
from ensue.events.event import Event

OnDrop = Callable[[str, Event, Reason], None]


class Losses:
    def __init__(self, consumer: str, on_drop: OnDrop | None) -> None:
        self.counts: Counter[Reason] = Counter()
        self.untold: deque[tuple[Event, Reason]] = deque()
        self._consumer = consumer
        self._on_drop = on_drop

    def note(self, event: Event, reason: Reason) -> None:
        self.counts[reason] += 1
        if self._on_drop is not None:
            self.untold.append((event, reason))

    def tell(self) -> None:
        """Report what was noted and not told yet. Several threads may do so at once."""
        while self.untold and self._on_drop is not None:
            try:
                event, reason = self.untold.popleft()
            except IndexError:
                return
            self._on_drop(self._consumer, event, reason)
