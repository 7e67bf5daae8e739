"""The counts of a channel: those of its consumers and of disconnected consumers.

Receivers count their own events in their turns; this module merges the counts when figures are
read. A consumer may be disconnected during a call, or while a supplier is about to offer it an
event. So the receiver of a disconnected consumer is read for a while longer before its final counts
are added up.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from ensue.channel.figures.values import AtomicCounter, ConsumerFigures, Figures, LaxityMeter
from ensue.channel.policies import Reason

SUMS = ("wanted", "delivered", "read", "made")
"""The counts of consumers that a channel adds up."""
LINGER_SECONDS = 5.0
"""How long the receiver of a disconnected consumer is read at least."""


class CountedReceiver(Protocol):
    """What the counts need of a receiver."""

    name: str
    laxity: LaxityMeter

    @property
    def is_busy(self) -> bool: ...

    def figures(self) -> ConsumerFigures: ...


class CountSums:
    """Counts of several receivers together."""

    def __init__(self) -> None:
        self.dropped: Counter[Reason] = Counter()
        self.counts: Counter[str] = Counter()
        self.laxity = LaxityMeter()

    def add(self, figures: ConsumerFigures, laxity: LaxityMeter) -> None:
        self.dropped.update(figures.dropped)
        self.counts.update({name: getattr(figures, name) for name in SUMS})
        self.laxity.add(laxity)

    def copy(self) -> CountSums:
        copied = CountSums()
        copied.dropped.update(self.dropped)
        copied.counts.update(self.counts)
        copied.laxity.add(self.laxity)
        return copied


class ChannelCounts:
    """The counts of one channel."""

    def __init__(self, linger_seconds: float = LINGER_SECONDS) -> None:
        self._linger_seconds = linger_seconds
        self.published = AtomicCounter()
        self.unwanted = AtomicCounter()
        self._lock = threading.Lock()
        self._gone = CountSums()
        self._leaving: deque[tuple[float, CountedReceiver]] = deque()

    def keep(self, receiver: CountedReceiver) -> None:
        """Keep the counts of a consumer that was disconnected."""
        now = time.monotonic()
        with self._lock:
            self._leaving.append((now, receiver))
            while self._leaving and now - self._leaving[0][0] > self._linger_seconds:
                oldest = self._leaving[0][1]
                if oldest.is_busy:
                    break
                self._leaving.popleft()
                self._gone.add(oldest.figures(), oldest.laxity)

    def read(
        self, receivers: Sequence[CountedReceiver], unmade: int, unsent: Mapping[Reason, int]
    ) -> Figures:
        """The figures of a channel.

        `unmade` is the number of events that quenched suppliers did not publish; `unsent` has the
        events that links could not carry.
        """
        consumers = {each.name: each.figures() for each in receivers}
        with self._lock:
            sums = self._gone.copy()
            for _, each in self._leaving:
                sums.add(each.figures(), each.laxity)
        for receiver in receivers:
            sums.add(consumers[receiver.name], receiver.laxity)
        sums.dropped.update(unsent)
        return Figures(
            self.published.read(),
            self.unwanted.read() + unmade,
            sums.counts["delivered"],
            sum(each.waiting for each in consumers.values()),
            dict(sums.dropped),
            consumers,
            sums.laxity.read(),
            sums.counts["wanted"],
            sums.counts["read"],
            sums.counts["made"],
        )

    def reset_laxity(self, receivers: Sequence[CountedReceiver]) -> None:
        with self._lock:
            self._gone.laxity = LaxityMeter()
            leaving = [each for _, each in self._leaving]
        for receiver in (*receivers, *leaving):
            receiver.laxity = LaxityMeter()
