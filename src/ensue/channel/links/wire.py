"""What goes over a TCP link: msgpack frames, each behind its length, and the thread for them.

A frame that is too long or makes no sense ends its connection: nothing is guessed. What frames mean
to a link is decided in `sessions`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from ensue.channel.links.messages import Advert, Carried

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads

PROTOCOL = 1
LENGTH = 4
LARGEST_FRAME = 64 * 1024 * 1024


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """Who calls, on which link, whether that is reliable, and up to where it has received."""

    protocol: int
    channel: str
    link: str
    reliable: bool
    received: int


class Numbered(msgspec.Struct, frozen=True, tag="numbered", array_like=True):
    """An event on a link, by its number there; 0 where the link is not reliable."""

    number: int
    carried: msgspec.Raw


class Acknowledge(msgspec.Struct, frozen=True, tag="ack", array_like=True):
    """Everything up to a number has arrived."""

    received: int


class Heartbeat(msgspec.Struct, frozen=True, tag="beat", array_like=True):
    """The other side is there, even if it has nothing to say."""


class Bye(msgspec.Struct, frozen=True, tag="bye", array_like=True):
    """The other side leaves for good."""


Frame = Hello | Numbered | Acknowledge | Heartbeat | Bye | Advert

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Frame).decode
decode_carried = msgspec.msgpack.Decoder(Carried).decode


def framed(frame: Frame) -> bytes:
    body = encode(frame)
    return len(body).to_bytes(LENGTH, "big") + body


class LinkLoop:
    """The thread in which all links of the process live; it starts with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hurried = 0
        self._real_time: RealTimeThreads | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="ensue-links", daemon=True
                ).start()
            return self._loop

    def hurry(self, real_time: RealTimeThreads) -> None:
        """Let the thread go first, for channels in real time: it holds the interpreter, if briefly,
        and must not be kept from going on while it does."""
        with self._lock:
            self._hurried += 1
            is_first = self._hurried == 1
            if is_first:
                self._real_time = real_time
        if is_first:
            self.loop.call_soon_threadsafe(real_time.join)

    def calm(self) -> None:
        """One of these channels has closed."""
        with self._lock:
            self._hurried -= 1
            # It leaves by the urgency that it joined by, whichever channel is the last.
            joined = self._real_time if self._hurried == 0 else None
        if joined is not None:
            self.loop.call_soon_threadsafe(joined.leave)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 10.0) -> Any:
        """Run a coroutine in the thread of the links, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)


LINKS = LinkLoop()
