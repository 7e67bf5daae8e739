"""Turns: one gateway at a time brings old events to a service, and nobody else brings any then.

When the tree has changed, or a service comes back, two gateways may each have one event, which came
to both by different ways. Neither can see the other's publication in time. So a gateway that has
old events for a service asks all others there, and waits until each has granted it a turn; of two
that ask, the one of the smaller name goes first (the mutual exclusion of Ricart and Agrawala). Who
grants a turn has nothing under way to the service, and sends nothing there until the turn is over,
also of its new events: one of them may be an old one elsewhere. In its turn a gateway looks up what
the service has by then, and sends the rest; after it, the others look up what has come. Requests
are numbered, so that no grant of an earlier one counts, nor one to a gateway of this name that has
ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ensue.federation.routing.control import MOST_GRANTS


@dataclass
class _Service:
    wanted: int = 0
    """The number of the own request, 0 for none."""
    is_taken: bool = False
    others: dict[str, int] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    """The number that each other gateway has granted to this one."""
    given: dict[str, int] = field(default_factory=dict)
    """The number that this one has granted to each other gateway."""


class StatementTurns:
    """One gateway's view of all its services. `first` is greater than any number before it."""

    def __init__(self, name: str, services: Iterable[str], first: int) -> None:
        self._name = name
        self._services = {each: _Service() for each in services}
        self._number = first

    def want(self, service: str) -> None:
        here = self._services[service]
        if not here.wanted:
            self._number += 1
            here.wanted = self._number

    def hear(self, service: str, gateway: str, wanted: int, grants: Mapping[str, int]) -> None:
        """What another gateway says: the number that it asks for, and what it grants."""
        here = self._services[service]
        if gateway not in here.others and len(here.others) >= MOST_GRANTS:
            return
        here.others[gateway] = wanted
        here.granted[gateway] = grants.get(self._name, 0)

    def wanted(self, service: str) -> int:
        return self._services[service].wanted

    def grants(self, service: str, is_quiet: bool) -> dict[str, int]:
        """The gateways that may go before this one, each with the number that it has asked for.

        Only a gateway that has nothing under way to the service (`is_quiet`) grants anything.
        """
        here = self._services[service]
        if here.is_taken or not is_quiet:
            return {}
        found = {
            gateway: number
            for gateway, number in sorted(here.others.items())
            if number and (not here.wanted or gateway < self._name)
        }
        here.given |= found
        return found

    def must_rest(self, service: str, neighbours: Iterable[str]) -> bool:
        """Whether another gateway that is there has its turn, or is to have it now."""
        here = self._services[service]
        if here.is_taken:
            return False
        for each in neighbours:
            number = here.others.get(each, 0)
            # A grant that was taken back may have been used before that was heard.
            may_have_it = here.given.get(each) == number and here.granted.get(each) != here.wanted
            if number and (not here.wanted or each < self._name or may_have_it):
                return True
        return False

    def may_begin(self, service: str, neighbours: Iterable[str]) -> bool:
        """Whether all gateways that are there have granted the turn that was asked for."""
        here = self._services[service]
        return bool(here.wanted) and all(
            here.granted.get(each) == here.wanted for each in neighbours
        )

    def begin(self, service: str) -> None:
        self._services[service].is_taken = True

    def end(self, service: str) -> None:
        here = self._services[service]
        here.is_taken, here.wanted = False, 0
