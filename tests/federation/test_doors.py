"""Callers of a gateway over HTTP that are slow, many, large or silent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.federation.adapters.test_http import EVENT, gateway, hook_in, run, store
from tests.federation.simulation import World
from tests.servers.programs import free_port

aiohttp = pytest.importorskip("aiohttp")

WISH = {"at": "office", "where": "speed > 50"}
TYPED = {"Content-Type": "application/cloudevents+json"}


@contextlib.asynccontextmanager
async def hooks(**options: Any) -> Any:
    """A gateway that is posted to; out go its port and what has arrived."""
    world, port = World(), free_port()
    async with gateway([{**hook_in(port), **options}, store(world, "office")], WISH):
        yield port, lambda: world.arrived("office")


async def post(port: int, identity: str = "1", **headers: str) -> int:
    body = json.dumps({**EVENT, "id": identity})
    async with (
        aiohttp.ClientSession() as client,
        client.post(
            f"http://127.0.0.1:{port}/in", data=body, headers={**TYPED, **headers}
        ) as answer,
    ):
        return int(answer.status)


async def is_cut_off(reader: asyncio.StreamReader, seconds: float = 10.0) -> bool:
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(seconds):
            await reader.read()
            return True
    return False


def test_a_caller_that_does_not_ask_is_cut_off(limit: Callable[..., None]) -> None:
    limit(seconds_to_ask=0.3)

    async def story() -> None:
        async with hooks() as (port, arrived):
            silent, kept = await asyncio.open_connection("127.0.0.1", port)
            slow, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /in HTTP/1.1\r\nHost: x\r\n")
            assert await is_cut_off(silent)
            assert await is_cut_off(slow)
            assert await post(port) == 204
            assert arrived() == ["1"]
            kept.close()
            writer.close()

    run(story)


def test_a_body_that_trickles_is_given_up(limit: Callable[..., None]) -> None:
    limit(seconds_for_a_body=0.3)

    async def story() -> None:
        async with hooks() as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            answer = await reader.readuntil(b"\r\n")
            assert b"408" in answer
            writer.close()
            assert await post(port) == 204

    run(story)


def test_bodies_have_a_bound_together(limit: Callable[..., None]) -> None:
    limit(bodies=100_000)

    async def story() -> None:
        async with hooks() as (port, _):
            callers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            for _, writer in callers:
                writer.write(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n")
                writer.write(b" " * 40_000)
            answered = 0
            for reader, _ in callers:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        assert b"503" in await reader.readuntil(b"\r\n")
                        answered += 1
            assert answered == 2
            for _, writer in callers:
                writer.close()
            async with asyncio.timeout(5):
                while await post(port) != 204:
                    await asyncio.sleep(0.05)

    run(story)


def test_one_body_has_a_bound(limit: Callable[..., None]) -> None:
    limit(largest_body=1_000)

    async def story() -> None:
        async with hooks() as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n")
            writer.write(b" " * 5_000)
            assert b"413" in await reader.readuntil(b"\r\n")
            writer.close()

    run(story)


def test_there_is_room_for_so_many_callers(limit: Callable[..., None]) -> None:
    limit(connections=5)

    async def story() -> None:
        async with hooks() as (port, _):
            callers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            await asyncio.sleep(0.1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await is_cut_off(reader, 2) or reader.at_eof() or reader.exception()
            for _, each in callers:
                each.close()
            writer.close()

    run(story)


def test_bytes_that_are_no_text_are_refused_without_a_word_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with hooks(admit="secret") as (port, arrived):
            for authorization, body, path in (
                (b"Bearer \xff\xfe", b"{}", b"in"),
                (b"Bearer secret", b"\xff\xfe", b"ensue.control.hooks"),
                (b"Bearer secret", b"\xff\xfe", b"in"),
                (b"Bearer secret", b"[" * 100_000, b"in"),
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"POST /%s HTTP/1.1\r\nHost: x\r\n" % path)
                writer.write(b"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                    authorization, len(body), body
                ))  # fmt: skip
                answer = await reader.readuntil(b"\r\n")
                assert b" 40" in answer, answer
                writer.close()
            assert await post(port, Authorization="Bearer secret") == 204
            assert arrived() == ["1"]

    with caplog.at_level(logging.WARNING):
        run(story)
    assert not caplog.records


def test_a_control_message_that_is_no_text_does_not_end_a_socket() -> None:
    async def story() -> None:
        async with hooks() as (port, _), aiohttp.ClientSession() as client:
            target = f"http://127.0.0.1:{port}/ensue.control.hooks"
            async with client.ws_connect(target) as one, client.ws_connect(target) as other:
                await one.send_bytes(b"\xff\xfe")
                await one.send_str("hello")
                async with asyncio.timeout(5):
                    while (await other.receive()).data != "hello":
                        pass

    run(story)


def test_a_reader_that_has_stopped_is_cut_off_and_holds_nobody_up(
    limit: Callable[..., None],
) -> None:
    limit(seconds_to_read=0.3)

    async def story() -> None:
        world, port = World(), free_port()
        hook = {**hook_in(port), "address": "out"}
        wish = {"at": "hooks"}
        async with (
            gateway([hook, store(world, "cars")], wish),
            aiohttp.ClientSession() as client,
            client.ws_connect(f"http://127.0.0.1:{port}/out") as reading,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET /out HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            for number in range(60):
                world.publish("cars", number=number, text="x" * 200_000)
            async with asyncio.timeout(30):
                for number in range(60):
                    given = json.loads((await reading.receive()).data)
                    assert given["data"]["number"] == number
            writer.close()

    run(story)


def test_a_message_too_large_for_a_socket_is_refused_and_counted(
    limit: Callable[..., None],
) -> None:
    limit(largest_on_a_socket=10_000)

    async def story() -> None:
        world, port = World(), free_port()
        hook = {**hook_in(port), "address": "out"}
        async with (
            gateway([hook, store(world, "cars")], {"at": "hooks"}) as made,
            aiohttp.ClientSession() as client,
            client.ws_connect(f"http://127.0.0.1:{port}/out") as reading,
        ):
            world.publish("cars", text="x" * 20_000)
            small = world.publish("cars", text="small")
            async with asyncio.timeout(10):
                assert json.loads((await reading.receive()).data)["id"] == small.id
            counts = {each["service"]: each for each in made.status()}
            assert counts["hooks"]["dropped"] == {"refused": 1}

    run(story)
