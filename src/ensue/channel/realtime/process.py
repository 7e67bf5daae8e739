"""Settings of the whole process while at least one real-time channel is open.

The interpreter switches threads sooner; memory is locked; existing objects are frozen, so that the
garbage collector skips them; and collections of new objects run while a thread of the channel is
idle instead of during a dispatch. The first channel applies the settings, the last one reverts
them. Settings of single threads are in `threads`.
"""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

SWITCH_SECONDS = 0.0002
YOUNG_AT_MOST = 100_000
"""New objects after which the collector runs anyway, in case no thread is ever idle."""

LOCK_CURRENT, LOCK_FUTURE, LOCK_WHEN_USED = 1, 2, 4
MAY_LOCK_MEMORY = 14
"""The flags of Linux' `mlockall`, and the number of the capability that it needs."""


class ProcessSettings:
    """Applies the settings for its first user and reverts them after its last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._interval = 0.0
        self._thresholds = (0, 0, 0)
        self._is_locked = False

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(min(self._interval, SWITCH_SECONDS))
            gc.collect()
            gc.freeze()
            self._thresholds = gc.get_threshold()
            if self._thresholds[0]:
                gc.set_threshold(max(YOUNG_AT_MOST, self._thresholds[0]), *self._thresholds[1:])
            self._is_locked = _lock_memory()

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            sys.setswitchinterval(self._interval)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
            if self._is_locked:
                _system().munlockall()
                self._is_locked = False

    def idle(self) -> None:
        """Run garbage collections that are due, since the calling thread is idle."""
        # By the collector's own rule: a count over its threshold. A threshold of 0 means never.
        young, middle, old = gc.get_count()
        first, second, third = self._thresholds
        if first and young > first and gc.isenabled():
            gc.collect(2 if middle > second and old > third else 1 if middle > second else 0)


PROCESS = ProcessSettings()


def _lock_memory() -> bool:
    """Lock pages in memory, each from its first use on. Returns whether the system allowed it."""
    if sys.platform != "linux" or not _may_lock_memory():
        return False
    return bool(_system().mlockall(LOCK_CURRENT | LOCK_FUTURE | LOCK_WHEN_USED) == 0)


def _may_lock_memory() -> bool:
    """Whether memory can be locked without a limit, under which later allocations would fail."""
    import resource

    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return False
    granted = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(granted) and bool(int(granted[0], 16) >> MAY_LOCK_MEMORY & 1)


def _system() -> Any:
    import ctypes

    return ctypes.CDLL(None)
