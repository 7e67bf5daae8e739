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
from threading import get_ident
from typing import TYPE_CHECKING

from ensue.channel.delivery.receiver import Receiver, Surroundings, offer_each
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.dispatch.ready_queue import Line
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import Urgency

NOBODY: list[Receiver] = []
NO_THREAD = -1


class Backlog:
    """What one thread still has to do before its outermost `push` returns."""

    __slots__ = ("error", "events", "is_busy", "is_worked_off", "line", "since", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.is_busy = False
        self.is_worked_off = False
        self.error: BaseException | None = None
        self.events: deque[tuple[Event, Sequence[Receiver], int | None]] = deque()
        self.since: int | None = None
        self.line = Line()

    def keep(self, error: BaseException) -> None:
        """What is meant to end more than a call does so once everybody else has been served."""
        if self.error is None and not isinstance(error, Exception):
            self.error = error

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class Leaving:
    """Goes with its thread, whose number another one may get."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog

    def __del__(self) -> None:
        self._backlog.thread = NO_THREAD


class Here(threading.local):
    """Where each thread finds its own."""

    def __init__(self) -> None:
        self.backlog = Backlog()
        self.leaving = Leaving(self.backlog)


class Reactive:
    def __init__(self, urgency: Urgency | None = None) -> None:
        self._here = Here()
        self._recent = self._here.backlog
        self._urgency = urgency
        self._successor: Dispatcher | None = None

    def start(self, around: Surroundings) -> None:
        """There is nothing to start: suppliers bring their threads."""
        self._around = around

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        # Mostly the same thread pushes again, and to ask for what is its own takes longer.
        backlog = self._recent
        if backlog.thread != get_ident():
            backlog = self._recent = self._here.backlog
        # An event waits for each consumer that is called before another, and in the backlog.
        since = self._around.clock.now() if self._around.is_timed else None
        if backlog.is_busy:
            backlog.events.append((event, receivers, since))
            return NOBODY
        if backlog.is_worked_off:
            since = backlog.since
        backlog.is_busy = True
        full, line = NOBODY, backlog.line
        try:
            for receiver in receivers:
                call = receiver.call_at_once
                if call is None or receiver.is_in_line or event.extensions:
                    full = self._offer(event, receiver, full, since)
                else:
                    try:
                        receiver.turn_token.pop()
                    except IndexError:
                        full = self._offer(event, receiver, full, since)
                    else:
                        try:
                            call(event)
                            receiver.called_at_once += 1
                            receiver.failed_in_row = 0
                            if receiver.is_timed:
                                receiver.note_call_at_once(since)
                        except BaseException as error:
                            receiver.note_failure_at_once(event, error)
                            backlog.keep(error)
                        finally:
                            receiver.turn_token.append(None)
                            if receiver.is_in_line:
                                # Somebody has offered an event and may have found the turn taken.
                                receiver.ask_for_turns()
                if line.size:
                    self._give_turns(backlog)
        finally:
            backlog.is_busy = False
        if not backlog.is_worked_off:
            if backlog.events or line.size:
                self._work_off(backlog)
            if self._urgency is not None:
                self._urgency.rest()
            if backlog.error is not None:
                backlog.raise_error()
        return full

    def _offer(
        self, event: Event, receiver: Receiver, full: list[Receiver], since: int | None
    ) -> list[Receiver]:
        return full if receiver.offer(event, since) else [*full, receiver]

    def ready(self, receiver: Receiver) -> None:
        if self._successor is not None:
            self._successor.ready(receiver)
            return
        backlog = self._here.backlog
        backlog.line.put(receiver)
        if not backlog.is_busy:
            self._work_off(backlog)
            backlog.raise_error()

    def is_in_turn(self) -> bool:
        return self._here.backlog.is_busy

    def may_wait(self) -> bool:
        return True

    def stop(self, successor: Dispatcher | None) -> None:
        self._successor = successor

    def _work_off(self, backlog: Backlog) -> None:
        backlog.is_busy = backlog.is_worked_off = True
        try:
            while backlog.events or backlog.line.size:
                self._give_turns(backlog)
                if backlog.events:
                    event, receivers, backlog.since = backlog.events.popleft()
                    backlog.is_busy = False
                    full = self.spread(event, receivers)
                    backlog.is_busy = True
                    # The supplier that has to wait here is a consumer in the middle of a call.
                    offer_each(event, full)
        finally:
            backlog.is_busy = backlog.is_worked_off = False

    def _give_turns(self, backlog: Backlog) -> None:
        line = backlog.line
        while (receiver := line.take()) is not None:
            try:
                if receiver.turn():
                    line.put(receiver)
            except BaseException as error:
                backlog.keep(error)
