"""The standard input as the language server reads it: with bounds.

A message says its own length, and a length is easily written: memory for it is taken at once. Here
a message beyond the bound ends the server with a sentence.
"""

from __future__ import annotations

from typing import BinaryIO, Final

from ensue.errors import UsageError

LARGEST_MESSAGE: Final = 64 * 1024 * 1024
LONGEST_HEADER: Final = 4096


class BoundedInput:
    """Stands in for a binary stream, of which lines are headers and parts are messages."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return self._stream.readline(LONGEST_HEADER)

    def read(self, size: int) -> bytes:
        if size > LARGEST_MESSAGE:
            raise UsageError(
                f"the editor announces a message of {size:.3g} bytes, and at most"
                f" {LARGEST_MESSAGE:,} are read"
            )
        return self._stream.read(size)
