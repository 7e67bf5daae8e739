"""Models of event services: what a gateway may count on from each kind, and nothing more.

A service is a log, and for every gateway a session that knows what was handed out and what was
acknowledged. Everything takes a while, each kind in its own way: what was not acknowledged comes
again at once or late, a killed server may have forgotten the latest acknowledgements, and a
publication may happen without its confirmation.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters.base import Adapter, Capabilities, Incoming, Outgoing, Service
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.messages.attributes import identity_of
from ensue.subscriptions import Filter

_ENDLESS = 1 << 30


@dataclass(frozen=True)
class ModelKind:
    """How a kind of service behaves. Times are in seconds."""

    name: str
    recalls: int = 0
    """Of how many of its latest events a service can be asked."""
    comes_again_after: float = 0.0
    """When a new connection gets what an earlier one did not acknowledge."""
    window: int = _ENDLESS
    """Events that are handed out and not acknowledged yet."""
    refuses_known: bool = False
    """Whether an event is known by its identity, and not taken twice."""
    keeps_control: bool = False
    """Whether control messages wait for a gateway that is away, too."""
    forgets: float = 0.0
    """The latest acknowledgements that a killed server does not remember."""


KINDS = {
    each.name: each
    for each in (
        ModelKind("mqtt", window=200, keeps_control=True),
        ModelKind("redis", recalls=40),
        ModelKind("nats-jetstream", 20, 5.0, refuses_known=True, forgets=1.0),
        ModelKind("kafka", recalls=40),
        ModelKind("amqp", window=200),
    )
}


@dataclass(eq=False)
class ModelSession:
    """What a service knows of one gateway."""

    next: int
    unacknowledged: dict[int, None] = field(default_factory=dict)
    acknowledged_lately: list[tuple[float, int]] = field(default_factory=list)
    control: list[bytes] = field(default_factory=list)


@dataclass(eq=False)
class ModelConnection:
    gateway: str
    events: Inbox[Incoming] = field(default_factory=lambda: Inbox[Incoming](_ENDLESS))
    control: Inbox[bytes] = field(default_factory=lambda: Inbox[bytes](_ENDLESS))
    is_alive: bool = True
    is_listening: bool = False
    outstanding: int = 0
    arrives: float = 0.0
    """When the latest message of the gateway arrives: none overtakes another."""
    answered: float = 0.0
    handed: int = 0
    """The place behind the last event that was handed out."""


class ModelService:
    def __init__(self, name: str, kind: ModelKind, draw: random.Random) -> None:
        self.name = name
        self.kind = kind
        self.log: list[tuple[Event, bool]] = []
        self.sessions: dict[str, ModelSession] = {}
        self.connections: list[ModelConnection] = []
        self.is_up = True
        self.unreachable: set[str] = set()
        """Gateways that are cut off from it."""
        self.slow: dict[str, float] = {}
        """The longest time that a message of a gateway takes."""
        self.draw = draw
        self._known: set[tuple[int, bool]] = set()

    @property
    def events(self) -> list[Event]:
        """What its clients have seen, in order."""
        return [event for event, in_transit in self.log if not in_transit]

    def publish(self, event: Event, in_transit: bool = False) -> None:
        if self.kind.refuses_known:
            known = identity_of(event), in_transit
            if known in self._known:
                return
            self._known.add(known)
        self.log.append((event, in_transit))
        for connection in self.connections:
            self.pump(connection)

    # --- what goes to gateways ----------------------------------------------------------------

    def pause(self, gateway: str) -> float:
        longest = self.slow.get(gateway, 0.01)
        return self.draw.uniform(0.0, longest)

    def later(self, connection: ModelConnection, work: Callable[[], None]) -> None:
        """Do it at the gateway's side, behind what was sent to it before."""
        loop = asyncio.get_running_loop()
        connection.answered = max(connection.answered, loop.time() + self.pause(connection.gateway))
        loop.call_at(connection.answered, work)

    def listen(self, connection: ModelConnection) -> None:
        if connection.is_listening:
            return
        connection.is_listening = True
        session = self.sessions.setdefault(connection.gateway, ModelSession(len(self.log)))
        again = sorted(session.unacknowledged)
        connection.handed = session.next
        if self.kind.comes_again_after:
            loop = asyncio.get_running_loop()
            for place in again:
                after = self.kind.comes_again_after + self.draw.uniform(0, 0.5)
                loop.call_later(after, self._again, connection, place)
        else:
            for place in again:
                self._hand_out(connection, place)
        self.pump(connection)

    def _again(self, connection: ModelConnection, place: int) -> None:
        if place in self.sessions[connection.gateway].unacknowledged:
            self._hand_out(connection, place)

    def pump(self, connection: ModelConnection) -> None:
        if not connection.is_alive or not connection.is_listening:
            return
        session = self.sessions[connection.gateway]
        while session.next < len(self.log) and connection.outstanding < self.kind.window:
            place, session.next = session.next, session.next + 1
            connection.handed = session.next
            session.unacknowledged[place] = None
            self._hand_out(connection, place)

    def _hand_out(self, connection: ModelConnection, place: int) -> None:
        event, in_transit = self.log[place]
        connection.outstanding += 1
        came = Incoming(event, place, in_transit)

        def arrive() -> None:
            if connection.is_alive:
                connection.events.put(came)

        self.later(connection, arrive)

    def acknowledge(self, connection: ModelConnection, places: Sequence[int]) -> None:
        session = self.sessions.get(connection.gateway)
        if session is None:
            return
        now = asyncio.get_running_loop().time()
        for place in places:
            if place in session.unacknowledged:
                del session.unacknowledged[place]
                session.acknowledged_lately.append((now, place))
            connection.outstanding -= 1
        self.pump(connection)

    def tell(self, message: bytes) -> None:
        for connection in self.connections:
            self._tell_one(connection, message)
        if self.kind.keeps_control:
            there = {each.gateway for each in self.connections}
            for gateway, session in self.sessions.items():
                if gateway not in there:
                    session.control.append(message)

    def _tell_one(self, connection: ModelConnection, message: bytes) -> None:
        def arrive() -> None:
            if connection.is_alive:
                connection.control.put(message)

        self.later(connection, arrive)

    # --- connections --------------------------------------------------------------------------

    def join(self, gateway: str) -> ModelConnection:
        for old in [each for each in self.connections if each.gateway == gateway]:
            self.part(old)
        connection = ModelConnection(gateway)
        self.connections.append(connection)
        if self.kind.keeps_control:
            session = self.sessions.setdefault(gateway, ModelSession(len(self.log)))
            kept, session.control = session.control, []
            for message in kept:
                self._tell_one(connection, message)
        return connection

    def part(self, connection: ModelConnection) -> None:
        connection.is_alive = False
        if connection in self.connections:
            self.connections.remove(connection)
        error = LinkError(f"service `{self.name}`: the connection was ended")
        connection.events.fail(error)
        connection.control.fail(error)

    def break_off(self, gateway: str | None = None) -> None:
        for each in list(self.connections):
            if gateway in (None, each.gateway):
                self.part(each)

    def go_down(self, roughly: bool) -> None:
        self.is_up = False
        self.break_off()
        since = asyncio.get_running_loop().time() - (self.kind.forgets if roughly else 0.0)
        for session in self.sessions.values():
            for when, place in session.acknowledged_lately:
                if when > since:
                    session.unacknowledged[place] = None
            session.acknowledged_lately.clear()


class ModelAdapter(Adapter):
    """The seam: what the gateway's side of a model does."""

    def __init__(self, service: Service, model: ModelService) -> None:
        super().__init__(service)
        self._model = model
        self._connection = ModelConnection(service.gateway)
        self._connection.is_alive = False
        kind = model.kind
        self.capabilities: Capabilities = Capabilities(  # type: ignore[misc]
            kind=kind.name,
            driver="none",
            incoming="at least once",
            outgoing="at least once",
            survives_restart=True,
            recalls=bool(kind.recalls),
            pushes_down="nothing",
            sees_ahead=True,
        )

    async def connect(self) -> None:
        model, gateway = self._model, self.service.gateway
        await asyncio.sleep(model.pause(gateway))
        if not model.is_up or gateway in model.unreachable:
            raise LinkError(f"service `{model.name}`: connection refused")
        self._connection = model.join(gateway)

    async def listen(self, wanted: Sequence[Filter]) -> None:
        del wanted
        await self._asked(lambda: self._model.listen(self._connection))

    async def unlisten(self) -> None:
        def forget() -> None:
            self._connection.is_listening = False
            self._model.sessions.pop(self.service.gateway, None)

        await self._asked(forget)

    async def receive(self) -> list[Incoming]:
        return await self._connection.events.take(50)

    async def acknowledge(self, tokens: Sequence[int]) -> None:
        await self._asked(lambda: self._model.acknowledge(self._connection, list(tokens)))

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        given = list(outgoing)
        for start in range(0, len(given), 20):
            part = given[start : start + 20]

            def arrive(part: list[Outgoing] = part) -> None:
                for each in part:
                    self._model.publish(each.event, each.in_transit)

            await self._asked(arrive)

    async def tell(self, message: bytes) -> None:
        await self._asked(lambda: self._model.tell(message))

    async def hear(self) -> list[bytes]:
        return await self._connection.control.take()

    async def close(self) -> None:
        self._model.part(self._connection)

    async def recall(self) -> list[Event]:
        return [event for event, _ in self._model.log[-self._model.kind.recalls :]]

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        """What is on its way or unread, up to a mark behind all that is at the service now."""
        end, connection = len(self._model.log), self._connection
        await asyncio.sleep(self._model.pause(self.service.gateway))
        if not connection.is_alive:
            raise LinkError(f"service `{self._model.name}`: the connection is lost")
        session = self._model.sessions[self.service.gateway]
        unread = {*session.unacknowledged, *range(session.next, max(end, session.next))}
        yield [self._model.log[place][0] for place in sorted(unread)]

    async def lag(self) -> int | None:
        session = self._model.sessions.get(self.service.gateway)
        return None if session is None else len(self._model.log) - session.next

    async def _asked(self, effect: Callable[[], None]) -> None:
        """Have the service do something, and wait for its answer; either way may be lost."""
        model, connection = self._model, self._connection
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        pause = model.pause(connection.gateway)
        connection.arrives = max(connection.arrives, loop.time() + pause)

        def answered() -> None:
            if answer.done():
                return
            if connection.is_alive:
                answer.set_result(None)
            else:
                answer.set_exception(LinkError(f"service `{model.name}`: the connection is lost"))

        def arrive() -> None:
            # What was on its way as a connection ended may have arrived, or not.
            if connection.is_alive:
                effect()
            loop.call_later(model.pause(connection.gateway), answered)

        loop.call_at(connection.arrives, arrive)
        await answer
