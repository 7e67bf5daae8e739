"""Which brokers are behind a link, so that no link closes a circle.

Brokers of a process are found by walking their links. An end of a link to another process knows the
brokers behind it, since the other side tells them (`network`), and tells the other side the brokers
on this one. A change is told at once over every link that leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ensue.brokers.messages import BrokerLink


class MemberBroker(Protocol):
    """What is asked of a broker here."""

    @property
    def id(self) -> str: ...

    @property
    def links(self) -> list[BrokerLink]: ...


class InnerEnd:
    """An end of a link to a broker of this process."""

    @property
    def target(self) -> MemberBroker:
        raise NotImplementedError


class OuterEnd:
    """An end of a link to a broker of another process."""

    @property
    def behind(self) -> Iterable[str]:
        """The ids of the brokers on the other side."""
        raise NotImplementedError

    def tell_brokers(self, ids: set[str]) -> None:
        """Say which brokers are on this side."""
        raise NotImplementedError


def brokers_of_process(broker: MemberBroker) -> list[MemberBroker]:
    """All brokers that are linked to this one within the process, itself first."""
    found, waiting = {broker.id: broker}, [broker]
    while waiting:
        for end in waiting.pop().links:
            if isinstance(end, InnerEnd) and end.target.id not in found:
                found[end.target.id] = end.target
                waiting.append(end.target)
    return list(found.values())


def all_brokers(broker: MemberBroker, without: object = None) -> set[str]:
    """The ids of all brokers of the tree, those behind one link to another process left out."""
    near = brokers_of_process(broker)
    ids = {each.id for each in near}
    for each in near:
        for end in each.links:
            if isinstance(end, OuterEnd) and end is not without:
                ids.update(end.behind)
    return ids


def tell_all(broker: MemberBroker) -> None:
    """Tell each neighbour in another process which brokers are on this side of its link."""
    for each in brokers_of_process(broker):
        for end in each.links:
            if isinstance(end, OuterEnd):
                end.tell_brokers(all_brokers(each, without=end))
