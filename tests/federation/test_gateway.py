"""Gateways bring to every service exactly what it asked for, in any topology."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.federation.gateway import Gateway
from ensue.federation.routing import control

from .simulation import World


def run(story: Callable[[World], Awaitable[None]]) -> None:
    async def limited() -> None:
        world = World()
        async with asyncio.timeout(60):
            try:
                await story(world)
            finally:
                await world.stop()

    asyncio.run(limited())


def test_only_what_matches_goes_where_it_was_asked_for() -> None:
    async def story(world: World) -> None:
        world.add("g", ["cars", "office", "other"], ("office", ["cars"], "speed > 50"))
        await world.start()
        fast = [world.publish("cars", speed=speed).id for speed in (40, 60, 50, 51)]
        world.publish("other", speed=90)
        await world.until(lambda: len(world.arrived("office")) == 2)
        await world.quiet()

        assert world.arrived("office") == [fast[1], fast[3]]
        assert not world.arrived("cars")
        assert not world.arrived("other")

    run(story)


def test_only_services_that_are_asked_of_are_listened_to() -> None:
    async def story(world: World) -> None:
        wishes = (("office", ["cars"], "speed > 50"), ("cars", ["of*"], "TRUE"))
        world.add("g", ["cars", "office", "other"], *wishes)
        await world.start()
        wanted = {each["service"]: each["wanted"] for each in world.gateways["g"].status()}

        assert [len(wanted[each]) for each in ("cars", "office", "other")] == [1, 1, 0]

    run(story)


def test_an_event_goes_to_a_service_once_however_many_ask() -> None:
    async def story(world: World) -> None:
        world.add(
            "g",
            ["cars", "office"],
            ("office", ["cars"], "speed > 50"),
            ("office", [], "speed > 10"),
            ("office", ["mem*"], "TRUE"),
        )
        await world.start()
        sent = world.publish("cars", speed=60)
        await world.quiet()

        assert world.arrived("office") == [sent.id]

    run(story)


def test_two_services_that_want_everything_of_each_other_do_not_loop() -> None:
    async def story(world: World) -> None:
        world.add("g", ["a", "b"], ("a", [], "TRUE"), ("b", [], "TRUE"))
        await world.start()
        one, two = world.publish("a", n=1), world.publish("b", n=2)
        await world.quiet()

        assert world.arrived("a") == [two.id]
        assert world.arrived("b") == [one.id]
        assert len(world.hub("a").log) == len(world.hub("b").log) == 2

    run(story)


def test_events_cross_services_that_do_not_want_them_unseen() -> None:
    async def story(world: World) -> None:
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "far"])
        world.add("g3", ["far", "office"], ("office", ["cars"], "speed > 50"))
        await world.start()
        await asyncio.sleep(0.3)
        slow, fast = world.publish("cars", speed=40), world.publish("cars", speed=60)
        await world.until(lambda: bool(world.arrived("office")))
        await world.quiet()

        assert world.arrived("office") == [fast.id]
        assert not world.hub("middle").events
        assert not world.hub("far").events
        # What nobody wants does not even cross the first link.
        assert len(world.hub("middle").log) == 1
        assert slow.id not in world.arrived("office")
        assert world.hub("office").events[0].extensions["ensuepath"] == "cars,middle,far"

    run(story)


@pytest.mark.parametrize(
    "links",
    [
        {"g1": ["a", "b"], "g2": ["a", "b"]},
        {"g1": ["a", "b"], "g2": ["b", "c"], "g3": ["c", "a"]},
        {"g1": ["a", "b"], "g2": ["a", "b"], "g3": ["a", "b"], "g4": ["b", "c"], "g5": ["c", "a"]},
        {"g1": ["a", "b", "c"], "g2": ["b", "c", "d"], "g3": ["d", "a"]},
    ],
)
def test_no_loop_and_no_duplicate_where_there_are_several_ways(
    links: dict[str, list[str]],
) -> None:
    async def story(world: World) -> None:
        services = sorted({each for names in links.values() for each in names})
        for name, names in links.items():
            world.add(name, names, *((at, [], "TRUE") for at in names))
        await world.start()
        await asyncio.sleep(0.5)
        sent = {each: [world.publish(each, n=n).id for n in range(20)] for each in services}
        wanted = {
            each: sorted(i for other, ids in sent.items() if other != each for i in ids)
            for each in services
        }
        await world.until(lambda: all(len(world.arrived(s)) >= len(wanted[s]) for s in services))
        await world.quiet()

        assert {each: sorted(world.arrived(each)) for each in services} == wanted

    run(story)


def test_requests_travel_to_the_gateway_of_their_service_and_are_taken_back() -> None:
    async def story(world: World) -> None:
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "office"])
        await world.start()
        request = control.Request("r1", "subscribe", "office", ("cars",), "speed > 30")
        world.hub("cars").tell(control.write(request))
        await asyncio.sleep(0.5)
        first = world.publish("cars", speed=40)
        await world.until(lambda: bool(world.arrived("office")))
        end = control.Request("r2", "unsubscribe", "office", ("cars",), "speed > 30")
        world.hub("cars").tell(control.write(end))
        await asyncio.sleep(0.5)
        world.publish("cars", speed=40)
        await world.quiet()

        assert world.arrived("office") == [first.id]

    run(story)


def test_interest_is_merged_by_covering_before_it_is_told() -> None:
    async def story(world: World) -> None:
        wishes = [("office", ["cars"], f"speed > {speed}") for speed in (90, 50, 70, 30, 60)]
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "office"], *wishes)
        await world.start()
        await asyncio.sleep(0.5)
        (cars, _) = world.gateways["g1"].status()

        assert len(cars["wanted"]) == 1
        assert "speed > 30" in cars["wanted"][0]

    run(story)


def test_a_request_to_publish_reaches_each_destination_once() -> None:
    async def story(world: World) -> None:
        world.add("g1", ["a", "b"])
        world.add("g2", ["a", "b"])
        world.add("g3", ["b", "c"])
        await world.start()
        await asyncio.sleep(0.5)
        event = '{"id": "1", "source": "me", "type": "T", "time": "2026-01-01T00:00:00Z"}'
        request = control.Request("r1", "publish", services=("b", "c"), event=event)
        world.hub("a").tell(control.write(request))
        await world.until(lambda: bool(world.arrived("b") and world.arrived("c")))
        await world.quiet()

        assert (world.arrived("a"), world.arrived("b"), world.arrived("c")) == ([], ["1"], ["1"])

    run(story)


def test_nothing_is_lost_or_doubled_when_services_break_off() -> None:
    async def story(world: World) -> None:
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "office"], ("office", ["cars"], "speed > 50"))
        await world.start()
        await asyncio.sleep(0.3)
        sent = []
        for round_ in range(12):
            sent += [world.publish("cars", speed=60).id for _ in range(50)]
            await asyncio.sleep(0.02)
            broken = world.hub(("cars", "middle", "office")[round_ % 3])
            if round_ % 2:
                broken.lose_next(7)
            else:
                broken.break_off()
        await world.until(lambda: len(world.arrived("office")) >= len(sent))
        await world.quiet()

        assert sorted(world.arrived("office"), key=int) == sent

    run(story)


@pytest.mark.parametrize("victim", ["g1", "g2"])
def test_nothing_is_lost_or_doubled_when_a_gateway_is_killed(victim: str, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "office"], ("office", ["cars"], "speed > 50"))
        await world.start("g1", memory=tmp_path / "g1")
        await world.start("g2", memory=tmp_path / "g2")
        await asyncio.sleep(0.3)
        sent = []
        for round_ in range(9):
            sent += [world.publish("cars", speed=60).id for _ in range(50)]
            await asyncio.sleep(0.01)
            if round_ % 3 == 1:
                await world.kill(victim)
                sent += [world.publish("cars", speed=60).id for _ in range(50)]
                await world.start(victim, memory=tmp_path / victim)
        await world.until(lambda: len(world.arrived("office")) >= len(sent))
        await world.quiet()

        assert sorted(world.arrived("office"), key=int) == sent

    run(story)


def test_both_gateways_of_a_way_may_be_away_at_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.add("g1", ["cars", "middle"])
        world.add("g2", ["middle", "office"], ("office", ["cars"], "speed > 50"))
        await world.start("g1", memory=tmp_path / "g1")
        await world.start("g2", memory=tmp_path / "g2")
        await asyncio.sleep(0.3)
        world.publish("cars", speed=60)
        await world.until(lambda: len(world.arrived("office")) == 1)
        await world.stop()
        for _ in range(10):
            world.publish("cars", speed=60)
        await world.start("g1", memory=tmp_path / "g1")
        await asyncio.sleep(0.5)
        await world.start("g2", memory=tmp_path / "g2")
        await world.until(lambda: len(world.arrived("office")) == 11)
        await world.quiet()

        assert len(world.arrived("office")) == 11

    run(story)


def test_another_way_is_taken_when_a_gateway_does_not_come_back() -> None:
    async def story(world: World) -> None:
        for name in ("g1", "g2"):
            world.add(name, ["a", "b"], ("b", ["a"], "TRUE"))
        await world.start()
        await asyncio.sleep(0.3)
        first = world.publish("a", n=1)
        await world.until(lambda: len(world.arrived("b")) == 1)
        await world.kill("g1")
        await asyncio.sleep(2.0)
        second = world.publish("a", n=2)
        await world.until(lambda: len(world.arrived("b")) == 2)
        await world.quiet()

        assert world.arrived("b") == [first.id, second.id]

    run(story)


def test_nothing_is_lost_while_another_gateway_takes_the_place_of_one_that_died() -> None:
    async def story(world: World) -> None:
        for name in ("g1", "g2"):
            world.add(name, ["a", "b"], ("b", ["a"], "TRUE"))
        await world.start()
        await asyncio.sleep(0.3)
        sent = []
        for round_ in range(40):
            sent += [world.publish("a", n=1).id for _ in range(5)]
            await asyncio.sleep(0.05)
            if round_ == 10:
                await world.kill("g1")
        await world.until(lambda: len(world.arrived("b")) >= len(sent))
        await world.quiet()

        assert sorted(world.arrived("b"), key=int) == sent

    run(story)


def test_a_request_made_while_running_outlives_the_gateway(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.add("g", ["cars", "office"])
        await world.start(memory=tmp_path / "kept")
        await world.gateways["g"].request(
            control.Request("r1", "subscribe", "office", (), "speed > 1")
        )
        await world.stop()
        await world.start(memory=tmp_path / "kept")
        sent = world.publish("cars", speed=2)
        await world.until(lambda: bool(world.arrived("office")))

        assert world.arrived("office") == [sent.id]

    run(story)


def test_a_filter_over_the_past_needs_a_history() -> None:
    tables = {
        "gateway": {"name": "g"},
        "service": [
            {"name": "a", "kind": "memory", "url": "memory:past/a"},
            {"name": "b", "kind": "memory", "url": "memory:past/b"},
        ],
        "subscribe": [{"at": "b", "where": "start AFTER(10 s) (level = 'error')"}],
    }

    async def story() -> None:
        with pytest.raises(UsageError, match="asks a history"):
            await Gateway.from_config(tables).start()

    asyncio.run(story())


def test_a_filter_over_the_past_is_answered_at_the_end() -> None:
    async def story(world: World) -> None:
        where = "level = 'info' AND start AFTER(10 s) (level = 'error')"
        world.add("g1", ["a", "middle"])
        world.add("g2", ["middle", "b"], ("b", ["a"], where), history="memory:")
        await world.start()
        await asyncio.sleep(0.3)
        world.publish("a", level="info")
        world.publish("a", level="error")
        second = world.publish("a", level="info")
        await world.until(lambda: bool(world.arrived("b")))
        await world.quiet()

        assert world.arrived("b") == [second.id]

    run(story)
