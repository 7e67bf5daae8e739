"""Events that are valid near a place, and gateways that move."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ensue.events.event import Event
from ensue.federation.adapters.base import Outgoing
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.adapters.proximity.places import Area, GeoPosition
from ensue.federation.gateway import Gateway
from tests.federation.simulation import World

DUBLIN, CORK = GeoPosition(53.3498, -6.2603), GeoPosition(51.8985, -8.4756)


def test_distances_are_those_of_the_earth() -> None:
    assert DUBLIN.metres_to(CORK) == pytest.approx(219_900, rel=0.005)
    assert GeoPosition(0, 179.9).metres_to(GeoPosition(0, -179.9)) == pytest.approx(
        22_239, rel=0.001
    )


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "91,0,5", "0,181,5", "x,y,z"])
def test_what_is_no_area_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Area.parse(text)


def test_a_gateway_gets_what_is_valid_where_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        world = World()
        place = tmp_path / "position"
        place.write_text("53.3498,-6.2603")
        road = f"{world._run}/road"
        tables = {
            "gateway": {"name": "g", "settling": 0.05},
            "service": [
                {
                    "name": "road",
                    "kind": "proximity",
                    "url": f"memory:{road}",
                    "position_file": str(place),
                    "radius": 50.0,
                },
                {"name": "office", "kind": "memory", "url": f"memory:{world._run}/office"},
            ],
            "subscribe": [{"at": "office", "from": ["road"]}, {"at": "road", "from": ["office"]}],
        }
        gateway = Gateway.from_config(tables)
        await gateway.start()

        def drive(number: int, near: GeoPosition) -> None:
            area = str(Area(near, 100.0))
            event = Event.of("Speed", time=number, id=str(number), source="car", proximity=area)
            hub(road).publish(Outgoing(event))

        drive(1, DUBLIN)
        drive(2, CORK)
        await world.until(lambda: world.arrived("office") == ["1"])
        place.write_text("51.8985,-8.4756")
        await asyncio.sleep(0.3)
        drive(3, DUBLIN)
        drive(4, CORK)
        await world.until(lambda: len(world.arrived("office")) == 2)
        world.publish("office", note="limit 30")
        await world.until(lambda: len(hub(road).events) == 5)
        status = gateway.status()[0]
        await gateway.stop()

        assert world.arrived("office") == ["1", "4"]
        assert status["dropped"] == {"far away": 2}
        assert hub(road).events[-1].extensions["proximity"] == "51.8985,-8.4756,50"

    asyncio.run(story())
