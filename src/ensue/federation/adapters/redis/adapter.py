"""The connection to Redis, and control messages, which go over pub/sub for every kind.

`streams` has the kind that keeps events, `pubsub` the one that does not.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from ensue.errors import UsageError
from ensue.federation.adapters.base import (
    Adapter,
    Incoming,
    ProtectedOptions,
    Service,
    Start,
    broken,
    driver,
    incoming_of,
)
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.ending import end
from ensue.federation.messages.bindings import STRUCTURED_TYPE, Message, read_structured

redis: Any = driver("redis.asyncio", "redis")
exceptions: Any = driver("redis.exceptions", "redis")

_SECONDS_TO_CONNECT = 10
_SECONDS_TO_ANSWER = 30
"""An answer may be of many megabytes, and the gateway busy with those before it."""
_SCHEMES = ("redis", "rediss", "unix")


class RedisOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`start`: where a gateway begins that has never read; `longest`: entries that are kept."""

    start: Start = "latest"
    longest: Annotated[int, msgspec.Meta(ge=1)] | None = None


class RedisAdapter(Adapter):
    """What both kinds share: connections, and control messages over pub/sub."""

    options_type = RedisOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: RedisOptions = service.options or RedisOptions()
        self._client: Any = None
        self._subscriber: Any = None
        self._readers: list[asyncio.Task[None]] = []
        self._control = ControlInbox()
        self._events: Inbox[Incoming] = Inbox()

    async def connect(self) -> None:
        service, options = self.service, self._options
        scheme = urlsplit(service.url).scheme
        if scheme not in _SCHEMES:
            raise UsageError(
                f"service `{service.name}`: its address begins with `{scheme}://`: give"
                " `redis://HOST:PORT/DATABASE`, or `rediss://...` for TLS"
            )
        given: dict[str, Any] = {
            "username": options.user,
            "password": options.password,
            "socket_connect_timeout": _SECONDS_TO_CONNECT,
            "socket_timeout": _SECONDS_TO_ANSWER,
        }
        if scheme == "rediss":
            given |= {
                "ssl_ca_certs": options.authority,
                "ssl_certfile": options.certificate,
                "ssl_keyfile": options.key,
                "ssl_cert_reqs": "required" if options.verify else "none",
                "ssl_check_hostname": options.verify,
            }
        self._control, self._events = ControlInbox(), Inbox()
        try:
            known = {name: value for name, value in given.items() if value is not None}
            self._client = redis.Redis.from_url(service.url, **known)
            await self._client.ping()
            self._subscriber = self._client.pubsub()
            await self._subscribe(self._subscriber, service.control_address)
        except (exceptions.RedisError, OSError) as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None
        except ValueError as error:
            raise UsageError(f"service `{service.name}`: {error}") from None
        self._readers = [asyncio.create_task(self._read(self._subscriber))]

    async def tell(self, message: bytes) -> None:
        await self._do(
            "cannot publish", self._client.publish(self.service.control_address, message)
        )

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        readers, subscriber, client = self._readers, self._subscriber, self._client
        self._readers, self._subscriber, self._client = [], None, None
        await end(readers)
        for each in (subscriber, client):
            if each is not None:
                with contextlib.suppress(exceptions.RedisError, OSError):
                    await each.aclose()

    async def _subscribe(self, subscriber: Any, *channels: str) -> None:
        """Subscribe, and return once the server has said that each subscription is in force.

        The driver sends the command and goes on; a publication over another connection could be
        read before it.
        """
        await subscriber.subscribe(*channels)
        waiting = len(channels)
        while waiting:
            message = await subscriber.get_message(timeout=_SECONDS_TO_CONNECT)
            if message is None:
                raise exceptions.TimeoutError("the server does not answer")
            if message["type"] == "subscribe":
                waiting -= 1
            else:
                await self._take(message)

    async def _read(self, subscriber: Any) -> None:
        """Messages of pub/sub, for as long as the connection stands."""
        try:
            while True:
                message = await subscriber.get_message(ignore_subscribe_messages=True, timeout=None)
                if message is not None:
                    await self._take(message)
        except (exceptions.RedisError, OSError) as error:
            lost = broken(self.service, "the connection is lost", error)
            self._control.fail(lost)
            self._events.fail(lost)

    async def _take(self, message: Any) -> None:
        channel = message["channel"].decode()
        if channel == self.service.control_address:
            self._control.put(message["data"])
        else:
            in_transit = channel == self.service.transit_address
            await self._events.put_when_free(incoming(message["data"], None, in_transit))

    async def _do(self, doing: str, call: Any) -> Any:
        try:
            return await call
        except (exceptions.RedisError, OSError) as error:
            raise broken(self.service, doing, error) from None


def incoming(body: bytes | None, token: Any, in_transit: bool) -> Incoming:
    """A message from the JSON of an entry."""
    if body is None:
        return Incoming(None, token, in_transit, ("the entry has no field `event`",))
    message = Message(body, STRUCTURED_TYPE, {})
    return incoming_of(lambda each: read_structured(each.body), message, token, in_transit)
