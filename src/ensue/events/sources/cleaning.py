"""Logs that are CSV after cleaning, as files of CSV: of Zeek, or with a rest of the line.

In come an open file and the function that cleans whole lines; out goes a file that is cleaned while
it is read.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from ensue.events.sources.arriving import buffered, some_of
from ensue.events.sources.rest_of_line import Clean

READ_BYTES = 1 << 20


def cleaned_file(file: BinaryIO, clean: Clean) -> BinaryIO:
    """A log as a file of CSV."""
    return buffered(_CleanedLog(file, clean), file, READ_BYTES)


class _CleanedLog(io.RawIOBase):
    """The bytes of a log as CSV, read from front to end."""

    def __init__(self, file: BinaryIO, clean: Clean) -> None:
        self._file = file
        self._clean = clean
        self._ready: memoryview = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ready:
            block = some_of(self._file, READ_BYTES)
            if not block.endswith(b"\n"):
                block += self._file.readline()
            self._ready = memoryview(self._clean(block))
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
