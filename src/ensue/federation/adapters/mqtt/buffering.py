"""A socket that reads and writes in large pieces, for a client that asks for small ones.

Paho reads a message in four parts and writes each by itself: five system calls a message, and one
round of the loop. Here one call takes all that has come, `pending` tells the driver how much of it
is left, and what is written within one round of the loop goes out together.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

_MOST_READ = 1 << 18
_SECONDS_UNTIL_ROOM = 0.001
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class BufferedSocket:
    """Stands in for a socket that does not block, with or without TLS; used in the loop alone."""

    def __init__(self, sock: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._sock = sock
        self._loop = loop
        self._read = memoryview(b"")
        self._written = bytearray()
        self._flushing: asyncio.Handle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def pending(self) -> int:
        """How many bytes can be read without asking the system."""
        return len(self._read) or (self._sock.pending() if hasattr(self._sock, "pending") else 0)

    def recv(self, most: int) -> bytes:
        if not self._read:
            self._read = memoryview(self._sock.recv(max(most, _MOST_READ)))
        part, self._read = self._read[:most], self._read[most:]
        return bytes(part)

    def send(self, data: bytes | bytearray) -> int:
        self._written += data
        if self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush)
        return len(data)

    def close(self) -> None:
        self._flush()
        if self._flushing is not None:
            self._flushing.cancel()
        self._sock.close()

    def _flush(self) -> None:
        self._flushing = None
        try:
            while self._written:
                del self._written[: self._sock.send(self._written)]
        except _NOT_NOW:
            self._flushing = self._loop.call_later(_SECONDS_UNTIL_ROOM, self._flush)
        except OSError:
            # The reader of the socket is told that it is broken.
            self._written.clear()
