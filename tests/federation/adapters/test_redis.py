"""Redis streams where scripts are not allowed, and entries that are no text."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from urllib.parse import urlsplit

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from tests.federation.conftest import StartServer

redis = pytest.importorskip("redis.asyncio")
_numbers = count(1)


def adapter(url: str, address: str, gateway: str) -> Adapter:
    return adapter_class("redis")(Service("s", "redis", url, address, gateway=gateway))


async def taken(reader: Adapter, wanted: int) -> tuple[list[str], int]:
    """The ids of events that came, each once, and how many messages were none."""
    found: dict[str, None] = {}
    unreadable: set[object] = set()
    async with asyncio.timeout(20):
        while len(found) + len(unreadable) < wanted:
            for each in await reader.receive():
                if each.event is None:
                    unreadable.add(str(each.token))
                else:
                    found[each.event.id] = None
    return list(found), len(unreadable)


def test_a_user_who_may_run_no_scripts_reads_and_adds_entries_one_by_one(
    server: StartServer,
) -> None:
    url = server("redis").url
    place = urlsplit(url)
    address = f"scripts{os.getpid()}x{next(_numbers)}"

    async def story() -> None:
        async with redis.Redis.from_url(url) as client:
            rules = ("on", ">secret", "~*", "&*", "+@all", "-@scripting")
            await client.execute_command("ACL", "SETUSER", "plain", *rules)
        restricted = url.replace(place.netloc, f"plain:secret@{place.hostname}:{place.port}")
        one, other = adapter(restricted, address, "one"), adapter(restricted, address, "other")
        await one.connect()
        await other.connect()
        await other.listen([ANYTHING])
        for number in range(3):
            events = [Event.of("T", time=1, id=f"{number}-{each}") for each in range(20)]
            await one.publish([Outgoing(each) for each in events])
        ids, _ = await taken(other, 60)
        for each in (one, other):
            await each.close()

        assert ids == [f"{number}-{each}" for number in range(3) for each in range(20)]

    asyncio.run(story())


def test_an_entry_that_is_no_text_is_told_and_keeps_none_from_coming(server: StartServer) -> None:
    url = server("redis").url
    address = f"text{os.getpid()}x{next(_numbers)}"

    async def story() -> None:
        one, other = adapter(url, address, "one"), adapter(url, address, "other")
        await one.connect()
        await other.connect()
        await other.listen([ANYTHING])
        await one.publish([Outgoing(Event.of("T", time=1, id="first"))])
        async with redis.Redis.from_url(url) as client:
            await client.xadd(address, {"event": b"\xff\xfe"})
        await one.publish([Outgoing(Event.of("T", time=1, id="last"))])
        ids, unreadable = await taken(other, 3)
        for each in (one, other):
            await each.close()

        assert ids == ["first", "last"]
        assert unreadable == 1

    asyncio.run(story())
