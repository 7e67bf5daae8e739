"""A gateway: links to event services, and the decisions what goes where.

An event that comes from a service is looked up in the index of what is wanted (`interest`), queued
at the links of its destinations, and acknowledged when all of them have it (`link`). It never goes
back to a service where it has been. Gateways at one service hear each other: they agree on a tree
(`tree`), and each states at every service what is wanted on its other sides. Requests of clients
come in as control events and travel on to all gateways, each applied once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from ensue.errors import EnsueError, EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.federation import metrics
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import Adapter, Incoming, Service
from ensue.federation.configuration import GatewaySettings, Subscription, read_settings
from ensue.federation.ending import end
from ensue.federation.link import Link, Ticket
from ensue.federation.mapping.compiled import compiled
from ensue.federation.mapping.rules import Mapped
from ensue.federation.messages.attributes import (
    at_service,
    expiry_of,
    for_sending,
    identity_of,
    path_of,
)
from ensue.federation.placement.attaching import SITE, AttachedSite, SiteAdapter
from ensue.federation.placement.parcels import PARCEL
from ensue.federation.routing import control
from ensue.federation.routing.distribution import is_meant, wanted_from
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.memory import Memory
from ensue.federation.routing.tree import Tree
from ensue.history import History
from ensue.subscriptions import Filter

_SECONDS_TO_DRAIN = 5.0
_REQUESTS_KNOWN = 10_000
_PAUSE_FOR_NEIGHBOURS = 0.15
"""How long after a request its answer waits for gateways further on, where there are any."""

MakeAdapter = Callable[[Service], Adapter]


class Gateway:
    """`await start()` returns when every service is connected and every request in force."""

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        memory: Path | None = None,
        make: MakeAdapter | None = None,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self._instance = uuid4().hex[:8]
        self._make = make or (lambda service: adapter_class(service.kind)(service))
        self._site = None if settings.site is None else AttachedSite(settings.site, self.name)
        self._history = None if settings.history is None else History.open(settings.history)
        self._links = {each.name: Link(each, self._make) for each in settings.services}
        if (site := self._site) is not None:
            self._links[site.service.name] = Link(site.service, lambda _: SiteAdapter(site))
        names = list(self._links)
        self._tree = Tree(self.name, names, settings.patience)
        self._interest = Interest(names, self._history)
        self._memory = Memory(memory)
        self._mappings: dict[tuple[str, str], list[Mapped]] = {}
        for each in settings.mappings:
            self._mappings.setdefault((each.at, each.direction), []).append(compiled(each))
        self._announced: dict[tuple[str, Filter], None] = {}
        self._known: dict[str, None] = {}
        self._digests: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_ready = False
        self._has_settled = False
        self._began = 0.0
        self._last_moment = time.monotonic()
        self._stalled = 0.0

    @classmethod
    def from_config(
        cls, tables: Mapping[str, Any], where: str = "", memory: Path | None = None
    ) -> Gateway:
        """A gateway as the tables of a TOML file say. Raises `UsageError` with every mistake."""
        return cls(read_settings(tables, where), memory=memory)

    # --- running ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Raises `UsageError` for settings that no service can be reached by."""
        self._began = self._clock()
        with self._interest.changing():
            for subscription in self.settings.subscriptions:
                self._stand(subscription)
            for subscription in self._site.subscriptions if self._site is not None else ():
                self._stand(subscription)
            self._remember()
        # The first look-up compiles; no event is to wait for that.
        self._interest.destinations(Event.of("ensue.first", time=0, data={}))
        for link in self._links.values():
            link.start(self)
        await self._all_connected()
        for link in self._links.values():
            link.want(self._wanted_from(link), False)
        self._ask_all()
        await asyncio.sleep(self.settings.settling)
        self._has_settled = True
        self._update()
        for link in self._links.values():
            link.receive()
        self._spawn(self._maintain())
        self._spawn(self._beat())
        await self._in_force()
        self._is_ready = True

    async def stop(self) -> None:
        """Receive no more, let what is on its way arrive, acknowledge it, and part."""
        self._is_ready = False
        await asyncio.gather(*(link.stop(_SECONDS_TO_DRAIN) for link in self._links.values()))
        await end(self._tasks)
        if self._history is not None:
            self._history.close()

    async def _all_connected(self) -> None:
        while True:
            for link in self._links.values():
                if link.unusable is not None:
                    unusable = link.unusable
                    await self.stop()
                    raise unusable
            if all(link.is_connected.is_set() for link in self._links.values()):
                return
            await asyncio.sleep(0.02)

    async def _in_force(self) -> None:
        for link in self._links.values():
            await link.in_force(self.settings.patience)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- events -------------------------------------------------------------------------------

    def route(self, link: Link, incoming: Sequence[Incoming]) -> None:
        """Queue events at their destinations. Called by the link that received them."""
        if link.name not in self._tree.active:
            for each in incoming:
                link.rest(each)
            return
        for each in incoming:
            ticket = link.ticket(each.token)
            # One more than there are destinations, until all of them are known.
            ticket.waiting = 1
            self._route_one(link, each, ticket)
            ticket.confirm()

    def _route_one(self, link: Link, incoming: Incoming, ticket: Ticket) -> None:
        given = incoming.event
        if given is None:
            link.counts.dropped[incoming.reason] += 1
            if incoming.problems:
                link.counts.last_error = f"service `{link.name}`: {'; '.join(incoming.problems)}"
            return
        identity = identity_of(given)
        link.note(identity)
        # What is in transit is not in the words of the service that it crosses.
        mapped = given if incoming.in_transit else self._mapped(link, "in", given)
        if mapped is None:
            return
        if mapped is not given:
            given, identity = mapped, identity_of(mapped)
        expiry = expiry_of(given)
        if expiry is not None and expiry <= time.time_ns() // 1000:
            link.counts.dropped["expired"] += 1
            return
        event = at_service(given, link.name, link.service.kind)
        been = path_of(event)
        found = self._interest.destinations(event)
        if self._history is not None:
            self._history.add(event)
        outgoing = for_sending(event)
        is_wanted = False
        is_parcel = event.type == PARCEL
        for name, in_transit in found.items():
            # What sites tell each other is for no client of a service.
            is_for_clients = not in_transit and self._links[name].service.kind != SITE
            if name in been or (is_parcel and is_for_clients):
                continue
            is_wanted = True
            self._send(self._links[name], outgoing, in_transit, identity, ticket)
        if not is_wanted:
            link.counts.filtered += 1

    def _send(
        self, link: Link, event: Event, in_transit: bool, identity: int, ticket: Ticket
    ) -> None:
        """Queue an event at a link, in the words of its service if it is for its clients."""
        if not in_transit:
            mapped = self._mapped(link, "out", event)
            if mapped is None:
                return
            if mapped is not event:
                event, identity = mapped, identity_of(mapped)
        if link.name in self._tree.active:
            ticket.waiting += 1
            link.send(event, in_transit, identity, ticket)
        else:
            link.hold(event, in_transit, identity)

    def _mapped(self, link: Link, direction: str, event: Event) -> Event | None:
        """An event as the mappings of a service make it; None if it cannot be, or is not to be."""
        found: Event | None = event
        for mapped in self._mappings.get((link.name, direction), ()):
            try:
                found = mapped(found) if found is not None else None
            # It may be code of the user.
            except Exception as error:
                link.counts.dropped["unmappable"] += 1
                link.counts.last_error = f"service `{link.name}`: event `{event.id}`: {error}"
                return None
            if found is None:
                link.counts.dropped["mapped away"] += 1
        return found

    def _clock(self) -> float:
        """Seconds in which the gateway could hear its neighbours.

        A process that was stopped, or busy, has not heard them meanwhile, and that tells nothing.
        """
        now = time.monotonic()
        missed = now - self._last_moment
        if missed > 3 * self.settings.beat:
            self._stalled += missed
        self._last_moment = now
        return now - self._stalled

    # --- neighbours ---------------------------------------------------------------------------

    def connected(self, link: Link) -> None:
        """A link stands, perhaps again."""
        self._digests.pop(link.name, None)
        self._say(link)
        self._changed.set()

    def heard(self, link: Link, message: bytes) -> None:
        try:
            said = control.read(message)
        except EventError as error:
            link.counts.dropped["unreadable control"] += 1
            link.counts.last_error = f"service `{link.name}`: {error}"
            return
        if getattr(said, "instance", None) == self._instance:
            return
        now = self._clock()
        match said:
            case control.Hello():
                if said.gateway == self.name:
                    link.counts.last_error = (
                        f"service `{link.name}`: another gateway has the name `{self.name}`"
                    )
                    return
                is_new = self._tree.hear(link.name, said, now)
                if not self._interest.hear(link.name, said.gateway, said.digest, now):
                    link.tell(control.write(control.Asked(self.name, self._instance)))
                if is_new:
                    self._digests.pop(link.name, None)
                    self._say(link)
                    self._spread_standing(link)
                self._changed.set()
            case control.Stated():
                if said.gateway != self.name and self._interest.state(link.name, said, now):
                    self._changed.set()
                    self._save()
            case control.Asked():
                self._digests.pop(link.name, None)
                self._say(link)
                self._changed.set()
            case control.Request():
                self._take(said, link)
            case control.Done():
                self._pass_on(said, said.id, link)

    def _say(self, link: Link) -> None:
        """Hello, and what is wanted, where that has changed since it was last said.

        A gateway that has just come says nothing of its place in the tree before it knows it: its
        neighbours go by what it said before it went.
        """
        if not self._has_settled:
            return
        now = self._clock()
        stated = self._interest.statement(link.name, self.name, self._instance)
        if self._digests.get(link.name) != stated.digest:
            self._digests[link.name] = stated.digest
            link.tell(control.write(stated))
        self._tree.settle(now)
        beat = self._tree.beat(time.time_ns() // 1_000_000)
        link.tell(
            control.write(
                control.Hello(
                    self.name, self._instance, self._tree.root, self._tree.cost, beat, stated.digest
                )
            )
        )

    def _ask_all(self) -> None:
        for link in self._links.values():
            link.tell(control.write(control.Asked(self.name, self._instance)))

    def _update(self) -> None:
        """Bring everything up to what is known now."""
        now = self._clock()
        tree_changed = self._tree.settle(now)
        self._interest.activate(self._tree.active)
        for link in self._links.values():
            if link.name in self._tree.active:
                link.send_held()
                for incoming, ticket in link.wake():
                    self._route_one(link, incoming, ticket)
                    ticket.confirm()
            else:
                link.release(time.monotonic() - 2 * self.settings.patience)
        self._interest.forget(now - self.settings.memory)
        # Who wants something may have been away as this gateway was.
        may_forget = now - self._began > self.settings.patience
        for link in self._links.values():
            link.want(self._wanted_from(link), may_forget)
            digest = self._interest.statement(link.name, self.name, self._instance).digest
            if tree_changed or self._digests.get(link.name) != digest:
                self._say(link)

    def _wanted_from(self, link: Link) -> list[Filter]:
        return self._interest.wanted_from(link.name, link.service.kind)

    async def _maintain(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._update()
            # What comes within a moment is dealt with at once.
            await asyncio.sleep(0.01)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.settings.beat)
            for link in self._links.values():
                if link.is_connected.is_set():
                    self._say(link)
            self._changed.set()

    # --- requests -----------------------------------------------------------------------------

    async def request(self, request: control.Request) -> None:
        """A request of this process. Raises `UsageError` if it cannot be applied here."""
        self._known[request.id] = None
        await self._apply(request)
        for link in self._links.values():
            link.tell(control.write(request))

    def _take(self, request: control.Request, via: Link) -> None:
        if not self._pass_on(request, request.id, via):
            return
        self._spawn(self._answer(request))

    def _pass_on(self, said: control.Control, identity: str, via: Link) -> bool:
        """Tell it at all other services; false if that has been done before."""
        if identity in self._known:
            return False
        self._known[identity] = None
        if len(self._known) > _REQUESTS_KNOWN:
            self._known.pop(next(iter(self._known)))
        for link in self._links.values():
            if link is not via:
                link.tell(control.write(said))
        return True

    async def _answer(self, request: control.Request) -> None:
        problem = ""
        services: tuple[str, ...] = ()
        try:
            services = await self._apply(request)
        except EnsueError as error:
            problem = str(error)
        if not services and not problem:
            return
        if any(self._tree.neighbours(each, self._clock()) for each in self._links):
            await asyncio.sleep(_PAUSE_FOR_NEIGHBOURS)
        done = control.Done(control.new_id(), request.id, self.name, services, problem)
        self._known[done.id] = None
        for link in self._links.values():
            link.tell(control.write(done))

    async def _apply(self, request: control.Request) -> tuple[str, ...]:
        """Apply a request at the services here that it means; out go their names."""
        match request.verb:
            case "subscribe" | "unsubscribe":
                if request.at not in self._links:
                    return ()
                wanted = wanted_from(request.services, Filter.parse(request.where))
                if request.verb == "subscribe":
                    self._interest.request(request.at, wanted)
                    self._memory.add(request.at, str(wanted))
                else:
                    self._interest.withdraw(request.at, wanted)
                    self._memory.remove(request.at, str(wanted))
                self._save()
                self._update()
                await self._in_force()
                return (request.at,)
            case "announce" | "unannounce":
                return await self._announce(request)
            case "publish":
                return self._publish(request)

    async def _announce(self, request: control.Request) -> tuple[str, ...]:
        """Tell the services that a list means which events are to come, or come no more."""
        offered = Filter.parse(request.where)
        meant = [link for link in self._links.values() if self._is_meant(request, link)]
        for link in meant:
            is_offered = request.verb == "announce"
            if is_offered:
                self._announced[link.name, offered] = None
            else:
                self._announced.pop((link.name, offered), None)
            await link.announce(offered, is_offered)
        return tuple(link.name for link in meant)

    def _publish(self, request: control.Request) -> tuple[str, ...]:
        """Publish an event at the services that a list means, of several gateways by one."""
        event = decode(request.event)
        published = []
        for link in self._links.values():
            if self._is_meant(request, link) and self._tree.is_designated(link.name):
                link.send(event, False, identity_of(event), None)
                published.append(link.name)
        return tuple(published)

    @staticmethod
    def _is_meant(request: control.Request, link: Link) -> bool:
        is_listed = is_meant(request.services, link.name, link.service.kind)
        return is_listed and (link.name != request.at or link.name in request.services)

    def _stand(self, subscription: Subscription) -> None:
        """A standing request, if it is for a service here."""
        if subscription.at in self._links:
            self._interest.request(subscription.at, subscription.wanted)

    def _spread_standing(self, link: Link) -> None:
        """Standing requests for services elsewhere are told to every new neighbour."""
        for number, each in enumerate(self.settings.subscriptions):
            if each.at not in self._links:
                identity = f"{self.name}-{self._instance}-{number}-{link.name}"
                request = control.Request(
                    identity, "subscribe", each.at, each.services, str(each.where)
                )
                self._known[identity] = None
                link.tell(control.write(request))

    # --- what outlives the process ------------------------------------------------------------

    def _remember(self) -> None:
        requests, stated = self._memory.load()
        now = self._clock()
        for service, text in requests:
            wanted = control.filter_of(text)
            if service in self._links and wanted is not None:
                with suppress(UsageError):
                    self._interest.request(service, wanted)
        for service, each in stated:
            if service in self._links:
                self._interest.state(service, each, now)

    def _save(self) -> None:
        self._memory.save({each: self._interest.statements(each) for each in self._links})

    # --- figures ------------------------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        """Whether the gateway does what it is for, and which of its services are away."""
        away = [link.name for link in self._links.values() if not link.is_connected.is_set()]
        return {
            "gateway": self.name,
            "status": "ready" if self._is_ready and not away else "degraded",
            "ready": self._is_ready,
            "away": away,
        }

    def status(self) -> list[dict[str, Any]]:
        """The figures of every link."""
        now = self._clock()
        return [
            {
                "service": link.name,
                "kind": link.service.kind,
                "connected": link.is_connected.is_set(),
                "active": link.name in self._tree.active,
                "in": link.counts.received,
                "out": link.counts.sent,
                "filtered": link.counts.filtered,
                "duplicates": link.counts.duplicates,
                "dropped": dict(link.counts.dropped),
                "in_flight": link.in_flight,
                "waiting": link.waiting,
                "reconnects": link.counts.reconnects,
                "last_error": link.counts.last_error,
                "lag": link.counts.lag,
                "neighbours": self._tree.neighbours(link.name, now),
                "requests": [str(each) for each in self._interest.requests(link.name)],
                "wanted": [str(each) for each in self._wanted_from(link)],
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
