"""Brokers over the links of the event channel: what a break of a link may not change."""

from __future__ import annotations

from itertools import permutations

import pytest

from ensue.brokers import Broker, link, unlink
from ensue.brokers.network.statements import Hearing, PendingStatements
from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import LONGEST_FILTER, SPOKEN_A_STATEMENT, FilterStatement, Spoken
from ensue.channel.links.tcp.wire import LARGEST_FRAME, LENGTH, decode, framed
from ensue.channel.policies import DropNewest, Reason
from ensue.errors import UsageError
from ensue.subscriptions import Filter, covers
from tests.brokers.world import World


def _assert_only_the_most_general_travel(brokers: list[Broker]) -> None:
    for broker in brokers:
        for far in broker.neighbours:
            for one, other in permutations(broker.asks(far), 2):
                assert not covers(one, other), f"{one} covers {other}"


@pytest.mark.parametrize("seed", range(16))
def test_breaks_within_patience_lose_nothing_and_repeat_nothing(seed: int) -> None:
    world = World(seed)
    world.grow(world.random.randint(2, 7))
    for _ in range(6):
        for _ in range(4):
            world.random.choice([world.subscribe, world.subscribe, world.unsubscribe])()
            if world.random.random() < 0.4:
                world.trouble()
            world.pass_time(0.5)
        world.settle()
        for _ in range(12):
            world.publish()
            if world.random.random() < 0.3:
                world.trouble()
            world.pass_time(0.5)
        world.settle()

        assert world.got == world.due
    _assert_only_the_most_general_travel(world.brokers)
    while world.homes:
        world.unsubscribe()
    world.settle()
    assert [b.asks(far) for b in world.brokers for far in b.neighbours if b.asks(far)] == []
    assert world.loop.errors == []


@pytest.mark.parametrize("seed", range(8))
def test_advertisements_are_told_again_too(seed: int) -> None:
    world = World(100 + seed, advertised=True)
    world.grow(world.random.randint(2, 6))
    actions = [world.subscribe, world.advertise, world.advertise]
    actions += [world.unsubscribe, world.unadvertise]
    for _ in range(6):
        for _ in range(6):
            world.random.choice(actions)()
            if world.random.random() < 0.3:
                world.trouble()
            world.pass_time(0.3)
        world.settle()
        for _ in range(12):
            world.publish()
            if world.random.random() < 0.2:
                world.trouble()
            world.pass_time(0.3)
        world.settle()

        assert world.got == world.due
    _assert_only_the_most_general_travel(world.brokers)
    assert world.loop.errors == []


@pytest.mark.parametrize("seed", range(8))
def test_after_a_break_beyond_patience_all_is_as_before_it(seed: int) -> None:
    """What was published in the meantime may be lost, and is given to nobody twice."""
    world = World(200 + seed, patience="200 ms", reliable=seed % 4 != 3)
    world.grow(world.random.randint(2, 6))
    for _ in range(5):
        for _ in range(4):
            world.random.choice([world.subscribe, world.unsubscribe, world.publish])()
            world.network.is_closed = world.random.random() < 0.5
            world.trouble()
            world.pass_time(3.0)
        world.network.is_closed = False
        # A connection that has become silent is given up after three heartbeats.
        world.loop.run_for(10.0)
        world.settle()
        assert set(world.got.values()) <= {1}

        world.got.clear()
        world.due.clear()
        for _ in range(12):
            world.publish()
            world.pass_time(0.1)
        world.settle()
        assert world.got == world.due
    assert world.loop.errors == []


def test_filters_are_never_dropped_where_events_are() -> None:
    world = World(1, buffer=1, overflow=DropNewest())
    leaf, root = world.add("leaf"), world.add("root")
    world.dial(leaf, root)
    for number in range(1_500):
        leaf.subscribe(f"s{number}", f"k{number} = {number}", print)
    for number in range(0, 1_500, 2):
        leaf.unsubscribe(f"s{number}")
    world.settle()

    assert len(leaf.asks("root")) == 750
    assert len(world.links["root"]._ends["leaf"].hearing._said) == 750 + 1


def test_link_that_would_close_a_circle_is_refused_and_tried_again() -> None:
    world = World(2)
    one, two, three = (world.add(name) for name in ("one", "two", "three"))
    link(one, two)
    between = world.dial(two, three)
    world.settle()
    closing = world.dial(three, one)
    world.loop.run_for(5.0)

    assert world.links["three"].faults[LinkFault.CIRCLE] > 1
    assert closing.attempts < 30
    assert one.neighbours == ["two"]
    with pytest.raises(UsageError, match="another link would be a circle"):
        link(three, one)

    between.close()
    world.dialled.remove(between)
    assert world.loop.run_until(lambda: three.neighbours == ["one"], 60.0)
    world.settle()


def test_brokers_that_are_parted_in_the_process_may_meet_by_another_way() -> None:
    world = World(3)
    one, two, three = (world.add(name) for name in ("one", "two", "three"))
    link(one, two)
    world.dial(two, three)
    world.settle()
    unlink(one, two)
    world.dial(one, three)
    world.settle()

    assert (three.neighbours, one.neighbours) == (["two", "one"], ["three"])


def test_second_link_to_a_neighbour_is_refused() -> None:
    world = World(4)
    one, two = world.add("one"), world.add("two")
    world.dial(one, two)
    world.settle()
    second = world.dial(two, one)
    world.loop.run_for(2.0)

    assert not second.is_connected
    assert world.links["one"].faults[LinkFault.ALREADY_LINKED] > 0
    assert world.dialled[0].is_connected


def test_broker_that_begins_again_under_its_name_takes_the_place_of_the_old_one() -> None:
    world = World(5)
    leaf, root = world.add("leaf"), world.add("root")
    old = world.dial(leaf, root)
    world.settle()
    leaf.subscribe("s", "n > 1", lambda _: None)
    world.settle()
    assert [str(each) for each in world.links["root"]._ends["leaf"].hearing._said.values()]
    old._dialling.cancel()
    world.network.cut_one()
    world.loop.run_for(1.0)
    assert root.neighbours == ["leaf"]

    world.dialled.clear()
    again = world.add("leaf")
    again.subscribe("t", "n > 7", lambda _: None)
    world.dial(again, root)
    world.settle()

    heard = world.links["root"]._ends["leaf"].hearing
    assert [each for each in heard._said.values() if each] == [Filter.parse("n > 7")]
    assert heard.brokers == [again.id]


def test_brokers_of_two_kinds_are_not_linked() -> None:
    world = World(6)
    plain = world.add("plain")
    world.advertised = True
    other = world.add("other")
    world.dial(plain, other)
    world.loop.run_for(1.0)

    assert world.links["plain"].faults[LinkFault.OTHER_KIND] > 0
    assert (plain.neighbours, other.neighbours) == ([], [])


def test_events_that_a_link_could_not_keep_are_counted() -> None:
    world = World(7, patience="100 ms")
    leaf, root = world.add("leaf"), world.add("root")
    world.dial(leaf, root)
    leaf.subscribe("all", "TRUE", lambda event: world._take("all", event))
    world.settle()
    world.network.is_closed = True
    world.network.cut_one()
    for _ in range(5):
        root.publish({"id": "1", "source": "s", "type": "E", "time": "2026-01-01T00:00:00Z"})
    world.loop.run_for(30.0)

    assert sum(world.links["root"].lost.values()) == 5
    assert set(world.links["root"].lost) <= {Reason.UNROUTED, Reason.UNCONFIRMED}
    assert root.neighbours == []


def test_filter_too_long_to_travel_asks_for_everything() -> None:
    world = World(8)
    leaf, root = world.add("leaf"), world.add("root")
    world.dial(leaf, root)
    words = ", ".join(f"'{'x' * 90}{number}'" for number in range(300))
    got: list[str] = []
    leaf.subscribe("long", f"s IN ({words})", lambda event: got.append(event.id))
    world.settle()
    heard = world.links["root"]._ends["leaf"].hearing
    assert Filter.parse("TRUE") in heard._said.values()

    head = {"source": "s", "type": "E", "time": "2026-01-01T00:00:00Z"}
    root.publish({**head, "id": "1", "data": {"s": "x" * 90 + "7"}})
    root.publish({**head, "id": "2", "data": {"s": "y"}})
    world.settle()
    assert got == ["1"]


def test_statement_of_the_longest_filters_fits_into_a_frame() -> None:
    """Also where each letter takes four bytes."""
    longest = tuple(
        Spoken("subscription", f"{number:04}" + "\U0001f347" * (LONGEST_FILTER - 4))
        for number in range(SPOKEN_A_STATEMENT + 1)
    )
    pending = PendingStatements(advertised=False)
    pending.add(FilterStatement(False, True, False, longest, ()))
    statements = pending.take()

    assert [(each.is_complete, each.goes_on) for each in statements] == [
        (True, True),
        (True, False),
    ]
    for each in statements:
        assert len(framed(each)) <= LARGEST_FRAME
        assert decode(framed(each)[LENGTH:]) == each


def test_broker_of_a_wrong_name_or_with_temporal_filters_is_refused() -> None:
    world = World(9)
    world.add("one")
    lonely = world.links["one"]
    with pytest.raises(LinkFaultError, match="wrong name"):
        lonely.admit("#nameless", None)
    for text in ("start AFTER(1 s) (TRUE)", "n >", "(" * 5_000):
        heard = FilterStatement(False, True, False, (Spoken("subscription", text),), ())
        with pytest.raises(LinkFaultError, match="bad advert"):
            Hearing().hear(heard)
