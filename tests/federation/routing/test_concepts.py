"""Requests over concepts: more travels, and exactly what was asked for arrives."""

from __future__ import annotations

import asyncio
import random

import pytest

from ensue.errors import UsageError
from ensue.events.cloudevents import decode
from ensue.federation.gateway import Gateway
from ensue.federation.routing.interest import Interest
from ensue.subscriptions import Filter
from tests.federation.simulation import World

knowledge = pytest.importorskip("ensue.knowledge")

Wish = tuple[str, list[str], str]
WINE = str(knowledge.SAMPLES / "wine.ttl")
BOTTLES = ("wine:Barolo", "wine:Claret", "wine:HouseRed", "wine:Chablis", "wine:Pauillac", "beer")
ASKED = ("wine:RedWine", "wine:Nebbiolo", "wine:Wine")


def test_a_gateway_without_the_ontology_lets_more_through_and_the_last_applies_the_filter() -> None:
    world = World()
    world.add("near", ["cellar", "middle"])
    wish: Wish = ("table", [], "price > 10 AND bottle IS_A wine:RedWine")
    world.add("far", ["middle", "table"], wish, ontology=WINE)

    async def story() -> None:
        await world.start()
        await asyncio.sleep(0.5)
        red = world.publish("cellar", bottle="wine:Barolo", price=20)
        white = world.publish("cellar", bottle="wine:Chablis", price=20)
        world.publish("cellar", bottle="wine:Barolo", price=5)
        await world.until(lambda: len(world.arrived("table")) == 1)
        await world.quiet()

        assert world.arrived("table") == [red.id]
        crossed = [decode(body).id for body, _ in world.hub("middle").log]
        assert crossed == [red.id, white.id]
        await world.stop()

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_over_concepts_get_exactly_what_they_ask_for(seed: int) -> None:
    draw = random.Random(seed)
    world = World()
    wishes: list[Wish] = [
        ("table", [], f"price > {draw.randrange(20)} AND bottle IS_A {draw.choice(ASKED)}")
        for _ in range(draw.randint(1, 4))
    ]
    world.add("g0", ["cellar", "middle"], **({"ontology": WINE} if draw.random() < 0.5 else {}))
    world.add("g1", ["middle", "hall"])
    world.add("g2", ["hall", "table"], *wishes, ontology=WINE)
    ontology = knowledge.Ontology.load(WINE)
    filters = [Filter.parse(where) for _, _, where in wishes]

    async def story() -> None:
        await world.start()
        await asyncio.sleep(0.6)
        events = [
            world.publish("cellar", bottle=draw.choice(BOTTLES), price=draw.randrange(25))
            for _ in range(80)
        ]
        wanted = [
            each.id
            for each in events
            if any(filter_.matches(each, ontology=ontology) for filter_ in filters)
        ]
        await world.until(lambda: len(world.arrived("table")) >= len(wanted))
        await world.quiet()

        assert sorted(world.arrived("table")) == sorted(wanted)
        await world.stop()

    asyncio.run(story())


def test_a_request_over_concepts_needs_an_ontology() -> None:
    interest = Interest(["a", "b"])

    with pytest.raises(UsageError, match=r"`\[gateway\] ontology`"):
        interest.request("a", Filter.parse("bottle IS_A wine:RedWine"))


def test_a_concept_that_nobody_knows_is_refused() -> None:
    tables = {
        "gateway": {"name": "g", "ontology": WINE},
        "service": [{"name": "a", "kind": "memory"}],
        "subscribe": [{"at": "a", "where": "bottle IS_A wine:Read"}],
    }
    gateway = Gateway.from_config(tables)

    with pytest.raises(UsageError, match="no concept `wine:Read`"):
        asyncio.run(gateway.start())
