"""A file that grows: what comes is appended, and what stands in it stays.

In come bytes in the order in which a run makes them. A run that is started again makes some of them
once more; those that the file has already, beyond the length that the position of the run tells,
are not written again. They are compared byte by byte, so that a line that a kill cut in the middle
is completed. Lines by somebody else in between stay where they are.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from ensue.cli.followed.position import sync
from ensue.errors import UsageError


def can_grow(path: Path) -> bool:
    """Whether a path is a file, a folder of tables, or nothing yet, and no pipe or device."""
    return path.is_file() or path.is_dir() or not path.exists()


class GrownFile:
    """A file to append to. `length` is how long it was when the position was saved, if it was.

    Raises `UsageError` if another run appends to it.
    """

    def __init__(self, path: Path, length: int | None = None) -> None:
        self._path = path
        self._file: BinaryIO = path.open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(
                f"`{path}` is being written by another followed run: stop it first, or choose"
                " another file"
            ) from None
        self._ahead = b""
        self._others: Counter[bytes] = Counter()
        size = os.fstat(self._file.fileno()).st_size
        self.is_new = size == 0
        if length is not None and length < size:
            self._file.seek(length)
            self._ahead = self._file.read()
        elif length is None or length > size:
            # Nothing in it is known, not even whether its last line was completed.
            self._end_last_line(size)

    def write(self, data: bytes) -> None:
        """Append bytes that are whole lines."""
        if self._ahead:
            known = min(len(self._ahead), len(data))
            if self._ahead[:known] == data[:known]:
                self._ahead = self._ahead[known:]
                data = data[known:]
            else:
                # Somebody else has written, too: of whole lines each is written once.
                *whole, cut = self._ahead.split(b"\n")
                self._others.update(whole)
                self._ahead = b""
                if cut:
                    self._file.write(b"\n")
        if self._others:
            data = b"".join(map(self._missing, data.splitlines(keepends=True)))
        if data:
            self._file.write(data)

    def caught_up(self) -> None:
        """Say that from now on everything is new."""
        if self._ahead and not self._ahead.endswith(b"\n"):
            self._file.write(b"\n")
        self._ahead = b""
        self._others.clear()

    def flush(self) -> None:
        self._file.flush()

    def sync(self) -> int:
        """Write everything to the disk; the length of the file is returned."""
        sync(self._file)
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()

    def head(self) -> bytes:
        """The first line."""
        with self._path.open("rb") as file:
            return file.readline()

    def _missing(self, line: bytes) -> bytes:
        plain = line.rstrip(b"\n")
        if self._others[plain] <= 0:
            return line
        self._others[plain] -= 1
        return b""

    def _end_last_line(self, size: int) -> None:
        if size:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
