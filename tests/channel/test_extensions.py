"""What rules set by `with`: turns go by its `priority`, and what expires is dropped and counted."""

from __future__ import annotations

import ensue
from ensue.channel import Channel, Reason, VirtualClock, build, correlated
from ensue.events.event import Event
from tests.channel.making import empty, event, extended, held

LIBRARY = ensue.parse(
    """
    eventtype A { attribute long level; attribute timestamp end; };
    eventtype Out { attribute string name; };
    Out correlation Three (A a)
        a
    {
        case true: push new Out { name = 'low' } with { priority = 1 };
            push new Out { name = 'plain' };
            push new Out { name = 'high' } with { priority = 9 };
    }
    Out correlation Plain (A a) a { case true: push new Out { name = 'plain' }; }
    Out correlation High (A a)
        a
    {
        case true: push new Out { name = 'high' } with { priority = 9 };
    }
    Out correlation Brief (A a)
        a
    {
        case true: push new Out { name = 'brief' } with { expirytime = a.end };
    }
    """
)


def channel_of(clock: VirtualClock) -> Channel:
    made = build("full").library(LIBRARY).dispatching("pool", threads=1).clock(clock)
    return made.done()


def test_outputs_of_one_rule_come_by_their_priority() -> None:
    channel, got = channel_of(VirtualClock()), empty()
    channel.consumers.connect(
        "one", lambda each: got.append(each.data["name"]), correlated(LIBRARY, "Three")
    )
    with held(channel):
        channel.push(event("A", level=1, end=None))

    assert got == ["high", "low", "plain"]
    channel.close()


def test_outputs_that_wait_go_by_priority_and_before_events_that_wait() -> None:
    """The rule has read the first event when the second comes, which is read after its outputs."""
    channel, got = channel_of(VirtualClock()), empty()

    def call(output: Event) -> None:
        got.append((output.extensions["trigger"], output.data["name"]))
        if len(got) == 1:
            # While the others wait, more comes: also an event that goes before other events.
            channel.push(extended("A", data={"level": 1, "end": None}, priority=0))
            channel.push(extended("A", data={"level": 1, "end": None}, priority=7))

    channel.consumers.connect("one", call, correlated(LIBRARY, "Three"))
    with held(channel):
        channel.push(event("A", level=1, end=None))
    channel.settle()
    first, _, _, urgent, *_, last = [trigger for trigger, _ in got]

    assert [name for _, name in got] == ["high", "low", "plain"] * 3
    assert [trigger for trigger, _ in got] == [first] * 3 + [urgent] * 3 + [last] * 3
    assert int(urgent[1:]) > int(last[1:])
    channel.close()


def test_the_consumer_of_the_more_urgent_output_has_the_next_turn() -> None:
    channel, got = channel_of(VirtualClock()), empty()
    for name in ("Plain", "High"):
        channel.consumers.connect(
            name, lambda each: got.append(each.data["name"]), correlated(LIBRARY, name)
        )
    with held(channel):
        channel.push(event("A", level=1, end=None))

    assert got == ["high", "plain"]
    channel.close()


def test_an_output_that_has_expired_is_dropped_and_counted() -> None:
    clock, got = VirtualClock(1_000_000), empty()
    channel = channel_of(clock)
    consumer = channel.consumers.connect("one", got.append, correlated(LIBRARY, "Brief"))
    with held(channel):
        channel.push(event("A", level=1, end="1970-01-01T00:00:02Z"))
        channel.push(event("A", level=2, end="1970-01-01T00:00:05Z"))
        channel.push(event("A", level=3, end=None))
        clock.advance("4 s")

    # At its moment the second one may still be used.
    assert [each.extensions.get("expirytime") for each in got] == ["1970-01-01T00:00:05Z", None]
    assert consumer.figures.dropped == {Reason.EXPIRED: 1}
    channel.close()
