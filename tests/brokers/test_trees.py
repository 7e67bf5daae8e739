"""Every subscriber in a tree of brokers gets what one broker would give, and little travels."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, permutations
from pathlib import Path
from random import Random

import pytest

from ensue.brokers import Broker, link, unlink
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.history import History
from ensue.knowledge import SAMPLES, Ontology
from ensue.subscriptions import Filter, covers
from tests.brokers.trees import (
    OneBroker,
    random_event,
    random_filter,
    random_temporal_filter,
    random_tree,
)


def _assert_only_the_most_general_travel(brokers: list[Broker]) -> None:
    for broker in brokers:
        for far in broker.neighbours:
            for one, other in permutations(broker.asks(far), 2):
                assert not covers(one, other), f"{one} covers {other}"


@pytest.mark.parametrize("seed", range(10))
def test_subscribers_come_and_go_and_get_what_one_broker_gives(seed: int) -> None:
    random = Random(seed)
    brokers = random_tree(random, random.randint(2, 9), Broker)
    one, homes = OneBroker(), {}
    got: list[tuple[str, str]] = []
    for step in range(80):
        choice = random.random()
        if choice < 0.3:
            name, home = f"s{step}", random.choice(brokers)
            text = random_filter(random)
            home.subscribe(name, text, lambda e, name=name: got.append((name, e.id)))  # type: ignore[misc]
            one.filters[name], homes[name] = Filter.parse(text), home
        elif choice < 0.45 and homes:
            name = random.choice(list(homes))
            homes.pop(name).unsubscribe(name)
            del one.filters[name]
        else:
            got.clear()
            event = random_event(random, step)
            random.choice(brokers).publish(event)

            assert len(got) == len(set(got))
            assert {name for name, _ in got} == one.publish(event)
    _assert_only_the_most_general_travel(brokers)
    for name, home in homes.items():
        home.unsubscribe(name)
    assert [
        broker.asks(far) for broker in brokers for far in broker.neighbours if broker.asks(far)
    ] == []


@pytest.mark.parametrize("seed", range(6))
def test_temporal_subscriptions_are_answered_as_by_one_history(seed: int) -> None:
    random = Random(seed)
    make = lambda name: Broker(name, history=History.open("memory:"))  # noqa: E731
    brokers = random_tree(random, random.randint(2, 6), make)
    one = OneBroker(History.open("memory:"))
    got: set[str] = set()
    for number in range(8):
        text = random_temporal_filter(random)
        one.filters[f"s{number}"] = Filter.parse(text)
        random.choice(brokers).subscribe(f"s{number}", text, lambda _, n=number: got.add(f"s{n}"))  # type: ignore[misc]
    for number in range(60):
        got.clear()
        event = random_event(random, number)
        random.choice(brokers).publish(event)

        assert got == one.publish(event)


@pytest.mark.parametrize("seed", range(4))
def test_subscriptions_by_concepts_are_covered_by_their_meaning(seed: int) -> None:
    random = Random(seed)
    wine = Ontology.load(SAMPLES / "wine.ttl")
    # A broker without the ontology lets through what it cannot tell.
    make = lambda name: Broker(name, ontology=None if name == "b1" else wine)  # noqa: E731
    brokers = random_tree(random, 5, make)
    one = OneBroker(ontology=wine)
    got: set[str] = set()
    for number in range(16):
        text = random_filter(random, with_concepts=True)
        one.filters[f"s{number}"] = Filter.parse(text)
        home = random.choice([broker for broker in brokers if broker.name != "b1"])
        home.subscribe(f"s{number}", text, lambda _, n=number: got.add(f"s{n}"))  # type: ignore[misc]
    for number in range(60):
        got.clear()
        event = random_event(random, number)
        random.choice(brokers).publish(event)

        assert got == one.publish(event)


@pytest.mark.parametrize("seed", range(6))
def test_advertisements_prune_and_lose_nothing(seed: int) -> None:
    random = Random(seed)
    brokers = random_tree(random, random.randint(2, 8), partial(Broker, advertised=True))
    one, homes, offers = OneBroker(), {}, {}
    got: set[str] = set()
    for step in range(90):
        choice = random.random()
        if choice < 0.25:
            name, home, text = f"s{step}", random.choice(brokers), random_filter(random)
            home.subscribe(name, text, lambda _, name=name: got.add(name))  # type: ignore[misc]
            one.filters[name], homes[name] = Filter.parse(text), home
        elif choice < 0.4:
            name, home, text = f"a{step}", random.choice(brokers), random_filter(random)
            home.advertise(name, text)
            offers[name] = home, Filter.parse(text)
        elif choice < 0.48 and offers:
            name = random.choice(list(offers))
            offers.pop(name)[0].unadvertise(name)
        elif choice < 0.56 and homes:
            name = random.choice(list(homes))
            homes.pop(name).unsubscribe(name)
            del one.filters[name]
        else:
            got.clear()
            event = random_event(random, step)
            home = random.choice(brokers)
            if any(each.matches(event) for where, each in offers.values() if where is home):
                home.publish(event)
                assert got == one.publish(event)
            else:
                with pytest.raises(UsageError, match="matches no advertisement"):
                    home.publish(event)
    _assert_only_the_most_general_travel(brokers)


def _chain(*names: str, advertised: bool = False) -> list[Broker]:
    brokers = [Broker(name, advertised=advertised) for name in names]
    for one, other in pairwise(brokers):
        link(one, other)
    return brokers


def _event(number: int, **data: object) -> Event:
    return Event(str(number), "test", "E", number * 1_000_000, data)


def test_covered_subscriptions_wait_and_are_uncovered() -> None:
    leaf, middle, root = _chain("leaf", "middle", "root")
    leaf.subscribe("narrow", "n > 8", print)
    leaf.subscribe("wide", "n > 5", print)
    leaf.subscribe("other", "s = 'a'", print)
    assert leaf.asks("middle") == [Filter.parse("n > 5"), Filter.parse("s = 'a'")]
    assert middle.asks("root") == leaf.asks("middle")

    leaf.unsubscribe("wide")

    assert leaf.asks("middle") == [Filter.parse("s = 'a'"), Filter.parse("n > 8")]
    assert middle.asks("root") == leaf.asks("middle")
    assert root.asks("middle") == []


def test_one_filter_that_two_sides_want_travels_until_both_are_gone() -> None:
    left, middle, _ = _chain("left", "middle", "right")
    left.subscribe("l", "n > 5", print)
    middle.subscribe("m", "n > 5", print)

    middle.unsubscribe("m")
    assert middle.asks("right") == [Filter.parse("n > 5")]

    left.unsubscribe("l")
    assert middle.asks("right") == []


def test_subscriptions_go_only_where_somebody_has_such_events() -> None:
    left, middle, right = _chain("left", "middle", "right", advertised=True)
    right.advertise("prices", "price > 0")
    middle.subscribe("dear", "price > 100", print)
    middle.subscribe("cheap", "price < 0", print)

    assert middle.asks("right") == [Filter.parse("price > 100")]
    assert middle.asks("left") == []

    left.advertise("all", "EXISTS price")
    assert middle.asks("left") == [Filter.parse("price > 100"), Filter.parse("price < 0")]

    right.unadvertise("prices")
    assert middle.asks("right") == []


def test_parted_brokers_go_on_alone_and_can_be_linked_again() -> None:
    left, middle, right = _chain("left", "middle", "right")
    got: list[str] = []
    left.subscribe("l", "n > 5", lambda event: got.append(event.id))
    unlink(middle, right)
    right.publish(_event(1, n=9))
    middle.publish(_event(2, n=9))
    assert got == ["2"]
    assert right.neighbours == []

    link(right, left)
    right.publish(_event(3, n=9))
    assert got == ["2", "3"]
    with pytest.raises(UsageError, match="are connected already: another link would be a circle"):
        link(middle, right)


def test_subscriber_that_fails_keeps_the_event_from_nobody() -> None:
    left, middle, right = _chain("left", "middle", "right")
    got: list[str] = []

    def fail(_: Event) -> None:
        raise ValueError("mine")

    left.subscribe("bad", "n > 5", fail)
    left.subscribe("good", "n > 5", lambda event: got.append(event.id))
    right.subscribe("far", "n > 5", lambda event: got.append(event.id))

    with pytest.raises(ExceptionGroup, match="subscribers have failed"):
        middle.publish(_event(1, n=9))
    assert got == ["1", "1"]


def test_subscriber_may_publish_and_subscribe_in_its_turn() -> None:
    left, right = _chain("left", "right")
    got: list[str] = []

    def act(event: Event) -> None:
        got.append(event.id)
        if event.id == "1":
            left.subscribe("more", "n < 3", lambda each: got.append(f"more {each.id}"))
            left.publish(_event(2, n=7))
            left.publish(_event(3, n=1))

    left.subscribe("l", "n > 5", act)
    right.publish(_event(1, n=9))
    right.publish(_event(4, n=2))

    assert got == ["1", "2", "more 3", "more 4"]


def test_chain_of_many_brokers_costs_no_stack() -> None:
    brokers = _chain(*(f"b{number}" for number in range(1100)))
    got: list[str] = []
    brokers[0].subscribe("s", "n > 5", lambda event: got.append(event.id))

    brokers[-1].publish(_event(1, n=9))

    assert got == ["1"]


def test_what_an_ontology_no_longer_covers_travels_again(tmp_path: Path) -> None:
    head = (
        "@prefix : <http://example.org/a#> . "
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ":Stone a rdfs:Class . :Animal a rdfs:Class . :Dog a rdfs:Class ."
    )
    path = tmp_path / "animals.ttl"
    path.write_text(head + " :Dog rdfs:subClassOf :Animal .")
    animals = Ontology.load(path)
    left, right = Broker("left", ontology=animals), Broker("right", ontology=animals)
    link(left, right)
    got: list[str] = []
    left.subscribe("animals", "kind IS_A Animal", lambda _: None)
    left.subscribe("dogs", "kind IS_A Dog", lambda event: got.append(event.id))
    assert left.asks("right") == [Filter.parse("kind IS_A Animal")]

    path.write_text(head)
    animals.reload()
    right.publish(_event(1, kind="Dog"))

    assert got == ["1"]
    assert len(left.asks("right")) == 2


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda b: b.subscribe("a", "n > 1", print), "`a` is subscribed at `b` already"),
        (lambda b: b.unsubscribe("x"), "`x` is not subscribed at `b`"),
        (lambda b: b.advertise("x", "n > 1"), "make it with `advertised=True`"),
        (lambda b: b.unadvertise("x"), "`x` is not advertised"),
        (lambda b: b.subscribe("t", "start AFTER(1 s) (n > 1)", print), "asks a history"),
        (lambda b: link(b, Broker("c", advertised=True)), "one goes by advertisements"),
        (lambda b: unlink(b, Broker("c")), "are not linked"),
        (lambda _: Broker(""), "a broker needs a name"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(act: object, said: str) -> None:
    broker, neighbour = Broker("b"), Broker("n")
    link(broker, neighbour)
    broker.subscribe("a", "n > 1", print)

    with pytest.raises(UsageError, match=said):
        act(broker)  # type: ignore[operator]

    assert broker.asks("n") == [Filter.parse("n > 1")]


def test_intervals_are_opened_and_closed_across_brokers() -> None:
    """The end says no more than that it is one."""
    left, right = Broker("left", history=History.open("memory:")), Broker("right")
    link(left, right)
    got: list[str] = []
    left.subscribe(
        "s", "n > 0 AND start DURING (kind = 'outage')", lambda event: got.append(event.id)
    )

    def half(phase: str, second: int, **data: object) -> Event:
        return Event("o", "site", "E", second * 1_000_000, data, {"phase": phase})

    right.publish(_event(1, n=1))
    right.publish(half("start", 2, kind="outage"))
    right.publish(_event(3, n=1))
    right.publish(half("end", 4))
    right.publish(_event(5, n=1))

    assert got == ["3"]


def test_a_broker_without_a_history_says_how_it_gets_one() -> None:
    with pytest.raises(UsageError, match=r"this broker has none: .*Broker\(\.\.\., history"):
        Broker("a").subscribe("x", "start AFTER(1 s) (n = 1)", print)
