"""What an editor sends, as the language server reads it: with bounds.

A message says its own length, and a length is easily written: memory for it is taken at once. Here
a message beyond the bound ends the server with a sentence. An editor that connects instead of
starting the server is the only one that is let in: another would be given its answers.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

from ensue.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
LARGEST_MESSAGE: Final = 64 * 1024 * 1024
LONGEST_HEADER: Final = 4096


class BoundedInput:
    """Stands in for a binary stream: headers are read as lines, messages as parts."""

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


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A port of loopback that one editor can connect to. Raises `UsageError` if it is taken."""
    try:
        listener = socket.create_server((LOOPBACK, port), backlog=1)
    except OSError as error:
        raise UsageError(
            f"port {port} of {LOOPBACK} cannot be listened on: {(error.strerror or '').lower()};"
            " choose another with `--tcp`"
        ) from None
    with listener:
        yield listener


def accepted(listener: socket.socket) -> tuple[BinaryIO, BinaryIO]:
    """What the first editor that connects says, and what it is told; no other can come."""
    connection, _ = listener.accept()
    listener.close()
    with connection:
        reads, writes = connection.makefile("rb"), connection.makefile("wb")
    return cast(BinaryIO, BoundedInput(cast(BinaryIO, reads))), cast(BinaryIO, writes)
