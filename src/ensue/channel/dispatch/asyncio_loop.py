"""Dispatching on an asyncio event loop: consumers may be coroutine functions.

Turns are given in the same order of priorities as in `pool`, one after the other on the loop, and
in bounded batches, so that other work of the loop gets its share. A consumer that is a coroutine
function is awaited in its own task; until the task is done its events wait, while other consumers
get their turns. Suppliers may push from the loop or from any thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence

from ensue.channel.delivery.receiver import ChannelContext, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, offered
from ensue.channel.dispatch.ready_queue import ReadyQueue
from ensue.errors import UsageError
from ensue.events.event import Event

TURNS_A_BATCH = 100

log = logging.getLogger("ensue.channel")


class AsyncioDispatcher:
    """Dispatches on the given loop, or on the loop that runs when the strategy is created."""

    awaits = True

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        try:
            self._loop = loop or asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "dispatching by asyncio needs an event loop: build the channel in a coroutine,"
                " or choose the strategy `reactive` or `pool`"
            ) from None
        self._lock = threading.Lock()
        self._ready_queue = ReadyQueue()
        self._is_awake = False
        self._is_giving_turns = False
        self._is_stopped = False
        self._successor: Dispatcher | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, context: ChannelContext) -> None:
        """The event loop is running already."""

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        ready, full = offered(event, receivers)
        for receiver in ready:
            self.ready(receiver)
        return full

    def ready(self, receiver: Receiver) -> None:
        with self._lock:
            successor = self._successor
            if not self._is_stopped:
                self._ready_queue.put(receiver)
                must_wake, self._is_awake = not self._is_awake, True
                if must_wake:
                    self._wake()
                return
        if successor is not None:
            successor.ready(receiver)

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._give_turns)
        except RuntimeError:
            log.error(
                "the event loop on which consumers are called has ended: their events wait until"
                " the channel dispatches by another strategy, or is closed"
            )

    def is_in_turn(self) -> bool:
        if not self._runs_here():
            return False
        return self._is_giving_turns or asyncio.current_task() in self._tasks

    def may_wait(self) -> bool:
        return not self._runs_here()

    def _runs_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def stop(self, successor: Dispatcher | None) -> None:
        with self._lock:
            self._is_stopped = True
            self._successor = successor
            left = self._ready_queue.take_all()
        if successor is not None:
            for receiver in left:
                successor.ready(receiver)

    def _give_turns(self) -> None:
        for _ in range(TURNS_A_BATCH):
            with self._lock:
                receiver = self._ready_queue.take()
                if receiver is None:
                    self._is_awake = False
                    return
            if receiver.is_coroutine:
                task = self._loop.create_task(self._await_turn(receiver))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                continue
            self._is_giving_turns = True
            try:
                has_more = receiver.turn()
            except BaseException:
                # The exception ends the loop, which may be run again.
                self._loop.call_soon(self._give_turns)
                raise
            finally:
                self._is_giving_turns = False
            if has_more:
                self.ready(receiver)
        self._loop.call_soon(self._give_turns)

    async def _await_turn(self, receiver: Receiver) -> None:
        try:
            has_more = await receiver.turn_async()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The consumer awaited something that was cancelled; this task was not.
            return
        if has_more:
            self.ready(receiver)
