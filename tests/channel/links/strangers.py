"""A caller that speaks the protocol of links frame by frame, as well or as badly as a test asks."""

from __future__ import annotations

import os
import socket
from types import TracebackType
from typing import Self

from ensue.channel.links.messages import Advert, Carried, RemoteWant, Route
from ensue.channel.links.tcp.handshake import Handshake
from ensue.channel.links.tcp.wire import (
    LARGEST_FRAME,
    Acknowledge,
    Challenge,
    Frame,
    FrameReader,
    Heartbeat,
    Introduction,
    Numbered,
    decode_carried,
    framed,
)

WAIT_SECONDS = 30


class Stranger:
    """One connection to a channel that listens."""

    def __init__(
        self,
        address: tuple[str, int],
        name: str = "stranger#1",
        *,
        secret: bytes | None = None,
        link: str | None = None,
        reliable: bool = True,
    ) -> None:
        self.name = name
        self.link = link or os.urandom(8).hex()
        self._reliable = reliable
        self._socket = socket.create_connection(address, WAIT_SECONDS)
        self._frames = FrameReader(LARGEST_FRAME)
        self._handshake = Handshake(True, secret, os.urandom)
        self.received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, *frames: Frame) -> None:
        self.send_bytes(b"".join(framed(each) for each in frames))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self) -> Frame | None:
        """The next frame but heartbeats; None if the other side has ended the connection."""
        while True:
            frame = self._frames.next()
            if frame is None:
                try:
                    data = self._socket.recv(1 << 20)
                except ConnectionError:
                    return None
                if not data:
                    return None
                self._frames.feed(data)
            elif not isinstance(frame, Heartbeat):
                return frame

    def is_dropped(self) -> bool:
        """Whether the other side ends the connection, whatever it sends before."""
        while self.read() is not None:
            pass
        return True

    def introduce(self) -> bool:
        """Shake hands. False if the other side ends the connection instead."""
        self.send(self._handshake.hello())
        challenge = self.read()
        if not isinstance(challenge, Challenge):
            return False
        self._handshake.receive(challenge)
        own = Introduction(self.name, self.link, self._reliable, 1, self.received, b"")
        self.send(self._handshake.introduce(own))
        return isinstance(self.read(), Introduction)

    def want(self, type_: str | None = None, where: str | None = None) -> None:
        """Say that this channel wants a type of event."""
        wants = (RemoteWant(type_, None, where),)
        self.send(Advert(1, True, (Route(self.name, 1, (self.name,), wants),)))

    def read_event(self) -> Carried | None:
        """The next event, which is acknowledged; None if the connection has ended."""
        while (frame := self.read()) is not None:
            if isinstance(frame, Numbered):
                self.received = frame.number
                self.send(Acknowledge(frame.number))
                return decode_carried(frame.carried)
        return None


def wanting(address: tuple[str, int], type_: str = "Notify", **options: object) -> Stranger:
    """A stranger that has been let in and wants a type of event."""
    stranger = Stranger(address, **options)  # type: ignore[arg-type]
    assert stranger.introduce()
    stranger.want(type_)
    return stranger
