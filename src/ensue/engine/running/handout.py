"""Outputs on their way out of a run, taken one by one by the caller.

In come parts of outputs, as engines make them; out goes an iterator. Outputs that a caller has not
taken stay: the next call hands them out first, so that the order of the stream is kept. A clock
that jumps far can so fire more timers than there is memory for their outputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from threading import RLock

from ensue.engine.counts import Counts
from ensue.errors import UsageError
from ensue.events.event import Event


class Handout:
    """The outputs of one run that are still to be taken.

    `guard` is the context in which each output is made; `when_empty` is called once all are taken.
    """

    def __init__(
        self,
        lock: RLock,
        counts: Counts,
        guard: Callable[[], AbstractContextManager[None]],
        when_empty: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._counts = counts
        self._guard = guard
        self._when_empty = when_empty
        # One beside the other: iterators that each hold the one before would go as deep as calls.
        self._left: deque[Iterator[Event]] = deque()

    @property
    def is_empty(self) -> bool:
        return not self._left

    def hand_out(self, parts: Iterator[list[Event]]) -> Iterator[Event]:
        """The outputs that are left from earlier calls, and then these."""
        self._left.append(chain.from_iterable(parts))
        return self._handed_out()

    def _handed_out(self) -> Iterator[Event]:
        while True:
            with self._lock, self._guard():
                output = None
                while self._left and (output := next(self._left[0], None)) is None:
                    self._left.popleft()
                if output is None:
                    self._when_empty()
                    return
                self._counts.outputs += 1
            yield output

    def hand_out_made(self, outputs: list[Event]) -> Iterator[Event]:
        """Outputs that are made already, where none is left from earlier calls: a quicker way."""
        made = iter(outputs)
        self._left.append(made)
        return self._handed_out_made(made)

    def _handed_out_made(self, made: Iterator[Event]) -> Iterator[Event]:
        for output in made:
            self._counts.outputs += 1
            yield output
        with self._lock:
            if self._left and self._left[0] is made:
                self._left.popleft()
                if not self._left:
                    self._when_empty()

    def require_empty(self) -> None:
        if self._left:
            raise UsageError(
                "outputs of this run are still to be taken: take all that `push_iter` and its like"
                " hand out first"
            )
