"""Which events a group wants: the same that its ports say, one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ensue
from ensue.engine.batch.input.key_hashes import bucket_of
from ensue.engine.ports import Ports
from ensue.events.event import Event
from ensue.spark.plan import JobPlan, RuleGroup, plan_of
from ensue.spark.worker.ordered_group import ALL_KEYS, NO_KEYS
from ensue.spark.worker.routing import EventRouter

LIBRARY = """
eventtype Base { attribute long n; };
eventtype Sub : Base { attribute double v; attribute string s; };
eventtype Other { attribute long m; };
eventtype Found {};
Found correlation Plain (Base a where n > 2, Sub b from "here" where v * 2 > 3 OR s = 'x') a ; b
{ case true: push new Found {}; }
Found correlation Keyed (Sub a where v < 2.0, Sub b where v < 2.0 AND EXISTS s) a ; b by n
{ case true: push new Found {}; }
Found correlation Extended (Sub a, Base b where subject = 'x') a ; b by region
{ case true: push new Found {}; }
Found correlation Split (Sub a where s LIKE 'x%', Other b) a ; b by a.n = b.m
{ case true: push new Found {}; }
Found correlation Both (Sub a where n IN (1, 2), Sub b) a ; b by n, region
{ case true: push new Found {}; }
"""


def by_ports(
    plan: JobPlan, group: RuleGroup, event: Event
) -> tuple[dict[int, int], tuple[str, ...]]:
    """The buckets and the rules, as the ports define them."""
    places = {names: place for place, names in enumerate(group.key_set)}
    found: dict[int, int] = {}
    names: list[str] = []
    unkeyed = False
    for rule in group.rules:
        ports = Ports(rule.correlation, plan.library.types)
        matched = ports.matched(event)
        if not group.is_keyed:
            names += [rule.name] if matched else []
            found |= {0: ALL_KEYS} if matched else {}
            continue
        readings = ports.readings(event, matched)
        names += [rule.name] if readings else []
        unkeyed |= bool(matched) and not readings
        keys = {port.name: rule.key_names(port) for port in rule.event_ports}
        for key, reading in readings.items():
            for port in reading.ports:
                bucket = bucket_of(key)
                found[bucket] = found.get(bucket, 0) | 1 << places[keys[port]]
    return found | ({-1: NO_KEYS} if unkeyed else {}), tuple(names)


def drawn(random: Random) -> Event:
    def value(*usual: Any) -> Any:
        return random.choice([*usual, None])

    data: dict[str, Any] = {"n": value(1, 2, 3), "v": value(1.0, 1.5, 3.0), "s": value("x", "xy")}
    extensions = {
        "region": value("north", 1, True, 2**70),
        "subject": value("x", "y"),
        "n": value(1, "1"),
        "s": value("x", 2**70),
    }
    kept = random.sample(list(extensions), random.randrange(4))
    given = {name: extensions[name] for name in kept if extensions[name] is not None}
    type_ = random.choice(["Base", "Sub", "Other", "Unknown"])
    held = {"m": value(1, 2)} if type_ == "Other" else data
    return Event("e", random.choice(["here", "there"]), type_, 0, held, given)


@pytest.mark.parametrize("rule", ["Plain", "Keyed", "Extended", "Split", "Both", None])
def test_an_event_goes_to_the_buckets_that_the_ports_of_a_group_say(rule: str | None) -> None:
    checked = ensue.parse(LIBRARY).checked
    plan = plan_of(checked, None if rule is None else [rule])
    random = Random(3)
    events = [drawn(random) for _ in range(600)]

    for group in plan.groups:
        router = EventRouter(plan, group, keep_unkeyed=True)
        for event in events:
            assert (router.buckets(event), router.matched) == by_ports(plan, group, event)


def test_a_whole_real_is_the_same_key_as_its_integer() -> None:
    assert bucket_of((("number", 3),)) == bucket_of((("number", 3.0),))
    assert bucket_of((("number", 3),)) != bucket_of((("str", "3"),))
