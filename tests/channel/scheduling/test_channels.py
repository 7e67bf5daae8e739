"""A channel with a schedule: its consumers have the priorities, and are measured."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from ensue.channel import build, from_toml
from ensue.channel.scheduling import Schedule
from ensue.channel.scheduling.measured import read_record
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import empty, event

TABLES = {
    "operation": [
        {"name": "sensor", "period": "10 ms", "worst": "1 ms", "supplies": ["Notify"]},
        {"name": "quick", "consumes": {"any": ["Notify"]}, "worst": "200 ms"},
        {"name": "slow", "period": "1 s", "worst": "1 ms"},
        {"name": "unknown", "period": "2 s"},
    ]
}
SCHEDULE = """
[[operation]]
name = "sensor"
period = "10 ms"
worst = "1 ms"
supplies = ["Notify"]
[[operation]]
name = "quick"
consumes = { any = ["Notify"] }
"""


def test_a_consumer_has_the_priority_and_the_deadline_of_its_operation() -> None:
    with build("filtering").schedule(TABLES).done() as channel:
        quick = channel.consumers.connect("one", lambda _: None, operation="quick")
        slow = channel.consumers.connect("two", lambda _: None, operation="slow", deadline="3 s")

        assert quick.quality.priority > slow.quality.priority
        assert quick.quality.deadline == "10.0 ms"
        assert slow.quality.deadline == "3 s"


def test_turns_are_measured_against_the_declared_worst_case() -> None:
    with build("filtering").schedule(TABLES).done() as channel:
        channel.consumers.connect("one", lambda _: None, operation="quick")
        channel.consumers.connect("two", lambda _: time.sleep(0.005), operation="slow")
        for _ in range(3):
            with channel.schedule.turn("sensor"):
                channel.push(event("Notify"))
        figures = {each.name: each for each in channel.schedule.report()}

    assert {name: each.turns for name, each in figures.items()} == {
        "sensor": 3,
        "quick": 3,
        "slow": 3,
        "unknown": 0,
    }
    assert figures["slow"].overruns == 3
    assert figures["quick"].overruns == 0
    assert figures["slow"].worst is not None
    assert figures["slow"].worst >= 5_000
    assert figures["unknown"].worst is None
    assert figures["sensor"].declared_rate == 100


def test_a_turn_that_fails_is_measured_as_well() -> None:
    def fail(_: Event) -> None:
        raise ValueError

    with build("filtering").schedule(TABLES).done() as channel:
        channel.consumers.connect("one", fail, operation="quick")
        channel.push(event("Notify"))

        assert channel.schedule.report()[1].turns == 1


def test_coroutines_are_measured_until_they_are_done() -> None:
    async def story() -> int | None:
        async def consume(_: Event) -> None:
            await asyncio.sleep(0.01)

        channel = build("full").schedule(TABLES).dispatching("asyncio").done()
        channel.consumers.connect("one", consume, operation="slow")
        await channel.publish(event("Notify"))
        while not (figures := channel.schedule.report()[2]).turns:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(channel.close)
        return figures.worst

    worst = asyncio.run(story())

    assert worst is not None
    assert worst >= 9_000


def test_what_was_measured_fills_in_what_was_not_declared(tmp_path: Path) -> None:
    got = empty()
    (tmp_path / "schedule.toml").write_text(SCHEDULE)
    (tmp_path / "channel.toml").write_text(
        '[channel]\nconfiguration = "filtering"\nschedule = "schedule.toml"\n'
    )
    with from_toml(tmp_path / "channel.toml").done() as channel:
        channel.consumers.connect("one", got.append, operation="quick")
        channel.push(event("Notify"))
        channel.schedule.save(tmp_path / "flown.json")
    record = read_record(tmp_path / "flown.json")

    assert record.keys() == {"quick"}
    with pytest.raises(UsageError, match="`quick`: give `worst`, or a record"):
        Schedule.of(tmp_path / "schedule.toml")
    found = Schedule.of(tmp_path / "schedule.toml", record)
    assert found["quick"].worst == record["quick"] > 0
    assert found["sensor"].worst == 1_000


def test_a_channel_without_a_schedule_says_how_to_have_one() -> None:
    with (
        build("filtering").done() as channel,
        pytest.raises(UsageError, match=r'build it with `\.schedule\("schedule.toml"\)`'),
    ):
        channel.consumers.connect("one", lambda _: None, operation="quick")


def test_an_operation_that_the_schedule_does_not_have_is_refused_with_those_that_it_has() -> None:
    with (
        build("filtering").schedule(TABLES).done() as channel,
        pytest.raises(UsageError, match="no operation `quack`; it has `sensor`, `quick`"),
    ):
        channel.consumers.connect("one", lambda _: None, operation="quack")


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"measured": 3}')

    with pytest.raises(UsageError, match=r"no record of measured times: .*channel\.schedule\.save"):
        read_record(tmp_path / "r.json")
