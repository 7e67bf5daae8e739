"""Dispatching in the supplier's own thread: the strategy with the shortest latency.

Consumers are called before `push` returns, those of higher priority first. Events that a consumer
pushes during its call are dispatched after the present event, so that all consumers see causes
before effects and a chain of pushes does not deepen the stack. If several threads push, a consumer
that is busy in one thread gets the events of the other threads through its queue. A consumer that
must not delay its suppliers needs `pool` or `asyncio_loop`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from ensue.channel.delivery.blocked import blocked_offers, wait_each
from ensue.channel.delivery.receiver import ChannelContext, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.dispatch.ready_queue import ReadyQueue
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads

NO_RECEIVERS: list[Receiver] = []
NO_THREAD = -1


class PushBacklog:
    """Work that a thread has to do before its outermost `push` returns."""

    __slots__ = ("error", "events", "is_busy", "is_draining", "ready_queue", "since", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.is_busy = False
        self.is_draining = False
        self.error: BaseException | None = None
        self.events: deque[tuple[Event, Sequence[Receiver], int | None]] = deque()
        self.since: int | None = None
        self.ready_queue = ReadyQueue()

    def keep(self, error: BaseException) -> None:
        """Keep `SystemExit` or an interrupt until all other consumers have been called."""
        if self.error is None and not isinstance(error, Exception):
            self.error = error

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class ThreadEndMarker:
    """Invalidates a backlog when its thread ends, since the identifier may be reused."""

    def __init__(self, backlog: PushBacklog) -> None:
        self._backlog = backlog

    def __del__(self) -> None:
        self._backlog.thread = NO_THREAD


class ThreadBacklogs(threading.local):
    """The backlog of each thread."""

    def __init__(self) -> None:
        self.backlog = PushBacklog()
        self.end_marker = ThreadEndMarker(self.backlog)


class ReactiveDispatcher:
    """Calls consumers in the thread that pushes."""

    def __init__(self, real_time: RealTimeThreads | None = None) -> None:
        self._backlogs = ThreadBacklogs()
        self._last_backlog = self._backlogs.backlog
        self._real_time = real_time
        self._successor: Dispatcher | None = None

    def start(self, context: ChannelContext) -> None:
        """The threads are those of the suppliers; there are none to start."""
        self._context = context

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        # The same thread mostly pushes again, and reading a thread-local variable takes longer.
        backlog = self._last_backlog
        if backlog.thread != get_ident():
            backlog = self._last_backlog = self._backlogs.backlog
        # Waiting time includes the calls of earlier consumers and the time in the backlog.
        since = self._context.clock.now() if self._context.is_timed else None
        if backlog.is_busy:
            backlog.events.append((event, receivers, since))
            return NO_RECEIVERS
        if backlog.is_draining:
            since = backlog.since
        backlog.is_busy = True
        full, ready = NO_RECEIVERS, backlog.ready_queue
        try:
            for receiver in receivers:
                call = receiver.direct_call
                if call is None or receiver.is_scheduled or event.extensions:
                    full = self._offer(event, receiver, full, since)
                else:
                    try:
                        receiver.turn_token.pop()
                    except IndexError:
                        full = self._offer(event, receiver, full, since)
                    else:
                        try:
                            call(event)
                            receiver.direct_calls += 1
                            receiver.failed_in_row = 0
                            if receiver.is_timed:
                                receiver.note_direct_call(since)
                        except BaseException as error:
                            receiver.note_direct_failure(event, error)
                            backlog.keep(error)
                        finally:
                            receiver.turn_token.append(None)
                            if receiver.is_scheduled:
                                # Another thread has queued an event during the call.
                                receiver.schedule()
                if ready.size:
                    self._give_turns(backlog)
        finally:
            backlog.is_busy = False
        if not backlog.is_draining:
            if backlog.events or ready.size:
                self._drain(backlog)
            if self._real_time is not None:
                self._real_time.idle()
            if backlog.error is not None:
                # The supplier gets an exception and will not wait for these receivers.
                for each in full:
                    each.drop_blocked(event)
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
        backlog = self._backlogs.backlog
        backlog.ready_queue.put(receiver)
        if not backlog.is_busy:
            self._drain(backlog)
            backlog.raise_error()

    def is_in_turn(self) -> bool:
        return self._backlogs.backlog.is_busy

    def may_wait(self) -> bool:
        return True

    def stop(self, successor: Dispatcher | None) -> None:
        self._successor = successor

    def _drain(self, backlog: PushBacklog) -> None:
        backlog.is_busy = backlog.is_draining = True
        try:
            while backlog.events or backlog.ready_queue.size:
                self._give_turns(backlog)
                if backlog.events:
                    event, receivers, backlog.since = backlog.events.popleft()
                    backlog.is_busy = False
                    full = self.spread(event, receivers)
                    backlog.is_busy = True
                    # The supplier of this event is a consumer, and its call has not returned.
                    wait_each(blocked_offers(event, full))
        finally:
            backlog.is_busy = backlog.is_draining = False

    def _give_turns(self, backlog: PushBacklog) -> None:
        ready = backlog.ready_queue
        while (receiver := ready.take()) is not None:
            try:
                if receiver.turn():
                    ready.put(receiver)
            except BaseException as error:
                backlog.keep(error)
