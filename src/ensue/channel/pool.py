"""Dispatching by a pool of threads over one queue of commands, the most urgent first.

A command is a turn of one receiver. Suppliers only put commands into the queue and go on; a free
thread takes the command of the highest consumer priority, then sub-priority, then event priority,
then the oldest, does that one thing and puts the receiver back if it has more to do. So a thread is
never kept by a slow consumer's backlog, and with a thread to spare never by a slow consumer.

Python runs one thread's code at a time, so a more urgent command waits for the end of the turns
under way, not of the queue. With `real_time`, threads ask the system for its real-time scheduling
class, where the process may.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Sequence

from ensue.channel.receivers import Receiver
from ensue.channel.turns import Dispatcher
from ensue.errors import UsageError
from ensue.events.event import Event


class ThreadPool:
    def __init__(self, threads: int = 4, *, real_time: bool = False) -> None:
        self._check(threads)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._commands: list[tuple[tuple[int, ...], int, Receiver]] = []
        self._told = 0
        self._size = threads
        self._running: set[threading.Thread] = set()
        self._sleeping = 0
        self._real_time = real_time
        self._is_stopped = False
        self._successor: Dispatcher | None = None

    @property
    def size(self) -> int:
        return self._size

    def start(self) -> None:
        with self._lock:
            self._hire()

    def resize(self, threads: int) -> None:
        """Change the number of threads. Those that are too many end after the turn they are in."""
        self._check(threads)
        with self._lock:
            self._size = threads
            self._hire()
            self._work.notify_all()

    def _hire(self) -> None:
        while len(self._running) < self._size and not self._is_stopped:
            thread = threading.Thread(target=self._serve, name="ensue-pool", daemon=True)
            self._running.add(thread)
            thread.start()

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        return [receiver for receiver in receivers if not receiver.offer(event)]

    def ready(self, receiver: Receiver) -> None:
        with self._lock:
            if not self._is_stopped:
                self._told += 1
                heapq.heappush(self._commands, (receiver.standing(), self._told, receiver))
                if self._sleeping:
                    self._work.notify()
                return
            successor = self._successor
        if successor is not None:
            successor.ready(receiver)

    def is_in_turn(self) -> bool:
        return threading.current_thread() in self._running

    def may_wait(self) -> bool:
        return True

    def stop(self, successor: Dispatcher | None) -> None:
        with self._lock:
            self._is_stopped = True
            self._successor = successor
            left, self._commands = sorted(self._commands), []
            self._work.notify_all()
        if successor is not None:
            for _, _, receiver in left:
                successor.ready(receiver)

    def _serve(self) -> None:
        if self._real_time:
            _ask_for_real_time()
        done: Receiver | None = None
        while True:
            with self._lock:
                if done is not None and not self._is_stopped:
                    self._told += 1
                    heapq.heappush(self._commands, (done.standing(), self._told, done))
                    done = None
                while not self._commands and not self._must_end():
                    self._sleeping += 1
                    self._work.wait()
                    self._sleeping -= 1
                if self._must_end():
                    self._running.discard(threading.current_thread())
                    # Whoever is left has to know of what this thread was woken for.
                    self._work.notify()
                    break
                receiver = heapq.heappop(self._commands)[2]
            if receiver.turn():
                done = receiver
        if done is not None and self._successor is not None:
            self._successor.ready(done)

    def _must_end(self) -> bool:
        return self._is_stopped or len(self._running) > self._size

    @staticmethod
    def _check(threads: int) -> None:
        if threads < 1:
            raise UsageError(f"a pool needs at least one thread; given is {threads}")


def _ask_for_real_time() -> None:
    """SCHED_FIFO for this thread, if the system has it and lets us."""
    if hasattr(os, "sched_setscheduler"):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except (PermissionError, OSError):
            return
