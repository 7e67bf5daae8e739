"""A site of a placement at a gateway: to the gateway it is one more service, named like the site.

In come, from the gateway, events of the site and parcels of other sites; out go outputs of the
rules that run here, and parcels for other sites, which find their way like any event. Events are
put in order by their times within the lateness of the site. With the wall clock, the site comes to
each moment by itself; with the clock of events, only with them. What is no event of the site, or
comes too late or lies too far ahead, is refused, and counted by the link.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import uuid4

import msgspec

from ensue.engine.timing.jumps import check_ahead_of_now, jump_problem, max_jump
from ensue.engine.timing.ordering import Ordering
from ensue.errors import EventError
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.federation.adapters.base import Adapter, Capabilities, Incoming, Outgoing, Service
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.configuration import SiteSettings, Subscription
from ensue.federation.ending import end
from ensue.federation.messages.attributes import KIND, ORIGIN, PATH
from ensue.federation.placement.homes import Made
from ensue.federation.placement.parcels import DESTINATION, PARCEL, from_event, to_event
from ensue.federation.placement.planning import place
from ensue.federation.placement.running import SiteRun
from ensue.federation.placement.sites import Sites
from ensue.lang.expressions.tree import Comparison, In, Literal, Logic, Name
from ensue.library import load
from ensue.subscriptions import Filter

SITE = "site"
"""The kind of service that a site is to its gateway."""

_WRITTEN_ON_THE_WAY = frozenset({PATH, KIND, ORIGIN})


class AttachedSite:
    """The state of a site; adapters, of which each lives for one connection, share it.

    Raises `UsageError` or `LibraryError` for a library or sites with mistakes.
    """

    def __init__(self, settings: SiteSettings, gateway: str) -> None:
        library = load(*settings.libraries).checked
        sites = Sites.read(settings.sites, library)
        sites.require(settings.name)
        placement = place(library, sites)
        self.service = Service(settings.name, SITE, gateway=gateway)
        self.beat = settings.beat
        self.incoming: Inbox[Incoming] = Inbox(1 << 30)
        self._types = library.types
        self._placement = placement
        self._run = self._begun()
        self._order = Ordering(settings.lateness, max_jump(library, None))
        self._read = 0
        self._by_wall_clock = settings.clock == "wall"
        self.subscriptions = tuple(self._wishes(settings))

    def _begun(self) -> SiteRun:
        return SiteRun(self._placement, self.service.name, instance=uuid4().hex[:8])

    def _wishes(self, settings: SiteSettings) -> list[Subscription]:
        """What the site wants: its own events that rules read, and parcels for it."""
        is_parcel = Comparison(Name(("type",)), (("=", Literal(PARCEL)),))
        is_mine = Comparison(Name((DESTINATION,)), (("=", Literal(settings.name)),))
        found = [Subscription(settings.name, (), Filter(Logic((is_parcel, is_mine), ("AND",))))]
        types = tuple(Literal(name) for name in sorted(self._run.types_read))
        if types:
            read = Filter(In(Name(("type",)), types))
            found.append(Subscription(settings.name, settings.services, read))
        return found

    def status(self) -> dict[str, Any]:
        """What has gone to other sites, and what waits here, by rules."""
        sent: dict[str, dict[str, int]] = {}
        for (receiver, what), number in sorted(self._run.sent.items()):
            sent.setdefault(receiver, {})[what] = number
        return {"site": self.service.name, "sent": sent, "waiting": dict(self._run.waiting)}

    def take(self, event: Event) -> None:
        """An event of the site, or a parcel. Raises `EventError` for what is neither."""
        if event.type == PARCEL:
            self._put_out(self._run.receive(from_event(event, self._types)))
            return
        own = {k: v for k, v in event.extensions.items() if k not in _WRITTEN_ON_THE_WAY}
        ready = conform(msgspec.structs.replace(event, extensions=own), self._types)
        self._run.require_own(ready)
        if self._by_wall_clock:
            check_ahead_of_now(ready.time, _now(), self._order.max_jump)
            self._come_to(_now())
        if self._order.is_ahead(ready.time):
            if not self._order.is_believed(ready.time, self._read):
                problem = jump_problem(ready.time, int(self._order.latest), self._order.max_jump)
                raise EventError([f"`{ready.id}`: {problem}"])
            self._begin_anew()
        if self._order.is_late(ready.time):
            raise EventError([f"`{ready.id}` comes too late: {format_time(ready.time)}"])
        self._read += 1
        self._order.add(ready)
        self._go_on()

    def _come_to(self, now: int) -> None:
        """The time of day. After a pause with too many firings in it, a new beginning."""
        if self._order.is_ahead(now):
            self._begin_anew()
        self._order.observe(now)

    def _begin_anew(self) -> None:
        """Most events say that the clock was wrong: what rules remember was of another time."""
        self._order.begin_anew()
        self._run = self._begun()

    def tick(self) -> None:
        """A moment has passed: tell other sites how far this one has come."""
        if self._by_wall_clock:
            self._come_to(_now())
        self._go_on()
        self._send(marks=True)

    def _go_on(self) -> None:
        for each in self._order.ready():
            self._put_out(self._run.push(each))
        settled = self._order.settled
        if settled is not None:
            self._put_out(self._run.advance(settled))

    def _put_out(self, made: Made) -> None:
        for _, output in made:
            self.incoming.put(Incoming(output))
        self._send(marks=False)

    def _send(self, marks: bool) -> None:
        for parcel in self._run.parcels(marks):
            self.incoming.put(Incoming(to_event(parcel)))


def _now() -> int:
    return time.time_ns() // 1000


class SiteAdapter(Adapter):
    """The seam to the gateway."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        kind=SITE,
        driver="none",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=False,
        recalls=False,
        pushes_down="nothing",
        encodings=("structured",),
    )

    def __init__(self, attached: AttachedSite) -> None:
        super().__init__(attached.service)
        self._attached = attached
        self._ticking: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self._ticking = asyncio.create_task(self._tick())

    async def listen(self, wanted: Sequence[Filter]) -> None:
        """All that the site puts out is handed over; the gateway knows what is wanted."""

    async def unlisten(self) -> None:
        """Nothing is kept for the gateway."""

    async def receive(self) -> list[Incoming]:
        return await self._attached.incoming.take()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        for number, each in enumerate(outgoing):
            try:
                self._attached.take(each.event)
            except EventError as error:
                error.confirmed = number  # type: ignore[attr-defined]
                raise
        await asyncio.sleep(0)

    async def tell(self, message: bytes) -> None:
        """No other gateway is at this service."""

    async def hear(self) -> list[bytes]:
        await asyncio.Event().wait()
        return []

    async def close(self) -> None:
        if self._ticking is not None:
            await end([self._ticking])

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._attached.beat)
            self._attached.tick()
