"""One suite for all adapters, against the real service of each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Incoming, Outgoing, Service
from ensue.federation.messages.attributes import identity_of
from tests.federation.conftest import StartServer

from .services import KINDS, service_of

PATIENCE = 20.0


@pytest.fixture(params=KINDS)
def service(request: pytest.FixtureRequest, server: StartServer) -> Service:
    return service_of(request.param, server, request)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(limited())


def adapter_of(service: Service, gateway: str = "g1") -> Adapter:
    return adapter_class(service.kind)(replace(service, gateway=gateway))


@asynccontextmanager
async def connected(service: Service, gateway: str = "g1", listening: bool = True) -> Any:
    adapter = adapter_of(service, gateway)
    await adapter.connect()
    try:
        if listening:
            await adapter.listen([ANYTHING])
        yield adapter
    finally:
        await adapter.close()


def numbered(count: int, begin: int = 0) -> list[Event]:
    return [
        Event.of("Speed", time=number, id=str(number), source="car", data={"speed": number + 0.5})
        for number in range(begin, begin + count)
    ]


async def gather(adapter: Adapter, count: int, acknowledging: bool = False) -> list[Incoming]:
    found: list[Incoming] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            came = await adapter.receive()
            if acknowledging:
                await adapter.acknowledge([each.token for each in came])
            found += came
    return found


async def publish(adapter: Adapter, events: Sequence[Event], in_transit: bool = False) -> None:
    await adapter.publish([Outgoing(each, in_transit) for each in events])


async def is_quiet(adapter: Adapter, seconds: float = 0.3) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await adapter.receive():
                    return False
    except TimeoutError:
        return True


async def told(teller: Adapter, message: bytes, hearer: Adapter) -> list[bytes]:
    """What is heard of a message that is told again and again, as gateways tell theirs."""
    while True:
        await teller.tell(message)
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                return await hearer.hear()


def test_events_arrive_whole_and_in_order(service: Service) -> None:
    async def story() -> None:
        async with connected(service) as one, connected(service, "g2") as two:
            sent = numbered(1500)
            await publish(one, sent)
            # Services limit how much may be on the way without being acknowledged.
            found = await gather(two, len(sent), acknowledging=True)

            assert [each.event for each in found] == sent

    run(story)


def test_every_kind_of_data_arrives_as_it_was(service: Service) -> None:
    data: list[Any] = [None, {}, {"a": [1, {"b": None}]}, "text", 3, 2.5, False, [], "ünï ☂", ""]
    sent = [
        Event.of("T", time=0, id=str(i), source="s", data=each, subject="what", traceparent="00-1")
        for i, each in enumerate(data)
    ]

    async def story() -> None:
        async with connected(service) as one, connected(service, "g2") as two:
            await publish(one, sent)
            found = await gather(two, len(sent))

            assert [each.event for each in found] == sent

    run(story)


def test_events_in_transit_are_told_apart(service: Service) -> None:
    async def story() -> None:
        async with connected(service) as one, connected(service, "g2") as two:
            await publish(one, numbered(3))
            await publish(one, numbered(3, 3), in_transit=True)
            found = await gather(two, 6)

            in_transit = {each.event.id for each in found if each.event and each.in_transit}
            assert in_transit == {"3", "4", "5"}

    run(story)


def test_every_gateway_hears_a_control_message(service: Service) -> None:
    async def story() -> None:
        async with (
            connected(service, "g1", False) as one,
            connected(service, "g2", False) as two,
            connected(service, "g3", False) as three,
        ):
            await one.tell(b'{"hello": 1}')
            async with asyncio.timeout(PATIENCE):
                for other in (two, three):
                    assert await other.hear() == [b'{"hello": 1}']

    run(story)


def test_who_does_not_listen_receives_nothing(service: Service) -> None:
    async def story() -> None:
        async with connected(service) as one, connected(service, "g2") as two:
            await two.unlisten()
            await publish(one, numbered(3))

            assert await is_quiet(two)

    run(story)


def test_who_never_listened_may_end_it(service: Service) -> None:
    async def story() -> None:
        async with (
            connected(service, "g1", listening=False) as one,
            connected(service, "g2", listening=False) as two,
        ):
            await one.unlisten()

            assert set(await told(one, b"still there", two)) == {b"still there"}

    run(story)


def test_what_came_while_nobody_listened_does_not_come_later(service: Service) -> None:
    async def story() -> None:
        async with connected(service) as one, connected(service, "g2") as two:
            await two.unlisten()
            await publish(one, numbered(3))
            await two.listen([ANYTHING])
            await publish(one, numbered(2, 10))
            found = await gather(two, 2)

            assert [each.event.id for each in found if each.event] == ["10", "11"]

    run(story)


def test_what_was_acknowledged_does_not_come_again(service: Service) -> None:
    async def story() -> None:
        async with connected(service, "g2") as two, connected(service) as one:
            await publish(one, numbered(10))
            found = await gather(two, 10)
            await two.acknowledge([each.token for each in found])
        async with connected(service, "g2") as again:
            assert await is_quiet(again)

    run(story)


def test_what_was_not_acknowledged_comes_again(service: Service) -> None:
    if adapter_class(service.kind).capabilities.incoming == "at most once":
        pytest.skip(f"`{service.kind}` gives every event at most once")

    async def story() -> None:
        async with connected(service, "g2") as two, connected(service) as one:
            await publish(one, numbered(10))
            found = await gather(two, 10)
            await two.acknowledge([each.token for each in found[:4]])
            await two.close()
            async with connected(service, "g2") as again:
                # An acknowledgement may be lost too: then the event comes once more.
                rest: set[str] = set()
                while not rest >= set("456789"):
                    rest |= {each.event.id for each in await gather(again, 1) if each.event}

    run(story)


def test_what_comes_while_the_gateway_is_away_waits_for_it(service: Service) -> None:
    if not adapter_class(service.kind).capabilities.survives_restart:
        pytest.skip(f"`{service.kind}` keeps nothing for who is away")

    async def story() -> None:
        async with connected(service, "g2"):
            pass
        async with connected(service) as one:
            await publish(one, numbered(10))
            await publish(one, numbered(2, 10), in_transit=True)
        async with connected(service, "g2") as again:
            found = await gather(again, 12)

            assert {each.event.id for each in found if each.event} == set(map(str, range(12)))

    run(story)


def test_what_the_service_has_can_be_recalled(service: Service) -> None:
    if not adapter_class(service.kind).capabilities.recalls:
        pytest.skip(f"`{service.kind}` cannot be asked what it has")

    async def story() -> None:
        async with connected(service) as one:
            sent = numbered(20)
            await publish(one, sent[:10])
            await publish(one, sent[10:], in_transit=True)
            recalled = {identity_of(each) for each in await one.recall()}

            assert recalled == {identity_of(each) for each in sent}

    run(story)


def test_a_service_that_cannot_be_reached_is_a_link_error(service: Service) -> None:
    if service.kind in ("memory", "http", "channel", "broker", "proximity", "zenoh"):
        pytest.skip("there is no server to be away")
    lost = replace(service, url=service.url.rpartition(":")[0] + ":1")

    async def story() -> None:
        adapter = adapter_of(lost)
        with pytest.raises(LinkError, match=f"service `{service.name}`: cannot connect"):
            await adapter.connect()
        await adapter.close()

    run(story)
