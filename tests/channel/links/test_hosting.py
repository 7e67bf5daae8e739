"""Rules that run at the other end of a link: outputs cross it, and not the events."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ensue
from ensue.channel import Channel, correlated, want
from ensue.channel.links.hosting import MOST_KEPT
from ensue.channel.links.messages import Advert, Carried, RemoteRule, RemoteWant, Route
from ensue.events.event import Event
from tests.channel.making import builder, eventually

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


def link(near: Channel, far: Channel, **options: Any) -> Any:
    host, port = near.federation.listen(patience=options.pop("patience", "30 s"))
    made = far.federation.connect(host, port, backoff="2 ms", seed=1, **options)
    assert made.wait_until_connected("30 s")
    assert eventually(
        lambda: set(ids_of(near, far)) <= {*near.federation.reachable, near.federation.id}
    )
    assert eventually(lambda: near.federation.id in far.federation.reachable)
    return made


def ids_of(*channels: Channel) -> list[str]:
    return [each.federation.id for each in channels]


@contextmanager
def channels(*names: str) -> Iterator[list[Channel]]:
    made = [channel(name) for name in names]
    try:
        yield made
    finally:
        for each in made:
            each.close()


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


def is_asked(near: Channel) -> bool:
    """Whether it has heard of the rule, or of what its ports want."""
    return near.is_wanted(["A"], None)


def watching(far: Channel, near: Channel, **quality: Any) -> list[Event]:
    got: list[Event] = []
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"), **quality)
    assert eventually(lambda: is_asked(near))
    return got


def is_away(far: Channel) -> bool:
    return not far.consumers["watch"].is_looked_up


@pytest.mark.parametrize("is_linked_first", [True, False])
def test_outputs_cross_a_link_and_not_the_events(is_linked_first: bool) -> None:
    with channels("near", "far") as (near, far):
        got: list[Event] = []
        if is_linked_first:
            link(near, far)
        far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
        if not is_linked_first:
            link(near, far)
        assert eventually(lambda: is_asked(near))
        push_all(near, story())
        assert eventually(lambda: len(got) == 3)

        assert [each.id for each in got] == ids()
        assert (near.federation.sent, far.federation.sent) == (3, 0)
        assert far.consumers["watch"].figures.delivered == 3


def test_in_a_chain_events_cross_the_links_before_the_neighbour() -> None:
    with channels("a", "b", "c") as (a, b, c):
        link(a, b)
        link(b, c)
        got = watching(c, a)
        push_all(a, story())
        assert eventually(lambda: len(got) == 3)

        assert [each.id for each in got] == ids()
        assert (a.federation.sent, b.federation.sent) == (33, 3)


def test_a_rule_between_two_channels_runs_where_its_first_event_comes_from() -> None:
    """Events of the other side go through its channel to where it runs."""
    with channels("left", "middle", "right") as (left, middle, right):
        link(left, middle)
        link(right, middle)
        got = watching(middle, left)
        assert eventually(lambda: is_asked(right))
        push_all(left, story())
        assert eventually(lambda: len(got) == 3)
        assert [each.federation.sent for each in (left, middle, right)] == [3, 0, 0]
        assert eventually(lambda: right.is_wanted(["A"], None))
        push_all(right, story(4)[33:])
        assert eventually(lambda: len(got) == 4)

        assert [each.id for each in got] == ids(4)
        assert [each.federation.sent for each in (left, middle, right)] == [4, 11, 11]


def test_an_event_of_the_asking_channel_goes_to_the_rule() -> None:
    with channels("near", "far") as (near, far):
        link(near, far)
        got = watching(far, near)
        for number, each in enumerate(story()):
            (far if each.type == "B" else near).push(each)
            if number == 0:
                assert eventually(lambda: is_away(far))
            assert eventually(lambda: not near.federation.in_transit + far.federation.in_transit)
        assert eventually(lambda: len(got) == 3)

        assert [each.id for each in got] == ids()
        assert (near.federation.sent, far.federation.sent) == (3, 3)


@pytest.mark.parametrize(
    "why", ["supplier", "consumer", "circle", "time to live", "host", "process", "long"]
)
def test_events_cross_where_outputs_would_not_save_any(why: str) -> None:
    with channels("near", "far", "third") as (near, far, third):
        if why == "host":
            near.reconfigure(correlation=False)
        if why == "process":
            near.federation.link(far)
        else:
            link(near, far)
        if why == "supplier":
            far.suppliers.connect("own", ["A"])
        if why == "consumer":
            far.consumers.connect("log", lambda _: None, want("A"))
        if why == "circle":
            link(third, far)
            link(third, near)
            # Only then it is known that an event of `near` may come by `third` too.
            ways = far.federation._routes
            assert eventually(lambda: not ways.are_apart())
        got: list[Event] = []
        rules = RULES
        if why == "long":
            listed = ", ".join(str(n) for n in range(1_000, 1_900))
            text = RULES.running_text.replace("A a,", f"A a where v NOT IN ({listed}),")
            rules = ensue.parse(text.replace("B b)", f"B b where v NOT IN ({listed}))"))
        quality: Any = {"time_to_live": "1 h"} if why == "time to live" else {}
        far.consumers.connect("watch", got.append, correlated(rules, "Ten"), **quality)
        assert eventually(lambda: near.is_wanted(["B"], None))
        push_all(near, story())
        assert eventually(lambda: len(got) == 3)

        assert [each.id for each in got] == ids()
        assert near.federation.sent == 33
        assert len(near.consumers) == 0


@pytest.mark.parametrize("end", ["disconnect", "change"])
def test_a_consumer_that_leaves_or_wants_something_else_ends_its_rule(end: str) -> None:
    with channels("near", "far") as (near, far):
        link(near, far)
        got = watching(far, near)
        push_all(near, story(1))
        assert eventually(lambda: len(got) == 1)
        if end == "disconnect":
            far.consumers["watch"].disconnect()
        else:
            far.consumers["watch"].change("B")
        assert eventually(lambda: len(near.consumers) == 0)
        push_all(near, story(1, first=11))
        assert eventually(lambda: not near.federation.in_transit)

        due = ["Out"] if end == "disconnect" else ["Out", "B"]
        assert eventually(lambda: [each.type for each in got] == due)


def test_timers_of_a_rule_follow_the_clock_of_the_channel_in_which_it_runs() -> None:
    with channels("near", "far") as (near, far):
        link(near, far)
        got: list[Event] = []
        far.consumers.connect("watch", got.append, correlated(RULES, "Silent"))
        assert eventually(lambda: is_asked(near))
        near.push(Event("a", "x", "A", near.clock.now(), {"v": 1}))
        assert eventually(lambda: is_away(far) and len(near.consumers) == 1)
        clock: Any = near.clock
        clock.advance("25 s")

        assert eventually(lambda: [each.type for each in got] == ["Gone", "Gone"])
        assert near.federation.sent == 2


def test_each_of_two_consumers_has_a_run_of_its_own() -> None:
    with channels("near", "far") as (near, far):
        link(near, far)
        first = watching(far, near)
        push_all(near, story(1)[:5])
        second: list[Event] = []
        far.consumers.connect("second", second.append, correlated(RULES, "Ten"))
        assert eventually(lambda: len(near.federation._hosted._rules) == 2)
        push_all(near, story(1)[5:])
        push_all(near, story(1, first=11))
        assert eventually(lambda: len(second) == 1 and len(first) == 2)

        assert [each.id for each in first] == ids(2)
        assert [each.id for each in second] == ids(2)[1:]
        assert near.federation.sent == 3


def test_a_channel_that_has_the_events_keeps_its_rule() -> None:
    with channels("near", "far") as (near, far):
        link(near, far)
        got = watching(near, far)
        push_all(near, story())

        assert [each.id for each in got] == ids()
        assert (near.federation.sent, len(far.consumers)) == (0, 0)


ECHO = ensue.parse("""
eventtype A { attribute long v; };
A correlation Echo (A a) a { case true: push a; }
""")


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("seed", range(10))
def test_where_both_ends_have_events_at_once_each_is_read_once(seed: int) -> None:
    """Each event is an output. Who runs the rule is open until both ends have heard of it."""
    both_ends(seed)


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("seed", range(10))
def test_where_both_neighbours_have_events_at_once_each_is_read_once(seed: int) -> None:
    both_ends(seed, "third")


def both_ends(seed: int, third: str = "near") -> None:
    chance = random.Random(seed)
    with channels(*dict.fromkeys(("near", "far", third))) as (near, far, *others):
        got: list[Event] = []
        beside = others[0] if others else near
        for each in (near, far, *others):
            each.dispatch_by("pool", threads=2)
        if others:
            link(beside, far)
        is_late = chance.random() < 0.3
        if not is_late:
            link(near, far)
        far.consumers.connect("watch", got.append, correlated(ECHO, "Echo"))
        if is_late:
            host, port = near.federation.listen()
            far.federation.connect(host, port, backoff="2 ms", seed=1)
        assert eventually(lambda: is_asked(near) and is_asked(beside))

        def supply(origin: Channel, name: str, pause: float) -> None:
            time.sleep(pause)
            for n in range(40):
                origin.push(Event(f"{name}{n}", name, "A", 0, {"v": n}))

        threads = [
            threading.Thread(target=supply, args=(origin, name, chance.random() * 0.004))
            for origin, name in ((near, "n"), (beside, "m"), (far, "f"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        due = {f"{name}{n}" for name in "nmf" for n in range(40)}
        assert eventually(lambda: len(got) >= len(due), 20), sorted(due - {e.id for e in got})

        assert sorted(each.id for each in got) == sorted(due)
        for name in "nmf":
            assert [e.id for e in got if e.source == name] == [f"{name}{n}" for n in range(40)]


def test_a_link_that_is_cut_again_and_again_loses_no_output() -> None:
    with channels("near", "far") as (near, far):
        cut = link(near, far, longest_backoff="9 ms")
        got = watching(far, near)
        for number, each in enumerate(story(30)):
            near.push(each)
            if number % 17 == 5:
                cut.interrupt()
        assert eventually(lambda: len(got) >= 30, 20), len(got)

        assert [each.id for each in got] == ids(30)
        assert near.federation.sent == 30


@pytest.mark.parametrize("has_own", [False, True])
def test_a_rule_goes_on_when_the_link_is_back_or_begins_anew_without_it(has_own: bool) -> None:
    """Nine of ten are read when the link ends for good at both ends."""
    with channels("near", "far") as (near, far):
        first = link(near, far)
        got = watching(far, near)
        push_all(near, story(1)[:9])
        assert eventually(lambda: is_away(far) and len(near.consumers) == 1)
        first.close()
        assert eventually(lambda: not far.federation.neighbours and not near.federation.neighbours)
        assert far.consumers["watch"].is_looked_up
        if has_own:
            far.push(story(1)[9])
        link(near, far)
        assert eventually(lambda: is_asked(near))
        rest = story(2)[10:] if has_own else story(1)[9:]
        push_all(near, rest)
        assert eventually(lambda: len(got) == 1)

        assert [each.id for each in got] == (ids(2)[1:] if has_own else ids(1))
        assert near.federation.sent == (len(rest) if has_own else 1)
        assert eventually(lambda: len(near.consumers) == (0 if has_own else 1))


class Kept:
    """A link that keeps what it is to carry, and brings it nowhere."""

    queues_news = True

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


WANTED = (RemoteWant("A", None, None), RemoteWant("B", None, None))


def asking(near: Channel, link: Kept, version: int = 1, **changes: Any) -> None:
    """Let the channel `far#1` say what it asks for."""
    given: dict[str, Any] = {
        "at": (near.federation.id,),
        "key": "far#1/k",
        "library": RULES.running_text,
        "name": "Ten",
    }
    given |= {"lateness": 0, "max_jump": None, "wants": WANTED} | changes
    rules = (RemoteRule(**given),) if given.pop("is_there", True) else ()
    wants = () if rules else WANTED
    route = Route("far#1", version, ("far#1",), wants, rules)
    near.federation.receive_news(Advert(version, True, (route,)), "far#1", link)


def watched(near: Channel) -> Kept:
    made = Kept()
    near.federation.add_link("far#1", made)
    near.federation.introduce(made)
    return made


@pytest.mark.parametrize(
    "changes",
    [{"library": "eventtype"}, {"name": "Nine"}, {"key": "other#1/k"}, {"at": ("other#1",)}],
)
def test_a_rule_that_cannot_run_leaves_the_events_to_whoever_asks(changes: dict[str, Any]) -> None:
    near = channel("near")
    there = watched(near)
    asking(near, there, **changes)
    push_all(near, story(1))

    assert [each.event.type for each in there.sent] == ["A"] * 10 + ["B"]
    assert len(near.consumers) == 0


def test_a_channel_that_keeps_its_rule_after_all_gets_the_events_that_were_kept() -> None:
    """It has read an event of its own at the time at which the neighbour read its first."""
    near = channel("near")
    there = watched(near)
    asking(near, there)
    push_all(near, story(1)[:3])
    assert (len(there.sent), there.told[-1].routes[0].offers) == (0, ("far#1/k",))
    asking(near, there, 2, is_there=False)
    push_all(near, story(1)[3:5])

    assert [each.event.id for each in there.sent] == ["e0", "e1", "e2", "e3", "e4"]
    assert [each.rule for each in there.sent] == ["far#1/k"] * 3 + [None] * 2
    assert len(near.consumers) == 0


def test_what_is_kept_is_read_first_when_the_channel_agrees() -> None:
    near = channel("near")
    there = watched(near)
    asking(near, there)
    push_all(near, story(1)[:10])
    assert there.sent == []
    asking(near, there, 2, runs=True, wants=())
    push_all(near, story(1)[10:])

    (output,) = there.sent
    assert (output.event.type, output.rule, output.is_output) == ("Out", "far#1/k", True)


def test_of_a_channel_that_never_answers_a_bounded_number_of_events_is_kept() -> None:
    near = channel("near")
    there = watched(near)
    asking(near, there)
    for n in range(MOST_KEPT + 3):
        near.push(Event(f"e{n}", "x", "A", n, {"v": n}))
    assert {str(reason): n for reason, n in near.figures().dropped.items()} == {"unsent": 3}
    asking(near, there, 2, is_there=False)

    assert [each.event.id for each in there.sent] == [f"e{n}" for n in range(MOST_KEPT)]


def test_a_rule_that_is_given_back_begins_here() -> None:
    far, there, got = channel("far"), Kept(), list[Event]()
    far.federation.add_link("near#1", there)
    far.federation.introduce(there)
    far.consumers.connect("watch", got.append, correlated(RULES, "Ten"))
    (asked,) = there.told[-1].routes[0].rules
    for version, offers in ((1, (asked.key,)), (2, ())):
        told = Route("near#1", version, ("near#1",), (), (), offers)
        far.federation.receive_news(Advert(version, True, (told,)), "near#1", there)
        assert is_away(far) == bool(offers)
    push_all(far, story(1))

    assert [each.id for each in got] == ids(1)
    assert {each.type for each in there.told[-1].routes[0].wants} == {"A", "B"}
