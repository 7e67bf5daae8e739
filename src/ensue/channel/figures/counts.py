"""The counts of a channel: those of present consumers, and those kept of consumers that have left.

Receivers count their own events in their turns; this module merges the counts when figures are
asked for.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from ensue.channel.figures.values import ConsumerFigures, Figures, LaxityMeter, Tally
from ensue.channel.policies import Reason

SUMS = ("wanted", "delivered", "read", "made")
"""The counts of consumers that a channel adds up."""


class CountedReceiver(Protocol):
    """What the counts need of a receiver."""

    name: str
    laxity: LaxityMeter

    def figures(self) -> ConsumerFigures: ...


class ChannelCounts:
    def __init__(self) -> None:
        self.published = Tally()
        self.unwanted = Tally()
        self._lock = threading.Lock()
        self._dropped: Counter[Reason] = Counter()
        self._left: Counter[str] = Counter()
        self._laxity = LaxityMeter()

    def keep(self, receiver: CountedReceiver) -> None:
        """Keep the counts of a consumer that leaves the channel."""
        with self._lock:
            figures = receiver.figures()
            self._dropped.update(figures.dropped)
            self._left.update({name: getattr(figures, name) for name in SUMS})
            self._laxity.add(receiver.laxity)

    def read(
        self, receivers: Sequence[CountedReceiver], unmade: int, unsent: Mapping[Reason, int]
    ) -> Figures:
        """The figures of a channel.

        `unmade` counts events that quenched suppliers did not create, `unsent` those that links
        could not carry.
        """
        consumers = {each.name: each.figures() for each in receivers}
        laxity = LaxityMeter()
        with self._lock:
            dropped, sums = Counter(self._dropped), Counter(self._left)
            laxity.add(self._laxity)
        for each in consumers.values():
            dropped.update(each.dropped)
            sums.update({name: getattr(each, name) for name in SUMS})
        dropped.update(unsent)
        for receiver in receivers:
            laxity.add(receiver.laxity)
        return Figures(
            self.published.read(),
            self.unwanted.read() + unmade,
            sums["delivered"],
            sum(each.waiting for each in consumers.values()),
            dict(dropped),
            consumers,
            laxity.read(),
            sums["wanted"],
            sums["read"],
            sums["made"],
        )

    def reset_laxity(self, receivers: Sequence[CountedReceiver]) -> None:
        with self._lock:
            self._laxity = LaxityMeter()
        for receiver in receivers:
            receiver.laxity = LaxityMeter()
