"""A library that a subscriber brings along: it runs for that subscriber alone, in the feed.

In come entries of the journal, from a number on; out go the outputs of the library, each with an id
from which the run can be repeated. Nothing of it is written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from ensue.engine.run import Run
from ensue.errors import EventError, LimitError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.library import Library
from ensue.server.station.entries import (
    EVENT,
    TIME,
    FeedDelivery,
    JournalEntry,
)
from ensue.server.station.rules.fullness import Fullness

OUTPUTS_AT_ONCE: Final = 500
"""Outputs that are made before others have their turn in the event loop."""

Allows = Callable[[Event], bool]


class PrivateRun:
    """A library that runs for one subscriber, from an entry on.

    The id of an output holds the entry behind which the run began, so that the run can be repeated
    from there, up to the output that was given last: `begin.seq.number`.
    """

    def __init__(self, library: Library, begin: int, allows: Allows | None, most_keys: int) -> None:
        self._run: Run = library.start()
        self._fullness = Fullness(self._run, library)
        self._most_keys = most_keys
        self._begin = begin
        self._allows = allows
        self._left: Iterator[Event] | None = None
        self._seq = self._number = 0
        self.given_until: tuple[int, int] = (0, 0)

    @property
    def first_id(self) -> str:
        """The id of what was given before, or of where the run began."""
        parts = (self._begin, *(each for each in self.given_until if self.given_until != (0, 0)))
        return ".".join(map(str, parts))

    @property
    def has_more(self) -> bool:
        """Whether outputs of the last entry are still to be taken: a clock may jump far."""
        return self._left is not None

    def read(self, entry: JournalEntry) -> list[FeedDelivery]:
        """Outputs of an entry, or the first of them; the others are had from `some`."""
        if entry.kind == EVENT:
            event = decode(entry.body)
            if self._allows is not None and not self._allows(event):
                return []
            if self._fullness.full_rule(event, self._most_keys) is not None:
                raise LimitError(
                    "keys", self._most_keys + 1, self._most_keys, "keys of one rule",
                    "give the rules a window, or have them run by the server",
                )  # fmt: skip
            try:
                self._left = self._run.push_iter(event)
            except EventError:
                return []
        elif entry.kind == TIME and entry.library is None:
            self._left = self._run.advance_iter(int(entry.body))
        else:
            return []
        self._run.late = []
        self._seq, self._number = entry.seq, 0
        return self.some()

    def some(self) -> list[FeedDelivery]:
        """Outputs of the last entry that are left, so many at a time."""
        found: list[FeedDelivery] = []
        while self._left is not None and not found:
            outputs = list(islice(self._left, OUTPUTS_AT_ONCE))
            if len(outputs) < OUTPUTS_AT_ONCE:
                self._left = None
            for output in outputs:
                self._number += 1
                if (self._seq, self._number) > self.given_until:
                    identity = f"{self._begin}.{self._seq}.{self._number}"
                    found.append(FeedDelivery(identity, "output", None, encode(output)))
        return found
