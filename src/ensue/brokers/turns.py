"""One thing at a time among brokers of one process.

Brokers that are linked in a process share one `BrokerTurns`: a lock, and a queue of what they say
to each other. A call from outside (a publication, a subscription) takes the lock, and before giving
it back sees to it that the queue is empty. So messages keep their order, no broker is entered
twice, and a long chain of brokers costs no stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock


class BrokerTurns:
    """Work that waits, and the lock under which it is done."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._depth = 0
        self._failures: list[Exception] = []
        self._first: list[Callable[[], None]] = []
        self._afterwards: list[Callable[[], None]] = []

    def first(self, look: Callable[[], None]) -> None:
        """Have something done at the beginning of every turn."""
        self._first.append(look)

    def join(self, other: BrokerTurns) -> None:
        """Take over the checks that another `BrokerTurns` makes before each turn."""
        self._first += other._first

    def post(self, work: Callable[[], None]) -> None:
        """Have something done after all that waits already."""
        self._waiting.append(work)

    def failed(self, error: Exception) -> None:
        """Keep an error of a subscriber's own code until everything else is done."""
        self._failures.append(error)

    def afterwards(self, wait: Callable[[], None]) -> None:
        """Have something waited for once the turn is over, and others may take theirs."""
        self._afterwards.append(wait)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A turn, at whose end posted work is done. Errors of subscribers are raised as a group."""
        waits: list[Callable[[], None]] = []
        try:
            with self._lock:
                self._depth += 1
                try:
                    if self._depth == 1:
                        for look in self._first:
                            look()
                    yield
                    if self._depth == 1:
                        self._work()
                finally:
                    self._depth -= 1
                    if self._depth == 0:
                        waits, self._afterwards = self._afterwards, []
        finally:
            for wait in waits:
                wait()

    def _work(self) -> None:
        while self._waiting:
            self._waiting.popleft()()
        failures, self._failures = self._failures, []
        if failures:
            raise ExceptionGroup("subscribers have failed", failures)
