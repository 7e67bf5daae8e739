"""Sites whose clock jumps: outputs are made in parts, as they are passed on, and none is lost."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

import ensue
from ensue.events.event import Event
from ensue.federation.configuration import SiteSettings
from ensue.federation.placement import SiteRun, Sites, place
from ensue.federation.placement.attaching import MOST_GIVEN, AttachedSite
from ensue.federation.placement.running.homes import StepBudget

SECOND = 1_000_000
HOUR = 3600 * SECOND
TEN_MINUTES = 600 * SECOND
"""A gap in which 300 sensors are silent 18,000 times, more than four times `MOST_GIVEN`."""
RULES = """
eventtype Beat { attribute string sensor; };
eventtype Noise { attribute string sensor; };
eventtype Silent { attribute string sensor; };
eventtype Long { attribute string sensor; };
Silent correlation Gone (Beat b, deadline 10 s gone) gone by sensor
{ case true: push new Silent { sensor = 'x' }; }
Long correlation Still (Silent s from Gone, Noise n) s{3}
{ case true: push new Long { sensor = s.sensor }; }
Long correlation Never (Beat b, Noise n, every 1 s t) n ; t by sensor
{ case true: push new Long { sensor = 'y' }; }
"""
SITES = """
[[site]]
name = "hall"
types = ["Beat"]
[[site]]
name = "roof"
types = ["Noise"]
"""


def beat(number: int, time: int) -> Event:
    return Event(f"b{time}-{number}", "hall", "Beat", time, {"sensor": str(number)})


def beats(keys: int, gap: int) -> list[Event]:
    """A beat of every sensor, and one more of the first after a gap."""
    return [*(beat(n, n) for n in range(keys)), beat(0, gap)]


def expected(events: Sequence[Event], until: int) -> list[str]:
    run = ensue.parse(RULES).start(max_jump="none")
    made = [*run.push_all(events), *run.advance(until)]
    return sorted(each.id for each in made if each.extensions["correlation"] == "Gone")


def settings(folder: Path) -> SiteSettings:
    (folder / "rules.cor").write_text(RULES)
    (folder / "sites.toml").write_text(SITES)
    return SiteSettings(
        name="hall",
        libraries=(folder / "rules.cor",),
        sites=folder / "sites.toml",
        services=(),
        lateness=0,
        beat=1.0,
        clock="events",
    )


def passed_on(site: AttachedSite) -> Iterator[Event]:
    """What the site puts out, with a gateway that passes everything on at once."""
    while True:
        taken = site.incoming.drain()
        yield from (each.event for each in taken if each.event is not None)
        if taken:
            site.passed_on(taken[-1].token)
        if site.may_go_on.is_set():
            site.go_on()
        elif not len(site.incoming):
            return


@pytest.mark.parametrize("keys", [1, 300])
def test_a_gap_is_put_out_in_parts(tmp_path: Path, keys: int) -> None:
    gap = 6 * HOUR if keys == 1 else TEN_MINUTES
    site = AttachedSite(settings(tmp_path), "g")
    events = beats(keys, gap)
    made: list[str] = []
    most = 0
    for each in events:
        site.take(each)
        for output in passed_on(site):
            most = max(most, len(site.incoming))
            if output.extensions.get("correlation") == "Gone":
                made.append(output.id)

    assert sorted(made) == expected(events, gap)
    assert most <= MOST_GIVEN + 2


def test_nothing_is_made_while_nothing_is_passed_on(tmp_path: Path) -> None:
    site = AttachedSite(settings(tmp_path), "g")
    for each in beats(300, HOUR):
        site.take(each)
    for _ in range(20):
        if site.may_go_on.is_set():
            site.go_on()
        site.tick()

    assert len(site.incoming) <= MOST_GIVEN + 2


def test_the_gateway_waits_for_a_site_that_is_behind(
    tmp_path: Path, limit: Callable[..., None]
) -> None:
    limit(seconds_for_a_site=0.2)

    async def story() -> tuple[bool, bool]:
        site = AttachedSite(settings(tmp_path), "g")
        for each in beats(300, TEN_MINUTES):
            site.take(each)
        waiting = asyncio.create_task(site.caught_up())
        await asyncio.sleep(0.05)
        is_held = not waiting.done()
        await waiting
        for _ in passed_on(site):
            pass
        async with asyncio.timeout(0.1):
            await site.caught_up()
        return is_held, site.may_go_on.is_set()

    assert asyncio.run(story()) == (True, False)


@pytest.mark.parametrize("inputs", [7, 10_000])
def test_a_site_that_ends_in_a_gap_goes_on_in_it(
    tmp_path: Path, limit: Callable[..., None], inputs: int
) -> None:
    limit(inputs_before_a_snapshot=inputs)
    limit(steps_at_once=500)
    limit(microseconds_to_gather=0)
    random = Random(5)
    given, files = settings(tmp_path), tmp_path / "kept"
    events = beats(20, HOUR)
    site = AttachedSite(given, "g", files)
    made: set[str] = set()
    for each in events:
        site.take(each)
    restarts = 0
    while site.may_go_on.is_set() or len(site.incoming):
        taken = site.incoming.drain()
        some = taken[: random.randint(0, len(taken))] if random.random() < 0.5 else taken
        outputs = [each.event for each in some if each.event is not None]
        made.update(each.id for each in outputs if "correlation" in each.extensions)
        if some:
            site.passed_on(some[-1].token)
        if site.may_go_on.is_set():
            site.go_on()
        site.keep()
        if len(some) < len(taken) or random.random() < 0.2:
            restarts += 1
            site = AttachedSite(given, "g", files)
            site.tick()

    assert restarts > 3
    assert made == set(expected(events, HOUR))


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
def test_sites_in_small_steps_put_out_what_one_machine_does(steps: int) -> None:
    library = ensue.parse(RULES).checked
    placement = place(library, Sites.of(tomllib.loads(SITES), library))
    random = Random(steps)
    events = sorted(
        (
            Event(str(n), "s", random.choice(["Beat", "Noise"]), random.randint(0, 120) * SECOND,
                  {"sensor": random.choice("ab")})
            for n in range(40)
        ),
        key=lambda each: each.time,
    )  # fmt: skip
    run = ensue.parse(RULES).start("reference")
    wanted = sorted(each.id for each in run.push_all(events))
    sites = {name: SiteRun(placement, name) for name in placement.sites.names}
    made = []
    for each in events:
        name = "hall" if each.type == "Beat" else "roof"
        made += sites[name].push(each, StepBudget(steps))
        for site in sites.values():
            for parcel in site.parcels(random.random() < 0.5):
                made += sites[parcel.receiver].receive(parcel, StepBudget(random.randint(0, steps)))
    for site in sites.values():
        made += site.finish(events[-1].time)
    while parcels := [p for site in sites.values() for p in site.parcels(True)]:
        for parcel in parcels:
            made += sites[parcel.receiver].receive(parcel)

    assert sorted(output.id for _, output in made) == wanted
