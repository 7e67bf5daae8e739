"""The console of `guard.py` as one subscription over a history.

A filter may ask what came before: `start AFTER(2 s) (...)` holds if something that matches the
filter in brackets ended at most two seconds earlier. Nested twice it finds the third failed login
in a row, and around that it lets informations through for the half minute that follows one. There
is no state but the history, so the subscription can come and go at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ensue.events.event import Event
from ensue.history import History
from ensue.subscriptions import Filter, Index

FAILED = "severity = 4 AND message LIKE '%login failed%'"
IN_A_ROW = f"{FAILED} AND start AFTER(2 s) ({FAILED} AND start AFTER(2 s) ({FAILED}))"
CONSOLE = Filter.parse(f"severity >= 4 OR (severity >= 3 AND start AFTER(30 s) ({IN_A_ROW}))")

MESSAGES = [
    ("00:00", 3, "cron started"),
    ("00:01", 4, "login failed: root"),
    ("00:02", 3, "connection from 192.0.2.7"),
    ("00:03", 4, "login failed: admin"),
    ("00:04", 4, "login failed: root"),
    ("00:05", 3, "connection from 192.0.2.7"),
    ("00:09", 3, "connection from 192.0.2.8"),
    ("00:40", 3, "cron started"),
    ("00:41", 5, "disk full"),
]
"""A minute of a log: time, severity, text."""


def shown(events: Iterable[Event], url: str = "memory:") -> Iterator[Event]:
    """What the console shows of a stream of log messages; all of them are kept in the history."""
    with History.open(url) as history:
        subscriptions = Index(history=history)
        subscriptions.add("console", CONSOLE)
        for event in events:
            # A filter is asked before its publication is stored.
            if "console" in subscriptions.match(event):
                yield event
            history.add(event)


def main() -> None:
    events = [
        Event.of(
            "Log",
            time=f"2026-01-01T00:{time}Z",
            id=str(number),
            data={"severity": severity, "message": message},
        )
        for number, (time, severity, message) in enumerate(MESSAGES)
    ]
    for event in shown(events):
        print(event.data["severity"], event.data["message"])


if __name__ == "__main__":
    main()
