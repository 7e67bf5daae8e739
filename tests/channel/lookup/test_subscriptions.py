"""Who gets an event, and who is told that nobody does."""

from __future__ import annotations

import random
import sys
import threading

import pytest

from ensue.channel import all_of, any_of, correlated, nothing, want
from ensue.channel.delivery.conditions import GROUP, matches
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.lookup.lookup import Lookup
from ensue.channel.lookup.unfiltered import Unfiltered
from ensue.channel.lookup.wants import EventWant, Wants
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.lang.expressions.text.parsing import parse_expression
from tests.channel.making import LIBRARY, builder, empty, event, noting


def test_a_type_stands_for_its_subtypes_and_no_others() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("data", got.append, "DataNotify")

    for type_ in ("Notify", "DataNotify", "Special", "Other", "Undeclared"):
        channel.push(event(type_))

    assert [each.type for each in got] == ["DataNotify", "Special"]


def test_source_and_predicate_narrow_a_want() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("hot", got.append, want("Notify", source="gps", where="Value > 3"))

    channel.push(event("DataNotify", source="gps", Value=4.0))
    channel.push(event("DataNotify", source="gps", Value=2.0))
    channel.push(event("DataNotify", source="ins", Value=4.0))
    channel.push(event("DataNotify", source="gps"))

    assert [each.data for each in got] == [{"Value": 4.0}]


def test_a_consumer_without_wants_gets_everything() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("all", got.append)

    channel.push(event("Notify"))
    channel.push(event("Undeclared"))

    assert len(got) == 2


def test_a_disjunction_lets_an_event_through_once_even_if_several_parts_match() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("either", got.append, any_of("Notify", want("DataNotify"), "Other"))

    channel.push(event("Special"))
    channel.push(event("Other"))

    assert [each.type for each in got] == ["Special", "Other"]


def test_a_conjunction_notifies_once_with_the_last_event_of_each_part_and_starts_afresh() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("both", got.append, all_of("Notify", "Other"))

    first, second, third, fourth = event("Notify"), event("Notify"), event("Other"), event("Other")
    for each in (first, second, third, fourth):
        channel.push(each)

    assert [each.type for each in got] == [GROUP]
    assert [member["id"] for member in got[0].data["events"]] == [second.id, third.id]
    assert got[0].extensions["causes"] == f"{second.id},{third.id}"

    channel.push(event("Notify"))
    assert got[1].data["events"][0]["id"] == fourth.id


def test_one_event_can_serve_two_parts_of_a_conjunction() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("both", got.append, all_of("Notify", want(where="Value > 1")))

    channel.push(event("DataNotify", Value=2.0))

    assert [len(each.data["events"]) for each in got] == [1]


def test_groups_nest() -> None:
    channel, got = builder().done(), empty()
    wants = any_of("Other", all_of("Notify", any_of(want(source="x"), want(source="y"))))
    channel.consumers.connect("nested", got.append, wants)

    channel.push(event("Other", source="z"))
    channel.push(event("Undeclared", source="y"))
    channel.push(event("Notify", source="z"))

    assert [each.type for each in got] == ["Other", GROUP]


def test_a_python_test_filters_like_a_predicate() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect(
        "odd", got.append, want("Notify", where=lambda e: e.data["SourceID"] % 2 == 1)
    )

    for number in range(6):
        channel.push(event("Notify", SourceID=number))

    assert [each.data["SourceID"] for each in got] == [1, 3, 5]


def test_a_correlation_stands_between_suppliers_and_a_consumer() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("both", got.append, correlated(LIBRARY, "Both"))

    channel.push(event("DataNotify", at=1, SourceID=7, Value=1.0))
    channel.push(event("Notify", at=2))
    assert got == []
    channel.push(event("Other", at=3))

    assert [(each.type, each.data, each.extensions["correlation"]) for each in got] == [
        ("Notify", {"SourceID": 7}, "Both")
    ]


def test_a_correlation_hears_of_the_time_from_the_channels_clock() -> None:
    from ensue.channel import VirtualClock

    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    channel.consumers.connect("watch", got.append, correlated(LIBRARY, "Silent"))

    channel.push(event("DataNotify", at=0, SourceID=1, Value=1.0))
    clock.advance("9 s")
    assert got == []
    clock.advance("1 s")

    assert [(each.time, each.extensions["trigger"]) for each in got] == [(10_000_000, "timer")]


def test_what_a_correlation_cannot_use_is_counted_with_its_reason() -> None:
    channel, got = builder().done(), empty()
    consumer = channel.consumers.connect("both", got.append, correlated(LIBRARY, "Both"))

    channel.push(event("DataNotify", at=10, SourceID=1, Value=1.0))
    channel.push(event("Other", at=5))
    channel.push(event("DataNotify", at=11, SourceID="many"))

    assert consumer.figures.dropped == {"late": 1, "malformed": 1}


def test_consumers_come_and_go_while_the_channel_runs() -> None:
    channel, got = builder().done(), empty()
    first = channel.consumers.connect("first", got.append, "Notify")
    channel.push(event())
    first.disconnect()
    channel.push(event())
    channel.consumers.connect("first", got.append, "Notify")
    channel.push(event())

    assert len(got) == 2


def test_two_consumers_cannot_share_a_name() -> None:
    channel = builder().done()
    channel.consumers.connect("one", print)

    with pytest.raises(UsageError, match="`one` is connected already"):
        channel.consumers.connect("one", print)


def test_a_supplier_is_told_when_nobody_wants_its_events_and_when_that_changes() -> None:
    channel, told = builder().done(), empty()
    supplier = channel.suppliers.connect("gps", "DataNotify", source="gps", on_demand=told.append)
    assert told == [False]

    elsewhere = channel.consumers.connect("elsewhere", print, want("Notify", source="ins"))
    unrelated = channel.consumers.connect("unrelated", print, "Other")
    assert told == [False]

    wide = channel.consumers.connect("wide", print, "Notify")
    narrow = channel.consumers.connect("narrow", print, want("Special", source="gps"))
    assert told == [False, True]

    wide.disconnect()
    assert told == [False, True]
    narrow.change("Other")
    assert told == [False, True, False]
    assert not supplier.is_wanted
    assert {elsewhere.state, unrelated.state} == {"connected"}


def test_what_a_quenched_supplier_pushes_is_counted_and_goes_no_further() -> None:
    channel = builder().done()
    supplier = channel.suppliers.connect("gps", "DataNotify")

    supplier.push(event("DataNotify"))
    supplier.send("DataNotify", {"Value": 1.0})

    assert (supplier.pushed, supplier.unwanted, channel.figures().published) == (0, 2, 0)
    assert channel.figures().unwanted == 2


@pytest.mark.parametrize("wanted", [None, "Other", "DataNotify", nothing()])
def test_a_type_that_was_not_declared_is_refused_whoever_listens(wanted: Wants | None) -> None:
    channel = builder().done()
    supplier = channel.suppliers.connect("gps", "DataNotify")
    channel.consumers.connect("one", lambda _: None, wanted)

    for publish in (supplier.send, lambda type_: supplier.push(event(type_))):
        with pytest.raises(UsageError, match=r"declared `DataNotify`; given is .* type `Other`"):
            publish("Other")
    assert (supplier.pushed, supplier.unwanted) == (0, 0)


def test_a_supplier_keeps_to_what_it_declared() -> None:
    channel = builder().done()
    channel.consumers.connect("all", lambda _: None)
    supplier = channel.suppliers.connect("gps", "DataNotify", source="gps")

    supplier.push(event("Special", source="gps"))
    with pytest.raises(
        UsageError, match="declared `DataNotify`; given is an event of type `Other`"
    ):
        supplier.push(event("Other", source="gps"))
    with pytest.raises(UsageError, match="declared the source `gps`"):
        supplier.push(event("DataNotify", source="ins"))
    supplier.disconnect()
    with pytest.raises(UsageError, match="not connected any more"):
        supplier.push(event("DataNotify", source="gps"))


class Named:
    def __init__(self, number: int) -> None:
        self.rank = (number,)


PREDICATES = (
    "SourceID = 3",
    "SourceID = 4",
    "4 = SourceID",
    "SourceID = '3'",
    "SourceID = 3.0",
    "SourceID = 3 AND Value > 1",
    "SourceID = 3 OR Value > 1",
    "Value > 1",
    "Name = 'gps'",
    "Name = '3'",
    "type = 'Special'",
    "NOT SourceID = 3",
    "SourceID = TRUE",
    "nested.x = 1",
    "Value < 4 AND Value >= 3",
    "Name LIKE 'g%'",
    "Name LIKE '%s'",
    "SourceID IN (3, '4', 'gps')",
    "EXISTS nested",
    "NOT EXISTS Name",
    "SourceID != 3 XOR Value = 4",
)
VALUES = (3, 4, 3.0, "3", "gps", True, None, 2**60, [1], {"x": 1})


@pytest.mark.parametrize("seed", range(8))
def test_the_look_up_finds_exactly_whom_asking_everybody_would_find(seed: int) -> None:
    chance = random.Random(seed)
    index: TargetIndex[Named] = TargetIndex(LIBRARY.checked.types)
    wants: dict[Named, list[EventWant]] = {}

    def drawn() -> list[EventWant]:
        return [
            EventWant(
                chance.choice([None, "Notify", "DataNotify", "Special", "Other", "Undeclared"]),
                chance.choice([None, None, "gps", "ins"]),
                parse_expression(chance.choice(PREDICATES)) if chance.random() < 0.6 else None,
            )
            for _ in range(chance.randint(1, 3))
        ]

    for number in range(60):
        target = Named(number)
        wants[target] = drawn()
        index.put(target, wants[target])
    for _ in range(400):
        action = chance.random()
        if action < 0.1 and wants:
            target = chance.choice(list(wants))
            if chance.random() < 0.5:
                del wants[target]
                index.remove(target)
            else:
                wants[target] = drawn()
                index.put(target, wants[target])
        data = {name: chance.choice(VALUES) for name in ("SourceID", "Value", "Name", "nested")}
        given = Event(
            "1",
            chance.choice(["gps", "ins", "else"]),
            chance.choice(["Notify", "DataNotify", "Special", "Other", "Undeclared", "Unwanted"]),
            0,
            data,
        )
        types = LIBRARY.checked.types
        expected = [t for t in wants if any(matches(each, given, types) for each in wants[t])]
        assert list(index.find(given)) == sorted(expected, key=lambda each: each.rank)


def test_event_that_is_wanted_before_and_after_a_change_finds_its_target() -> None:
    """Wants are replaced in one thread while another asks: by predicate, always, by kind."""
    index: TargetIndex[Named] = TargetIndex(LIBRARY.checked.types)
    target, is_over = Named(1), threading.Event()
    index.put(Named(2), [want("Notify", where=f"SourceID > {number}") for number in range(7, 9)])
    ways = [
        [want("Notify", where="SourceID < 5"), want("Notify", where="SourceID < 6")],
        [want("Notify")],
        [want(where="SourceID = 4")],
        [want("Notify", where="SourceID IN (3, 4)"), want("Other")],
        [want()],
    ]
    index.put(target, ways[0])

    def change() -> None:
        while not is_over.is_set():
            for each in ways:
                index.put(target, each)

    changing = threading.Thread(target=change)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing.start()
    found = [list(index.find(event("Notify", SourceID=4))) for _ in range(5_000)]
    is_over.set()
    changing.join()
    sys.setswitchinterval(before)

    assert all(each == [target] for each in found)


@pytest.mark.parametrize("configuration", ["filtering", "multiplexer"])
def test_an_answer_that_is_ready_is_dropped_when_wants_change(configuration: str) -> None:
    channel, got = builder(configuration).done(), empty()
    channel.consumers.connect("first", noting(got, "first"))
    channel.push(event())
    second = channel.consumers.connect("second", noting(got, "second"))
    channel.push(event())
    second.disconnect()
    channel.push(event())

    assert got == ["first", "first", "second", "first"]


@pytest.mark.parametrize(
    "lookup",
    [TargetIndex(LIBRARY.checked.types, kinds_kept=5), Unfiltered(sources_kept=5)],
    ids=["filtering", "multiplexer"],
)
def test_answers_are_kept_ready_for_a_bounded_number_of_sources(lookup: Lookup[Named]) -> None:
    target = Named(1)
    lookup.put(target, [EventWant()])
    found = [lookup.find(event(source=f"device-{number % 20}")) for number in range(40)]

    assert [list(each) for each in found] == [[target]] * 40
    assert sum(len(each) for each in lookup.ready.values()) <= 5
