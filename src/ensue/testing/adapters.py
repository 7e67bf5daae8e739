"""The contract of an adapter, as a class of tests against a real service.

    from ensue.testing.adapters import AdapterContract

    class TestMine(AdapterContract):
        def service(self):
            return Service(name="s", kind="mine", url="mine://127.0.0.1", address=a_new_one())

        def unreachable(self):
            return Service(name="s", kind="mine", url="mine://127.0.0.1:1")

pytest runs what the adapters of Ensue pass as well, each test at a service of its own. Tests of
what the `Capabilities` of a kind do not promise are skipped, and say so. The `options` of a service
are an object of the class `options_type`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from unittest import SkipTest

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters import ANYTHING, Adapter, Incoming, Outgoing, Service, adapter_class
from ensue.federation.messages.attributes import identity_of

PATIENCE_SECONDS = 20.0
LONGEST_SECONDS = 60.0


class AdapterContract:
    """Tests that every adapter passes."""

    def service(self) -> Service:
        """A service at an address that no other test has."""
        raise NotImplementedError

    def unreachable(self) -> Service | None:
        """A service that cannot be reached; None where there is no server to be away."""
        return None

    def test_events_arrive_whole_and_in_order(self) -> None:
        async def story(service: Service) -> None:
            async with connected(service) as one, connected(service, "g2") as two:
                sent = numbered(1500)
                await publish(one, sent)
                # Services limit how much may be on the way without being acknowledged.
                found = await gather(two, len(sent), acknowledging=True)

                assert [each.event for each in found] == sent

        self._run(story)

    def test_every_kind_of_data_arrives_as_it_was(self) -> None:
        data: list[Any] = [None, {}, {"a": [1, {"b": None}]}, "text", 3, 2.5, False, []]
        data += ["ünï ☂", ""]
        more = {"subject": "what", "traceparent": "00-1"}
        sent = [
            Event.of("T", time=0, id=str(number), source="s", data=each, **more)
            for number, each in enumerate(data)
        ]

        async def story(service: Service) -> None:
            async with connected(service) as one, connected(service, "g2") as two:
                await publish(one, sent)
                found = await gather(two, len(sent))

                assert [each.event for each in found] == sent

        self._run(story)

    def test_events_in_transit_are_told_apart(self) -> None:
        async def story(service: Service) -> None:
            async with connected(service) as one, connected(service, "g2") as two:
                await publish(one, numbered(3))
                await publish(one, numbered(3, 3), in_transit=True)
                found = await gather(two, 6)

                in_transit = {each.event.id for each in found if each.event and each.in_transit}
                assert in_transit == {"3", "4", "5"}

        self._run(story)

    def test_every_gateway_hears_a_control_message(self) -> None:
        async def story(service: Service) -> None:
            async with (
                connected(service, "g1", False) as one,
                connected(service, "g2", False) as two,
                connected(service, "g3", False) as three,
            ):
                await one.tell(b'{"hello": 1}')
                async with asyncio.timeout(PATIENCE_SECONDS):
                    for other in (two, three):
                        assert await other.hear() == [b'{"hello": 1}']

        self._run(story)

    def test_who_does_not_listen_receives_nothing(self) -> None:
        async def story(service: Service) -> None:
            async with connected(service) as one, connected(service, "g2") as two:
                await two.unlisten()
                await publish(one, numbered(3))

                assert await is_quiet(two)

        self._run(story)

    def test_who_never_listened_may_end_it(self) -> None:
        async def story(service: Service) -> None:
            async with (
                connected(service, "g1", listening=False) as one,
                connected(service, "g2", listening=False) as two,
            ):
                await one.unlisten()

                assert set(await told(one, b"still there", two)) == {b"still there"}

        self._run(story)

    def test_what_came_while_nobody_listened_does_not_come_later(self) -> None:
        async def story(service: Service) -> None:
            async with connected(service) as one, connected(service, "g2") as two:
                await two.unlisten()
                await publish(one, numbered(3))
                await two.listen([ANYTHING])
                await publish(one, numbered(2, 10))
                found = await gather(two, 2)

                assert [each.event.id for each in found if each.event] == ["10", "11"]

        self._run(story)

    def test_what_was_acknowledged_does_not_come_again(self) -> None:
        async def story(service: Service) -> None:
            async with connected(service, "g2") as two, connected(service) as one:
                await publish(one, numbered(10))
                found = await gather(two, 10)
                await two.acknowledge([each.token for each in found])
            async with connected(service, "g2") as again:
                assert await is_quiet(again)

        self._run(story)

    def test_what_was_not_acknowledged_comes_again(self) -> None:
        async def story(service: Service) -> None:
            if adapter_class(service.kind).capabilities.incoming == "at most once":
                raise SkipTest(f"`{service.kind}` gives every event at most once")
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

        self._run(story)

    def test_what_comes_while_the_gateway_is_away_waits_for_it(self) -> None:
        async def story(service: Service) -> None:
            if not adapter_class(service.kind).capabilities.survives_restart:
                raise SkipTest(f"`{service.kind}` keeps nothing for who is away")
            async with connected(service, "g2"):
                pass
            async with connected(service) as one:
                await publish(one, numbered(10))
                await publish(one, numbered(2, 10), in_transit=True)
            async with connected(service, "g2") as again:
                found = await gather(again, 12)

                assert {each.event.id for each in found if each.event} == set(map(str, range(12)))

        self._run(story)

    def test_what_the_service_has_can_be_recalled(self) -> None:
        async def story(service: Service) -> None:
            if not adapter_class(service.kind).capabilities.recalls:
                raise SkipTest(f"`{service.kind}` cannot be asked what it has")
            async with connected(service) as one:
                sent = numbered(20)
                await publish(one, sent[:10])
                await publish(one, sent[10:], in_transit=True)
                recalled = {identity_of(each) for each in await one.recall()}

                assert recalled == {identity_of(each) for each in sent}

        self._run(story)

    def test_a_service_that_cannot_be_reached_is_a_link_error(self) -> None:
        lost = self.unreachable()
        if lost is None:
            raise SkipTest("there is no server to be away")

        async def story(_: Service) -> None:
            adapter, problem = adapter_of(lost), ""
            try:
                await adapter.connect()
            except LinkError as error:
                problem = str(error)
            finally:
                await adapter.close()
            assert problem.startswith(f"service `{lost.name}`: cannot connect"), problem

        self._run(story)

    def test_capabilities_are_those_of_the_kind(self) -> None:
        service = self.service()

        assert adapter_class(service.kind).capabilities.kind == service.kind

    def _run(self, story: Callable[[Service], Awaitable[None]]) -> None:
        async def limited() -> None:
            await asyncio.wait_for(story(self.service()), LONGEST_SECONDS)

        asyncio.run(limited())


def adapter_of(service: Service, gateway: str = "g1") -> Adapter:
    return adapter_class(service.kind)(replace(service, gateway=gateway))


@asynccontextmanager
async def connected(
    service: Service, gateway: str = "g1", listening: bool = True
) -> AsyncIterator[Adapter]:
    """An adapter of a gateway that is connected, and perhaps listens to everything."""
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
    async with asyncio.timeout(PATIENCE_SECONDS):
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
