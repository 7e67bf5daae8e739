"""Keeps the threads of a busy server on one core, as long as that core is theirs.

The threads of the server take turns at the interpreter. On several cores every turn carries the
lock, and all that the threads touch, from core to core: an event then takes a third more processor
time, and no second core is gained. So a server that is busy all the time gathers its threads on one
core, and spreads them again when it is less busy. If it is that since other processes want the
core, it waits before it gathers again, longer each time, and then takes another one. A server with
little to do, whose answers should come soon, runs where the system puts it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.25
BUSY: Final = 0.9
"""Cores in use from which threads are gathered."""
CALM: Final = 0.7
"""Cores in use below which they are spread again."""
CROWDED: Final = 0.25
"""Seconds of a second that threads wait for their core, from which others want it too."""
FIRST_REST: Final = 1.0
LONGEST_REST: Final = 60.0


class OneCore:
    """`look` is called every now and then; it moves all threads of the process."""

    def __init__(self) -> None:
        # Where the system has no such thing there is nothing to choose from.
        affinity = getattr(os, "sched_getaffinity", lambda _: ())
        self._allowed = sorted(affinity(0))
        self._next = 0
        self.core: int | None = None
        """The core that all threads are on."""
        self._free_at = 0.0
        self._rest = FIRST_REST
        self._at, self._used, self._waited = time.monotonic(), time.process_time(), 0.0

    @property
    def is_useful(self) -> bool:
        has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
        return has_lock and len(self._allowed) > 1

    def look(self) -> None:
        """Gather or spread the threads, by how busy they have been since the last look."""
        now, used, waited = time.monotonic(), time.process_time(), 0.0
        seconds = max(now - self._at, 1e-6)
        share = (used - self._used) / seconds
        if self.core is not None:
            waited = _waited()
            if share < CALM:
                self._spread(now, is_crowded=(waited - self._waited) / seconds > CROWDED)
        elif share >= BUSY and now >= self._free_at:
            self.core = self._allowed[self._next]
            _move({self.core})
            waited = _waited()
        self._at, self._used, self._waited = now, used, waited

    def _spread(self, now: float, is_crowded: bool) -> None:
        if is_crowded:
            self._free_at = now + self._rest
            self._rest = min(2 * self._rest, LONGEST_REST)
            self._next = (self._next + 1) % len(self._allowed)
        else:
            self._rest = FIRST_REST
        self.core = None
        _move(set(self._allowed))

    async def run(self) -> None:
        """Look for ever; cancelled at the end."""
        while self.is_useful:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)


def _move(cores: set[int]) -> None:
    for each in threading.enumerate():
        # A thread may have ended in the meantime.
        with suppress(OSError):
            if each.native_id is not None:
                os.sched_setaffinity(each.native_id, cores)


def _waited() -> float:
    """Seconds for which threads were ready to run, and were not let; 0 where nobody counts them."""
    found = 0
    for each in threading.enumerate():
        with suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/self/task/{each.native_id}/schedstat").read_text()
            found += int(text.split()[1])
    return found / 1e9
