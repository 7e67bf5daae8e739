"""The thread in which a broker takes in what its links bring.

Comparing filters takes time, and a subscriber's own code may take any; neither may hold up the
thread of all links, which acknowledges events and keeps connections alive. Where too much waits,
links read no further, so that the wait travels back to the other process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread, current_thread

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.delivery.waiters import Wake

MOST_WAITING = 1_024
MOST_CHARACTERS = 16 * 1024 * 1024
"""The most characters of filters in statements that wait."""
LONGEST_WAIT_SECONDS = 3_600.0

log = logging.getLogger("ensue.brokers")

Job = Callable[[], None]


class JobWorker:
    """Does jobs one by one, in their order. `failures` counts jobs that raised an exception."""

    def __init__(self, name: str) -> None:
        self.failures = 0
        self._name = name
        self._jobs: SimpleQueue[tuple[Job, int] | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting = self._characters = 0
        self._wakes: list[Wake] = []
        self._thread: Thread | None = None

    @property
    def waiting(self) -> int:
        """How many jobs are not done yet."""
        return self._waiting

    def do(self, job: Job, size: int = 0) -> Sequence[Blocked]:
        """Have a job done. Returns what its bringer has to wait for before it brings the next.

        `size` is how many characters of filters the job holds.
        """
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._waiting += 1
            self._characters += size
            is_full = self._waiting > MOST_WAITING or self._characters > MOST_CHARACTERS
            self._jobs.put((job, size))
        return (RoomWait(self),) if is_full else ()

    def end(self, seconds: float) -> None:
        """Do what waits, up to a time, and stop."""
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            if thread is not current_thread():
                thread.join(seconds)

    @property
    def has_room(self) -> bool:
        return self._waiting <= MOST_WAITING // 2 and self._characters <= MOST_CHARACTERS // 2

    def when_room(self, wake: Wake) -> None:
        with self._lock:
            if not self.has_room:
                self._wakes.append(wake)
                return
        wake()

    def cancel_wake(self, wake: Wake) -> None:
        with self._lock:
            if wake in self._wakes:
                self._wakes.remove(wake)

    def _work(self) -> None:
        while (taken := self._jobs.get()) is not None:
            job, size = taken
            run(job, self)
            with self._lock:
                self._waiting -= 1
                self._characters -= size
                wakes, self._wakes = (self._wakes, []) if self.has_room else ([], self._wakes)
            for wake in wakes:
                wake()


class Inline:
    """Does each job at once, in the thread of the links."""

    failures = 0
    waiting = 0

    def do(self, job: Job, size: int = 0) -> Sequence[Blocked]:  # noqa: ARG002 - nothing waits
        run(job, self)
        return ()

    def end(self, seconds: float) -> None:
        """Does nothing: no job waits here."""


def run(job: Job, worker: JobWorker | Inline) -> None:
    """Do a job. An error of a subscriber's own code is counted, and ends nothing else."""
    try:
        job()
    except BaseException:
        # `SystemExit` of a subscriber must not end the thread either.
        worker.failures += 1
        log.exception("a subscriber has failed")


class RoomWait:
    """The wait of a link until its broker has less to do. The event at hand is queued already."""

    block_seconds = LONGEST_WAIT_SECONDS

    def __init__(self, worker: JobWorker) -> None:
        self._worker = worker

    def retry(self) -> bool:
        return self._worker.has_room

    def wait(self, seconds: float) -> bool:  # noqa: ARG002 - only coroutines of links wait here
        return True

    def give_up(self) -> None:
        """Does nothing: the event at hand is queued already, and is not dropped."""

    def when_room(self, wake: Wake) -> None:
        self._worker.when_room(wake)

    def cancel_wake(self, wake: Wake) -> None:
        self._worker.cancel_wake(wake)
