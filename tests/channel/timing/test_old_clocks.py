"""A stream that begins far in the past fires no timers all the way to today."""

from __future__ import annotations

import time

import pytest

import ensue
from ensue.channel import build, correlated
from ensue.channel.delivery.correlation import CorrelationStep
from ensue.events.event import Event

RULES = """
eventtype Beat {};
eventtype Silent {};
Silent correlation Gone (Beat b, deadline 10 s gone) gone { case true: push new Silent {}; }
"""
NOW = 1_770_000_000_000_000
SECOND = 1_000_000


def beat(time: int) -> Event:
    return Event(str(time), "test", "Beat", time, None)


def live() -> CorrelationStep:
    return CorrelationStep(correlated(ensue.parse(RULES)), lambda: NOW)


def test_an_event_of_today_after_one_of_1970_fires_nothing() -> None:
    step = live()

    assert list(step.read(beat(0))) == []
    assert list(step.read(beat(NOW))) == []
    assert len(list(step.advance(NOW + 10 * SECOND))) == 1
    assert not step.take_drops()


def test_the_clock_alone_fires_nothing_from_1970_on() -> None:
    step = live()
    step.read(beat(0))

    assert list(step.advance(NOW)) == []
    assert step.next_due() is None
    step.read(beat(NOW))
    assert len(list(step.advance(NOW + 10 * SECOND))) == 1


def test_a_gap_that_is_short_enough_fires_every_timer() -> None:
    step = live()
    step.read(beat(NOW - 100 * SECOND))

    assert len(list(step.advance(NOW))) == 10


@pytest.mark.parametrize("within", ["60 s", "0 s"])
def test_a_channel_that_closes_in_a_gap_puts_everything_out_or_says_that_it_has_not(
    within: str,
) -> None:
    rules = ensue.parse(RULES)
    channel = build("full").library(rules).dispatching("pool", threads=1).done()
    got: list[Event] = []
    channel.consumers.connect("x", got.append, correlated(rules))
    now = time.time_ns() // 1000
    beats = channel.suppliers.connect("s", ["Beat"])
    beats.push(beat(now - 60_000 * SECOND))
    beats.push(beat(now))
    closing = channel.close(within=within)

    assert closing.drained == (len(got) == 6_000)
    assert closing.drained or within == "0 s"
