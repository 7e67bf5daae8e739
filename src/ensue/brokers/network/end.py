"""The near end of a link to a broker of another process.

A broker gives it messages. Events get their position on the link's session, which keeps them until
they are acknowledged. Filters are remembered here, so that a new connection begins with all of
them. A filter too long to travel is replaced by one that holds always: the broker then gets more
than it has asked for, and filters itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from threading import Lock

from ensue.brokers.broker import Broker
from ensue.brokers.membership import OuterEnd
from ensue.brokers.messages import Message, Parted, Published, Said, TakenBack, Topic
from ensue.brokers.network.statements import Hearing
from ensue.channel.delivery.blocked import wait_each
from ensue.channel.links.messages import LONGEST_FILTER, Carried, FilterStatement, Spoken
from ensue.channel.links.tcp.session import Session
from ensue.subscriptions import Filter

EVERYTHING = "TRUE"


class End(OuterEnd):
    """`hearing` is what the other side has said. `identity` draws the number of an event."""

    def __init__(
        self, broker: Broker, far: str, session: Session, identity: Callable[[], int]
    ) -> None:
        self.far = far
        self.session = session
        self.hearing = Hearing()
        self._broker = broker
        self._identity = identity
        self._lock = Lock()
        self._has_begun = False
        # By text, since several long filters may have the one that holds always.
        self._said: dict[Spoken, set[Filter | None]] = {}

    @property
    def behind(self) -> Iterable[str]:
        return self.hearing.brokers

    def send(self, message: Message) -> None:
        match message:
            case Published(event):
                origin, to = self._broker.id, (self.session.neighbour or "",)
                carried = Carried(origin, self._identity(), 1, to, event)
                if blocked := self.session.send(carried):
                    self._broker.turns.afterwards(partial(wait_each, blocked))
                self.session.transmit()
            case Said(topic, filter_):
                self._say([(_spoken(topic, filter_), filter_)], [])
            case TakenBack(topic, filter_):
                self._say([], [(_spoken(topic, filter_), filter_)])
            case Parted():
                pass

    def tell_brokers(self, ids: set[str]) -> None:
        with self._lock:
            known = {each.text for each in self._said if each.topic == "broker"}
        self._say(
            [(Spoken("broker", each), None) for each in sorted(ids - known)],
            [(Spoken("broker", each), None) for each in sorted(known - ids)],
        )

    def tell_everything(self) -> None:
        """A connection stands: the other side has to know all that is said."""
        with self._lock:
            self._has_begun = True
            self._advertise(
                FilterStatement(self._broker.advertised, True, False, tuple(self._said), ())
            )

    def _say(
        self,
        said: list[tuple[Spoken, Filter | None]],
        taken_back: list[tuple[Spoken, Filter | None]],
    ) -> None:
        with self._lock:
            new, gone = [], []
            for spoken, by in said:
                if spoken not in self._said:
                    new.append(spoken)
                self._said.setdefault(spoken, set()).add(by)
            for spoken, by in taken_back:
                holders = self._said.get(spoken, set())
                holders.discard(by)
                if not holders and self._said.pop(spoken, None) is not None:
                    gone.append(spoken)
            if self._has_begun and (new or gone):
                changes = FilterStatement(
                    self._broker.advertised, False, False, tuple(new), tuple(gone)
                )
                self._advertise(changes)

    def _advertise(self, statement: FilterStatement) -> None:
        self.session.advertise(statement)
        self.session.transmit()


@lru_cache(4_096)
def _spoken(topic: Topic, filter_: Filter) -> Spoken:
    text = str(filter_)
    return Spoken(topic, text if len(text) <= LONGEST_FILTER else EVERYTHING)
