"""Events to and from Zenoh.

`address` is a key. Peers meet at the place that `url` names (`zenoh://HOST:PORT`, `zenohs://` over
TLS): the first peer listens there, the others connect. So every peer is server and client, and its
certificate is for both. Nothing is kept for a peer that is away. The library works in threads,
which hand over to the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import SplitResult, unquote, urlsplit

from ensue.errors import UsageError
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    Service,
    broken,
    driver,
    incoming_of,
)
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.messages.bindings import Message, NameBinding
from ensue.subscriptions import Filter

zenoh: Any = driver("zenoh", "zenoh")

BINDING = NameBinding("ce-")
_SECONDS_TO_SPREAD = 0.3
_SECONDS_TO_ANSWER = 5.0
_TRANSPORTS = {"zenoh": "tcp", "zenohs": "tls"}


class ZenohOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`connect` and `listen` are endpoints in Zenoh's own words, such as `tcp/10.0.0.1:7447`.

    `users` is a file of lines `user:password`: a peer that connects must be one of them.
    """

    connect: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    scouting: bool = False
    users: str | None = None


class ZenohAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="zenoh",
        driver="eclipse-zenoh",
        incoming="at most once",
        outgoing="at most once",
        survives_restart=False,
        recalls=False,
        pushes_down="the key of `address`",
        protection=("TLS", "user and password", "client certificate"),
    )
    options_type = ZenohOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: ZenohOptions = service.options or ZenohOptions()
        self._session: Any = None
        self._subscribers: list[Any] = []
        self._answering: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events, self._control = Inbox(), ControlInbox()
        self._subscribers = []
        try:
            self._session = await asyncio.to_thread(zenoh.open, self._config())
            heard = self._session.declare_subscriber(
                _key(self.service.control_address), lambda sample: self._hand(self._hear, sample)
            )
            self._subscribers.append(heard)
            self._answering = self._session.declare_queryable(self._question, _answer)
            await self._spread()
        except zenoh.ZError as error:
            await self.close()
            raise broken(self.service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if len(self._subscribers) > 1:
            return
        for address in (self.service.address, self.service.transit_address):
            in_transit = address == self.service.transit_address

            def receive(sample: Any, in_transit: bool = in_transit) -> None:
                self._hand(self._receive, sample, in_transit)

            subscriber = self._session.declare_subscriber(_key(address), receive)
            self._subscribers.append(subscriber)
        await self._spread()

    async def unlisten(self) -> None:
        while len(self._subscribers) > 1:
            self._subscribers.pop().undeclare()
        await self._spread()
        self._events = Inbox()

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        service = self.service
        for each in outgoing:
            message = BINDING.write(each.event, service.encoding)
            address = service.transit_address if each.in_transit else service.address
            attachment = json.dumps({**message.headers, "content-type": message.content_type})
            self._put(address, message.body, attachment)
        await asyncio.sleep(0)

    async def tell(self, message: bytes) -> None:
        self._put(self.service.control_address, message, "")

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(zenoh.ZError):
                await asyncio.to_thread(session.close)

    async def _spread(self) -> None:
        """Wait until peers know what was declared here.

        They learn it without telling so. Other gateways answer a question, which they read behind
        it; clients that do not are given a moment.
        """
        try:
            await asyncio.to_thread(self._ask)
        except zenoh.ZError as error:
            raise broken(self.service, "cannot subscribe", error) from None
        await asyncio.sleep(_SECONDS_TO_SPREAD)

    def _ask(self) -> None:
        question = self._session.get(
            self._question, target=zenoh.QueryTarget.ALL, timeout=_SECONDS_TO_ANSWER
        )
        for _ in question:
            pass

    @property
    def _question(self) -> str:
        return f"{_key(self.service.control_address)}/known"

    def _put(self, address: str, body: bytes, attachment: str) -> None:
        try:
            self._session.put(
                _key(address),
                body,
                attachment=attachment.encode() or None,
                congestion_control=zenoh.CongestionControl.BLOCK,
            )
        except zenoh.ZError as error:
            raise broken(self.service, "cannot publish", error) from None

    def _config(self) -> Any:
        place = urlsplit(self.service.url)
        if place.scheme not in _TRANSPORTS:
            raise UsageError(
                f"service `{self.service.name}`: its address is to begin with `zenoh://`, or with"
                " `zenohs://` for TLS"
            )
        transport = _TRANSPORTS[place.scheme]
        meeting = place.netloc.rpartition("@")[2]
        connect, listen = list(self._options.connect), list(self._options.listen)
        if meeting:
            connect.append(f"{transport}/{meeting}")
            listen = listen or [f"{transport}/{meeting}", f"{transport}/127.0.0.1:0"]
        config = zenoh.Config()
        settings: dict[str, Any] = {
            "mode": "peer",
            "connect/endpoints": connect,
            "listen/endpoints": listen or [f"{transport}/127.0.0.1:0"],
            "listen/exit_on_failure": False,
            "connect/exit_on_failure": False,
            "connect/timeout_ms": 1000,
            "scouting/multicast/enabled": self._options.scouting,
            "scouting/gossip/enabled": True,
        }
        for name, value in (settings | self._protection(place)).items():
            config.insert_json5(name, json.dumps(value))
        return config

    def _protection(self, place: SplitResult) -> dict[str, Any]:
        """Certificates and credentials, in the words of Zenoh."""
        options, found = self._options, {}
        if place.scheme == "zenohs":
            if options.certificate is None or options.key is None or options.authority is None:
                raise UsageError(
                    f"service `{self.service.name}`: a peer over TLS needs `authority`,"
                    " `certificate` and `key`: others connect to it as it does to them"
                )
            found = {
                "root_ca_certificate": options.authority,
                "listen_certificate": options.certificate,
                "listen_private_key": options.key,
                "connect_certificate": options.certificate,
                "connect_private_key": options.key,
                "enable_mtls": True,
                "verify_name_on_connect": options.verify,
            }
        user = options.user or (place.username and unquote(place.username))
        password = options.password or (place.password and unquote(place.password))
        known = {"user": user, "password": password, "dictionary_file": options.users}
        return {f"transport/link/tls/{name}": value for name, value in found.items()} | {
            f"transport/auth/usrpwd/{name}": value for name, value in known.items() if value
        }

    def _hand(self, take: Any, *given: Any) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(take, *given)

    def _hear(self, sample: Any) -> None:
        self._control.put(bytes(sample.payload))

    def _receive(self, sample: Any, in_transit: bool) -> None:
        headers = attached_headers(sample.attachment)
        content_type = headers.pop("content-type", "")
        message = Message(bytes(sample.payload), content_type, headers)
        incoming = incoming_of(BINDING.read, message, None, in_transit)
        self._events.put_or_fail(incoming, self.service.name)


def _answer(query: Any) -> None:
    with query:
        query.reply(query.key_expr, b"")


def attached_headers(attachment: Any) -> dict[str, str]:
    """The headers in an attachment; none in one that is not of a gateway."""
    try:
        found = {} if attachment is None else json.loads(bytes(attachment))
    except (ValueError, RecursionError):
        return {}
    return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _key(address: str) -> str:
    return address.strip("/")
