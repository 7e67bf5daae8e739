"""Rules that run at the other end of a link: outputs cross it, and not the events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import ensue
from ensue.channel import Channel, correlated, want
from ensue.channel.links.messages import Advert, Carried, RemoteRule, RemoteWant, Route
from ensue.events.event import Event
from tests.channel.making import builder, eventually
from tests.federation.placement.random_trials import trial

RULES = ensue.parse("""
eventtype A { attribute long v; };
eventtype B { attribute long v; };
eventtype Out { attribute long v; };
eventtype Gone { };
Out correlation Ten (A a, B b) a{10} ; b { case true: push new Out { v = b.v }; }
Gone correlation Silent (A a, deadline 10 s d) d { case true: push new Gone { }; }
""")
SECOND = 1_000_000


def channel(name: str, configuration: str = "full") -> Channel:
    return builder(configuration, name).dispatching("reactive").done()


def in_process(near: Channel, far: Channel) -> None:
    near.federation.link(far)


def over_tcp(near: Channel, far: Channel) -> None:
    host, port = near.federation.listen()
    assert far.federation.connect(host, port, seed=1).wait_until_connected("30 s")


@contextmanager
def closing(*channels: Channel) -> Any:
    with ExitStack() as stack:
        for each in channels:
            stack.enter_context(each)
        yield


def story(rounds: int = 3, first: int = 0) -> list[Event]:
    """Ten of `A` and one of `B`, again and again: eleven events for an output."""
    times = range(first, first + 11 * rounds)
    return [Event(f"e{n}", "x", "B" if n % 11 == 10 else "A", n * SECOND, {"v": n}) for n in times]


def push_all(origin: Channel, events: list[Event]) -> None:
    for each in events:
        origin.push(each)


def ids(rounds: int = 3) -> list[str]:
    run = RULES.start()
    return [out.id for e in story(rounds) for out in run.push(e) if out.type == "Out"]


@pytest.mark.parametrize("link", [in_process, over_tcp])
@pytest.mark.parametrize("is_linked_first", [True, False])
def test_outputs_cross_a_link_and_not_the_events(
    link: Callable[[Channel, Channel], None], is_linked_first: bool
) -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    with closing(near, far):
        if is_linked_first:
            link(near, far)
        far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
        if not is_linked_first:
            link(near, far)
        assert eventually(lambda: near.is_wanted(["A"], None))
        push_all(near, story())
        assert eventually(lambda: len(got) == 3)

        assert [each.id for each in got] == ids()
        assert (near.federation.sent, far.federation.sent) == (3, 0)
        assert far.consumers["watch"].figures.delivered == 3


def linked(*pairs: tuple[Channel, Channel]) -> None:
    for one, other in pairs:
        one.federation.link(other)


def test_in_a_chain_events_cross_the_links_before_the_neighbour() -> None:
    a, b, c, got = channel("a"), channel("b"), channel("c"), list[Event]()
    linked((a, b), (b, c))
    c.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    push_all(a, story())

    assert [each.id for each in got] == ids()
    assert (a.federation.sent, b.federation.sent) == (33, 3)


def test_an_event_of_the_asking_channel_goes_to_the_rule() -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    for each in story():
        (far if each.type == "B" else near).push(each)

    assert [each.id for each in got] == ids()
    assert (near.federation.sent, far.federation.sent) == (3, 3)


@pytest.mark.parametrize("why", ["supplier", "consumer", "neighbour", "time to live", "host"])
def test_events_cross_where_outputs_would_not_save_any(why: str) -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    if why == "host":
        near = channel("near", "filtering")
        near.reconfigure(correlation=False)
    linked((near, far))
    if why == "supplier":
        far.suppliers.connect("own", ["A"])
    if why == "consumer":
        far.consumers.connect("log", lambda _: None, want("A"))
    if why == "neighbour":
        linked((far, channel("third")))
    quality: Any = {"time_to_live": "1 h"} if why == "time to live" else {}
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"), **quality)
    push_all(near, story())

    assert [each.id for each in got] == ids()
    assert near.federation.sent == 33
    assert len(near.consumers) == 0


def test_a_rule_begins_anew_here_when_the_link_is_gone_and_there_when_it_is_back() -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    push_all(near, story(1))
    near.federation.unlink(far)
    push_all(far, story(1, first=11))
    linked((near, far))
    push_all(near, story(1, first=22))

    assert [each.id for each in got] == ids()
    # The rule has read events here meanwhile, so that it stays.
    assert near.federation.sent == 1 + 11
    assert len(near.consumers) == 0


def test_a_rule_that_has_read_nothing_here_meanwhile_goes_back_to_the_neighbour() -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    near.federation.unlink(far)
    linked((near, far))
    push_all(near, story(1))

    assert (len(got), near.federation.sent) == (1, 1)


@pytest.mark.parametrize("end", ["disconnect", "change"])
def test_a_consumer_that_leaves_or_wants_something_else_ends_its_rule(end: str) -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    consumer = far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    push_all(near, story(1))
    if end == "disconnect":
        consumer.disconnect()
    else:
        consumer.change("B")
    push_all(near, story(1, first=11))

    assert len(near.consumers) == 0
    assert [each.type for each in got] == (["Out"] if end == "disconnect" else ["Out", "B"])


def test_timers_of_a_rule_follow_the_clock_of_the_channel_in_which_it_runs() -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    far.consumers.connect("watch", got.append, correlated(RULES, "Silent"))
    near.push(Event("a", "x", "A", near.clock.now(), {"v": 1}))
    clock: Any = near.clock
    clock.advance("25 s")

    assert [each.type for each in got] == ["Gone", "Gone"]
    assert near.federation.sent == 2


def test_each_of_two_consumers_has_a_run_of_its_own() -> None:
    near, far = channel("near"), channel("far")
    first, second = list[Event](), list[Event]()
    linked((near, far))
    far.consumers.connect("first", first.append, correlated(RULES, "Ten"))
    push_all(near, story(1)[:5])
    far.consumers.connect("second", second.append, correlated(RULES, "Ten"))
    push_all(near, story(1)[5:])
    push_all(near, story(1, first=11))

    assert [each.id for each in first] == ids(2)
    assert [each.id for each in second] == ids(2)[1:]


def test_two_channels_that_ask_each_other_do_not_ask_for_what_they_were_asked() -> None:
    one, other = channel("one"), channel("other")
    at_one, at_other = list[Event](), list[Event]()
    linked((one, other))
    one.consumers.connect("watch", at_one.append, correlated(RULES, "Ten"))
    other.consumers.connect("watch", at_other.append, correlated(RULES, "Ten"))
    push_all(one, story(1))

    assert [each.id for each in at_one] == [each.id for each in at_other] == ids(1)
    assert (len(one.consumers), len(other.consumers)) == (2, 1)
    assert (one.federation.sent, other.federation.sent) == (1, 0)


@pytest.mark.parametrize("changes", [{"library": "eventtype"}, {"name": "Nine"}])
def test_a_rule_that_cannot_run_leaves_the_events_to_whoever_asks(changes: dict[str, Any]) -> None:
    near = channel("near")
    wanted = RemoteWant("A", None, None)
    given = {"at": near.federation.id, "key": "k", "library": str(RULES), "name": "Ten"}
    rule = RemoteRule(**{**given, "lateness": 0, "max_jump": None, "wants": (wanted,), **changes})
    link = Kept()
    near.federation.add_link("liar#1", link)
    advert = Advert(1, True, (Route("liar#1", 1, ("liar#1",), (), (rule,)),))
    near.federation.receive_news(advert, "liar#1", link)
    push_all(near, story(1))

    assert [each.event.type for each in link.sent] == ["A"] * 10
    assert len(near.consumers) == 0


class Kept:
    """A link that keeps what it is to carry, and brings it nowhere."""

    def __init__(self) -> None:
        self.sent: list[Carried] = []
        self.told: list[Advert] = []

    @property
    def in_transit(self) -> int:
        return len(self.sent)

    def send(self, message: Carried) -> tuple[()]:
        self.sent.append(message)
        return ()

    def advertise(self, advert: Advert) -> None:
        self.told.append(advert)

    def transmit(self) -> None: ...

    def close(self, seconds: float) -> bool:  # noqa: ARG002
        return True


def test_a_channel_that_keeps_its_rule_after_all_gets_the_events_that_were_kept() -> None:
    """It has read an event of its own at the time at which the neighbour read its first."""
    near, link = channel("near"), Kept()
    wanted = RemoteWant("A", None, None)
    rule = RemoteRule(near.federation.id, "k", RULES.running_text, "Ten", 0, None, (wanted,))
    near.federation.add_link("far#1", link)
    asks = Advert(1, True, (Route("far#1", 1, ("far#1",), (), (rule,)),))
    near.federation.receive_news(asks, "far#1", link)
    push_all(near, story(1)[:3])
    assert (len(link.sent), link.told[-1].routes[0].runs) == (0, (("far#1", "k"),))
    keeps = Advert(2, True, (Route("far#1", 2, ("far#1",), (wanted,)),))
    near.federation.receive_news(keeps, "far#1", link)
    push_all(near, story(1)[3:5])

    assert [each.event.id for each in link.sent] == ["e0", "e1", "e2", "e3", "e4"]
    assert len(near.consumers) == 0


def test_rules_for_another_channel_are_left_to_it() -> None:
    near, far, third = channel("near"), channel("far"), channel("third")
    linked((near, far))
    far.consumers.connect("watch", lambda _: None, correlated(RULES, "Ten"))
    push_all(near, story(1))
    linked((far, third))
    push_all(third, story(1, first=11))

    assert (len(near.consumers), len(third.consumers)) == (1, 0)
    assert (near.federation.sent, third.federation.sent, far.federation.sent) == (2, 11, 11)


def test_a_channel_that_has_the_events_keeps_its_rule() -> None:
    near, far, got = channel("near"), channel("far"), list[Event]()
    linked((near, far))
    near.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    push_all(near, story())

    assert [each.id for each in got] == ids()
    assert (near.federation.sent, len(far.consumers)) == (0, 0)


def kept_in(ids: list[str]) -> Callable[[Event], None]:
    return lambda event: ids.append(event.id)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_any_library_puts_out_what_it_does_in_the_channel_of_its_events(first: int) -> None:
    crossed = 0
    for seed in range(first, first + 20):
        drawn = trial(seed)
        near, far = channel("near"), channel("far")
        here, there = list[str](), list[str]()
        linked((near, far))
        near.consumers.connect("watch", kept_in(here), correlated(drawn.library))
        far.consumers.connect("watch", kept_in(there), correlated(drawn.library))
        push_all(near, [event for _, event in drawn.events])
        near.close()
        far.close()

        assert there == here, str(drawn)
        crossed += near.federation.sent
        assert near.federation.sent == len(there)
    assert crossed
