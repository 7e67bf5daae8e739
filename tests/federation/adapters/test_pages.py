"""The example on the page of each kind works as it stands there, against a real server.

Only the place of the server is another. A client of the service publishes an event that must leave
it, and gets one that comes from elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.adapters import KINDS, adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer
from tests.servers.programs import free_port

PAGES = Path(__file__).parents[3] / "docs" / "adapters"
SERVERS = {"mqtt": "mqtt", "nats": "nats", "amqp": "amqp", "redis": "redis", "proximity": "nats"}
EXAMPLES = sorted(
    path.stem for path in PAGES.glob("*.md") if path.stem not in ("http", "writing-one")
)
_numbers = count(1)


def example(page: str) -> dict[str, Any]:
    text = (PAGES / f"{page}.md").read_text("utf-8")
    found = re.search(r"```text\n(\[\[service\]\].*?)```", text, re.DOTALL)
    assert found is not None
    table: dict[str, Any] = tomllib.loads(found[1])["service"][0]
    return table


def tables(service: dict[str, Any], elsewhere: str, at: str) -> dict[str, Any]:
    return {
        "gateway": {"name": f"g{os.getpid()}x{next(_numbers)}", "settling": 0.1},
        "service": [service, {"name": "elsewhere", "kind": "memory", "url": f"memory:{elsewhere}"}],
        "subscribe": [{"at": at}],
    }


def client_of(table: dict[str, Any]) -> Adapter:
    known = ("name", "kind", "url", "address", "encoding")
    found = adapter_class(table["kind"])
    options = found.options_type(**{k: v for k, v in table.items() if k not in known})
    service = Service(
        table["name"], table["kind"], table["url"], table.get("address", "ensue.events"),
        gateway=f"client{os.getpid()}", options=options,
    )  # fmt: skip
    return found(service)


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


async def crosses_out(table: dict[str, Any], client: Adapter, mark: str) -> None:
    gateway = Gateway.from_config(tables(table, mark, "elsewhere"))
    await gateway.start()
    try:
        await client.publish([Outgoing(Event.of("T", time=1, id=mark, source="client"))])
        await until(lambda: [each.id for each in hub(mark).events] == [mark])
    finally:
        await gateway.stop()


async def crosses_in(table: dict[str, Any], client: Adapter, mark: str) -> None:
    gateway = Gateway.from_config(tables(table, mark, table["name"]))
    await client.listen([ANYTHING])
    await gateway.start()
    try:
        hub(mark).publish(Outgoing(Event.of("T", time=1, id=mark, source="elsewhere")))
        async with asyncio.timeout(30):
            seen: list[str] = []
            while mark not in seen:
                came = await client.receive()
                seen += [each.event.id for each in came if each.event is not None]
                await client.acknowledge([each.token for each in came])
    finally:
        await gateway.stop()


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_example_of_a_page_works(
    page: str, server: StartServer, request: pytest.FixtureRequest
) -> None:
    table = example(page)
    assert page == KINDS[table["kind"]][0]
    place = re.search(r"127\.0\.0\.1:\d+", table["url"])
    if page == "kafka":
        table["url"] = table["url"].replace(
            place[0] if place else "", request.getfixturevalue("kafka_servers")
        )
    elif place is not None:
        port = server(SERVERS[page]).port if page in SERVERS else free_port()
        table["url"] = table["url"].replace(place[0], f"127.0.0.1:{port}")

    async def story() -> None:
        for cross in (crosses_out, crosses_in):
            client = client_of(table)
            await client.connect()
            try:
                await cross(table, client, f"page{os.getpid()}x{next(_numbers)}")
                await client.unlisten()
            finally:
                await client.close()

    asyncio.run(story())


def test_the_example_of_the_page_of_http_works() -> None:
    web = pytest.importorskip("aiohttp.web")
    aiohttp = pytest.importorskip("aiohttp")
    table = example("http")
    mark = f"page{os.getpid()}x{next(_numbers)}"
    posted: list[str] = []

    async def hook(request: Any) -> Any:
        posted.append(json.loads(await request.text())["id"])
        return web.Response(status=204)

    async def story() -> None:
        application = web.Application()
        application.router.add_post("/hook", hook)
        runner = web.AppRunner(application)
        await runner.setup()
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        table["url"] = table["url"].replace("https://example.org", f"http://127.0.0.1:{port}")
        table["listen"] = f"127.0.0.1:{free_port()}"
        found = tables(table, mark, "elsewhere")
        found["subscribe"].append({"at": table["name"], "from": ["elsewhere"]})
        gateway = Gateway.from_config(found)
        await gateway.start()
        try:
            body = encode(Event.of("T", time=1, id="in", source="client"))
            headers = {"content-type": "application/cloudevents+json"}
            url = f"http://{table['listen']}/{table['address']}"
            async with (
                aiohttp.ClientSession() as session,
                session.post(url, data=body, headers=headers) as answer,
            ):
                assert answer.status == 204
            assert [each.id for each in hub(mark).events] == ["in"]
            hub(mark).publish(Outgoing(Event.of("T", time=1, id="out", source="elsewhere")))
            await until(lambda: posted == ["out"])
        finally:
            await gateway.stop()
            await runner.cleanup()

    asyncio.run(story())
