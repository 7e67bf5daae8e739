"""Dispatching by a pool of threads over one line of receivers, the most urgent first.

A turn of one receiver is what a thread does at a time. Suppliers only put receivers into the line
and go on, all that want one event at once; a free thread takes the one of the highest consumer
priority, then sub-priority, then event priority, then the longest ready, lets it do one thing and
puts it back if it has more to do. So a thread is never kept by a slow consumer's backlog, and with
a thread to spare nobody is kept by a slow consumer.

Threads that have nothing to do stand in a stack, each asleep on its own (`sleeping`). Whoever
brings work wakes one; one that finds more than it can take wakes the next, so that many are awake
only while there is something to do for many. What `real_time` adds is told in `urgency`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensue.channel.delivery.mailbox import FULL, READY
from ensue.channel.delivery.receiver import Receiver, Surroundings
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.dispatch.ready_queue import Line
from ensue.channel.dispatch.wakeup import Bed, new_bed
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import Urgency

NOBODY: list[Receiver] = []


class ThreadPool:
    def __init__(self, threads: int = 4, *, urgency: Urgency | None = None) -> None:
        self._check(threads)
        self._lock = threading.Lock()
        self._line = Line()
        self._size = threads
        self._threads: set[threading.Thread] = set()
        self._asleep: list[Bed] = []
        self._urgency = urgency
        self._is_stopped = False
        self._successor: Dispatcher | None = None

    @property
    def size(self) -> int:
        return self._size

    def start(self, around: Surroundings) -> None:  # noqa: ARG002 - receivers know it
        with self._lock:
            self._hire()

    def resize(self, threads: int) -> None:
        """Change the number of threads. Those that are too many end after the turn they are in."""
        self._check(threads)
        with self._lock:
            self._size = threads
            self._hire()
            sleepers = self._take_sleepers()
        _wake(sleepers)

    def _hire(self) -> None:
        while len(self._threads) < self._size and not self._is_stopped:
            thread = threading.Thread(target=self._serve, name="ensue-pool", daemon=True)
            self._threads.add(thread)
            thread.start()

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        full, ready = NOBODY, []
        now = receivers[0].around.clock.now()
        for receiver in receivers:
            answer = receiver.accept(event, now)
            if answer == READY:
                ready.append(receiver)
            elif answer == FULL:
                full = [*full, receiver]
        if ready:
            self._put_in_line(ready)
        return full

    def ready(self, receiver: Receiver) -> None:
        self._put_in_line((receiver,))

    def _put_in_line(self, receivers: Sequence[Receiver]) -> None:
        with self._lock:
            if not self._is_stopped:
                for receiver in receivers:
                    self._line.put(receiver)
                bed = self._asleep.pop() if self._asleep else None
            else:
                bed = None
            is_stopped, successor = self._is_stopped, self._successor
        if bed is not None:
            # Not with the lock in hand: whoever wakes may run at once, and asks for it first.
            bed.wake()
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
            left = self._line.take_all()
            sleepers = self._take_sleepers()
        _wake(sleepers)
        if successor is not None:
            for receiver in left:
                successor.ready(receiver)

    def _take_sleepers(self) -> list[Bed]:
        sleepers, self._asleep = self._asleep, []
        return sleepers

    def _serve(self) -> None:
        bed = new_bed()
        urgency = self._urgency
        if urgency is not None:
            urgency.join()
        receiver: Receiver | None = None
        risen_to: int | None = None
        while True:
            next_up = None
            with self._lock:
                if receiver is not None and not self._is_stopped:
                    self._line.put(receiver)
                    receiver = None
                is_over = self._is_stopped or len(self._threads) > self._size
                if is_over:
                    self._threads.discard(threading.current_thread())
                else:
                    receiver = self._line.take()
                    if receiver is None:
                        self._asleep.append(bed)
                # Whoever is left has to know of what this thread cannot take, or was woken for.
                if self._line.size and self._asleep:
                    next_up = self._asleep.pop()
            if next_up is not None:
                next_up.wake()
            if is_over:
                break
            if receiver is None:
                if urgency is not None:
                    urgency.rest()
                    urgency.stand_by()
                    risen_to = None
                bed.sleep()
                continue
            if urgency is not None and risen_to != receiver.quality.priority:
                risen_to = receiver.quality.priority
                urgency.rise_to(risen_to)
            try:
                has_more = receiver.turn()
            except BaseException:
                # What would end a thread of its own ends a turn here, and is counted as a failure.
                has_more = False
            if not has_more:
                receiver = None
        bed.close()
        if receiver is not None and self._successor is not None:
            self._successor.ready(receiver)

    @staticmethod
    def _check(threads: int) -> None:
        if type(threads) is not int or threads < 1:
            raise UsageError(f"a pool needs at least one thread; given is {threads}")


def _wake(sleepers: list[Bed]) -> None:
    for bed in sleepers:
        bed.wake()
