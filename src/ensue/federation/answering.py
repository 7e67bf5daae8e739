"""Requests: subscribe, unsubscribe, announce, unannounce and publish, each applied once.

A request comes over a service as a control event, or from this process. It is passed on to all
other services, so that every gateway of the federation hears it, applied at the services here that
it means, and answered. Standing requests are the requests of the TOML file, and requests that were
made while the gateway ran, which `routing.memory` keeps with what neighbours have stated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ensue.errors import EnsueError, UsageError
from ensue.events.cloudevents import decode
from ensue.federation.announcements import Announcements
from ensue.federation.configuration import GatewaySettings, StandingRequest
from ensue.federation.ending import end
from ensue.federation.limits import limits
from ensue.federation.links.link import ServiceLink
from ensue.federation.links.outbox import WantedEvent
from ensue.federation.messages.attributes import identity_of
from ensue.federation.neighbours import Neighbours
from ensue.federation.passing import NOWHERE
from ensue.federation.routing import control
from ensue.federation.routing.distribution import is_meant, wanted_from
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.memory import Memory
from ensue.federation.routing.tree import Tree
from ensue.subscriptions import Filter

_MOST_WAITING = 100_000
"""Events that may wait for a service when a request wants to publish one there."""
_PAUSE_FOR_NEIGHBOURS = 0.15
"""How long after a request its answer waits for gateways further on, where there are any."""


class Answering:
    def __init__(
        self,
        settings: GatewaySettings,
        links: Mapping[str, ServiceLink],
        tree: Tree,
        interest: Interest,
        neighbours: Neighbours,
        memory: Path | None,
    ) -> None:
        self._name = settings.name
        self._patience = settings.patience
        self._subscriptions = settings.subscriptions
        self._links = links
        self._tree = tree
        self._interest = interest
        self._neighbours = neighbours
        self._memory = Memory(memory)
        self._announcements = Announcements(self._memory)
        self._known: dict[str, None] = {}
        self.tasks: dict[asyncio.Task[Any], None] = {}

    async def stop(self) -> None:
        await end(self.tasks)
        self._memory.save(self._all_stated())
        for each in self._links.values():
            each.outbox.seen.keep()

    async def in_force(self) -> None:
        """Wait until what is wanted is told to every service that is there."""
        for link in self._links.values():
            if link.is_connected.is_set():
                await link.in_force(self._patience)

    # --- requests that come -------------------------------------------------------------------

    async def request(self, request: control.Request) -> None:
        """A request of this process. Raises `UsageError` if it cannot be applied here."""
        self._know(request.id)
        await self._apply(request)
        for link in self._links.values():
            link.tell(control.write(request))

    def take(self, said: control.Request | control.RequestDone, via: ServiceLink) -> None:
        """A request, or the answer to one, that has come over a service."""
        if len(self.tasks) >= limits().requests_at_work and isinstance(said, control.Request):
            via.counts.dropped["too many requests"] += 1
            return
        is_new = self._pass_on(said, via)
        if is_new and isinstance(said, control.Request):
            self._spawn(self._answer(said))

    def _know(self, identity: str) -> None:
        self._known[identity] = None
        while len(self._known) > limits().requests_known:
            self._known.pop(next(iter(self._known)))

    def _pass_on(self, said: control.Request | control.RequestDone, via: ServiceLink) -> bool:
        """Tell it at all other services; false if that has been done before."""
        if said.id in self._known:
            return False
        self._know(said.id)
        if said.hops >= control.MOST_HOPS:
            # Where more requests are on their way than are known, one could go round for ever.
            via.counts.dropped["going round"] += 1
            return False
        further = msgspec.structs.replace(said, hops=said.hops + 1)
        for link in self._links.values():
            if link is not via:
                link.tell(control.write(further))
        return True

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self.tasks[task] = None
        task.add_done_callback(lambda ended: self.tasks.pop(ended, None))

    async def _answer(self, request: control.Request) -> None:
        made = control.RequestDone(control.new_id(), request.id, self._name)
        try:
            if request.verb in ("announce", "unannounce", "announced"):
                made = await self._announced(request, made)
            else:
                services = await self._apply(request)
                made = msgspec.structs.replace(made, services=services)
        except EnsueError as error:
            made = msgspec.structs.replace(made, problem=str(error))
        if not (made.services or made.problem or made.announced):
            return
        if self._neighbours.are_there():
            await asyncio.sleep(_PAUSE_FOR_NEIGHBOURS)
        self._know(made.id)
        for link in self._links.values():
            link.tell(control.write(made))

    async def _apply(self, request: control.Request) -> tuple[str, ...]:
        """Apply a request at the services here that it means; out go their names."""
        match request.verb:
            case "subscribe" | "unsubscribe":
                return await self._subscribe(request)
            case "publish":
                return self._publish(request)
            case _:
                made = control.RequestDone(control.new_id(), request.id, self._name)
                return (await self._announced(request, made)).services

    async def _subscribe(self, request: control.Request) -> tuple[str, ...]:
        if request.at not in self._links:
            return ()
        wanted = wanted_from(request.services, Filter.parse(request.where))
        if request.verb == "subscribe":
            self._interest.request(request.at, wanted)
            self._memory.add(request.at, str(wanted))
        else:
            self._interest.withdraw(request.at, wanted)
            self._memory.remove(request.at, str(wanted))
        self.save()
        self._neighbours.update()
        await self.in_force()
        return (request.at,)

    async def _announced(
        self, request: control.Request, made: control.RequestDone
    ) -> control.RequestDone:
        """Tell which events are to come from services, end that, or list what stands."""
        if request.verb == "announced":
            return msgspec.structs.replace(made, announced=self.announced())
        meant = [link for link in self._links.values() if _is_meant(request, link)]
        carried = await self._announcements.take(request, meant)
        self.save()
        names = tuple(link.name for link in meant)
        return msgspec.structs.replace(made, services=names, carried=carried)

    def announced(self) -> tuple[control.Announcement, ...]:
        """What stands of the services of this gateway."""
        return self._announcements.of_services(
            {link.name: self._announced_of(link) for link in self._links.values()}
        )

    def _announced_of(self, link: ServiceLink) -> list[control.Request]:
        return [each for each in self._announcements.standing() if _is_meant(each, link)]

    def _publish(self, request: control.Request) -> tuple[str, ...]:
        """Publish an event at the services that a list means, of several gateways by one."""
        event = decode(request.event)
        published = []
        for link in self._links.values():
            if _is_meant(request, link) and self._tree.is_designated(link.name):
                if len(link.outbox) >= _MOST_WAITING:
                    raise UsageError(f"service `{link.name}` has {_MOST_WAITING:,} events to take")
                link.outbox.send(WantedEvent(event, False, identity_of(event), NOWHERE), ())
                published.append(link.name)
        return tuple(published)

    # --- requests that stand ------------------------------------------------------------------

    def begin(self, more: tuple[StandingRequest, ...]) -> None:
        """Put standing requests into force, and what is remembered."""
        with self._interest.changing():
            for each in (*self._subscriptions, *more):
                if each.at in self._links:
                    self._interest.request(each.at, each.wanted)
            self._remember()

    def spread_standing(self, link: ServiceLink) -> None:
        """Tell a new neighbour the standing requests for services elsewhere."""
        for number, each in enumerate(self._subscriptions):
            if each.at not in self._links:
                identity = f"{self._name}-{self._neighbours.instance}-{number}-{link.name}"
                request = control.Request(
                    identity, "subscribe", each.at, each.services, str(each.where)
                )
                self._know(identity)
                link.tell(control.write(request))
        for number, announced in enumerate(self._announcements.standing()):
            identity = f"{self._name}-{self._neighbours.instance}-announced-{number}-{link.name}"
            self._know(identity)
            link.tell(control.write(msgspec.structs.replace(announced, id=identity)))

    def connected(self, link: ServiceLink) -> None:
        """A service is there. What is meant for it from now on waits for it, also in a later life
        of this gateway."""
        if self._memory.was_connected(link.name):
            self.save()
        if standing := self._announced_of(link):
            self._spawn(self._announcements.tell_again(link, standing))

    def _remember(self) -> None:
        for link in self._links.values():
            link.was_connected = link.name in self._memory.connected
        requests, stated = self._memory.load()
        now = self._neighbours.clock()
        for service, text in requests:
            wanted = control.filter_of(text)
            if service in self._links and wanted is not None:
                with suppress(UsageError):
                    self._interest.request(service, wanted)
        for service, each in stated:
            if service in self._links:
                with suppress(UsageError):
                    self._interest.state(service, each, now)

    def save(self) -> None:
        self._memory.save(self._all_stated())

    def _all_stated(self) -> dict[str, list[control.Stated]]:
        return {each: self._interest.statements(each) for each in self._links}


def _is_meant(request: control.Request, link: ServiceLink) -> bool:
    is_listed = is_meant(request.services, link.name, link.service.kind)
    return is_listed and (link.name != request.at or link.name in request.services)
