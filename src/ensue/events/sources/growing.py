"""The complete lines of files that still grow, and of pipes.

In comes an `InputFile`; out go, with each call, the lines that have become complete. A last line
without its line end waits for the rest of the line, or for the end of the file. If a file is
replaced under its name (a rotated log), it is read to its end, and then the new file from its
beginning; a file that was truncated is read again. Only `wait` blocks, until a pipe has data or
some time has passed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ensue.errors import UsageError
from ensue.events.bounds import BOUNDS
from ensue.events.records.overlong import LineParts
from ensue.events.records.places import FileId
from ensue.events.sources.arriving import Arriving
from ensue.events.sources.inputs import InputFile

READ_BYTES = BOUNDS.block_bytes
_LOOK_SECONDS = 0.01


class GrowingFile:
    """A regular file.

    `began_anew` says that the next lines are the first of another file; the reader resets it. The
    last lines that were taken are the bytes of the file with this `identity` from `begin` to `end`;
    `took_rest` says that the last of them has no line end.
    """

    def __init__(self, path: str, at: tuple[FileId | None, int] | None = None) -> None:
        """`at` is the identity of the file of before, and how much of it has been read."""
        self.path = path
        self.began_anew = False
        self.has_ended = False
        self.took_rest = False
        self.identity: FileId | None = None
        self.begin = self.end = 0
        self._raw = 0
        self._parts = LineParts()
        self._file: BinaryIO | None = None
        if at is not None and at[0] is not None:
            self.place_at(*at)
        else:
            self._open()
            self.began_anew = False

    def place_at(self, identity: FileId | None, offset: int) -> bool:
        """Go on at an offset of a file. False if the file is gone; then a new one is waited for."""
        self.close()
        self.identity, self.end = identity, offset
        found = None if identity is None else path_of(identity, self.path)
        if found is None:
            return False
        self._file = Path(found).open("rb")  # noqa: SIM115 - it stays open
        self._file.seek(offset)
        self._raw = offset
        return True

    def lines(self) -> list[bytes]:
        """The lines that are complete by now, with their line ends, up to a bound."""
        if self._file is None:
            self._open()
        found = self._read()
        if found or self._file is None:
            return found
        if self._is_cut_short():
            self._file.seek(0)
            self._parts.clear()
            self._raw = self.end = 0
            self.began_anew = True
            return self._read()
        if self._is_replaced():
            # The lines that were written between the last call and the renaming.
            found = self._read()
            rest = self.rest()
            if rest:
                self.end, self.took_rest = self._raw, True
            self._file.close()
            self._file = None
            return found + rest
        return []

    def lines_up_to(self, end: int) -> list[bytes]:
        """As `lines`, of the bytes before `end` of the file that is open."""
        return self._read(end)

    def lines_between(self, begin: int, end: int, with_rest: bool) -> list[bytes]:
        """Lines that have been taken before, and are taken once more."""
        if self._file is None:
            return []
        self._file.seek(begin)
        parts = LineParts()
        found = parts.lines(self._file.read(end - begin))
        if with_rest:
            found += parts.rest()
        self._raw = self.end = end
        return found

    def rest(self) -> list[bytes]:
        """The last line, if it has no ending."""
        return self._parts.rest()

    @property
    def size(self) -> int:
        """The size of the file that is open."""
        return 0 if self._file is None else os.fstat(self._file.fileno()).st_size

    @property
    def waiting(self) -> int:
        """The number of bytes behind the lines that were taken."""
        return max(0, self.size - self.end)

    def close(self) -> None:
        """Close the file, and forget the beginning of a line."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._parts.clear()

    def _open(self) -> None:
        try:
            self._file = Path(self.path).open("rb")  # noqa: SIM115 - it stays open
        except FileNotFoundError:
            # The old file has been renamed, and the new one is not there yet.
            return
        self.identity = _identity(os.fstat(self._file.fileno()))
        self._raw = self.end = 0
        self.began_anew = True

    def _read(self, end: int | None = None) -> list[bytes]:
        self.took_rest = False
        if self._file is None:
            return []
        self.begin = self.end
        # A line may be longer than a block.
        while block := self._file.read(
            READ_BYTES if end is None else max(0, min(READ_BYTES, end - self._raw))
        ):
            begin = self._raw
            self._raw += len(block)
            if found := self._parts.lines(block):
                self.end = begin + block.rfind(b"\n") + 1
                return found
        return []

    def _is_cut_short(self) -> bool:
        assert self._file is not None
        return os.fstat(self._file.fileno()).st_size < self._file.tell()

    def _is_replaced(self) -> bool:
        try:
            return _identity(os.stat(self.path)) != self.identity
        except FileNotFoundError:
            return True


def path_of(identity: FileId, path: str) -> str | None:
    """The path of a file that was at `path`, and may have another name in its folder by now."""
    folder = os.path.dirname(path) or os.curdir
    with suppress(OSError):
        if _identity(os.stat(path)) == identity:
            return path
    with suppress(OSError), os.scandir(folder) as entries:
        for each in entries:
            with suppress(OSError):
                if each.is_file() and _identity(each.stat()) == identity:
                    return each.path
    return None


def _identity(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino


def identity_of(path: str) -> FileId:
    return _identity(os.stat(path))


class GrowingPipe:
    """A pipe, a terminal or the standard input; it ends when its last writer has closed it."""

    identity = None

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.path = path
        self.began_anew = False
        self.has_ended = False
        self.coming = Arriving(file, READ_BYTES)
        self._parts = LineParts()

    @property
    def waiting(self) -> int:
        """The number of bytes that have come, and were not taken."""
        return self.coming.size

    def lines(self) -> list[bytes]:
        if self.has_ended or not self.coming.has_something:
            return []
        block = self.coming.read(READ_BYTES)
        if not block:
            self.has_ended = True
            return []
        return self._parts.lines(block)

    def rest(self) -> list[bytes]:
        return self._parts.rest()


Growing = GrowingFile | GrowingPipe


def growing(each: InputFile, at: tuple[FileId | None, int] | None = None) -> Growing:
    """The reader of a growing input; `at` is where it goes on.

    Raises `UsageError` if it cannot be read while it grows.
    """
    if each.format not in ("jsonl", "csv") or each.compression is not None:
        what = each.compression or each.format
        raise UsageError(
            f"`{each.path}` is {what}, which is whole when it is written: only lines of JSON or CSV"
            " can be followed"
        )
    if each.is_file:
        return GrowingFile(each.path, at)
    return GrowingPipe(each.path, each.open())


def wait(sources: Iterable[Growing], seconds: float) -> None:
    """Block until a pipe has data, or so many seconds have passed."""
    pipes = [each for each in sources if isinstance(each, GrowingPipe) and not each.has_ended]
    end = time.monotonic() + seconds
    while pipes and not any(each.coming.has_something for each in pipes):
        left = end - time.monotonic()
        if left <= 0:
            return
        pipes[0].coming.wait(left if len(pipes) == 1 else min(left, _LOOK_SECONDS))
    if not pipes:
        time.sleep(seconds)
