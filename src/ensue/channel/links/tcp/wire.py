"""The wire format of TCP links: msgpack frames, each preceded by its length.

Decoding checks types, lengths and ranges. A frame that fails a check is refused as a whole, and its
connection ends. The order of the handshake is in `handshake`; `session` interprets the frames.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import Advert, Carried, Count, FilterStatement, Name

PROTOCOL = 2
LENGTH = 4
LARGEST_FRAME = 16 * 1024 * 1024
LARGEST_HANDSHAKE = 4 * 1024
"""The largest frame, in bytes, that a caller may send before it is authenticated."""
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Bounds of an event's time: the years 1 to 9999, in microseconds since 1970."""

Nonce = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Proof = Annotated[bytes, msgspec.Meta(max_length=32)]


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """A caller asks for the challenge, without revealing its identity."""

    protocol: int
    nonce: Nonce


class Challenge(msgspec.Struct, frozen=True, tag="challenge", array_like=True):
    """The listener proves that it knows the secret, and asks the caller for its proof."""

    protocol: int
    nonce: Nonce
    proof: Proof


class Introduction(msgspec.Struct, frozen=True, tag="introduction", array_like=True):
    """One side of a link: its channel, its session, and the last number that it has received.

    `incarnation` differs for every new session under the same link name.
    """

    channel: Name
    link: Name
    reliable: bool
    incarnation: Count
    received: Count
    proof: Proof


class Numbered(msgspec.Struct, frozen=True, tag="numbered", array_like=True):
    """An event with its number on the link."""

    number: Count
    carried: msgspec.Raw


class Acknowledge(msgspec.Struct, frozen=True, tag="ack", array_like=True):
    """All events up to a number have arrived."""

    received: Count


class Heartbeat(msgspec.Struct, frozen=True, tag="beat", array_like=True):
    """A sign of life from a side that has nothing else to send."""


class Bye(msgspec.Struct, frozen=True, tag="bye", array_like=True):
    """The sender ends the link for good."""


Frame = (
    Hello
    | Challenge
    | Introduction
    | Numbered
    | Acknowledge
    | Heartbeat
    | Bye
    | Advert
    | FilterStatement
)


def _refuse_extension(code: int, data: memoryview) -> Any:  # noqa: ARG001 - msgspec's own
    raise LinkFaultError(LinkFault.BAD_FRAME)


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame, ext_hook=_refuse_extension).decode
_decode_carried = msgspec.msgpack.Decoder(Carried, ext_hook=_refuse_extension).decode


def decode(body: bytes | bytearray) -> Frame:
    """Decode a frame. Raises `LinkFaultError` if the bytes are no valid frame."""
    try:
        frame: Frame = _decode(body)
    except Exception:
        # Damaged or hostile bytes. Besides its own errors, msgspec raises `RecursionError` for
        # deep nesting and `UnicodeDecodeError` for text that is not UTF-8.
        raise LinkFaultError(LinkFault.BAD_FRAME) from None
    return frame


def decode_carried(body: msgspec.Raw) -> Carried:
    """Decode the event of a frame. Raises `LinkFaultError` if the bytes are no valid event."""
    try:
        carried = _decode_carried(body)
    except Exception:
        raise LinkFaultError(LinkFault.BAD_FRAME) from None
    if not EARLIEST <= carried.event.time <= LATEST:
        raise LinkFaultError(LinkFault.BAD_FRAME)
    return carried


def encode_carried(number: int, message: Carried) -> bytes | None:
    """The frame of an event; None if the event cannot leave the process.

    That is so if its data cannot be encoded, or if the other side would refuse the frame.
    """
    if not EARLIEST <= message.event.time <= LATEST:
        return None
    try:
        frame = framed(Numbered(number, msgspec.Raw(encode(message))))
    except (TypeError, OverflowError, ValueError, RecursionError):
        return None
    return frame if len(frame) <= LARGEST_FRAME else None


def framed(frame: Frame) -> bytes:
    body = encode(frame)
    return len(body).to_bytes(LENGTH, "big") + body


class FrameReader:
    """Cuts a stream of bytes into frames. `limit` is the largest frame allowed at the moment."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._unread = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        self._unread += data

    def next(self) -> Frame | None:
        """The next whole frame; None if more bytes are needed. Raises `LinkFaultError`."""
        unread, start = self._unread, self._start
        body = start + LENGTH
        if len(unread) >= body:
            end = body + int.from_bytes(unread[start:body], "big")
            if end - start > self.limit:
                raise LinkFaultError(LinkFault.BAD_FRAME)
            if len(unread) >= end:
                self._start = end
                return decode(unread[body:end])
        self._compact()
        return None

    def _compact(self) -> None:
        del self._unread[: self._start]
        self._start = 0
