"""Links: what one channel puts out is published in another, once, in its order.

A link subscribes to its source behind the last entry that it has brought over, and publishes what
it is given. The number of that entry is a mark in the journal of the target, written after the
events are there; where a crash comes in between, they are published again, and the target knows
them by source, id and time (`known`). So rules of one channel read outputs of another exactly once.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec

from ensue.errors import EnsueError
from ensue.events.cloudevents import decode
from ensue.server.settings.tables import ServerLinkTable
from ensue.server.station.entries import KINDS, FeedDelivery
from ensue.server.station.feed import GoneError, SubscriberWish
from ensue.server.station.line import BusyError
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

PATIENCE_SECONDS: Final = 5.0
"""How long nothing may come before the mark is moved past what was not wanted."""
MOST_PUBLISHED: Final = 1_000


class LinkState(msgspec.Struct):
    """What a link has brought over, how far it has read, and what is wrong with it."""

    delivered: int = 0
    position: int = 0
    problem: str | None = None


class StationLink:
    """One link between two stations that are open."""

    def __init__(self, table: ServerLinkTable, source: Station, target: Station) -> None:
        self.table = table
        self.state = LinkState()
        self._source = source
        self._target = target
        self._mark = f"link {table.source} {','.join(table.kinds)} {table.library} {table.where}"
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        known = self._target.journal.mark(self._mark)
        self.state.position = self._source.feed.head if known is None else known
        self._task = asyncio.create_task(self._run(), name=f"link to {self.table.to}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        state = self.state
        while True:
            try:
                # From the first start on, so that nothing is missed by a stop before the first
                # event.
                await self._remember(state.position)
                await self._bring()
            except GoneError as error:
                self._note(f"{error.floor - error.asked:,} entries were lost: {error}")
                state.position = error.floor
            except EnsueError as error:
                self._note(str(error))
            await asyncio.sleep(1.0)

    async def _bring(self) -> None:
        table, source = self.table, self._source
        wanted = SubscriberWish(
            frozenset(KINDS[each] for each in table.kinds),
            Filter.parse(table.where) if table.where else None,
            frozenset({table.library}) if table.library else None,
        )
        subscriber = await source.subscribe(wanted, self.state.position)
        try:
            async for found in subscriber.batches(PATIENCE_SECONDS):
                for begin in range(0, len(found), MOST_PUBLISHED):
                    await self._publish(found[begin : begin + MOST_PUBLISHED])
                if not found and subscriber.passed > self.state.position:
                    await self._remember(subscriber.passed)
        finally:
            with contextlib.suppress(EnsueError):
                await source.unsubscribe(subscriber)

    async def _publish(self, found: list[FeedDelivery]) -> None:
        events = [(decode(each.body), each.body) for each in found]
        while True:
            try:
                await self._target.publish(events, sum(len(body) for _, body in events))
                break
            except BusyError as error:
                self._note(str(error))
                await asyncio.sleep(error.seconds)
        self._note(None)
        self.state.delivered += len(found)
        await self._remember(int(found[-1].id))

    def _note(self, problem: str | None) -> None:
        self.state.problem = problem
        what = f"the link from channel `{self.table.source}` to `{self.table.to}`"
        self._target.troubles.note(what, problem)

    async def _remember(self, position: int) -> None:
        target = self._target

        def write() -> None:
            with target.journal.write():
                target.journal.set_mark(self._mark, position)

        await target.call(write)
        self.state.position = position
