"""The links of one broker to brokers of other processes.

A link is one of the event channel's (`ensue.channel.links`): dialled by one side and dialled again
when it breaks, with a secret or certificates, heartbeats, and events that are kept until they are
acknowledged. Here a broker takes the place that a channel has there. In the thread of the links it
is decided which brokers may link; all else is a job of the worker, in the order in which links
bring it.

Within the patience of a link nothing is lost by a break: events are sent again, and each side says
again what it asks for. Once patience is over, both sides forget each other, events that were kept
are counted as lost, and the next connection begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ensue.brokers.broker import Broker
from ensue.brokers.membership import all_brokers, tell_all
from ensue.brokers.messages import Published, Said, TakenBack
from ensue.brokers.network.end import End
from ensue.brokers.network.statements import PendingStatements
from ensue.brokers.network.worker import Inline, JobWorker
from ensue.channel.delivery.blocked import Blocked, wait_each
from ensue.channel.links.duplicates import DuplicateFilter
from ensue.channel.links.faults import LinkCounts, LinkFault, LinkFaultError
from ensue.channel.links.link import ChannelLink
from ensue.channel.links.messages import Carried, FilterStatement, News, Spoken
from ensue.channel.links.tcp.links import Listener, TcpLink
from ensue.channel.links.tcp.loop import LINK_LOOP, LinkLoop
from ensue.channel.links.tcp.session import Session
from ensue.channel.policies import Reason
from ensue.channel.timing.clock import DurationLike, microseconds_in

REFUSAL_SECONDS = 0.5


class Links:
    """`listen` lets other brokers link to this one, and `connect` links it to one that listens.

    Subscribers are called in a thread of the links where an event comes from another process.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        loop: LinkLoop = LINK_LOOP,
        worker: JobWorker | Inline | None = None,
    ) -> None:
        self.broker = broker
        self.id = broker.id
        self.duplicates = 0
        self._loop = loop
        self._worker = worker or JobWorker(f"ensue-broker-{broker.name}")
        self._sessions: dict[str, Session] = {}
        self._ends: dict[str, End] = {}
        self._seen = DuplicateFilter()
        self._counts = LinkCounts()
        self._listeners: list[Listener] = []
        self._dialling: list[TcpLink] = []

    # For the process that sets up a broker.

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> tuple[str, int]:
        """Let brokers of other processes link to this one. Returns the address.

        Options are those of `channel.federation.listen`: `secret`, or `certificate`, `key` and
        `authority`; `buffer`, `buffer_bytes`, `overflow`, `patience` and `sessions`.
        """
        listener = Listener(self, self._loop, host, port, **options)
        self._listeners.append(listener)
        return listener.address

    def connect(self, host: str, port: int, **options: Any) -> TcpLink:
        """Link to a broker that listens; dials again, with growing pauses, until it is closed.

        Options are those of `channel.federation.connect`. One side of each pair dials.
        """
        link = TcpLink(self, self._loop, host, port, **options)
        self._dialling.append(link)
        return link

    def close(self, within: DurationLike = "2 s") -> bool:
        """Leave all neighbours, after what is left was sent. Whether all of it was, in time."""
        until = time.monotonic() + microseconds_in(within) / 1_000_000
        for listener in self._listeners:
            listener.close()
        links: list[TcpLink | Session] = [*self._dialling, *list(self._sessions.values())]
        was_sent = [each.close(max(0.0, until - time.monotonic())) for each in links]
        self._worker.end(max(0.0, until - time.monotonic()))
        return all(was_sent)

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where this broker listens."""
        return tuple(each.address for each in self._listeners)

    @property
    def in_transit(self) -> int:
        """Events that links keep until they are acknowledged, and what waits to be taken in."""
        return sum(each.in_transit for each in list(self._sessions.values())) + self._worker.waiting

    @property
    def lost(self) -> Mapping[Reason, int]:
        """Events that links could neither send nor keep, by reason."""
        return self._counts.lost()

    @property
    def faults(self) -> Mapping[LinkFault, int]:
        """Why connections and sessions were ended, and how often."""
        return self._counts.faults()

    @property
    def repeated(self) -> int:
        """Events that were sent again though they may have arrived; they are taken once."""
        return self._counts.repeated

    @property
    def failures(self) -> int:
        """How often subscribers failed on an event from another process."""
        return self._worker.failures

    # What a session needs, in the thread of the links.

    @property
    def neighbours(self) -> tuple[str, ...]:
        return tuple(each.neighbour or "" for each in self._sessions.values())

    def links_to(self, neighbour: str) -> tuple[ChannelLink, ...]:
        session = self._sessions.get(_name(neighbour))
        return () if session is None else (session,)

    def pending_news(self) -> PendingStatements:
        return PendingStatements(self.broker.advertised)

    def admit(self, neighbour: str, link: ChannelLink | None) -> None:
        """Refuse a second link to a broker, and a name that another neighbour has.

        A link that waits for its connection gives way: the neighbour has begun another one.
        """
        name = _name(neighbour)
        if not name:
            raise LinkFaultError(LinkFault.WRONG_NAME)
        known = self._sessions.get(name)
        if known is None:
            if name in self.broker.neighbours and name not in self._ends:
                raise LinkFaultError(LinkFault.ALREADY_LINKED)
        elif known is not link:
            if known.is_connected:
                raise LinkFaultError(LinkFault.ALREADY_LINKED)
            known.end()

    def add_link(self, neighbour: str, link: ChannelLink) -> None:
        assert isinstance(link, Session)
        name = _name(neighbour)
        self._sessions[name] = link
        self._worker.do(partial(self._begin, name, link))

    def introduce(self, link: ChannelLink) -> None:
        """The job that `add_link` has made says everything."""

    def remove_link(self, neighbour: str, link: ChannelLink) -> None:
        name = _name(neighbour)
        if self._sessions.get(name) is link:
            del self._sessions[name]
        self._seen.keep(self.neighbours)
        self._worker.do(partial(self._end, name, link))

    def receive(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        if not self._seen.add(neighbour, message.identity):
            self.duplicates += 1
            return ()
        name = _name(neighbour)
        return self._worker.do(partial(self.broker.receive, name, Published(message.event)))

    def receive_news(self, news: News, neighbour: str, link: ChannelLink) -> Sequence[Blocked]:
        if not isinstance(news, FilterStatement):
            # At the other end is a channel.
            raise LinkFaultError(LinkFault.UNEXPECTED)
        size = sum(len(each.text) for each in (*news.said, *news.taken_back))
        return self._worker.do(partial(self._hear, _name(neighbour), link, news), size)

    def forward(self, message: Carried) -> Sequence[Blocked]:
        """The link has left in this moment, and there is no other way in a tree."""
        return self.reroute(message, False)

    def reroute(self, message: Carried, in_doubt: bool) -> Sequence[Blocked]:
        self.note_lost(message, Reason.UNCONFIRMED if in_doubt else Reason.UNROUTED)
        return ()

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None:
        wait_each(blocked)

    def note_lost(self, message: Carried, reason: Reason) -> None:
        self._counts.lose(reason, len(message.destinations))

    def note_repeated(self, count: int) -> None:
        self._counts.repeat(count)

    def note_fault(self, fault: LinkFault) -> None:
        self._counts.fault(fault)

    # Jobs of the worker.

    def _begin(self, name: str, session: Session) -> None:
        """A connection stands, the first of its session or another one."""
        with self.broker.turn():
            end = self._ends.get(name)
            if end is None:
                if name in self.broker.neighbours:
                    self._refuse(session, LinkFault.ALREADY_LINKED)
                    return
                end = self._ends[name] = End(self.broker, name, session, self._identity)
                self.broker.connect(end)
                tell_all(self.broker)
            end.hearing.begin()
            end.tell_everything()

    def _end(self, name: str, link: ChannelLink) -> None:
        with self.broker.turn():
            end = self._ends.get(name)
            if end is not None and end.session is link:
                self._forget(end)

    def _hear(self, name: str, link: ChannelLink, statement: FilterStatement) -> None:
        with self.broker.turn():
            end = self._ends.get(name)
            if end is None or end.session is not link:
                return
            try:
                if statement.advertised != self.broker.advertised:
                    raise LinkFaultError(LinkFault.OTHER_KIND)
                changes = end.hearing.hear(statement)
                if changes is not None:
                    self._check_circle(end, changes)
                    self._take_over(end, changes)
            except LinkFaultError as error:
                self._forget(end)
                self._refuse(end.session, error.fault)

    def _check_circle(self, end: End, changes: FilterStatement) -> None:
        joined = {each.text for each in changes.said if each.topic == "broker"}
        if joined and not joined.isdisjoint(all_brokers(self.broker, without=end)):
            raise LinkFaultError(LinkFault.CIRCLE)

    def _take_over(self, end: End, changes: FilterStatement) -> None:
        hearing = end.hearing
        for topic, each in _about_filters(changes.said):
            self.broker.receive(end.far, Said(topic, hearing.filter_of(each)))
        for topic, each in _about_filters(changes.taken_back):
            self.broker.receive(end.far, TakenBack(topic, hearing.filter_of(each)))
        hearing.forget(changes.taken_back)
        if any(each.topic == "broker" for each in (*changes.said, *changes.taken_back)):
            tell_all(self.broker)

    def _forget(self, end: End) -> None:
        del self._ends[end.far]
        self.broker.disconnect(end.far)
        tell_all(self.broker)

    def _refuse(self, session: Session, fault: LinkFault) -> None:
        """End a session, after the other side had time to find out by itself what is wrong."""
        self.note_fault(fault)
        loop = self._loop.loop
        loop.call_soon_threadsafe(loop.call_later, REFUSAL_SECONDS, session.fail)

    def _identity(self) -> int:
        return int.from_bytes(self._loop.entropy(8), "big") >> 1


def _about_filters(spoken: Sequence[Spoken]) -> list[tuple[Any, Spoken]]:
    return [(each.topic, each) for each in spoken if each.topic != "broker"]


def _name(neighbour: str) -> str:
    """The name of a broker: its id up to the last `#`."""
    return neighbour.rpartition("#")[0]
