"""A pipe that is read by a thread as its bytes come, up to a bound.

In comes a pipe; out goes a file object whose reads wait for one byte, and give all that are there.
So a reader that takes long gets much at once, and one that waits gets what comes. What has come by
some moment is known before anything is read (`gathered`).
"""

from __future__ import annotations

import io
import os
import select
import threading
from collections import deque
from typing import Any, BinaryIO, cast

_PIECE_BYTES = 1 << 16
_LOOK_SECONDS = 0.2


class ArrivingReader(io.BufferedReader):
    """A buffered pipe whose blocks are read as they come, however small."""


def buffered(raw: io.RawIOBase, file: BinaryIO, size: int) -> BinaryIO:
    """What is made of a file, as a file that is read in the same way."""
    kind = ArrivingReader if isinstance(file, ArrivingReader) else io.BufferedReader
    return cast(BinaryIO, kind(cast(Any, raw), size))


def some_of(file: BinaryIO, most: int) -> bytes:
    """The next bytes of a file; of one that is read as it comes, those that are there."""
    return file.read1(most) if isinstance(file, ArrivingReader) else file.read(most)


class Arriving(io.RawIOBase):
    """The bytes of a pipe; at most about `most` wait."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        # The first bytes have been looked at, and are in a buffer.
        held = cast(Any, file).peek(1)
        head = cast(Any, file).read1(len(held)) if held else b""
        self._parts = deque([head] if head else [])
        self._size = len(head)
        self._has_ended = False
        self._error: OSError | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._work, name="ensue-pipe", daemon=True).start()

    @property
    def size(self) -> int:
        """The number of bytes that wait."""
        return self._size

    @property
    def has_something(self) -> bool:
        """Whether a read returns at once."""
        return self._has_ended or bool(self._parts)

    def wait(self, seconds: float) -> None:
        """Wait until a read would return at once."""
        with self._changed:
            self._changed.wait_for(lambda: self.has_something, seconds)

    def gathered(self, seconds: float | None) -> int:
        """How many bytes have come when the bound is reached, the pipe ends, or time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or self._size >= self._most, seconds)
            return self._size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)
        taken = 0
        with self._changed:
            self._changed.wait_for(lambda: self.has_something)
            if not self._parts and self._error is not None:
                raise self._error
            while self._parts and taken < len(room):
                part = self._parts.popleft()
                fits = part[: len(room) - taken]
                room[taken : taken + len(fits)] = fits
                taken += len(fits)
                if len(fits) < len(part):
                    self._parts.appendleft(part[len(fits) :])
            self._size -= taken
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        super().close()

    def _work(self) -> None:
        error: OSError | None = None
        try:
            while not self.closed and (part := self._next()) != b"":
                with self._changed:
                    if part is not None:
                        self._parts.append(part)
                        self._size += len(part)
                        self._changed.notify_all()
                    self._changed.wait_for(lambda: self._has_ended or self._size < self._most)
        except (OSError, ValueError) as failed:
            error = failed if isinstance(failed, OSError) else None
        with self._changed:
            self._error, self._has_ended = error, True
            self._changed.notify_all()

    def _next(self) -> bytes | None:
        """The next bytes, none at the end; None while nothing comes."""
        file = cast(Any, self._file)
        try:
            place = file.fileno()
        except (OSError, AttributeError):
            return bytes(file.read1(_PIECE_BYTES))
        # A thread that waits inside of a buffered reader would hold up the end of the process.
        if not select.select([place], [], [], _LOOK_SECONDS)[0]:
            return None
        return os.read(place, _PIECE_BYTES)
