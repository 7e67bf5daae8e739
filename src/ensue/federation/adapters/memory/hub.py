"""The service itself: a log of events, and how far each gateway has acknowledged it.

Hubs are found by name. Faults are made on purpose: `break_off` ends every connection, `is_down`
refuses new ones, and `lose_next` lets a publication happen without its confirmation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.errors import LinkError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.federation.adapters.base import Incoming, Outgoing
from ensue.federation.adapters.inbox import Inbox


@dataclass(eq=False)
class HubConnection:
    """One gateway's side: its place in the log, and what is on the way to it."""

    gateway: str
    events: Inbox[Incoming] = field(default_factory=lambda: Inbox[Incoming](1 << 30))
    control: Inbox[bytes] = field(default_factory=lambda: Inbox[bytes](1 << 30))
    is_listening: bool = False


@dataclass
class Hub:
    name: str
    log: list[tuple[bytes, bool]] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    connections: list[HubConnection] = field(default_factory=list)
    is_down: bool = False
    unconfirmed: int = 0

    @property
    def events(self) -> list[Event]:
        """What clients of the service have seen, in order."""
        return [decode(body) for body, in_transit in self.log if not in_transit]

    def publish(self, outgoing: Outgoing) -> None:
        """Publish as a client of the service does."""
        self.log.append((encode(outgoing.event), outgoing.in_transit))
        for connection in self.connections:
            if connection.is_listening:
                self._deliver(connection, len(self.log) - 1)

    def listen(self, connection: HubConnection) -> None:
        if connection.is_listening:
            return
        connection.is_listening = True
        begin = self.acknowledged.setdefault(connection.gateway, len(self.log))
        for place in range(begin, len(self.log)):
            self._deliver(connection, place)

    def tell(self, message: bytes) -> None:
        for connection in self.connections:
            connection.control.put(message)

    def break_off(self) -> None:
        for connection in self.connections:
            error = LinkError(f"service `{self.name}`: the connection was ended")
            connection.events.fail(error)
            connection.control.fail(error)
        self.connections.clear()

    def lose_next(self, count: int) -> None:
        """After so many more events, break off in the middle of a publication."""
        self.unconfirmed = count

    def _deliver(self, connection: HubConnection, place: int) -> None:
        body, in_transit = self.log[place]
        connection.events.put(Incoming(decode(body), place, in_transit))


_hubs: dict[str, Hub] = {}


def hub(name: str) -> Hub:
    """The service of a name, made when it is first asked for."""
    return _hubs.setdefault(name, Hub(name))
