"""A gateway: links to event services, and the decisions what goes where.

A gateway is made of its links (`links`), the way of events between them (`passing`), what it says
and hears as one of many gateways (`neighbours`), and the requests that it applies (`answering`).
Here they are put together, started and stopped, and asked for their figures.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.federation import metrics
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import Adapter, Service
from ensue.federation.answering import Answering
from ensue.federation.configuration import GatewaySettings, read_settings
from ensue.federation.ending import end
from ensue.federation.limits import limits
from ensue.federation.links.bounds import USUAL, Bounds
from ensue.federation.links.link import Received, ServiceLink
from ensue.federation.neighbours import Neighbours
from ensue.federation.passing import Passing
from ensue.federation.placement.adapter import SiteAdapter
from ensue.federation.placement.attaching import AttachedSite
from ensue.federation.routing import control
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.memory import seen_file
from ensue.federation.routing.tree import Tree
from ensue.history import History

_SECONDS_TO_TRY = 3.0
"""How long a start waits for services before it goes on without those that are not there."""
_SECONDS_BETWEEN_LOOKS = 0.02

MakeAdapter = Callable[[Service], Adapter]


class Gateway:
    """`await start()` returns when every required service is connected and every request of
    those that are there in force. The links that stand carry events before."""

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        memory: Path | None = None,
        make: MakeAdapter | None = None,
        bounds: Bounds = USUAL,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        make = make or (lambda service: adapter_class(service.kind)(service))
        self._site = None
        if settings.site is not None:
            files = None if memory is None else memory.with_suffix(".site")
            self._site = AttachedSite(settings.site, self.name, files)
        self._history = None if settings.history is None else History.open(settings.history)
        self._links = {
            each.name: ServiceLink(
                each, make, bounds, settings.patience, seen_file(memory, each.name)
            )
            for each in settings.services
        }
        if (site := self._site) is not None:
            self._links[site.service.name] = ServiceLink(
                site.service, lambda _: SiteAdapter(site), bounds, settings.patience
            )
        names = list(self._links)
        links, tree = self._links, Tree(self.name, names, settings.patience)
        interest = Interest(names, self._history, _ontology(settings))
        self._tree, self._interest = tree, interest
        self._passing = Passing(links, tree, interest, settings.mappings, self._history)
        self._neighbours = Neighbours(settings, links, tree, interest, self._passing, wall)
        self._answering = Answering(settings, links, tree, interest, self._neighbours, memory)
        self._neighbours.has_stated = self._answering.save
        self._neighbours.has_come = self._answering.spread_standing
        self._tasks: list[asyncio.Task[Any]] = []
        self._is_ready = False

    @classmethod
    def from_config(
        cls, tables: Mapping[str, Any], where: str = "", memory: Path | None = None
    ) -> Gateway:
        """A gateway as the tables of a TOML file say. Raises `UsageError` with every mistake."""
        return cls(read_settings(tables, where), memory=memory)

    # --- running ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Raises `UsageError` for settings that no service can be reached by."""
        self._answering.begin(self._site.subscriptions if self._site is not None else ())
        # The first look-up compiles; no event is to wait for that.
        self._interest.destinations(Event.of("ensue.first", time=0, data={}))
        for link in self._links.values():
            link.start(self)
        await self._tried()
        self._neighbours.begin()
        await self._neighbours.settle()
        for link in self._links.values():
            link.receive()
        for work in (self._neighbours.maintain(), self._neighbours.beat()):
            self._tasks.append(asyncio.create_task(work))
        while self.waits_for():
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        await self._answering.in_force()
        self._is_ready = True

    async def stop(self) -> None:
        """Receive no more, let what is on its way arrive, acknowledge it, and part."""
        self._is_ready = False
        seconds = limits().seconds_to_drain
        await asyncio.gather(*(link.stop(seconds) for link in self._links.values()))
        await self._answering.stop()
        await self._neighbours.stop()
        await end(self._tasks)
        if self._history is not None:
            self._history.close()

    async def request(self, request: control.Request) -> None:
        """A request of this process. Raises `UsageError` if it cannot be applied here."""
        await self._answering.request(request)

    async def _tried(self) -> None:
        """Wait until each service is there, or is not there for now."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _SECONDS_TO_TRY
        while loop.time() < end:
            for link in self._links.values():
                if link.unusable is not None:
                    unusable = link.unusable
                    await self.stop()
                    raise unusable
            if all(
                link.is_connected.is_set() or link.counts.last_error
                for link in self._links.values()
            ):
                return
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    # --- what links tell ----------------------------------------------------------------------

    def route(self, link: ServiceLink, received: Sequence[Received]) -> None:
        self._passing.route(link, received)

    def keep(self) -> None:
        for each in self._links.values():
            each.outbox.seen.keep()

    def carried(self, link: ServiceLink, identities: Sequence[int]) -> None:
        self._neighbours.carried(link, identities)

    def connected(self, link: ServiceLink) -> None:
        self._answering.connected(link)
        self._neighbours.connected(link)

    def heard(self, link: ServiceLink, message: bytes) -> None:
        try:
            said = control.read(message)
        except EventError as error:
            link.counts.dropped["unreadable control"] += 1
            link.counts.last_error = f"service `{link.name}`: {error}"
            return
        if isinstance(said, control.Request | control.RequestDone):
            self._answering.take(said, link)
        else:
            self._neighbours.hear(link, said)

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    # --- figures ------------------------------------------------------------------------------

    def waits_for(self) -> dict[str, str]:
        """The required services that are away, each with the reason."""
        required = self.settings.require
        return {
            link.name: told_of(link)
            for link in self._links.values()
            if not link.is_connected.is_set() and (required is None or link.name in required)
        }

    def health(self) -> dict[str, Any]:
        """Whether the gateway does what it is for, and which of its services are away."""
        away = [link.name for link in self._links.values() if not link.is_connected.is_set()]
        is_whole = self._is_ready and not self.waits_for()
        return {
            "gateway": self.name,
            "status": "ready" if is_whole else "degraded",
            "ready": self._is_ready,
            "away": away,
        }

    def readiness(self) -> dict[str, Any]:
        """Whether every required service is there and every request in force; if not, why not."""
        waits_for = self.waits_for()
        return {
            "gateway": self.name,
            "ready": self._is_ready and not waits_for,
            "waits_for": waits_for,
        }

    def announced(self) -> list[dict[str, Any]]:
        """Which events are to come from the services here, as was announced."""
        return [
            {"service": each.service, "where": each.where, "carried": each.carried}
            for each in self._answering.announced()
        ]

    def status(self) -> list[dict[str, Any]]:
        """The figures of every link."""
        now = self._neighbours.clock()
        return [
            {
                "service": link.name,
                "kind": link.service.kind,
                "address": link.service.place,
                "connected": link.is_connected.is_set(),
                "active": link.name in self._tree.open,
                "waits_for": self._tree.waits_for(link.name, now),
                "in": link.counts.received,
                "out": link.counts.sent,
                "filtered": link.counts.filtered,
                "duplicates": link.counts.duplicates,
                "dropped": dict(link.counts.dropped),
                "in_flight": len(link.receipts),
                "waiting": len(link.outbox),
                "reconnects": link.counts.reconnects,
                "last_error": link.counts.last_error,
                "trouble": told_of(link) if link.counts.last_error else "",
                "lag": link.counts.lag,
                "neighbours": self._tree.neighbours(link.name, now),
                "requests": [str(each) for each in self._interest.requests(link.name)],
                "wanted": [str(each) for each in self._neighbours.wanted_from(link)],
            }
            for link in self._links.values()
        ]

    def site_status(self) -> dict[str, Any] | None:
        """The figures of the site at this gateway, if there is one."""
        return None if self._site is None else self._site.status()

    async def measure(self) -> None:
        """Ask the services how much waits there."""
        for link in self._links.values():
            link.counts.lag = await link.lag()

    def metrics(self) -> str:
        """The figures in the text format of Prometheus."""
        return metrics.text(self.name, self.status())


def told_of(link: ServiceLink) -> str:
    """The last trouble of a link, with the address of its service."""
    service = link.service
    name, place = f"service `{service.name}`", service.place
    error = link.counts.last_error or f"{name}: it does not answer yet"
    return error.replace(name, f"{name} at {place}", 1) if place else error


def _ontology(settings: GatewaySettings) -> Any:
    """What filters ask of concepts. Raises `UsageError` or `OntologyError`."""
    if not settings.ontology:
        return None
    # Only here, as it needs an extra.
    from ensue.knowledge import Ontology

    return Ontology.load(*settings.ontology)
