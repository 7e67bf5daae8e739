"""The event loop of all links of a process, in its own thread; it starts with the first link."""

from __future__ import annotations

import os
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from ensue.channel.realtime.threads import RealTimeThreads


class LinkLoop:
    """What links need of the process: an asyncio event loop and random bytes.

    The simulation in the tests replaces it by a loop in virtual time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._real_time_users = 0
        self._real_time: RealTimeThreads | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="ensue-links", daemon=True
                )
                self._thread.start()
            return self._loop

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread is the thread of this loop."""
        return self._thread is threading.current_thread()

    def entropy(self, count: int) -> bytes:
        """Random bytes that cannot be predicted."""
        return os.urandom(count)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 10.0) -> Any:
        """Run a coroutine on the loop, and wait for its result."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def join_real_time(self, real_time: RealTimeThreads) -> None:
        """Move the thread into the real-time class while a real-time channel has links.

        The thread holds the interpreter lock for short times, in which other programs must not
        interrupt it.
        """
        with self._lock:
            self._real_time_users += 1
            is_first = self._real_time_users == 1
            if is_first:
                self._real_time = real_time
        if is_first:
            self.loop.call_soon_threadsafe(real_time.join)

    def leave_real_time(self) -> None:
        """A real-time channel with links has closed."""
        with self._lock:
            self._real_time_users -= 1
            # The thread leaves through the object through which it joined.
            joined = self._real_time if self._real_time_users == 0 else None
        if joined is not None:
            self.loop.call_soon_threadsafe(joined.leave)


LINK_LOOP = LinkLoop()
