"""Webhooks in and out, and WebSockets, between a gateway and clients that know nothing of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ensue.federation.gateway import Gateway
from tests.federation.simulation import World
from tests.servers.programs import free_port

aiohttp = pytest.importorskip("aiohttp")
web = pytest.importorskip("aiohttp.web")

EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "car",
    "type": "Speed",
    "time": "2026-01-01T00:00:00Z",
    "data": {"speed": 60},
}


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(limited())


@asynccontextmanager
async def gateway(services: list[dict[str, Any]], *wishes: dict[str, Any]) -> Any:
    tables = {
        "gateway": {"name": "g", "settling": 0.05},
        "service": services,
        "subscribe": list(wishes),
    }
    made = Gateway.from_config(tables)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def hook_in(port: int) -> dict[str, Any]:
    return {"name": "hooks", "kind": "http", "listen": f"127.0.0.1:{port}", "address": "in"}


def store(world: World, name: str) -> dict[str, Any]:
    return {"name": name, "kind": "memory", "url": f"memory:{world._run}/{name}"}


def test_a_posted_event_is_answered_when_it_has_arrived() -> None:
    async def story() -> None:
        world, port = World(), free_port()
        wish = {"at": "office", "where": "speed > 50"}
        async with (
            gateway([hook_in(port), store(world, "office")], wish),
            aiohttp.ClientSession() as client,
        ):
            target = f"http://127.0.0.1:{port}/in"
            typed = {"Content-Type": "application/cloudevents+json"}
            async with client.post(target, data=json.dumps(EVENT), headers=typed) as answer:
                assert answer.status == 204
            assert world.arrived("office") == ["1"]
            binary = {
                "ce-specversion": "1.0",
                "ce-id": "2",
                "ce-source": "car",
                "ce-type": "Speed",
                "Content-Type": "application/json",
            }
            async with client.post(target, data='{"speed": 70}', headers=binary) as answer:
                assert answer.status == 204
            batch = json.dumps([EVENT | {"id": "3"}, EVENT | {"id": "4"}])
            typed = {"Content-Type": "application/cloudevents-batch+json"}
            async with client.post(target, data=batch, headers=typed) as answer:
                assert answer.status == 204

            assert world.arrived("office") == ["1", "2", "3", "4"]

    run(story)


def test_what_is_no_event_is_told_to_who_posts_it() -> None:
    async def story() -> None:
        world, port = World(), free_port()
        async with (
            gateway([hook_in(port), store(world, "office")], {"at": "office"}),
            aiohttp.ClientSession() as client,
        ):
            target = f"http://127.0.0.1:{port}/in"
            async with client.post(target, data='{"id": ""}') as answer:
                assert answer.status == 400
                assert len((await answer.json())["problems"]) == 3

    run(story)


@pytest.mark.parametrize("encoding", ["structured", "binary", "batch"])
def test_events_are_posted_to_a_webhook_until_it_takes_them(encoding: str) -> None:
    async def story() -> None:
        world, port = World(), free_port()
        taken: list[str] = []
        refusals = [503, 429]

        async def hook(request: Any) -> Any:
            body = json.loads(await request.read())
            if refusals:
                return web.Response(status=refusals.pop())
            if encoding == "binary":
                taken.append(request.headers["ce-id"])
                assert "speed" in body
            else:
                taken.extend(each["id"] for each in (body if encoding == "batch" else [body]))
            return web.Response(status=202)

        application = web.Application()
        application.router.add_post("/some/hook", hook)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        target: dict[str, Any] = {
            "name": "hook",
            "kind": "http",
            "url": f"http://127.0.0.1:{port}/some/hook",
        }
        target |= {"batch": True} if encoding == "batch" else {"encoding": encoding}
        async with gateway([store(world, "cars"), target], {"at": "hook"}):
            sent = [world.publish("cars", speed=speed).id for speed in range(20)]
            await world.until(lambda: len(taken) >= 20)
        await runner.cleanup()

        assert taken == sent

    run(story)


def test_an_event_that_a_webhook_refuses_is_dropped_and_counted() -> None:
    async def story() -> None:
        world, port = World(), free_port()
        taken: list[str] = []

        async def hook(request: Any) -> Any:
            body = json.loads(await request.read())
            if body["data"]["speed"] == 3:
                return web.Response(status=422)
            taken.append(body["id"])
            return web.Response(status=204)

        application = web.Application()
        application.router.add_post("/hook", hook)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        target = {"name": "hook", "kind": "http", "url": f"http://127.0.0.1:{port}/hook"}
        async with gateway([store(world, "cars"), target], {"at": "hook"}) as made:
            sent = [world.publish("cars", speed=speed).id for speed in range(6)]
            await world.until(lambda: len(taken) >= 5)
            await asyncio.sleep(0.2)
            status = made.status()[1]
        await runner.cleanup()

        assert taken == [*sent[:3], *sent[4:]]
        assert status["dropped"] == {"refused": 1}

    run(story)


def test_websockets_send_events_and_get_those_that_are_published() -> None:
    async def story() -> None:
        world, port = World(), free_port()
        services = [hook_in(port), store(world, "office")]
        wishes = ({"at": "office", "from": ["hooks"]}, {"at": "hooks", "from": ["office"]})
        async with (
            gateway(services, *wishes),
            aiohttp.ClientSession() as client,
            client.ws_connect(f"http://127.0.0.1:{port}/in") as socket,
        ):
            await socket.send_str(json.dumps(EVENT))
            await world.until(lambda: world.arrived("office") == ["1"])
            sent = world.publish("office", note="slow down")
            got = json.loads(await socket.receive_str(timeout=10))

            assert world.arrived("office") == ["1"]
            assert got["id"] == sent.id
            assert got["data"] == {"note": "slow down"}

    run(story)


def test_two_gateways_federate_over_http() -> None:
    async def story() -> None:
        world, port = World(), free_port()
        near = {
            "name": "web",
            "kind": "http",
            "listen": f"127.0.0.1:{port}",
            "address": "events",
        }
        far = {
            "name": "web",
            "kind": "http",
            "url": f"http://127.0.0.1:{port}",
            "address": "events",
        }
        async with gateway([near, store(world, "office")], {"at": "office", "where": "speed > 5"}):
            tables = {
                "gateway": {"name": "h", "settling": 0.2},
                "service": [far, store(world, "cars")],
            }
            other = Gateway.from_config(tables)
            await other.start()
            await asyncio.sleep(0.3)
            sent = [world.publish("cars", speed=speed).id for speed in range(10)]
            await world.until(lambda: len(world.arrived("office")) >= 4)
            await other.stop()

        assert world.arrived("office") == sent[6:]

    run(story)
