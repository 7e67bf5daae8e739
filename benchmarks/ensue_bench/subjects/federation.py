"""Gateways: their pace beside the client libraries alone, what a hop adds, and what crosses a link.

A client library alone publishes events at a service and receives them there, each in the way that
its documentation shows. With a gateway, they are published by that library at one service and
received by the other's at another, and `ensue serve` runs the gateway, a process of its own. Both
are measured in turns, so that only their ratio says something. Brokers that are not installed are
left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Outgoing
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway
from ensue.federation.mapping import compiled, interpreted
from ensue.federation.placement import Simulation, Sites, place
from ensue.library import parse
from ensue_bench import brokers
from ensue_bench.effort import Effort
from ensue_bench.federation.paces import paces
from ensue_bench.report import Curve, Figure, ReportTable, rate
from ensue_bench.timing import Work, rates, ratios, side_by_side

TYPES = ("Near", "Far", "Out")
_SECONDS_TO_CROSS = 60.0
_numbers = count(1)


def measure(effort: Effort) -> Iterator[Figure | Curve | ReportTable]:
    yield from _mappings(effort)
    yield _crossing(effort)
    yield from _placing(effort)
    there = [kind for kind in brokers.PROGRAMS if brokers.found(kind)]
    if len(there) < 2:
        raise UsageError(
            "gateways are measured between brokers, and fewer than two are installed:"
            " tests/servers/install.sh brings mosquitto, nats-server, redis-server and"
            " rabbitmq-server"
        )
    with brokers.running(there) as addresses:
        yield from paces(addresses, effort)


def _mappings(effort: Effort) -> Iterator[Figure]:
    """The paper's two approaches, side by side."""
    steps = {
        "rename": {"v": "speed"},
        "remove": ["debug"],
        "retype": {"licence": "string"},
        "subject": "Traffic.{licence}",
    }
    tables = {
        "gateway": {"name": "bench"},
        "service": [{"name": "a", "kind": "memory"}],
        "map": [{"at": "a", "direction": "out", **steps}],
    }
    mapping = read_settings(tables).mappings[0]
    size = effort.size(20_000, 100)
    data = {"v": 60, "licence": "191-D-1", "debug": True}
    events = [Event.of("Speed", time=number, id="1", data=data) for number in range(size)]

    def work(mapped: Callable[[Event], Event | None]) -> Work:
        return Work(lambda _: [mapped(each) for each in events])

    ways = {"interpreted": work(interpreted(mapping)), "compiled": work(compiled(mapping))}
    taken = side_by_side(ways, effort.times())
    for name, seconds in taken.items():
        yield rate(f"mapping, {name}", rates(size, seconds))
    gained = ratios(taken["interpreted"], taken["compiled"])
    yield Figure("mapping: compiled beside interpreted", "x", tuple(gained), "higher", 1.0)


def _crossing(effort: Effort) -> Curve:
    """Events that cross a link, of a thousand, as more consumers beyond it ask for some of them."""
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000)
    points = tuple((float(each), (float(asyncio.run(_crossed(each))),)) for each in sizes)
    return Curve("federation-crossing", "wanted beyond", "consumers", "events", points)


async def _crossed(consumers: int) -> int:
    mark = f"bench{next(_numbers)}"

    def tables(name: str, services: tuple[str, str], wishes: list[dict[str, Any]]) -> Any:
        return {
            "gateway": {"name": name, "settling": 0.1, "beat": 0.2},
            "service": [
                {"name": each, "kind": "memory", "url": f"memory:{mark}/{each}"}
                for each in services
            ],
            "subscribe": wishes,
        }

    wishes = [{"at": "far", "where": f"speed >= {999 - number}"} for number in range(consumers)]
    near = Gateway.from_config(tables("near", ("cars", "middle"), []))
    far = Gateway.from_config(tables("far", ("middle", "far"), wishes))
    starting: list[Awaitable[None]] = [near.start(), far.start()]
    await asyncio.gather(*starting)
    cars = hub(f"{mark}/cars")
    # The near gateway listens there once it knows what is wanted.
    await _until(lambda: any(each.is_listening for each in cars.connections))
    for speed in range(1000):
        event = Event.of("Speed", time=speed, id=str(speed), source="car", data={"speed": speed})
        cars.publish(Outgoing(event))
    await _until(lambda: _link(near, "cars")["in"] == 1000 and not _link(near, "middle")["waiting"])
    crossed = len(hub(f"{mark}/middle").log)
    await asyncio.gather(near.stop(), far.stop())
    return crossed


def _link(gateway: Gateway, service: str) -> dict[str, Any]:
    return next(each for each in gateway.status() if each["service"] == service)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(_SECONDS_TO_CROSS):
        while not condition():
            await asyncio.sleep(0.05)


def _placing(effort: Effort) -> Iterator[Curve]:
    """Messages over a link, of a thousand events, as more rules beyond it read them."""
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000)
    found = {each: _placed(each) for each in sizes}
    branched = {each: _placed(each, _BRANCHED)[0] for each in sizes}
    lines = {
        "with a placement": {each: counts[0] for each, counts in found.items()},
        "with one, of rules with a branch at the far site": branched,
        "without, those that match a port": {each: counts[1] for each, counts in found.items()},
    }
    for name, counts in lines.items():
        points = tuple((float(size), (float(count),)) for size, count in counts.items())
        yield Curve("federation-placement", name, "consumers", "messages", points)


_WHOLE = "Far g) (a ; b) + g"
_BRANCHED = "Far g where v < 1000, Far h where v >= 1000) (a ; b) + g || h"


def _placed(consumers: int, rule: str = _WHOLE) -> tuple[int, int]:
    """What crosses with a placement, and with all rules at the far site."""
    rules = "".join(
        f"Out correlation C{number} (Near a where v >= {number * 61 % 980} AND"
        f" v < {number * 61 % 980 + 10}, Near b where v >= 990, {rule} within 20 ms"
        " { case true: push new Out { v = b.v }; }\n"
        for number in range(consumers)
    )
    types = "".join(f"eventtype {name} {{ attribute long v; }};\n" for name in TYPES)
    library = parse(types + rules).checked
    tables = {"site": [{"name": "near", "types": ["Near"]}, {"name": "far", "types": ["Far"]}]}
    tables["place"] = [{"rule": each.name, "at": "far"} for each in library.correlations]
    draw = Random(1)
    events = [
        ("near", Event.of("Near", time=1000 * n, id=str(n), data={"v": draw.randrange(1000)}))
        for n in range(1000)
    ]
    events += [
        ("far", Event.of("Far", time=100_000 * n + 50, id=f"f{n}", data={"v": n}))
        for n in range(10)
    ]
    simulation = Simulation(place(library, Sites.of(tables, library)), beat=50)
    simulation.run(sorted(events, key=lambda each: each[1].time))
    crossed = simulation.crossed
    return max(1, crossed.messages), max(1, crossed.matched["near"])
