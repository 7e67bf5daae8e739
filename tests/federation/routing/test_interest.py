"""What is wanted where: many events at once are looked up as one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from ensue.events.event import Event
from ensue.federation.messages.attributes import at_service
from ensue.federation.routing.control import Stated
from ensue.federation.routing.distribution import wanted_from
from ensue.federation.routing.interest import FEWEST_FOR_COLUMNS, Interest
from ensue.subscriptions import Filter

VALUES: tuple[Any, ...] = (
    *(0, 1, -5, 60, 1 << 60, 0.5, -0.0, True, False, None, "", "60", "abc", "ABC"),
    *([1, 2], {"speed": 3}, datetime(2026, 1, 1, tzinfo=UTC), b"bytes"),
)
FILTERS = (
    "speed > 10",
    "speed <= 60 AND name LIKE 'a%'",
    "speed = 60 OR name = 'abc'",
    "NOT (speed = 1)",
    "EXISTS name",
    "name IN ('abc', '60')",
    "inner.speed > 1",
    "LENGTH(name) > 2",
    "type = 'A' AND speed + 1 > 1",
)
SERVICES = ("s0", "s1", "s2")


def event_of(draw: Random, number: int) -> Event:
    data: Any = {
        name: draw.choice(VALUES) for name in ("speed", "name", "inner") if draw.random() < 0.7
    }
    if draw.random() < 0.1:
        data = draw.choice((None, 5, "text", [1]))
    extensions = {"priority": draw.choice((1, "2"))} if draw.random() < 0.3 else {}
    event = Event(str(number), "test", draw.choice("AB"), number, data, extensions)
    return at_service(event, draw.choice(SERVICES), draw.choice(("mqtt", "redis")))


@pytest.mark.parametrize("seed", range(20))
def test_many_events_find_the_services_that_each_finds_alone(seed: int) -> None:
    draw = Random(seed)
    interest = Interest(SERVICES)
    for _ in range(draw.randint(0, 6)):
        listed = draw.choice(((), ("s1",), ("s*", "redis")))
        interest.request(
            draw.choice(SERVICES), wanted_from(listed, Filter.parse(draw.choice(FILTERS)))
        )
    stated = Stated("g", "1", "d", (draw.choice(FILTERS),), (draw.choice(FILTERS),))
    interest.state(draw.choice(SERVICES), stated, 0.0)
    events = [event_of(draw, number) for number in range(FEWEST_FOR_COLUMNS + 30)]

    assert interest.destinations_of_all(events) == [interest.destinations(e) for e in events]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_after_changes_is_what_follows_from_the_wishes(seed: int) -> None:
    """Changes are told one by one; a gateway that learns all of it at once tells as much."""
    draw = Random(seed)
    changed = Interest(SERVICES)
    requests: set[tuple[str, str]] = set()
    active = frozenset(SERVICES)
    for _ in range(30):
        wish = draw.choice(SERVICES), draw.choice(FILTERS)
        if wish in requests and draw.random() < 0.7:
            requests.discard(wish)
            changed.withdraw(wish[0], Filter.parse(wish[1]))
        else:
            requests.add(wish)
            changed.request(wish[0], Filter.parse(wish[1]))
        if draw.random() < 0.2:
            active = frozenset(draw.sample(SERVICES, 2))
            changed.activate(active)
    fresh = Interest(SERVICES)
    fresh.activate(active)
    for service, text in sorted(requests):
        fresh.request(service, Filter.parse(text))
    events = [event_of(draw, number) for number in range(60)]
    for service in SERVICES:
        told = [
            [any(f.matches(e) for f in each.wanted_from(service, "mqtt")) for e in events]
            for each in (changed, fresh)
        ]
        assert told[0] == told[1]
