"""Control events as the page has them: a client without any code of Ensue sends them."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ensue.federation.adapters.memory.hub import hub
from ensue.federation.gateway import Gateway
from ensue.federation.routing import control
from ensue.federation.routing.control_schema import control_schema
from tests.federation.conftest import StartServer

jsonschema: Any = pytest.importorskip("jsonschema")
redis: Any = pytest.importorskip("redis.asyncio")

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "control-events.md").read_text("utf-8")


def shown(verb: str) -> dict[str, Any]:
    """An example of the page."""
    for found in re.findall(r"```text\n(\{.*?\})\n```", PAGE, re.DOTALL):
        example: dict[str, Any] = json.loads(found)
        if example["type"] == f"ensue.control.{verb}":
            return example
    raise AssertionError(verb)


def test_the_schema_is_that_of_what_gateways_read() -> None:
    written = json.loads((DOCS / "control-events.schema.json").read_text("utf-8"))

    assert written == json.loads(json.dumps(control_schema()))


@pytest.mark.parametrize("verb", ["subscribe", "done"])
def test_the_examples_are_read_by_gateways_and_fit_the_schema(verb: str) -> None:
    jsonschema.validate(shown(verb), control_schema())

    assert control.read(json.dumps(shown(verb)).encode())


@pytest.mark.parametrize(
    "changes",
    [
        {"verb": "shutdown"},
        {"id": ""},
        {"services": "cars"},
        {"hops": -1},
        {"where": 3},
    ],
)
def test_what_gateways_refuse_does_not_fit_the_schema(changes: dict[str, Any]) -> None:
    event = shown("subscribe")
    event["data"] |= changes

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(event, control_schema())


def test_a_client_without_our_code_subscribes_and_hears_that_it_is_done(
    server: StartServer,
) -> None:
    mark = f"control{os.getpid()}"
    url = server("redis").url
    tables = {
        "gateway": {"name": mark, "settling": 0.1},
        "service": [
            {"name": "cars", "kind": "redis-pubsub", "url": url, "address": f"{mark}.events",
             "control": f"{mark}.control"},
            {"name": "office", "kind": "memory", "url": f"memory:{mark}"},
        ],
    }  # fmt: skip

    async def story() -> None:
        gateway = Gateway.from_config(tables)
        await gateway.start()
        client = redis.Redis.from_url(url)
        hearing = client.pubsub()
        await hearing.subscribe(f"{mark}.control")
        request = shown("subscribe")
        try:
            await client.publish(f"{mark}.control", json.dumps(request))
            async with asyncio.timeout(30):
                answer = await _answer(hearing, request["data"]["id"])
            for number in range(5):
                event = {
                    "specversion": "1.0",
                    "id": str(number),
                    "source": "car",
                    "type": "Speed",
                    "time": "2026-03-01T10:00:00Z",
                    "data": {"speed": 15 * number},
                }
                await client.publish(f"{mark}.events", json.dumps(event))
            async with asyncio.timeout(30):
                while len(hub(mark).events) < 2:
                    await asyncio.sleep(0.05)
        finally:
            await hearing.aclose()
            await client.aclose()
            await gateway.stop()
        jsonschema.validate(answer, control_schema())
        assert answer["type"] == "ensue.control.done"
        assert answer["data"]["services"] == ["office"]
        assert [each.id for each in hub(mark).events] == ["3", "4"]

    asyncio.run(story())


async def _answer(hearing: Any, request: str) -> dict[str, Any]:
    async for message in hearing.listen():
        if message["type"] == "message":
            event: dict[str, Any] = json.loads(message["data"])
            if event["data"].get("request") == request:
                return event
    raise AssertionError
