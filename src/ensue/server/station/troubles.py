"""What is wrong at the moment, told in the log when it begins and when it ends, and not in between.

In come troubles by name, as often as they are noticed, from any thread; out go two lines of the
log for each: one with the reason, one with how long it has lasted. A reason that changes is told
too, though not more often than now and then, since a reason may have numbers in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from threading import Lock
from typing import Final, NamedTuple

AGAIN_SECONDS: Final = 60.0
"""How often another reason of one trouble is told, at most."""

log = logging.getLogger("ensue.server")


class Trouble(NamedTuple):
    reason: str
    since: float
    told: float


class Troubles:
    """The troubles of one channel, or of the process."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._lock = Lock()
        self._found: dict[str, Trouble] = {}

    def note(self, what: str, reason: str | None) -> None:
        """Something is wrong for a reason, or, without one, is right again."""
        if reason is None and what not in self._found:
            return
        now = time.monotonic()
        with self._lock:
            known = self._found.get(what)
            if reason is None:
                if self._found.pop(what, None) is not None and known is not None:
                    seconds = now - known.since
                    log.warning(
                        "%s works again after %.1f s", what, seconds, extra=self._about(what)
                    )
            elif known is None:
                self._found[what] = Trouble(reason, now, now)
                log.error("%s has failed: %s", what, reason, extra=self._about(what))
            elif reason != known.reason and now - known.told >= AGAIN_SECONDS:
                self._found[what] = known._replace(reason=reason, told=now)
                log.error("%s fails still: %s", what, reason, extra=self._about(what))
            else:
                self._found[what] = known._replace(reason=reason)

    def forget(self, what: str) -> None:
        """Something is not there any more, so that it cannot be wrong."""
        with self._lock:
            self._found.pop(what, None)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """What is wrong, each with its reason."""
        with self._lock:
            return iter([(what, each.reason) for what, each in self._found.items()])

    def _about(self, what: str) -> dict[str, str]:
        return {"channel": self._where, "what": what}
