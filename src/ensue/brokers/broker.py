"""A broker: subscribers and publishers here, and links to other brokers.

In come subscriptions, advertisements and events; out go events to the subscribers whose filters
match, each as if all clients were at one broker. Brokers form a tree (an acyclic graph): over a
link goes an event if the other side asks for it. What it asks for are the most general filters of
everybody behind it (`standing`, `forwarding`); with advertisements, only where a client has such
events. Filters that ask a history are answered by the broker's own, and `weakening` says which
events it needs for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_hex

from ensue.brokers.covering import Covering
from ensue.brokers.forwarding import Changes
from ensue.brokers.messages import BrokerLink, Message, Parted, Published, Said, TakenBack, Topic
from ensue.brokers.standing import HERE, StandingFilters
from ensue.brokers.turns import BrokerTurns
from ensue.brokers.weakening import needs_of, without_concepts
from ensue.engine.inputs import EventLike, as_event
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.history import History
from ensue.subscriptions import Filter, Index, Ontology

Deliver = Callable[[Event], None]


class _BrokerIndex(Index):
    called = "broker"
    made_by = "Broker(..., {}=...)"


class Broker:
    """`subscribe`, `advertise` and `publish` are for clients, `link` connects two brokers.

    With `advertised`, subscriptions travel only towards advertisements that they may meet, and an
    event that its publisher has not advertised is refused. All brokers of a tree have it, or none.
    """

    def __init__(
        self,
        name: str,
        *,
        history: History | None = None,
        ontology: Ontology | None = None,
        advertised: bool = False,
    ) -> None:
        if not name:
            raise UsageError("a broker needs a name, by which its neighbours know it")
        self.name = name
        self.id = f"{name}#{token_hex(6)}"
        self.advertised = advertised
        self.turns = BrokerTurns()
        self._history = history
        self._index = _BrokerIndex(history=history, ontology=ontology)
        self._ontology = ontology
        self._links: dict[str, BrokerLink] = {}
        self._deliver: dict[str, tuple[Filter, Deliver]] = {}
        self._advertisements: dict[str, Filter] = {}
        self._generation = None if ontology is None else ontology.generation
        self._covering = Covering(ontology)
        self._asked = StandingFilters(
            self._covering, partial(self._tell, "subscription"), self._may_be_met
        )
        self._offered = StandingFilters(
            self._covering, partial(self._tell, "advertisement"), lambda *_: self.advertised
        )
        self.turns.first(self._notice_ontology)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep all brokers of the process that are linked to this one to oneself, for a while."""
        while True:
            turns = self.turns
            with turns.taken():
                # While this one waited, the broker may have been linked to others.
                if turns is self.turns:
                    yield
                    return

    def _notice_ontology(self) -> None:
        """Filters cover each other as the ontology says, and it may have been read again."""
        if self._ontology is not None and self._ontology.generation != self._generation:
            self._generation = self._ontology.generation
            self._offered.start_over()
            self._asked.start_over()
            for far in self._links:
                self._asked.look_again(far)

    # --- clients --------------------------------------------------------------------------------

    def subscribe(self, name: str, wanted: Filter | str, deliver: Deliver) -> None:
        """Call `deliver` with every event that matches, from any broker. Raises `UsageError`."""
        if name in self._deliver:
            raise UsageError(f"`{name}` is subscribed at `{self.name}` already: unsubscribe first")
        filter_ = Filter.parse(wanted) if isinstance(wanted, str) else wanted
        with self.turn():
            self._index.add((HERE, name), filter_)
            self._deliver[name] = filter_, deliver
            for each in needs_of(filter_):
                self._asked.add(HERE, each)

    def unsubscribe(self, name: str) -> None:
        """Take a subscription back. What it covered travels again, if it is still wanted."""
        if name not in self._deliver:
            raise UsageError(f"`{name}` is not subscribed at `{self.name}`")
        with self.turn():
            filter_, _ = self._deliver.pop(name)
            self._index.remove((HERE, name))
            for each in needs_of(filter_):
                self._asked.remove(HERE, each)

    def advertise(self, name: str, offered: Filter | str) -> None:
        """Say that events which match will be published here."""
        if not self.advertised:
            raise UsageError(
                f"`{self.name}` goes without advertisements: make it with `advertised=True`"
            )
        if name in self._advertisements:
            raise UsageError(f"`{name}` is advertised at `{self.name}` already")
        filter_ = Filter.parse(offered) if isinstance(offered, str) else offered
        if len(needs_of(filter_)) > 1:
            raise UsageError(
                f"`{filter_}` asks a history, and an advertisement says what single events are"
            )
        with self.turn():
            self._advertisements[name] = filter_
            self._offered.add(HERE, filter_)

    def unadvertise(self, name: str) -> None:
        if name not in self._advertisements:
            raise UsageError(f"`{name}` is not advertised at `{self.name}`")
        with self.turn():
            self._offered.remove(HERE, self._advertisements.pop(name))

    def publish(self, event: EventLike) -> None:
        """Deliver an event to its subscribers; on return all brokers of the process have done so.

        Raises `UsageError` for an event that no advertisement here matches. An error of a
        subscriber's own code keeps the event from no other subscriber, and is raised at the end.
        """
        published = as_event(event)
        if self.advertised and not self._is_advertised(published):
            raise UsageError(
                f"event `{published.id}` matches no advertisement at `{self.name}`: advertise first"
            )
        with self.turn():
            self.turns.post(partial(self._spread, HERE, published))

    def _is_advertised(self, event: Event) -> bool:
        return any(
            each.matches(event, ontology=self._ontology) for each in self._advertisements.values()
        )

    # --- neighbours -----------------------------------------------------------------------------

    @property
    def neighbours(self) -> list[str]:
        return list(self._links)

    @property
    def links(self) -> list[BrokerLink]:
        return list(self._links.values())

    def asks(self, neighbour: str) -> list[Filter]:
        """The subscriptions that this broker has sent to a neighbour."""
        return self._asked.said_to(neighbour)

    def asked_by(self, neighbour: str) -> list[Filter]:
        """The subscriptions that a neighbour has sent to this broker; none if it is not linked."""
        return self._asked.said_by(neighbour) if neighbour in self._links else []

    def offers(self, neighbour: str) -> list[Filter]:
        """The advertisements that this broker has sent to a neighbour."""
        return self._offered.said_to(neighbour)

    def connect(self, link: BrokerLink) -> None:
        """Begin to speak over a link. Both ends are connected before either says anything."""
        with self.turn():
            self._links[link.far] = link
            self._offered.connect(link.far)
            self._asked.connect(link.far)

    def receive(self, far: str, message: Message) -> None:
        """Take a message of a neighbour. Links call this in the order of the messages."""
        with self.turn():
            if far not in self._links:
                return
            match message:
                case Published(event):
                    self._spread(far, event)
                case Said("subscription", filter_):
                    if self._asked.add(far, filter_):
                        self._answer(far, filter_)
                case TakenBack("subscription", filter_):
                    if self._asked.remove(far, filter_):
                        self._index.remove((far, filter_))
                case Said("advertisement", filter_):
                    self._offered.add(far, filter_)
                    self._asked.look_again(far)
                case TakenBack("advertisement", filter_):
                    self._offered.remove(far, filter_)
                    self._asked.look_again(far)
                case Parted():
                    self.disconnect(far)

    def disconnect(self, far: str) -> None:
        """Forget a neighbour, and all that it has asked for and offered."""
        with self.turn():
            if self._links.pop(far, None) is None:
                return
            for each in self._asked.disconnect(far):
                self._index.remove((far, each))
            self._offered.disconnect(far)

    def _answer(self, far: str, filter_: Filter) -> None:
        """Let events through that a neighbour asks for: more of them, where it asks by concepts
        that are not known here."""
        try:
            self._index.add((far, filter_), filter_)
        except UsageError:
            self._index.add((far, filter_), without_concepts(filter_))

    def _spread(self, source: str, event: Event) -> None:
        to_links: dict[str, None] = {}
        to_clients: list[str] = []
        for who, what in self._index.match(event):
            if who == HERE:
                to_clients.append(what)
            elif who != source:
                to_links[who] = None
        if self._history is not None:
            self._history.add(event)
        for far in to_links:
            self._links[far].send(Published(event))
        for name in to_clients:
            if name in self._deliver:
                self._hand_over(self._deliver[name][1], event)

    def _hand_over(self, deliver: Deliver, event: Event) -> None:
        try:
            deliver(event)
        # It is the subscriber's own code, and the others are still to be told.
        except Exception as error:
            self.turns.failed(error)

    def _tell(self, topic: Topic, far: str, changes: Changes) -> None:
        link = self._links.get(far)
        if link is None:
            return
        for each in changes.said:
            link.send(Said(topic, each))
        for each in changes.taken_back:
            link.send(TakenBack(topic, each))

    def _may_be_met(self, far: str, wanted: Filter) -> bool:
        """Whether a neighbour may have such events: no advertisement of it is surely another."""
        if not self.advertised:
            return True
        offered = self._offered.said_by(far)
        return not all(self._covering.are_apart(each, wanted) for each in offered)
