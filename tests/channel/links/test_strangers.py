"""Callers that may not link, and neighbours that lie: what they get, and what they cannot do."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import msgspec
import pytest

from ensue.channel import Channel, Reason
from ensue.channel.links import messages
from ensue.channel.links.faults import LinkFault
from ensue.channel.links.messages import Advert, Carried, RemoteWant, Route
from ensue.channel.links.tcp.handshake import Handshake
from ensue.channel.links.tcp.links import SESSIONS_A_CHANNEL
from ensue.channel.links.tcp.protection import Protection
from ensue.channel.links.tcp.wire import (
    LARGEST_HANDSHAKE,
    PROTOCOL,
    Acknowledge,
    Bye,
    Challenge,
    Frame,
    Heartbeat,
    Hello,
    Introduction,
    Numbered,
    encode,
    framed,
)
from ensue.errors import UsageError
from tests.channel.links.strangers import Stranger, wanting
from tests.channel.making import builder, empty, event, eventually

SECRET = b"correct horse battery staple"


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a stranger sends may reach the log as an exception."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [each.getMessage() for each in caplog.records] == []


@pytest.fixture
def channel() -> Iterator[Channel]:
    made = builder(name="near").done()
    yield made
    made.close()


def fault_of(channel: Channel) -> dict[LinkFault, int]:
    assert eventually(lambda: bool(channel.federation.faults))
    return dict(channel.federation.faults)


# Who may link.


def test_two_channels_that_know_the_secret_are_linked(channel: Channel) -> None:
    far, got = builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    link = channel.federation.connect(
        *far.federation.listen(secret=SECRET), secret="correct horse battery staple"
    )
    assert link.wait_until_connected("60 s")
    assert eventually(lambda: channel.is_wanted(["Notify"], None))
    channel.push(event("Notify"))

    assert eventually(lambda: len(got) == 1)
    far.close()


@pytest.mark.parametrize(
    ("theirs", "ours"), [(SECRET, b"another secret of some length"), (SECRET, None), (None, SECRET)]
)
def test_a_channel_that_does_not_know_the_secret_is_not_linked(
    channel: Channel, theirs: bytes | None, ours: bytes | None
) -> None:
    far = builder(name="far").done()
    link = channel.federation.connect(
        *far.federation.listen(secret=theirs), secret=ours, backoff="5 ms"
    )

    # The side that listens proves itself first, and the caller sees that it is the wrong one.
    assert eventually(lambda: link.attempts >= 3)
    assert link.last_fault is LinkFault.UNAUTHENTICATED
    assert not link.is_connected
    assert channel.federation.neighbours == far.federation.neighbours == ()
    far.close()


def test_a_stranger_is_told_nothing_before_it_has_proved_that_it_knows_the_secret(
    channel: Channel,
) -> None:
    channel.consumers.connect("one", lambda _: None, "Notify")
    with Stranger(channel.federation.listen(secret=SECRET)) as stranger:
        stranger.send(Hello(PROTOCOL, b"n" * 32))
        answer = stranger.read()
        assert isinstance(answer, Challenge)
        assert b"near" not in encode(answer)
        stranger.send(Introduction("stranger#1", "link", True, 1, 0, b"p" * 32))

        assert stranger.read() is None
    assert fault_of(channel) == {LinkFault.UNAUTHENTICATED: 1}
    assert channel.federation.neighbours == ()


def test_a_proof_cannot_be_used_again(channel: Channel) -> None:
    address = channel.federation.listen(secret=SECRET)
    honest = Handshake(True, SECRET, lambda count: b"n" * count)
    proofs: list[Introduction] = []
    with Stranger(address) as first, Stranger(address) as second:
        for each in (first, second):
            each.send(honest.hello())
            challenge = each.read()
            assert isinstance(challenge, Challenge)
            if not proofs:
                honest.receive(challenge)
                own = Introduction("stranger#1", "link", True, 1, 0, b"")
                proofs.append(honest.introduce(own))
            each.send(proofs[0])
        assert isinstance(first.read(), Introduction)
        assert second.is_dropped()
    assert fault_of(channel) == {LinkFault.UNAUTHENTICATED: 1}


def test_a_challenge_cannot_be_turned_round(channel: Channel) -> None:
    """A caller that echoes the proof of the listener has proved nothing."""
    with Stranger(channel.federation.listen(secret=SECRET)) as stranger:
        stranger.send(Hello(PROTOCOL, b"n" * 32))
        challenge = stranger.read()
        assert isinstance(challenge, Challenge)
        stranger.send(Introduction("stranger#1", "link", True, 1, 0, challenge.proof))

        assert stranger.read() is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_a_link_beyond_loopback_needs_a_secret_or_certificates(channel: Channel, host: str) -> None:
    for offer in (channel.federation.listen, channel.federation.connect):
        with pytest.raises(UsageError, match="can be reached from other machines and needs"):
            offer(host, 7_400)


@pytest.mark.parametrize("given", [{"unprotected": True}, {"secret": SECRET}])
def test_a_link_beyond_loopback_may_have_a_secret_or_be_declared_unprotected(
    given: dict[str, Any],
) -> None:
    for host in ("0.0.0.0", "example.org"):
        Protection(**given).check_host(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost"])
def test_loopback_needs_neither(channel: Channel, host: str) -> None:
    assert channel.federation.listen(host)


def test_a_secret_that_could_be_guessed_is_refused(channel: Channel) -> None:
    with pytest.raises(UsageError, match="at least 16 bytes; given are 6"):
        channel.federation.listen(secret="secret")


def test_a_secret_that_is_no_text_is_refused(channel: Channel) -> None:
    with pytest.raises(UsageError, match="text or bytes; given is `7`"):
        channel.federation.listen(secret=7)


def test_an_option_that_there_is_not_is_refused_with_those_that_there_are(channel: Channel) -> None:
    with pytest.raises(UsageError, match=r"`password` is no option of a link.*`secret`"):
        channel.federation.listen(password="x" * 20)


# Limits before anybody is known.


def test_before_its_handshake_a_caller_may_send_only_small_frames(channel: Channel) -> None:
    with Stranger(channel.federation.listen()) as stranger:
        stranger.send_bytes((LARGEST_HANDSHAKE + 1).to_bytes(4, "big"))

        assert stranger.read() is None
    assert fault_of(channel) == {LinkFault.BAD_FRAME: 1}


def test_a_caller_that_does_not_finish_its_handshake_in_time_is_sent_away(
    channel: Channel,
) -> None:
    with Stranger(channel.federation.listen(handshake="50 ms")) as stranger:
        stranger.send(Hello(PROTOCOL, b"n" * 32))

        assert stranger.is_dropped()
    assert fault_of(channel) == {LinkFault.TOO_SLOW: 1}


def test_only_so_many_callers_may_try_at_a_time(channel: Channel) -> None:
    address = channel.federation.listen(callers=3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Stranger(address))
        listener = channel.federation._listeners[0]
        assert eventually(lambda: len(listener._callers) == 3)
        assert stack.enter_context(Stranger(address)).is_dropped()
    assert fault_of(channel) == {LinkFault.TOO_MANY_CALLERS: 1}
    assert eventually(lambda: not listener._callers)
    with wanting(address):
        assert eventually(lambda: channel.is_wanted(["Notify"], None))


def test_the_number_of_sessions_is_bounded(channel: Channel) -> None:
    address = channel.federation.listen(sessions=5, patience="10 ms")
    with ExitStack() as stack:
        for number in range(5):
            stack.enter_context(wanting(address, name=f"s#{number}"))
        late = stack.enter_context(Stranger(address, "s#9"))
        assert not late.introduce()
        assert fault_of(channel) == {LinkFault.TOO_MANY_SESSIONS: 1}
    assert eventually(lambda: not channel.federation.neighbours)
    # Sessions that have ended make room.
    with wanting(address, name="s#10"):
        assert eventually(lambda: len(channel.federation.neighbours) == 1)


def test_one_channel_cannot_use_up_all_sessions(channel: Channel) -> None:
    address = channel.federation.listen()
    with ExitStack() as stack:
        for _ in range(SESSIONS_A_CHANNEL):
            stack.enter_context(wanting(address, name="greedy#1"))
        assert not stack.enter_context(Stranger(address, "greedy#1")).introduce()
        assert stack.enter_context(Stranger(address, "modest#1")).introduce()


# Bad frames.


def own_advert(path: tuple[str, ...], channel: str, where: str | None = None) -> Advert:
    return Advert(1, True, (Route(channel, 1, path, (RemoteWant(None, None, where),)),))


def carried(
    channel: Channel, number: int = 1, origin: str = "stranger#1", identity: int = 1
) -> Numbered:
    message = Carried(origin, identity, 1, (channel.federation.id,), event("Notify"))
    return Numbered(number, msgspec.Raw(encode(message)))


DEEP = "NOT " * 1_000 + "a"


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (Hello(PROTOCOL, b"n" * 32), LinkFault.UNEXPECTED),
        (Challenge(PROTOCOL, b"n" * 32, b""), LinkFault.UNEXPECTED),
        (Introduction("stranger#1", "link", True, 1, 0, b""), LinkFault.UNEXPECTED),
        (Acknowledge(7), LinkFault.BAD_ACKNOWLEDGEMENT),
        (Numbered(1, msgspec.Raw(b"\xc1")), LinkFault.BAD_FRAME),
        (Numbered(1, msgspec.Raw(b"\x91" * 5_000)), LinkFault.BAD_FRAME),
        (own_advert(("other#1",), "other#1"), LinkFault.BAD_ADVERT),
        (own_advert(("stranger#1", "other#1"), "third#1"), LinkFault.BAD_ADVERT),
        (own_advert(("stranger#1", "x#1", "x#1", "o#1"), "o#1"), LinkFault.BAD_ADVERT),
        (own_advert(("stranger#1",), "stranger#1", "celsius >"), LinkFault.BAD_ADVERT),
        (own_advert(("stranger#1",), "stranger#1", DEEP), LinkFault.BAD_ADVERT),
        (own_advert(("stranger#1",), "stranger#1", "x" * 5_000), LinkFault.BAD_FRAME),
        (
            Advert(1, True, tuple(Route(f"{n}", 1, (), ()) for n in range(1_025))),
            LinkFault.BAD_FRAME,
        ),
        (own_advert(("stranger#1",), "stranger#1" * 100), LinkFault.BAD_FRAME),
    ],
    ids=lambda each: str(each)[:50],
)
def test_a_bad_frame_ends_its_session_with_a_counted_reason(
    channel: Channel, frame: Frame, fault: LinkFault
) -> None:
    with wanting(channel.federation.listen()) as stranger:
        assert eventually(lambda: len(channel.federation.neighbours) == 1)
        stranger.send(frame)

        assert stranger.is_dropped()
    assert fault_of(channel) == {fault: 1}
    # It is not waited for: the session itself is over.
    assert channel.federation.neighbours == ()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_frames_end_their_sessions_and_nothing_else(channel: Channel, seed: int) -> None:
    chance = random.Random(seed)
    address, got = channel.federation.listen(patience="1 ms"), empty()
    channel.consumers.connect("one", got.append, "Notify")
    samples: list[bytes] = [
        framed(each)
        for each in (
            carried(channel),
            Acknowledge(0),
            own_advert(("stranger#1",), "stranger#1", "celsius > 90"),
            Heartbeat(),
            Bye(),
        )
    ]
    for turn in range(60):
        with (
            wanting(address, name=f"stranger#{turn}") as stranger,
            suppress(ConnectionError, TimeoutError),
        ):
            for _ in range(10):
                data = bytearray(chance.choice(samples))
                for _ in range(chance.randint(0, 3)):
                    # The length stays right, so that what is damaged is read as a frame.
                    data[chance.randrange(4, len(data))] = chance.randrange(256)
                stranger.send_bytes(bytes(data))
    before = len(got)
    with wanting(address) as stranger:
        stranger.send(carried(channel, identity=chance.getrandbits(62)))
        assert eventually(lambda: len(got) > before)


def test_random_bytes_before_the_handshake_end_their_connections_and_nothing_else(
    channel: Channel,
) -> None:
    chance, address = random.Random(0), channel.federation.listen()
    for _ in range(200):
        with Stranger(address) as stranger, suppress(ConnectionError):
            stranger.send_bytes(chance.randbytes(chance.randint(0, 40)))

    def is_let_in() -> bool:
        with Stranger(address) as stranger:
            return stranger.introduce()

    # So many at once leave no room for others, but only for a moment.
    assert eventually(is_let_in)


def test_a_dialling_link_begins_anew_with_a_neighbour_that_has_broken_the_protocol(
    channel: Channel,
) -> None:
    far, got = builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    link = channel.federation.connect(*far.federation.listen(), backoff="5 ms")
    assert link.wait_until_connected("60 s")
    first = link.session
    far_session = next(iter(far.federation._listeners[0]._sessions.values()))
    far.federation._link_loop.loop.call_soon_threadsafe(
        lambda: far_session._connection and far_session._connection.write(framed(Acknowledge(9)))
    )

    assert eventually(lambda: link.session is not first and link.is_connected)
    assert channel.federation.faults == {LinkFault.BAD_ACKNOWLEDGEMENT: 1}
    assert eventually(lambda: channel.is_wanted(["Notify"], None))
    channel.push(event("Notify"))
    assert eventually(lambda: len(got) == 1)
    far.close()


# Neighbours that lie.


def test_a_forged_advert_does_not_cut_off_a_neighbour(channel: Channel) -> None:
    far, got = builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    channel.federation.link(far)
    victim = far.federation.id
    with wanting(channel.federation.listen(), "Other") as liar:
        for version, path in ((2**63 - 1, ()), (2**63 - 1, (liar.name, victim))):
            liar.send(Advert(version, False, (Route(victim, version, path, ()),)))
        assert eventually(lambda: channel.is_wanted(["Other"], None))
        time.sleep(0.02)
        channel.push(event("Notify"))

    assert len(got) == 1
    far.close()


def test_predicates_by_the_thousand_do_not_hold_up_the_thread_of_all_links(
    channel: Channel,
) -> None:
    text = f"n = 3 OR s = '{'x' * 4_000}'"
    wants = tuple(RemoteWant(f"T{n % 9}", None, text) for n in range(900))
    few = tuple(RemoteWant("Few", None, text) for n in range(3))
    advert = Advert(
        0,
        False,
        (
            Route("x#1", 1, ("liar#1", "x#1"), wants),
            *(Route(f"y{n}#1", 2, ("liar#1", f"y{n}#1"), few) for n in range(30)),
        ),
    )
    with wanting(channel.federation.listen(), "Other", name="liar#1") as liar:
        liar.send(advert)
        assert eventually(lambda: channel.is_wanted(["Few"], None))
    read = [
        want.where
        for route in messages.within_parsing_bounds(advert).routes
        for want in route.wants
        if want.where is not None
    ]

    assert 0 < sum(map(len, read)) <= messages.PREDICATES_AN_ADVERT
    assert all(channel.federation.remote.is_wanted(f"T{n}", None) for n in range(9))


def test_a_caller_of_a_neighbours_name_takes_nothing_over(channel: Channel) -> None:
    far, got = builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    channel.federation.link(far)
    with wanting(channel.federation.listen(), "Other", name=far.federation.id):
        assert eventually(lambda: len(channel.federation.links_to(far.federation.id)) == 2)
        channel.push(event("Notify"))

        assert len(got) == 1
        assert not channel.is_wanted(["Other"], None)
    far.close()


def test_a_caller_of_the_channels_own_name_is_sent_away(channel: Channel) -> None:
    with Stranger(channel.federation.listen(), channel.federation.id) as stranger:
        assert not stranger.introduce()
    assert fault_of(channel) == {LinkFault.OWN_NAME: 1}


def test_nobody_can_take_over_the_session_of_another_channel(channel: Channel) -> None:
    address = channel.federation.listen()
    with wanting(address, name="honest#1", link="shared"):
        assert not Stranger(address, "liar#1", link="shared").introduce()
        assert eventually(lambda: channel.federation.neighbours == ("honest#1",))
    assert fault_of(channel) == {LinkFault.UNEXPECTED: 1}


def test_a_liar_cannot_use_up_the_identities_of_another_channels_events(channel: Channel) -> None:
    far, got = builder(name="far").done(), empty()
    channel.consumers.connect("one", got.append, "Notify")
    channel.federation.link(far)
    with wanting(channel.federation.listen()) as liar:
        for number in range(1, 200):
            liar.send(carried(channel, number, far.federation.id, identity=number))
        liar.send(carried(channel, 200, far.federation.id, identity=2**63 - 1))
        assert eventually(lambda: len(got) == 200)
        for _ in range(20):
            far.push(event("Notify"))

    assert len(got) == 220
    far.close()


def test_an_event_that_names_a_destination_many_times_arrives_once(channel: Channel) -> None:
    got = empty()
    channel.consumers.connect("one", got.append, "Notify")
    with wanting(channel.federation.listen()) as liar:
        name = channel.federation.id
        message = Carried(liar.name, 1, 1, (name, name, "nobody#1", name), event("Notify"))
        liar.send(Numbered(1, msgspec.Raw(encode(message))))
        assert eventually(lambda: len(got) == 1)

    assert channel.federation.received == 1
    assert channel.figures().dropped == {Reason.UNROUTED: 1}


def test_an_event_does_not_go_round_for_ever_between_neighbours_that_lie(channel: Channel) -> None:
    """Two liars send everything back; the channel counts it as lost at the latest after 64 hops."""
    with wanting(channel.federation.listen()) as liar:
        assert eventually(lambda: channel.is_wanted(["Notify"], None))
        message = Carried("o#1", 1, 64, (liar.name,), event("Notify"))
        liar.send(Numbered(1, msgspec.Raw(encode(message))))

        assert eventually(lambda: channel.figures().dropped == {Reason.UNROUTED: 1})


def test_a_caller_that_claims_to_have_received_what_was_never_sent_gains_nothing_by_it(
    channel: Channel,
) -> None:
    address = channel.federation.listen(patience="100 ms")
    wanting(address, link="one").close()
    liar = Stranger(address, link="one")
    liar.received = 99
    liar.introduce()

    assert liar.is_dropped()
    assert fault_of(channel) == {LinkFault.BAD_ACKNOWLEDGEMENT: 1}
    # Its session is not kept alive by that: the patience of the link goes on running.
    assert eventually(lambda: not channel.federation.neighbours)
    liar.close()
