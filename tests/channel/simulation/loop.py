"""An asyncio event loop in virtual time: waiting costs nothing, and nothing depends on the machine.

Where the loop would wait for the next timer, time moves there instead. Connections are those of a
simulated network.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ensue.channel.links.tcp.loop import LinkLoop

if TYPE_CHECKING:
    from tests.channel.simulation.network import Network

START = 1_000.0


class _Waiting:
    """Stands where a loop has its selector: instead of waiting it moves the time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that never comes")
        self._loop.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.errors: list[dict[str, Any]] = []
        self.network: Network | None = None
        self._selector = _Waiting(self)
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self.now

    def jump(self, seconds: float) -> None:
        """Let time pass in which nothing runs, as if the machine had been asleep."""
        self.now += seconds

    def run_for(self, seconds: float) -> None:
        self.run_until_complete(asyncio.sleep(seconds))

    def run_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until something holds. False if it does not in so many seconds."""
        end = self.now + seconds
        while not holds():
            if self.now >= end:
                return False
            self.run_for(0.05)
        return True

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str,  # noqa: ARG002 - there is one host only
        port: int,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        assert self.network is not None
        return await self.network.dial(protocol_factory, port)

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], host: str, port: int, **_: Any
    ) -> Any:
        assert self.network is not None
        return self.network.listen(protocol_factory, host, port)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no events besides timers."""

    def _write_to_self(self) -> None:
        """No other thread waits to be woken."""


class SimulatedLinks(LinkLoop):
    """What links take from outside, by a seed."""

    def __init__(self, loop: VirtualLoop, chance: random.Random) -> None:
        super().__init__()
        self._loop = loop
        self._virtual = loop
        self._chance = chance

    @property
    def runs_here(self) -> bool:
        return True

    def entropy(self, count: int) -> bytes:
        return self._chance.randbytes(count)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 10.0) -> Any:  # noqa: ARG002
        return self._virtual.run_until_complete(work)
