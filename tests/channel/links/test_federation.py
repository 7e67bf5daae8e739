"""Several channels of one process: every event arrives once, and only where it is wanted."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from ensue.channel import Channel, Disconnect, Reason, all_of, correlated, want
from ensue.channel.links.duplicates import IDENTITIES_A_NEIGHBOUR, DuplicateFilter
from ensue.errors import UsageError
from tests.channel.linked_scenarios import changing_graph
from tests.channel.making import LIBRARY, builder, empty, event


def linked(names: str, links: str) -> dict[str, Channel]:
    """Channels by one letter each, and links between them: `linked("abc", "ab bc")`."""
    channels = {name: builder(name=name).done() for name in names}
    for link in links.split():
        channels[link[0]].federation.link(channels[link[1]])
    return channels


def test_an_event_reaches_the_consumers_of_a_linked_channel() -> None:
    channels, got = linked("ab", "ab"), empty()
    channels["b"].consumers.connect("one", got.append, want("Notify", where="SourceID = 3"))

    for number in range(5):
        channels["a"].push(event("DataNotify", SourceID=number))

    assert [each.data["SourceID"] for each in got] == [3]
    assert channels["a"].federation.sent == 1


def test_one_message_goes_to_a_channel_however_many_consumers_it_has() -> None:
    channels, got = linked("ab", "ab"), empty()
    for number in range(20):
        channels["b"].consumers.connect(f"c{number}", got.append, "Notify")

    channels["a"].push(event())

    assert len(got) == 20
    assert channels["a"].federation.sent == 1


def test_a_link_carries_nothing_that_the_other_side_does_not_want() -> None:
    channels = linked("abc", "ab bc")
    consumer = channels["c"].consumers.connect("one", lambda _: None, "Notify")
    channels["a"].push(event("Other"))
    assert channels["a"].federation.sent == 0

    consumer.change("Other")
    channels["a"].push(event("Other"))
    assert (channels["a"].federation.sent, channels["b"].federation.sent) == (1, 1)

    consumer.disconnect()
    channels["a"].push(event("Other"))
    assert channels["a"].federation.sent == 1


def test_wants_that_are_gone_are_gone_in_a_circle_too() -> None:
    channels = linked("abc", "ab bc ca")
    consumer = channels["c"].consumers.connect("one", lambda _: None, "Notify")
    consumer.disconnect()

    channels["a"].push(event())

    assert sum(each.federation.sent for each in channels.values()) == 0


def test_groups_and_correlations_draw_their_events_from_other_channels() -> None:
    channels, got = linked("abc", "ab bc"), empty()
    channels["c"].consumers.connect("group", got.append, all_of("Notify", "Other"))
    channels["c"].consumers.connect("rule", got.append, correlated(LIBRARY, "Both"))

    channels["a"].push(event("DataNotify", at=1, SourceID=1, Value=1.0))
    channels["b"].push(event("Other", at=2))

    assert len(got) == 2


def test_a_supplier_is_quenched_by_the_whole_federation() -> None:
    channels, told = linked("abc", "ab bc"), empty()
    channels["a"].suppliers.connect("gps", "Notify", on_demand=told.append)
    consumer = channels["c"].consumers.connect("one", lambda _: None, "Notify")
    channels["b"].federation.unlink(channels["c"])
    channels["b"].federation.link(channels["c"])
    consumer.disconnect()

    assert told == [False, True, False, True, False]


def test_a_subtype_that_only_the_wanting_side_knows_still_arrives() -> None:
    from ensue.channel import build

    ignorant, got = build("filtering", "a").done(), empty()
    knowing = builder(name="b").done()
    knowing.consumers.connect("one", got.append, "Notify")
    ignorant.federation.link(knowing)

    ignorant.push(event("Special"))

    assert len(got) == 1


@pytest.mark.parametrize("seed", range(15))
def test_in_any_graph_every_event_arrives_exactly_once_by_one_message_a_channel(seed: int) -> None:
    changing_graph(random.Random(1_000 + seed))


def test_adding_a_channel_takes_one_link() -> None:
    channels = linked("abcd", "ab bc cd")
    newcomer, got = builder(name="e").done(), empty()
    newcomer.consumers.connect("one", got.append, "Notify")
    newcomer.federation.link(channels["d"])

    channels["a"].push(event())

    assert len(got) == 1
    assert len(newcomer.federation.reachable) == 4


def test_a_long_chain_of_channels_needs_no_deep_stack() -> None:
    names = [f"n{number}" for number in range(60)]
    channels = [builder(name=name).done() for name in names]
    got = empty()
    channels[-1].consumers.connect("one", got.append, "Notify")
    for one, other in pairwise(channels):
        one.federation.link(other)

    channels[0].push(event())

    assert len(got) == 1


def test_effects_follow_causes_in_other_channels_too() -> None:
    channels, seen = linked("ab", "ab"), empty()
    channels["a"].consumers.connect(
        "answering", lambda _: channels["a"].push(event("Answer")), "Question"
    )
    channels["b"].consumers.connect("listening", lambda each: seen.append(each.type))

    channels["a"].push(event("Question"))

    assert seen == ["Question", "Answer"]


def test_a_channel_that_closes_leaves_the_federation() -> None:
    channels = linked("abc", "ab bc")
    channels["c"].consumers.connect("one", lambda _: None)
    channels["b"].close()

    channels["a"].push(event())

    assert channels["a"].federation.sent == 0
    assert channels["a"].figures().dropped == {}
    assert Reason.UNROUTED not in channels["a"].figures().dropped


def test_a_consumer_that_did_not_keep_up_draws_nothing_from_other_channels() -> None:
    channels = linked("ab", "ab")
    channels["b"].subscribe("Notify", capacity=1, overflow=Disconnect())

    for _ in range(5):
        channels["a"].push(event())

    assert channels["a"].federation.sent == 2
    assert not channels["a"].is_wanted(["Notify"], None)


def test_a_channel_cannot_be_linked_to_itself() -> None:
    channel = builder().done()

    with pytest.raises(UsageError, match="linked to itself"):
        channel.federation.link(channel)


def test_many_predicates_of_one_kind_are_told_as_the_whole_kind() -> None:
    channels, got = linked("ab", "ab"), empty()
    with channels["b"].changing():
        for number in range(100):
            channels["b"].consumers.connect(
                f"c{number}", got.append, want("Notify", where=f"SourceID = {number}")
            )

    channels["a"].push(event("Notify", SourceID=70))
    channels["a"].push(event("Notify", SourceID=700))

    assert len(got) == 1
    assert channels["a"].federation.sent == 2


def test_an_event_is_known_again_by_whichever_neighbour_brings_it() -> None:
    seen = DuplicateFilter()

    assert seen.add("b", 7)
    assert not seen.add("c", 7)
    assert seen.add("c", 8)


def test_a_neighbour_can_push_out_only_what_it_has_brought_itself() -> None:
    seen = DuplicateFilter()
    seen.add("honest", 0)
    seen.add("flooding", 1)
    for identity in range(10, 10 + 2 * IDENTITIES_A_NEIGHBOUR):
        seen.add("flooding", identity)

    assert not seen.add("flooding", 0)
    assert seen.add("flooding", 1)
    kept = sum(len(each.recent) + len(each.older) for each in seen._windows.values())
    assert kept <= IDENTITIES_A_NEIGHBOUR + 1
