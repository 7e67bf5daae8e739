"""Links between brokers of one process."""

from __future__ import annotations

from functools import partial

from ensue.brokers.broker import Broker
from ensue.brokers.membership import InnerEnd, all_brokers, brokers_of_process, tell_all
from ensue.brokers.messages import Message, Parted
from ensue.errors import UsageError


class InProcessBrokerLink(InnerEnd):
    """The near end of a link: what it is given waits in the turns that both brokers share."""

    def __init__(self, near: Broker, far: Broker) -> None:
        self._near, self._far = near, far

    @property
    def far(self) -> str:
        return self._far.name

    @property
    def target(self) -> Broker:
        return self._far

    def send(self, message: Message) -> None:
        self._far.turns.post(partial(self._far.receive, self._near.name, message))


def link(one: Broker, other: Broker) -> None:
    """Connect two brokers, and with them all that they are linked to.

    Raises `UsageError` where that would close a circle, in which events would go round.
    """
    if one.advertised != other.advertised:
        raise UsageError(
            f"`{one.name}` and `{other.name}` cannot be linked: one goes by advertisements, the "
            "other does not"
        )
    if not all_brokers(one).isdisjoint(all_brokers(other)):
        raise UsageError(
            f"`{one.name}` and `{other.name}` are connected already: another link would be a circle"
        )
    for near, far in ((one, other), (other, one)):
        if far.name in near.neighbours:
            raise UsageError(f"`{near.name}` has a neighbour `{far.name}` already: rename one")
    with one.turns.taken(), other.turns.taken():
        more = [each for each in brokers_of_process(other) if isinstance(each, Broker)]
        one.turns.join(other.turns)
        for each in more:
            each.turns = one.turns
        ends = [(one, InProcessBrokerLink(one, other)), (other, InProcessBrokerLink(other, one))]
        for broker, end in ends:
            broker.connect(end)
        tell_all(one)


def unlink(one: Broker, other: Broker) -> None:
    """Part two brokers. Each side goes on alone."""
    if other not in (each.target for each in _ends(one)):
        raise UsageError(f"`{one.name}` and `{other.name}` are not linked")
    with one.turns.taken():
        one.receive(other.name, Parted())
        other.receive(one.name, Parted())
        tell_all(one)
        tell_all(other)


def _ends(broker: Broker) -> list[InProcessBrokerLink]:
    return [each for each in broker.links if isinstance(each, InProcessBrokerLink)]
