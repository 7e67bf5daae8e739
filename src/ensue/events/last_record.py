"""The record that a reader has read last, for problems that are found after it was read.

Readers give events, and an event does not know the line that it comes from. A caller that may
refuse an event later, for its time or because a history has another event of its id, passes a
`LastRecord` to the reader, which then has the record as it is in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ensue.events.event import Rejected


class LastRecord:
    """The file, number and content of a record; a row of a table is made text when asked for."""

    __slots__ = ("file", "number", "raw")

    def __init__(self) -> None:
        self.file: str | None = None
        self.number = 0
        self.raw: bytes | Callable[[], str] = b""

    def read(self, number: int, raw: bytes | Callable[[], str]) -> None:
        self.number, self.raw = number, raw

    def kept(self) -> LastRecord:
        """The record as it is now."""
        found = LastRecord()
        found.file, found.number, found.raw = self.file, self.number, self.raw
        return found

    def refused(self, problems: Iterable[str]) -> Rejected:
        raw = self.raw if isinstance(self.raw, bytes) else self.raw()
        return Rejected(self.number, raw, tuple(problems), self.file)
