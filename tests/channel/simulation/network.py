"""A network in memory: connections with delays, small windows, cuts, silence, and torn messages.

A connection carries bytes in order, as TCP does, in pieces of any size, each after a delay of its
own. What the other side does not read fills its window, then the sender's buffer, and the sender is
told to pause. A connection can be cut, which each side notices at its own time and in the middle of
a message, or become silent, which nobody is told of.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.channel.simulation.loop import VirtualLoop

WINDOW = 4_096


class Network:
    def __init__(self, loop: VirtualLoop, chance: random.Random) -> None:
        self.loop = loop
        self.chance = chance
        self.longest_delay = chance.choice([0.0005, 0.005, 0.05])
        self.tears = chance.random() < 0.5
        self.is_closed = False
        self.wires: list[Wire] = []
        self._servers: dict[int, Callable[[], asyncio.Protocol]] = {}
        self._last_port = 1_000

    def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Server:
        if not port:
            self._last_port += 1
            port = self._last_port
        self._servers[port] = factory
        return Server(self, host, port)

    def stop_listening(self, port: int) -> None:
        self._servers.pop(port, None)

    async def dial(
        self, factory: Callable[[], asyncio.Protocol], port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        await asyncio.sleep(self.delay())
        listening = self._servers.get(port)
        if listening is None or self.is_closed:
            raise ConnectionRefusedError
        wire = Wire(self, factory(), listening())
        self.wires = [each for each in self.wires if not each.is_gone]
        self.wires.append(wire)
        wire.begin()
        return wire.ends[0], wire.ends[0].protocol

    def delay(self) -> float:
        return self.chance.uniform(0.0001, self.longest_delay)

    def cut_one(self) -> None:
        living = [each for each in self.wires if not each.is_gone]
        if living:
            self.chance.choice(living).cut()

    def silence_one(self) -> None:
        living = [each for each in self.wires if not each.is_gone]
        if living:
            self.chance.choice(living).is_silent = True

    def stall_one(self, seconds: float) -> None:
        """One end takes nothing in for a while, and says nothing of it."""
        living = [each for each in self.wires if not each.is_gone]
        if living:
            end = self.chance.choice(self.chance.choice(living).ends)
            end.is_stalled = True
            self.loop.call_later(seconds, end.go_on)


class Server:
    """What `create_server` returns, as far as a listener needs it."""

    def __init__(self, network: Network, host: str, port: int) -> None:
        self._network = network
        self._address = (host, port)
        self.sockets = (self,)

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def close(self) -> None:
        self._network.stop_listening(self._address[1])


class Wire:
    """One connection: two ends."""

    def __init__(self, network: Network, *protocols: asyncio.Protocol) -> None:
        self.network = network
        self.is_silent = False
        self.ends = [End(self, protocol) for protocol in protocols]
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]

    def begin(self) -> None:
        for end in self.ends:
            end.protocol.connection_made(end)

    @property
    def is_gone(self) -> bool:
        return all(end.is_lost for end in self.ends)

    def cut(self) -> None:
        """Lose what is on its way; each end hears of it at its own time."""
        self.is_silent = True
        for end in self.ends:
            self.network.loop.call_later(self.network.delay() * 4, end.lose)


class End(asyncio.Transport):
    """One end of a connection, as asyncio's transports are."""

    other: End

    def __init__(self, wire: Wire, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.is_lost = False
        self._wire = wire
        self._loop = wire.network.loop
        self._outgoing = bytearray()
        self._arrived = bytearray()
        self._is_moving = False
        self._is_closing = False
        self._ended_by_other = False
        self._reads = True
        self.is_stalled = False
        self._limit = 64 * 1024
        self._has_paused_writer = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:  # noqa: ARG002
        # Small, so that a few events fill it.
        self._limit = 2 * WINDOW

    def get_write_buffer_size(self) -> int:
        return len(self._outgoing)

    def is_closing(self) -> bool:
        return self._is_closing

    def write(self, data: Any) -> None:
        if self._is_closing:
            return
        self._outgoing += data
        if len(self._outgoing) > self._limit and not self._has_paused_writer:
            self._has_paused_writer = True
            self.protocol.pause_writing()
        self._move_soon()

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._loop.call_soon(self._deliver)

    def go_on(self) -> None:
        self.is_stalled = False
        self._deliver()

    def close(self) -> None:
        """Send what is left, then end."""
        if not self._is_closing:
            self._is_closing = True
            self._move_soon()

    def abort(self) -> None:
        self._is_closing = True
        self._outgoing.clear()
        self._loop.call_soon(self.lose)
        self._loop.call_later(self._wire.network.delay(), self.other.lose_unless_silent)

    def lose_unless_silent(self) -> None:
        if not self._wire.is_silent:
            self.lose()

    def lose(self) -> None:
        if not self.is_lost:
            self.is_lost = self._is_closing = True
            self._outgoing.clear()
            self.protocol.connection_lost(None)

    def _move_soon(self) -> None:
        if not self._is_moving and not self.is_lost:
            self._is_moving = True
            self._loop.call_later(self._wire.network.delay(), self._move)

    def _move(self) -> None:
        """Carry a piece to the other end, if that has room for it."""
        self._is_moving = False
        if self._wire.is_silent or self.is_lost:
            return
        network, other = self._wire.network, self.other
        room = WINDOW - len(other._arrived)
        if self._outgoing and room > 0:
            size = min(room, len(self._outgoing))
            if network.tears:
                size = network.chance.randint(1, size)
            other._arrived += self._outgoing[:size]
            del self._outgoing[:size]
            other._deliver()
        if self._has_paused_writer and len(self._outgoing) < self._limit // 2:
            self._has_paused_writer = False
            self.protocol.resume_writing()
        if self._outgoing:
            if len(other._arrived) < WINDOW:
                self._move_soon()
        elif self._is_closing and not self.is_lost:
            self.lose()
            self._loop.call_later(network.delay(), other._end_by_other)

    def _end_by_other(self) -> None:
        self._ended_by_other = True
        self._deliver()

    def _deliver(self) -> None:
        if self.is_lost or self.is_stalled or not self._reads:
            return
        if self._arrived:
            data = bytes(self._arrived)
            self._arrived.clear()
            self.protocol.data_received(data)
            self.other._move_soon()
        if self._ended_by_other and not self._arrived:
            self.lose()
