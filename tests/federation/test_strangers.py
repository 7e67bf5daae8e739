"""What strangers at a service can do to a gateway: forge what gateways say, and flood it.

Every message is counted or answered, memory has bounds, and nothing goes round for ever.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.adapters.base import Incoming, header_text, incoming_of
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.configuration.settings import SiteSettings
from ensue.federation.links.bounds import Bounds
from ensue.federation.links.receipts import Receipts
from ensue.federation.messages.bindings import Message, NameBinding
from ensue.federation.placement.attaching import AttachedSite
from ensue.federation.placement.parcels import DESTINATION, PARCEL
from ensue.federation.routing import control
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.tree import MOST_NEIGHBOURS, MOST_ROOTS, Tree
from ensue.subscriptions import Filter
from tests.federation.simulation import World

HELLO = control.GatewayHello("other", "i1", "other", 0, 1)


def said(kind: str, **members: Any) -> bytes:
    """A control event as a client of a service would forge it."""
    data = {"is": kind, **members}
    return encode(Event("1", "x", f"ensue.control.{kind}", 0, data))


# --- what they say --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        said("hello", gateway="a", instance="b", root="c", cost=-5, beat=1),
        said("hello", gateway="a", instance="b", root="c", cost=10**30, beat=1),
        said("hello", gateway="", instance="b", root="c", cost=1, beat=1),
        said("hello", gateway="a" * 5_000, instance="b", root="c", cost=1, beat=1),
        said("hello", gateway=["a"], instance="b", root="c", cost=1, beat=1),
        said("hello", gateway="a", instance="b", root="c", cost=1, beat=-1),
        said("stated", gateway="a", instance="b", digest="d" * 1_000),
        said("stated", gateway="a", instance="b", digest="d", wants="TRUE"),
        said("request", id="x" * 2_000, verb="subscribe"),
        said("request", id="x", verb="shutdown"),
        said("request", id="x", verb="publish", hops=-1),
        said("no-such-kind"),
        said("done", id="x", request="y", gateway={}),
    ],
    ids=range(17),
)
def test_a_forged_control_event_is_refused_as_none(message: bytes) -> None:
    with pytest.raises(EventError):
        control.read(message)


def test_made_up_gateways_find_no_room_and_give_way_when_they_are_silent() -> None:
    tree = Tree("me", ["cars"], patience=10.0)
    for number in range(3 * MOST_NEIGHBOURS):
        tree.hear("cars", control.GatewayHello(f"g{number}", "i", f"r{number}", 5, 1), now=100.0)
    assert len(tree._heard["cars"]) == MOST_NEIGHBOURS
    tree.settle(100.0)

    assert tree.hear("cars", HELLO, now=120.0)
    assert tree.neighbours("cars", 120.0) == ["other"]


def test_made_up_roots_are_forgotten() -> None:
    tree = Tree("me", ["cars"], patience=10.0)
    for number in range(2 * MOST_ROOTS):
        tree.hear("cars", control.GatewayHello("g", "i", f"r{number}", 5, 1), now=100.0 + number)
    assert len(tree._beats) <= MOST_ROOTS
    tree.settle(100.0 + 2 * MOST_ROOTS)
    assert tree.beat(1) >= 0


def test_statements_of_made_up_gateways_have_a_bound(limit: Callable[..., None]) -> None:
    limit(stating=10)
    limit(stated=1_000)
    wishes = Interest(["cars"])
    for number in range(10):
        assert wishes.state("cars", control.Stated(f"g{number}", "i", "d", ("n > 1",)), 0.0)
    with pytest.raises(UsageError, match="finds no room: at most 10 neighbours"):
        wishes.state("cars", control.Stated("one more", "i", "d"), 0.0)
    with pytest.raises(UsageError, match="and 1,000 characters"):
        wishes.state("cars", control.Stated("g1", "i", "e", ("n > 1 OR " * 200 + "TRUE",)), 0.0)
    assert wishes.state("cars", control.Stated("g1", "i", "f", ("n > 2",)), 0.0)


def test_requests_at_a_service_have_a_bound(limit: Callable[..., None]) -> None:
    limit(requests=3)
    wishes = Interest(["cars"])
    for number in range(3):
        wishes.request("cars", Filter.parse(f"n > {number}"))
    with pytest.raises(UsageError, match="has 3 requests, the most that a gateway keeps"):
        wishes.request("cars", Filter.parse("n > 99"))


def test_a_flood_of_requests_is_let_go_and_counted(limit: Callable[..., None]) -> None:
    limit(requests_at_work=20)
    limit(requests_known=100)

    async def story() -> None:
        world = World()
        world.add("g", ["cars", "office"])
        await world.start()
        gateway = world.gateways["g"]
        link = gateway._links["cars"]
        for number in range(500):
            gateway.heard(link, said("request", id=f"r{number}", verb="subscribe", at="office"))
            gateway.heard(link, said("done", id=f"d{number}", request="x", gateway="y"))
        assert len(gateway._answering.tasks) <= 20
        assert len(gateway._answering._known) <= 100
        assert link.counts.dropped["too many requests"] == 480
        await world.stop()

    asyncio.run(story())


def test_a_request_that_goes_round_ends() -> None:
    async def story() -> None:
        world = World()
        world.add("g", ["cars", "office"])
        await world.start()
        gateway = world.gateways["g"]
        cars, office = gateway._links["cars"], gateway._links["office"]
        before = len(office._control)
        last = control.MOST_HOPS - 1
        gateway.heard(cars, said("request", id="a", verb="subscribe", at="far", hops=last))
        passed = [control.read(each) for each in list(office._control)[before:]]
        assert [each.hops for each in passed if isinstance(each, control.Request)] == [last + 1]

        gateway.heard(cars, said("request", id="b", verb="subscribe", at="far", hops=last + 1))
        assert cars.counts.dropped["going round"] == 1
        await world.stop()

    asyncio.run(story())


# --- what they send -------------------------------------------------------------------------------


def test_a_message_that_is_too_large_is_no_event(limit: Callable[..., None]) -> None:
    limit(largest_message=1_000)
    message = Message(b" " * 1_001, "", {})
    found = incoming_of(NameBinding("ce-").read, message, "token", False)
    assert found.event is None
    assert found.problems == ("the message has 1,001 bytes, and at most 1,000 are read",)


def test_bytes_in_headers_that_are_no_text_are_read_as_such() -> None:
    assert header_text(b"\xff\xfe") == "\ufffd\ufffd"
    assert header_text(5) == "5"


def test_an_attachment_of_somebody_else_has_no_headers() -> None:
    adapter = pytest.importorskip("ensue.federation.adapters.zenoh.adapter")
    for attachment in (b"\xff", b"[1, 2]", b"5", b"[" * 100_000):
        assert adapter.attached_headers(attachment) == {}
    assert adapter.attached_headers(b'{"id": 5}') == {"id": "5"}
    assert adapter.attached_headers(None) == {}


def test_events_on_their_way_have_a_bound_in_bytes() -> None:
    async def story() -> None:
        made = Receipts(Bounds(in_flight_bytes=1_000))
        tickets = [made.ticket(Incoming(None, n, size=400), n) for n in range(2)]
        assert made.has_room.is_set()
        tickets.append(made.ticket(Incoming(None, 2, size=400), 2))
        assert not made.has_room.is_set()
        tickets[0].confirm()
        assert made.has_room.is_set()
        made.begin_session()
        made.carry(["other"])
        for number in range(3):
            made.rest(Incoming(None, number, size=400), number, False)
        assert not made.has_room.is_set()
        made.carried("other", [0])
        assert made.has_room.is_set()

    asyncio.run(story())


def test_messages_that_wait_have_a_bound_in_bytes(limit: Callable[..., None]) -> None:
    limit(waiting_bytes=1_000)

    async def story() -> None:
        waiting: Inbox[Incoming] = Inbox()
        for _ in range(3):
            await waiting.put_when_free(Incoming(None, size=400))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await waiting.put_when_free(Incoming(None, size=400))
        assert len(await waiting.take()) == 3
        await waiting.put_when_free(Incoming(None, size=400))

    asyncio.run(story())


def test_a_service_that_cannot_wait_breaks_off_before_memory_is_full(
    limit: Callable[..., None],
) -> None:
    limit(without_waiting=3)

    async def story() -> None:
        waiting: Inbox[Incoming] = Inbox()
        for _ in range(5):
            waiting.put_or_fail(Incoming(None), "cars")
        assert len(await waiting.take()) == 3
        # There is room again, but between these and the next ones some are missing.
        waiting.put_or_fail(Incoming(None), "cars")
        with pytest.raises(Exception, match="`cars`: events come faster than"):
            await waiting.take()

    asyncio.run(story())


# --- at a site ------------------------------------------------------------------------------------

RULES = """
eventtype A { attribute long n; }; eventtype B { attribute long n; };
A correlation Pair (A a from outside, Silent, B b) a ; b within 10 s by n { case true: push a; }
A correlation Silent (B b, deadline 10 s d) d | b by n { case true: push new A { n = b.n }; }
"""
SITES = """
[[site]]
name = "one"
types = ["A"]
[[site]]
name = "two"
types = ["B"]
[[place]]
rule = "Pair"
at = "two"
"""


def site(folder: Path, clock: Any = "events", name: str = "two") -> AttachedSite:
    (folder / "rules.cor").write_text(RULES)
    (folder / "sites.toml").write_text(SITES)
    files = (folder / "rules.cor",), folder / "sites.toml"
    return AttachedSite(SiteSettings(name, *files, clock=clock), "gateway")


def parcel(**changes: Any) -> Event:
    place = [0, 1, 0, 0, 0, 0, []]
    data = {
        "sender": "one",
        "instance": "i",
        "number": 0,
        "loads": [{"place": place, "event": None, "for": [["Pair", ["a"], place]]}],
        "resets": [],
        "mark": place,
        "marks": {},
        **changes,
    }
    return Event("p", "ensue/site/one", PARCEL, 0, data, {DESTINATION: "two"})


HOSTILE_PARCELS: list[dict[str, Any]] = [
    {"mark": ["x", 1, 0, 0, 0, 0, []]},
    {"mark": [0, 1, 0, 0, 0, 0, ["y"]]},
    {"mark": [0, 1, 0]},
    {"mark": None},
    {"marks": {"Pair": [None] * 7}},
    {"marks": [1]},
    {"loads": [{"place": [0] * 7, "event": None, "for": []}]},
    {"loads": [{"place": [0, 1, 0, 0, 0, 0, []], "event": {"id": 5}, "for": []}]},
    {"loads": [{"place": [0, 1, 0, 0, 0, 0, []], "event": None, "for": [["No", [], []]]}]},
    {
        "loads": [
            {
                "place": [0, 1, 0, 0, 0, 0, []],
                "event": None,
                "for": [["Strange", ["a"], [0, 1, 0, 0, 0, 0, []]]],
            }
        ]
    },
    {
        "loads": [
            {
                "place": [0, 1, 0, 0, 0, 0, []],
                "event": None,
                "for": [["Pair", ["no such port"], [0, 1, 0, 0, 0, 0, []]]],
            }
        ]
    },
    {"resets": [["Strange", "k", [[0, 1, 0, 0, 0, 0, []], 0]]]},
    {"resets": [["Pair", 5, [[0, 1, 0, 0, 0, 0, []], 0]]]},
    {"holds": [["Strange", "k", [0, 1, 0, 0, 0, 0, []], ["a"]]]},
    {"holds": [["Pair", "k", [0, 1, 0, 0, 0, 0, []], ["no such port"]]]},
    {"holds": [["Pair", "k", [0, 1], ["a"]]]},
    {"done": {"Pair": 5}},
    {"answers": "x"},
    {"number": -1},
    {"number": "x"},
    {"sender": "nobody"},
    {"sender": None},
]


@pytest.mark.parametrize("changes", HOSTILE_PARCELS, ids=range(len(HOSTILE_PARCELS)))
def test_a_forged_parcel_is_refused_and_the_site_goes_on(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    attached = site(tmp_path)
    with pytest.raises(EventError):
        attached.take(parcel(**changes))
    attached.take(parcel())
    attached.take(Event.of("B", time=5_000_000, data={"n": 1}))


def test_an_event_dated_9999_does_not_stop_the_clock_of_a_site(tmp_path: Path) -> None:
    second = 1_000_000
    attached = site(tmp_path)
    for number in range(10):
        attached.take(Event.of("B", time=number * second, data={"n": 1}))
    begin = time.process_time()
    with pytest.raises(EventError, match="is too far ahead"):
        attached.take(Event.of("B", time=253_402_300_799 * second, data={"n": 1}))
    attached.take(Event.of("B", time=11 * second, data={"n": 1}))
    assert time.process_time() - begin < 2


def test_a_site_by_the_time_of_day_believes_no_event_of_another_day(tmp_path: Path) -> None:
    attached = site(tmp_path, "wall")
    now = time.time_ns() // 1000
    with pytest.raises(EventError, match="ahead of the time of day"):
        attached.take(Event.of("B", time=now + 3 * 86_400_000_000, data={"n": 1}))
    attached.take(Event.of("B", time=now, data={"n": 1}))
    attached.tick()


def test_a_site_begins_anew_where_most_events_say_that_its_clock_was_wrong(tmp_path: Path) -> None:
    year = 365 * 86_400_000_000
    attached = site(tmp_path)
    attached.take(Event.of("B", time=0, data={"n": 1}))
    refused = 0
    for number in range(200):
        try:
            attached.take(Event.of("B", time=50 * year + number * 1_000, data={"n": 1}))
        except EventError:
            refused += 1
    assert refused < 100
    assert json.dumps(attached.status())
