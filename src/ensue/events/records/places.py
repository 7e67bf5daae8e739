"""Where the reading of growing files is, and the steps by which it came there.

In come and out go plain records, which can be kept: an `InputPlace` for each file that is followed,
and a step for whatever was read. From the places and the steps after them, the same records are
read again in the same order (`following`), as long as the files have not been taken away.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

FileId = tuple[int, int]
"""The device and the inode of a file, which stay when it is renamed."""


class InputPlace(msgspec.Struct, frozen=True):
    """Where the reading of a file is.

    `offset` is the end of the last whole line that was read, and `line` its number. `header` has
    the names of the columns of CSV, `open_record` the lines of a record whose quote is still open,
    and `year` and `latest` say in which year the next time is that has none.
    """

    path: str
    label: str
    id: FileId | None
    offset: int = 0
    line: int = 0
    header: tuple[str, ...] | None = None
    open_record: tuple[bytes, ...] = ()
    year: int | None = None
    latest: int | None = None


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Bytes of one file that were read; `anew` if they are the first of another file.

    `check` is the sum of the lines in them. `is_last` says that a last line without an end was
    taken as it is, because its file was replaced.
    """

    input: int
    id: FileId
    begin: int
    end: int
    check: int
    anew: bool = False
    is_last: bool = False


class Merged(msgspec.Struct, frozen=True, tag="merged"):
    """The inputs were read up to these ends, in the order of the times of their records."""

    ends: dict[int, int]


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """A new input, with the number of the next one."""

    path: str
    label: str


ReadingStep = Part | Merged | Opened


class ReadingLog(Protocol):
    """Is told what is read, before any record of it is."""

    def note(self, step: ReadingStep) -> None: ...

    def settled(self) -> None:
        """All records of all steps before have been dealt with."""


class NoLog:
    """Keeps nothing."""

    def note(self, step: ReadingStep) -> None:
        pass

    def settled(self) -> None:
        pass
