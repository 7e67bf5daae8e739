"""Mappings: each step, both ways of carrying it out, and gateways that use them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.brokers import Broker
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation import provide
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway
from ensue.federation.mapping import MappingError, MappingRule, compiled, interpreted
from ensue.federation.mapping.templates import Template
from tests.federation.simulation import World

WAYS = [interpreted, compiled]


def mapping(**steps: Any) -> MappingRule:
    tables = {
        "gateway": {"name": "g"},
        "service": [{"name": "a", "kind": "memory"}],
        "map": [{"at": "a", "direction": "out", **steps}],
    }
    return read_settings(tables).mappings[0]


def event(data: Any, type_: str = "Speed") -> Event:
    return Event.of(type_, time=0, id="1", source="car", data=data, priority=3)


def double(event: Event) -> Event | None:
    """A plug-in, which the tests below name."""
    speed = event.attributes["speed"]
    return None if speed < 0 else Event.of(event.type, time=0, id="2", data={"speed": speed * 2})


HERE = f"{__name__}:double"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("steps", "given", "wanted"),
    [
        ({"rename": {"v": "speed"}}, event({"v": 1, "x": 2}), event({"speed": 1, "x": 2})),
        ({"remove": ["x"]}, event({"v": 1, "x": 2}), event({"v": 1})),
        ({"retype": {"v": "double"}}, event({"v": "1.5"}), event({"v": 1.5})),
        ({"retype": {"v": "string"}}, event({"v": True}), event({"v": "true"})),
        ({"retype": {"v": "long"}}, event({"v": None}), event({"v": None})),
        (
            {"retype": {"v": "timestamp"}},
            event({"v": 1.5}),
            event({"v": "1970-01-01T00:00:01.5Z"}),
        ),
        ({"compute": {"kmh": "v * 4"}}, event({"v": 2}), event({"v": 2, "kmh": 8})),
        ({"compute": {"a": "1", "b": "a + 1"}}, event(None), event({"a": 1, "b": 2})),
        (
            {"split": "{kind}.{city}", "subject": "{kind}"},
            event({}, "Speed.Dublin.M50"),
            event({"kind": "Speed", "city": "Dublin.M50"}, "Speed"),
        ),
        ({"split": "{kind}.{city}"}, event({"v": 1}), event({"v": 1})),
        ({"subject": "T/{v}/x"}, event({"v": 3}), event({"v": 3}, "T/3/x")),
        ({"where": "v > 5", "subject": "Fast"}, event({"v": 3}), event({"v": 3})),
        ({"remove": ["v"]}, event([1, 2]), event([1, 2])),
    ],
)
def test_each_step_does_what_it_says(way: Any, steps: Any, given: Event, wanted: Event) -> None:
    assert way(mapping(**steps))(given) == wanted


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ({"retype": {"v": "long"}}, "`v` is `'x'`, which is no long"),
        ({"compute": {"w": "missing + 1"}}, "`w` cannot be computed: missingAttribute"),
        ({"subject": "{city}"}, "the subject `{city}` needs `city`, which the event lacks"),
    ],
)
def test_what_cannot_be_mapped_is_told(way: Any, steps: Any, problem: str) -> None:
    with pytest.raises(MappingError) as told:
        way(mapping(**steps))(event({"v": "x"}))

    assert str(told.value) == problem


@st.composite
def random_steps(draw: st.DrawFn) -> dict[str, Any]:
    names = st.sampled_from(["a", "b", "c", "d'\"\\"])
    kinds = st.sampled_from(["string", "long", "double", "boolean", "timestamp"])
    values = st.sampled_from(["a", "a + 1", "b = 1", "'x'", "LENGTH(c)"])
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                "where": st.sampled_from(["a > 1", "EXISTS b", "TRUE"]),
                "split": st.sampled_from(["{a}.{b}", "T.{c}", "{x}"]),
                "rename": st.dictionaries(names, names, max_size=2),
                "remove": st.lists(names, max_size=2),
                "retype": st.dictionaries(names, kinds, max_size=2),
                "compute": st.dictionaries(names, values, max_size=2),
                "subject": st.sampled_from(["S", "S.{a}", "{b}{c}"]),
            },
        )
    )


@given(
    steps=random_steps(),
    data=st.none()
    | st.lists(st.integers(), max_size=1)
    | st.dictionaries(
        st.sampled_from(["a", "b", "c", "d'\"\\"]),
        st.sampled_from([1, 0, 2.5, "7", "x", True, None, "2026-01-01T00:00:00Z"]),
    ),
    type_=st.sampled_from(["T", "T.x", "T.x.y"]),
)
def test_both_ways_have_the_same_results(steps: dict[str, Any], data: Any, type_: str) -> None:
    made = mapping(**steps)
    results: list[Event | str | None] = []
    for way in WAYS:
        try:
            results.append(way(made)(event(data, type_)))
        except MappingError as error:
            results.append(str(error))

    assert results[0] == results[1]


@pytest.mark.parametrize("way", WAYS)
def test_code_of_the_user_comes_last(way: Any) -> None:
    mapped = way(mapping(retype={"speed": "long"}, plugin=HERE))

    assert mapped(event({"speed": "21"})).data == {"speed": 42}
    assert mapped(event({"speed": "-1"})) is None


def test_a_template_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="is no template"):
        Template("{a}.{a}")


def test_every_mistake_in_a_mapping_is_told_at_once() -> None:
    with pytest.raises(UsageError) as told:
        mapping(
            at="b",
            direction="up",
            renam={},
            retype={"v": "flot"},
            compute={"w": "1 +"},
            plugin="no.such:thing",
            subject="{",
        )

    said = str(told.value)
    for part in ("] 1 at", "direction", "renam", "retype.v", "compute.w", "plugin", "subject"):
        assert part in said


def test_a_gateway_maps_events_both_ways_and_counts_what_it_cannot() -> None:
    async def story() -> None:
        world = World()
        url = f"memory:{world._run}"
        tables = {
            "gateway": {"name": "g", "settling": 0.05},
            "service": [
                {"name": "cars", "kind": "memory", "url": f"{url}/cars"},
                {"name": "office", "kind": "memory", "url": f"{url}/office"},
            ],
            "subscribe": [{"at": "office", "from": ["cars"], "where": "kmh > 50"}],
            "map": [
                {"at": "cars", "direction": "in", "compute": {"kmh": "v * 4"}, "remove": ["x"]},
                {"at": "office", "direction": "out", "subject": "Traffic"},
            ],
        }
        gateway = Gateway.from_config(tables)
        await gateway.start()
        for speed in (10, 20, "?"):
            world.publish("cars", v=speed, x=1)
        await world.until(lambda: len(world.hub("office").events) == 1)
        await world.quiet()
        await gateway.stop()

        (got,) = world.hub("office").events
        assert (got.type, got.data) == ("Traffic", {"v": 20, "kmh": 80})
        assert gateway.status()[0]["dropped"] == {"unmappable": 1}

    asyncio.run(story())


def test_a_filter_is_not_asked_of_a_service_in_words_that_it_does_not_have() -> None:
    async def story() -> list[Any]:
        cars, office = Broker("mapped-cars"), Broker("mapped-office")
        seen: list[Any] = []
        provide("mapped-cars", cars)
        provide("mapped-office", office)
        office.subscribe("me", "TRUE", lambda event: seen.append(event.data))
        tables = {
            "gateway": {"name": "g", "settling": 0.05},
            "service": [
                {"name": "cars", "kind": "broker", "url": "broker:mapped-cars"},
                {"name": "office", "kind": "broker", "url": "broker:mapped-office"},
            ],
            "subscribe": [{"at": "office", "where": "speed > 50"}],
            "map": [{"at": "cars", "direction": "in", "rename": {"velocity": "speed"}}],
        }
        gateway = Gateway.from_config(tables)
        await gateway.start()
        for number, velocity in enumerate((40, 60)):
            cars.publish(Event.of("T", time=number, id=str(number), data={"velocity": velocity}))
        async with asyncio.timeout(20):
            while not seen:
                await asyncio.sleep(0.02)
        await gateway.stop()
        return seen

    assert asyncio.run(story()) == [{"speed": 60}]
