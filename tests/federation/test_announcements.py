"""Announcements: remembered, told to gateways that come later, and carried by services that can."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ensue.federation.adapters import Service
from ensue.federation.gateway import Gateway
from ensue.federation.requesting import send_request
from ensue.federation.routing import control
from tests.federation.conftest import StartServer

aiomqtt: Any = pytest.importorskip("aiomqtt")

_numbers = count(1)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


def memory_service(mark: str) -> dict[str, Any]:
    return {"name": f"s{mark}", "kind": "memory", "url": f"memory:{mark}"}


def tables(name: str, *services: dict[str, Any]) -> dict[str, Any]:
    return {"gateway": {"name": name, "settling": 0.1, "beat": 0.1}, "service": list(services)}


def mark() -> str:
    return f"announced{os.getpid()}x{next(_numbers)}"


def announce(where: str, *services: str, verb: Any = "announce") -> control.Request:
    return control.Request(control.new_id(), verb, "", services, where)


def filters(gateway: Gateway) -> list[tuple[str, str, bool]]:
    return [(each["service"], each["where"], each["carried"]) for each in gateway.announced()]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def test_an_announcement_stands_until_it_is_ended_and_over_a_restart(tmp_path: Path) -> None:
    place = mark()

    async def story() -> None:
        memory = tmp_path / "state.json"
        config = tables("g", memory_service(place))
        gateway = Gateway.from_config(config, memory=memory)
        await gateway.start()
        await gateway.request(announce("speed > 50", f"s{place}"))
        await gateway.request(announce("speed > 90", f"s{place}"))
        await gateway.stop()
        again = Gateway.from_config(config, memory=memory)
        await again.start()
        assert [each[1] for each in filters(again)] == ["speed > 50", "speed > 90"]
        await again.request(announce("speed > 50", f"s{place}", verb="unannounce"))
        assert [each[1] for each in filters(again)] == ["speed > 90"]
        await again.stop()

    run(story)


def test_a_gateway_that_comes_later_hears_what_stands() -> None:
    one, two = mark(), mark()

    async def story() -> None:
        first = Gateway.from_config(tables(f"a{one}", memory_service(one)))
        await first.start()
        await first.request(announce("speed > 50"))
        second = Gateway.from_config(tables(f"b{one}", memory_service(one), memory_service(two)))
        await second.start()
        await until(lambda: len(filters(second)) == 2)
        assert {each[0] for each in filters(second)} == {f"s{one}", f"s{two}"}
        await second.stop()
        await first.stop()

    run(story)


def test_the_answers_say_what_carries_it_and_what_stands(server: StartServer) -> None:
    """MQTT keeps it for clients that come later; Redis has no way to."""
    place = mark()
    cars = {
        "name": "cars", "kind": "mqtt", "url": server("mqtt").url, "address": place,
        "control": f"control/{place}",
    }  # fmt: skip
    office = {
        "name": "office", "kind": "redis-pubsub", "url": server("redis").url, "address": place,
        "control": f"control.{place}",
    }  # fmt: skip
    client = Service("cars", "mqtt", cars["url"], control=cars["control"], gateway=f"c{place}")

    async def story() -> None:
        gateway = Gateway.from_config(tables(place, cars, office))
        await gateway.start()
        (done,) = await send_request(client, announce("speed > 50"), 20)
        assert (done.services, done.carried) == (("cars", "office"), ("cars",))
        assert await retained(cars) == [{"where": "speed > 50"}]
        (listed,) = await send_request(client, announce("TRUE", verb="announced"), 20)
        assert [(each.service, each.carried) for each in listed.announced] == [
            ("cars", True),
            ("office", False),
        ]
        await send_request(client, announce("speed > 50", verb="unannounce"), 20)
        assert await retained(cars) == []
        assert filters(gateway) == []
        await gateway.stop()

    run(story)


async def retained(service: dict[str, Any]) -> list[Any]:
    """What a client that has just come is told of events to come."""
    host, _, port = service["url"].partition("://")[2].partition(":")
    found = []
    async with aiomqtt.Client(host, int(port)) as client:
        await client.subscribe(f"{service['control']}/announced/#")
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                async for message in client.messages:
                    found += [json.loads(message.payload)]
    return found


def test_more_announcements_than_a_gateway_remembers_are_refused() -> None:
    place = mark()

    async def story() -> None:
        gateway = Gateway.from_config(tables("g", memory_service(place)))
        await gateway.start()
        for number in range(1_000):
            await gateway.request(announce(f"n = {number}"))
        with pytest.raises(Exception, match="1,000 announcements stand, which is the most"):
            await gateway.request(announce("n = 1000"))
        await gateway.request(announce("n = 3"))
        await gateway.stop()

    run(story)
