"""How many keys of each rule stand in each state, looked at no more often than the line can bear.

In comes a library that runs; out go the states of its rules, from the line, or as they were a
moment ago: looking takes the line's time, and several people may look at once.
"""

from __future__ import annotations

import time
from typing import Final

from ensue.server.station.rules.hosted import Hosted, RuleState
from ensue.server.station.station import Station

FRESH_SECONDS: Final = 1.0
"""How old the numbers of keys may be, at least."""


class Occupancies:
    def __init__(self) -> None:
        self._known: dict[str, tuple[float, float, int, dict[str, RuleState]]] = {}

    async def of(self, station: Station, hosted: Hosted) -> dict[str, RuleState]:
        known = self._known.get(hosted.name)
        now = time.monotonic()
        if known is not None and known[2] == hosted.version:
            at, took, _, states = known
            if now - at < max(FRESH_SECONDS, 20 * took):
                return states
        found = await station.call(lambda: _looked(hosted))
        self._known[hosted.name] = (now, found[0], hosted.version, found[1])
        return found[1]


def _looked(hosted: Hosted) -> tuple[float, dict[str, RuleState]]:
    started = time.monotonic()
    states = dict(hosted.occupancy())
    return time.monotonic() - started, states
