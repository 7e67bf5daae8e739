"""The channels of a server: each a stream of its own, with its journal, history and libraries.

In come settings; out go channels by name, opened and closed together. `main` is always there. What
one channel publishes of another goes over a link (`linking`), and over nothing else: neither
numbers of entries nor libraries are shared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.lang.diagnostics import did_you_mean
from ensue.server.channels.linking import StationLink
from ensue.server.settings import Settings
from ensue.server.settings.tables import MAIN
from ensue.server.station.rules.libraries import Libraries, UnknownError
from ensue.server.station.rules.occupancies import Occupancies
from ensue.server.station.station import Station
from ensue.server.webhooks.sending import Webhooks


class GivenUpError(EnsueError):
    """Opening was given up, since the process is to end."""


class HostedChannel:
    """One stream, and what is done with it."""

    def __init__(self, name: str, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.settings = settings
        self.station = Station(settings, loop)
        self.libraries = Libraries(self.station)
        self.occupancies = Occupancies()
        self.webhooks = Webhooks(self.station, settings.webhooks.networks)


class OpeningStep(NamedTuple):
    """How far a channel has read its journal again."""

    channel: str
    done: int
    total: int


class Channels:
    """Made in an event loop; `open` before use, `start` to send, `close` at the end.

    Opening may take long, and tells how far it is in `step`.
    """

    def __init__(self, settings: Settings) -> None:
        self.step: OpeningStep | None = None
        self._is_given_up = False
        self._is_open = asyncio.Event()
        self._channels: dict[str, HostedChannel] = {}
        self._settings = settings
        self._ending = AsyncExitStack()
        self.links: list[StationLink] = []

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            for name in self._settings.channel_names:
                # Files are opened beside the loop, which answers requests meanwhile.
                settings = self._settings.of_channel(name)
                channel = await asyncio.to_thread(HostedChannel, name, settings, loop)
                self._channels[name] = channel
                await channel.station.open(partial(self._note, name))
                self._ending.push_async_callback(channel.station.close)
        except BaseException:
            await self.close()
            raise
        finally:
            self._is_open.set()

    async def give_up(self) -> None:
        """Have `open` end soon, if it goes on still, by `GivenUpError`; nothing is lost."""
        self._is_given_up = True
        await self._is_open.wait()

    def _note(self, channel: str, done: int, total: int) -> None:
        self.step = OpeningStep(channel, done, total)
        if self._is_given_up:
            raise GivenUpError("the server was ended while it read its journal again")

    async def close(self) -> None:
        await self._ending.aclose()

    def start(self) -> None:
        """Begin to send, to webhooks and over links."""
        for channel in self:
            channel.webhooks.start()
        for each in self._settings.links:
            link = StationLink(each, self[each.source].station, self[each.to].station)
            self.links.append(link)
            link.start()

    async def stop(self) -> None:
        """Send no more, and tell subscribers to come again."""
        for channel in self:
            for each in list(channel.station.feed.subscribers.values()):
                each.close()
        sending: list[Any] = [*self.links, *(each.webhooks for each in self)]
        await asyncio.gather(*(each.stop() for each in sending))

    def __getitem__(self, name: str) -> HostedChannel:
        found = self._channels.get(name)
        if found is None:
            hint = did_you_mean(name, list(self._channels))
            raise UnknownError(f"there is no channel `{name[:100]}`; {hint}")
        return found

    def __iter__(self) -> Iterator[HostedChannel]:
        return iter(self._channels.values())

    @property
    def main(self) -> HostedChannel:
        return self._channels[MAIN]
