"""Announcements: which events are to come to which services, remembered and told on.

A request `announce` names services and a filter: events that match it will come from there. Every
gateway remembers it for its own services, also over a restart, and tells the services that have a
way to carry it (a retained message on MQTT, an advertisement of a broker): now, and whenever the
service is there again. A gateway that comes later hears of it from its neighbours. `unannounce`
with the same services and filter ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ensue.errors import EnsueError
from ensue.federation.links.link import ServiceLink
from ensue.federation.routing import control
from ensue.federation.routing.control import Announcement
from ensue.federation.routing.memory import Memory
from ensue.subscriptions import Filter

MOST_ANNOUNCED = 1_000
"""Announcements that a gateway remembers: any client of a service can send some."""


class Announcements:
    """The announcements of one gateway, for its services and for those of others."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._carried: set[tuple[str, str]] = set()
        """Services with a filter that they carry."""

    async def take(self, request: control.Request, meant: Sequence[ServiceLink]) -> tuple[str, ...]:
        """Put an announcement in force, or end it; out go the services that carry it."""
        offered = Filter.parse(request.where)
        known = self._memory.announced
        key = (request.at, request.services, str(offered))
        if request.verb == "announce" and key not in known and len(known) >= MOST_ANNOUNCED:
            raise EnsueError(
                f"{MOST_ANNOUNCED:,} announcements stand, which is the most: end some by"
                " `unannounce`"
            )
        self._memory.announce(key, request.verb == "announce")
        return tuple([each.name for each in meant if await self._tell(each, offered, request.verb)])

    async def _tell(self, link: ServiceLink, offered: Filter, verb: str) -> bool:
        is_offered = verb == "announce"
        carries = await link.announce(offered, is_offered)
        mark = (link.name, str(offered))
        if carries and is_offered:
            self._carried.add(mark)
        else:
            self._carried.discard(mark)
        return carries

    async def tell_again(self, link: ServiceLink, requests: Sequence[control.Request]) -> None:
        """A service is there, perhaps again: tell it what stands of it."""
        for each in requests:
            offered = control.filter_of(each.where)
            if offered is not None:
                await self._tell(link, offered, "announce")

    def standing(self) -> list[control.Request]:
        """What stands, as requests, so that others can be told."""
        return [
            control.Request("announced", "announce", at, services, where)
            for at, services, where in self._memory.announced
        ]

    def of_services(
        self, meant_by: Mapping[str, Sequence[control.Request]]
    ) -> tuple[Announcement, ...]:
        """What stands of each service here."""
        return tuple(
            Announcement(name, each.where, (name, each.where) in self._carried)
            for name, requests in meant_by.items()
            for each in requests
        )
