"""What a channel in real time asks of its whole process, for as long as one such channel is open.

The interpreter hands over sooner between threads; what is in memory stays there; what exists is
kept out of the garbage collector's rounds, and its rounds over what is new are held where a thread
of the channel has nothing to do, not in the middle of a dispatch. The first channel begins all
that, the last one takes it back. What single threads do is told in `urgency`.
"""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

SWITCH_SECONDS = 0.0002
YOUNG_AT_MOST = 100_000
"""So many new objects make the collector run anywhere, should no thread of a channel ever rest."""

LOCK_CURRENT, LOCK_FUTURE, LOCK_WHEN_USED = 1, 2, 4
MAY_LOCK_MEMORY = 14
"""Of Linux: the flags of `mlockall`, and the number of the capability that it needs."""


class Process:
    """Counts its users; between the first and the last of them, everything above holds."""

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

    def rest(self) -> None:
        """Nothing is to be done here at the moment: hold the collector's rounds that are due."""
        # Over its threshold, as where the collector decides for itself; 0 is its way to say never.
        young, middle, old = gc.get_count()
        first, second, third = self._thresholds
        if first and young > first and gc.isenabled():
            gc.collect(2 if middle > second and old > third else 1 if middle > second else 0)


PROCESS = Process()


def _lock_memory() -> bool:
    """Keep pages where they are, each from its first use on; whether that was granted."""
    if sys.platform != "linux" or not _may_lock_memory():
        return False
    return bool(_system().mlockall(LOCK_CURRENT | LOCK_FUTURE | LOCK_WHEN_USED) == 0)


def _may_lock_memory() -> bool:
    """Without limits: under one, asking for memory would fail later on."""
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
