"""Dispatching by a pool of threads over one queue of ready receivers, the most urgent first.

A supplier schedules all receivers of an event and goes on. A free thread takes the most urgent
receiver (by consumer priority, then sub-priority, then event priority, then time in the queue),
runs one turn of it, and schedules it again if it has more to do. So the backlog of a slow consumer
never occupies a thread for more than one turn, and while a thread is free no consumer waits for a
slow one.

Idle threads form a stack, and each sleeps on its own sleeper (`wakeup`). A supplier that brings
work wakes one thread; a thread that finds more work than it can take wakes the next. So only as
many threads are awake as there is work for. `realtime.threads` describes the effects of real time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensue.channel.delivery.receiver import ChannelContext, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, offered
from ensue.channel.dispatch.ready_queue import ReadyQueue
from ensue.channel.dispatch.wakeup import Sleeper, new_sleeper
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads

MOST_THREADS = 1_000


class ThreadPool:
    """Threads that share one queue of ready receivers."""

    def __init__(self, threads: int = 4, *, real_time: RealTimeThreads | None = None) -> None:
        self._check(threads)
        self._lock = threading.Lock()
        self._ready_queue = ReadyQueue()
        self._size = threads
        self._threads: set[threading.Thread] = set()
        self._asleep: list[Sleeper] = []
        self._real_time = real_time
        self._is_stopped = False
        self._successor: Dispatcher | None = None

    def start(self, context: ChannelContext) -> None:  # noqa: ARG002 - receivers know it
        with self._lock:
            self._start_threads()

    def resize(self, threads: int) -> None:
        """Change the number of threads. Surplus threads end after their present turn."""
        self._check(threads)
        with self._lock:
            self._size = threads
            self._start_threads()
            sleepers = self._clear_sleepers()
        _wake(sleepers)

    def _start_threads(self) -> None:
        while len(self._threads) < self._size and not self._is_stopped:
            thread = threading.Thread(target=self._run_thread, name="ensue-pool", daemon=True)
            self._threads.add(thread)
            thread.start()

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        ready, full = offered(event, receivers)
        if ready:
            self._schedule(ready)
        return full

    def ready(self, receiver: Receiver) -> None:
        self._schedule((receiver,))

    def _schedule(self, receivers: Sequence[Receiver]) -> None:
        with self._lock:
            if not self._is_stopped:
                for receiver in receivers:
                    self._ready_queue.put(receiver)
                sleeper = self._asleep.pop() if self._asleep else None
            else:
                sleeper = None
            is_stopped, successor = self._is_stopped, self._successor
        if sleeper is not None:
            # After the lock is released, since the woken thread takes it first.
            sleeper.wake()
        elif is_stopped and successor is not None:
            for receiver in receivers:
                successor.ready(receiver)

    def is_in_turn(self) -> bool:
        return threading.current_thread() in self._threads

    def may_wait(self) -> bool:
        return True

    def stop(self, successor: Dispatcher | None) -> None:
        with self._lock:
            self._is_stopped = True
            self._successor = successor
            left = self._ready_queue.take_all()
            sleepers = self._clear_sleepers()
        _wake(sleepers)
        if successor is not None:
            for receiver in left:
                successor.ready(receiver)

    def _clear_sleepers(self) -> list[Sleeper]:
        sleepers, self._asleep = self._asleep, []
        return sleepers

    def _run_thread(self) -> None:
        sleeper = new_sleeper()
        real_time = self._real_time
        if real_time is not None:
            real_time.join()
        receiver: Receiver | None = None
        run_priority: int | None = None
        while True:
            next_up = None
            with self._lock:
                if receiver is not None and not self._is_stopped:
                    self._ready_queue.put(receiver)
                    receiver = None
                is_over = self._is_stopped or len(self._threads) > self._size
                if is_over:
                    self._threads.discard(threading.current_thread())
                else:
                    receiver = self._ready_queue.take()
                    if receiver is None:
                        self._asleep.append(sleeper)
                # Work that is left in the queue needs another thread.
                if self._ready_queue.size and self._asleep:
                    next_up = self._asleep.pop()
            if next_up is not None:
                next_up.wake()
            if is_over:
                break
            if receiver is None:
                if real_time is not None:
                    real_time.idle()
                    real_time.stand_by()
                    run_priority = None
                sleeper.sleep()
                continue
            if real_time is not None and run_priority != receiver.quality.priority:
                run_priority = receiver.quality.priority
                real_time.run_at(run_priority)
            try:
                has_more = receiver.turn()
            except BaseException:
                # `SystemExit` and the like have been counted as failures; the thread goes on.
                has_more = False
            if not has_more:
                receiver = None
        sleeper.close()
        if receiver is not None and self._successor is not None:
            self._successor.ready(receiver)

    @staticmethod
    def _check(threads: int) -> None:
        if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
            raise UsageError(f"a pool has from 1 to {MOST_THREADS} threads; given is {threads}")


def _wake(sleepers: list[Sleeper]) -> None:
    for sleeper in sleepers:
        sleeper.wake()
