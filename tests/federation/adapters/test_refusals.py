"""Events that a server does not take, and subscriptions that it does not grant: told, never lost.

A server that may not be used for something often says so beside its other answers. An adapter that
listens for those alone takes a refused event for published, and a refused subscription for granted.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer
from tests.federation.simulation import World
from tests.servers.messaging import Broker, Mosquitto, Nats
from tests.servers.programs import MissingServerError

from .services import service_of

LARGEST = 100_000
_numbers = count(1)


class RestrictedMosquitto(Mosquitto):
    """Nobody may read `closed`, nor write there, and packets are small."""

    def prepare(self) -> None:
        super().prepare()
        allowed = [
            {"acltype": kind, "topic": topic, "allow": True}
            for kind in ("publishClientSend", "publishClientReceive", "subscribePattern")
            for topic in ("open/#", "ensue.control.s", "ensue.control.s.transit")
        ]
        rules = {
            "defaultACLAccess": dict.fromkeys(("publishClientSend", "subscribe"), False),
            "anonymousGroup": "all",
            "groups": [{"groupname": "all", "roles": [{"rolename": "open"}]}],
            "roles": [{"rolename": "open", "acls": allowed}],
        }
        place = self.folder / "rules.json"
        place.write_text(json.dumps(rules))
        place.chmod(0o644)
        with (self.folder / "mosquitto.conf").open("a") as settings:
            settings.write(f"plugin {_dynamic_security()}\nplugin_opt_config_file {place}\n")
            settings.write(f"max_packet_size {LARGEST}\n")


def _dynamic_security() -> Path:
    """The plugin of Mosquitto that refuses subscriptions; its files of rules alone grant all."""
    found = [*Path("/usr/lib").glob("*/mosquitto_dynamic_security.so")]
    if not found:
        raise MissingServerError("Mosquitto has no plugin `dynamic_security` here")
    return found[0]


class RestrictedNats(Nats):
    def prepare(self) -> None:
        rule = 'allow: ["open.>", "ensue.control.>", "_INBOX.>"]'
        (self.folder / "nats.conf").write_text(
            f"max_payload: {LARGEST}\n"
            f"authorization {{ users: [ {{ user: cars, password: s3cret, permissions: {{"
            f" publish: {{ {rule} }}, subscribe: {{ {rule} }} }} }} ] }}\n"
        )

    def command(self) -> Sequence[str]:
        return [*super().command(), "-c", str(self.folder / "nats.conf")]

    @property
    def url(self) -> str:
        return f"nats://cars:s3cret@127.0.0.1:{self.port}"


RESTRICTED: dict[str, type[Broker]] = {"mqtt": RestrictedMosquitto, "nats": RestrictedNats}


@contextmanager
def restricted(kind: str) -> Iterator[str]:
    server = RESTRICTED[kind]()
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def adapter(kind: str, url: str, address: str) -> Adapter:
    return adapter_class(kind)(Service("s", kind, url, address, gateway="g"))


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(limited())


@pytest.mark.parametrize("kind", RESTRICTED)
def test_an_event_that_may_not_be_published_is_not_taken_for_published(kind: str) -> None:
    async def story() -> None:
        with restricted(kind) as url:
            one = adapter(kind, url, "closed")
            await one.connect()
            with pytest.raises(LinkError, match=r"(?i)not authorized|permissions violation"):
                await one.publish([Outgoing(Event.of("T", time=1, id="1"))])
            await one.close()

    run(story)


@pytest.mark.parametrize("kind", RESTRICTED)
def test_a_subscription_that_is_not_granted_is_no_subscription(kind: str) -> None:
    async def story() -> None:
        with restricted(kind) as url:
            one = adapter(kind, url, "closed")
            await one.connect()
            with pytest.raises(LinkError, match=r"(?i)not authorized|permissions violation"):
                await one.listen([ANYTHING])
            await one.close()

    run(story)


def test_a_channel_of_redis_that_may_not_be_read_is_told(server: StartServer) -> None:
    redis = pytest.importorskip("redis.asyncio")
    url = server("redis").url

    async def story() -> None:
        async with redis.Redis.from_url(url) as client:
            rules = ("on", ">secret", "~*", "resetchannels", "&ensue.control.*", "+@all")
            await client.execute_command("ACL", "SETUSER", "narrow", *rules)
        one = adapter("redis-pubsub", url.replace("//", "//narrow:secret@"), "closed")
        await one.connect()
        with pytest.raises(LinkError, match=r"(?i)permission"):
            await one.listen([ANYTHING])
        await one.close()

    run(story)


@pytest.mark.parametrize("kind", ["mqtt", "nats", "nats-jetstream", "kafka"])
def test_one_event_too_large_keeps_no_other_from_coming_once(
    kind: str, server: StartServer, request: pytest.FixtureRequest
) -> None:
    """The events of its batch are sent one by one then, and none of them twice."""
    service = service_of(kind, server, request)
    url, address = service.url, service.address

    async def story(url: str) -> None:
        world = World()
        tables: dict[str, Any] = {
            "gateway": {"name": "g", "settling": 0.1},
            "service": [
                {"name": "cars", "kind": "memory", "url": f"memory:{world._run}/cars"},
                {"name": "s", "kind": kind, "url": url, "address": address},
            ],
            "subscribe": [{"at": "s", "from": ["cars"]}],
        }
        watching = adapter_class(kind)(
            Service("s", kind, url, address, gateway=f"w{os.getpid()}x{next(_numbers)}")
        )
        await watching.connect()
        await watching.listen([ANYTHING])
        gateway = Gateway.from_config(tables)
        await gateway.start()
        for number in range(21):
            text = "x" * (2_000_000 if number == 10 else 1)
            world.publish("cars", text=text)
        seen: list[str] = []

        def dropped() -> Any:
            return next(each["dropped"] for each in gateway.status() if each["service"] == "s")

        async with asyncio.timeout(40):
            while "21" not in seen:
                seen += [each.event.id for each in await watching.receive() if each.event]
        await world.until(lambda: dropped() != {})
        told = dropped()
        await gateway.stop()
        await watching.unlisten()
        await watching.close()

        assert told == {"refused": 1}
        assert sorted(seen, key=int) == [str(number) for number in range(1, 22) if number != 11]

    if kind == "mqtt":
        with restricted(kind) as small:
            address = "open/large"
            run(lambda: story(small))
    else:
        run(lambda: story(url))
