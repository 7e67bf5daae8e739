"""An administrator's console that is told more while somebody guesses passwords.

The console shows warnings and errors. When the correlation `Guesses` of `rules.cor` fires, `Guard`
changes the console's subscription in the running channel, so that informations come through too;
when no guess has followed for half a minute, it changes it back. `Guard` takes any channel, so that
a test can let minutes pass on a virtual clock. `filters.py` says the same in one filter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ensue
from ensue.channel import Channel, Timeout, VirtualClock, build, correlated, want
from ensue.events.event import Event

RULES = ensue.load(Path(__file__).parent / "rules.cor")
NORMALLY = want("Log", where="severity >= 4")
ALERTED = want("Log", where="severity >= 3")


class Guard:
    """The console, and the correlation that watches over its subscription."""

    def __init__(self, channel: Channel, show: Callable[[Event], None], calm: str = "30 s") -> None:
        self._calm = calm
        self._console = channel.consumers.connect("console", show, NORMALLY)
        self._watch = channel.consumers.connect(
            "guard", self._act, correlated(RULES, "Guesses"), priority=10
        )
        self._timer = self._watch.deadline(calm, "calm")
        self._timer.cancel()

    def _act(self, event: Event) -> None:
        self._timer.cancel()
        if isinstance(event, Timeout):
            self._console.change(NORMALLY)
        else:
            self._console.change(ALERTED)
            self._timer = self._watch.deadline(self._calm, "calm")


MESSAGES = [
    (0, 3, "cron started"),
    (1_000, 4, "login failed: root"),
    (2_000, 3, "connection from 192.0.2.7"),
    (2_200, 4, "login failed: admin"),
    (3_900, 4, "login failed: root"),
    (4_000, 3, "connection from 192.0.2.7"),
    (9_000, 3, "connection from 192.0.2.8"),
    (40_000, 3, "cron started"),
    (41_000, 5, "disk full"),
]
"""A minute of a log: milliseconds, severity, text."""


def main() -> None:
    clock = VirtualClock()
    with build("full").dispatching("reactive").clock(clock).library(RULES).done() as channel:
        Guard(channel, lambda event: print(event.data["severity"], event.data["message"]))
        logs = channel.suppliers.connect("logs", "Log")
        for milliseconds, severity, message in MESSAGES:
            clock.advance(f"{milliseconds - clock.now() // 1000} ms")
            logs.send("Log", {"severity": severity, "message": message})


if __name__ == "__main__":
    main()
