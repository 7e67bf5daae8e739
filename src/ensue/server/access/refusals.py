"""Logins that were refused: counted by their reason, and told in the log, not each by itself.

Whoever tries tokens could fill the log with it. The first refusal is told at once, and then now and
then how many have come since. The token itself is told nowhere.
"""

from __future__ import annotations

import logging
import time
from typing import Final, Literal

TELL_SECONDS: Final = 60.0

log = logging.getLogger("ensue.server")

Reason = Literal["missing", "unknown"]
"""No token where one is needed, or one that nobody has."""


class RefusedLogins:
    def __init__(self) -> None:
        self.counts: dict[Reason, int] = {"missing": 0, "unknown": 0}
        self._untold = 0
        self._told = -TELL_SECONDS

    def count(self, reason: Reason, client: str) -> None:
        self.counts[reason] += 1
        self._untold += 1
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return
        more = f", and {self._untold - 1:,} others since the last" if self._untold > 1 else ""
        log.warning("a request with %s token was refused%s", _WORDS[reason], more,
                    extra={"client": client})  # fmt: skip
        self._told, self._untold = now, 0


_WORDS: Final[dict[Reason, str]] = {"missing": "no", "unknown": "an unknown"}
