"""Dispatching in the supplier's own thread: the quickest, and the plainest.

A consumer is called before `push` returns, those of higher priority first. What a consumer pushes
while it is called is spread after the event at hand, so that everybody sees causes before effects
and no chain of pushes deepens the stack. Where several threads push, a consumer that is busy in one
of them finds the others' events in its queue and takes them in the same thread. For consumers that
must not hold up their suppliers there are `pool` and `asynchronous`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensue.channel.line import Line
from ensue.channel.receivers import Receiver
from ensue.channel.turns import Dispatcher
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.urgency import Urgency

NOBODY: list[Receiver] = []


class Backlog:
    """What one thread still has to do before its outermost `push` returns."""

    __slots__ = ("events", "is_busy", "line")

    def __init__(self) -> None:
        self.is_busy = False
        self.events: deque[tuple[Event, Sequence[Receiver]]] = deque()
        self.line = Line()


class Here(threading.local):
    """Where each thread finds its own. Looked at once for an event: it costs more than it seems."""

    def __init__(self) -> None:
        self.backlog = Backlog()


class Reactive:
    def __init__(self, urgency: Urgency | None = None) -> None:
        self._here = Here()
        self._urgency = urgency
        self._successor: Dispatcher | None = None

    def start(self) -> None:
        """There is nothing to start: suppliers bring their threads."""

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        backlog = self._here.backlog
        if backlog.is_busy:
            backlog.events.append((event, receivers))
            return NOBODY
        backlog.is_busy = True
        try:
            full = self._offer(event, receivers, backlog.line)
            if backlog.events or backlog.line.size:
                self._work_off(backlog)
        finally:
            backlog.is_busy = False
        if self._urgency is not None:
            self._urgency.rest()
        return full

    def _offer(self, event: Event, receivers: Sequence[Receiver], line: Line) -> list[Receiver]:
        full = NOBODY
        for receiver in receivers:
            if not receiver.direct(event) and not receiver.offer(event):
                full = [*full, receiver]
            if line.size:
                self._give_turns(line)
        return full

    def ready(self, receiver: Receiver) -> None:
        if self._successor is not None:
            self._successor.ready(receiver)
            return
        backlog = self._here.backlog
        backlog.line.put(receiver)
        if backlog.is_busy:
            return
        backlog.is_busy = True
        try:
            self._work_off(backlog)
        finally:
            backlog.is_busy = False

    def is_in_turn(self) -> bool:
        return self._here.backlog.is_busy

    def may_wait(self) -> bool:
        return True

    def stop(self, successor: Dispatcher | None) -> None:
        self._successor = successor

    def _work_off(self, backlog: Backlog) -> None:
        while backlog.events or backlog.line.size:
            self._give_turns(backlog.line)
            if backlog.events:
                event, receivers = backlog.events.popleft()
                for receiver in self._offer(event, receivers, backlog.line):
                    # The supplier that has to wait here is a consumer in the middle of a call.
                    receiver.offer_within(event, receiver.patience)

    def _give_turns(self, line: Line) -> None:
        while (receiver := line.take()) is not None:
            if receiver.turn():
                line.put(receiver)
