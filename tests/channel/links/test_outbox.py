"""The outbox of a link against a plain model: bounds, order, and every event accounted for."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from ensue.channel import Block, Disconnect, DropNewest, DropOldest
from ensue.channel.links.messages import Carried
from ensue.channel.links.tcp.outbox import BLOCKED, GONE, Bounds, Outbox, OutgoingFrame
from ensue.channel.policies import Overflow
from tests.channel.making import event


def message(number: int) -> Carried:
    return Carried("o", number, 1, ("d",), event())


@given(st.integers(0, 2**32))
def test_an_outbox_keeps_its_bounds_and_loses_nothing_silently(seed: int) -> None:
    chance = random.Random(seed)
    policies: list[Overflow] = [Block(), DropOldest(), DropNewest(), Disconnect()]
    policy = chance.choice(policies)
    events, size = chance.randint(1, 8), chance.randint(1, 60)
    outbox = Outbox(Bounds(events, size, policy))
    placed: list[OutgoingFrame] = []
    dropped: set[int] = set()
    transmitted: list[int] = []
    acknowledged = woken = waiting = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    for _ in range(80):
        action = chance.random()
        if action < 0.45:
            outgoing, lost = outbox.place(message(len(placed) + 1))
            placed.append(outgoing)
            dropped |= {each.number for each in lost}
            assert all(each.number not in transmitted for each in lost)
            if outgoing.stage == BLOCKED:
                outgoing.wakes = [wake]
                waiting += 1
            if outgoing.stage != GONE:
                outbox.set_frame(outgoing, b"x" * chance.randint(1, 20))
        elif action < 0.7:
            before = outbox.last_sent
            outbox.take_frames(chance.randint(1, 50))
            transmitted += range(before + 1, outbox.last_sent + 1)
        elif action < 0.85 and outbox.last_sent:
            acknowledged = chance.randint(acknowledged, outbox.last_sent)
            outbox.acknowledge(acknowledged)
        elif action < 0.9:
            outbox.rewind()
        elif placed:
            one = chance.choice(placed)
            if one.stage == BLOCKED and outbox.withdraw(one):
                dropped.add(one.number)
        kept = [each for each in placed if each.stage != GONE]
        admitted = [each for each in kept if each.stage != BLOCKED]
        assert len(admitted) <= events
        # The last one in may be as large as it likes.
        assert sum(each.size for each in admitted) < size + 20
        assert len(outbox) == outbox.in_transit == len(kept)
        assert outbox._bytes == sum(each.size for each in admitted)
        assert isinstance(policy, Block) or admitted == kept
        numbers = [each.number for each in admitted]
        blocked = [each.number for each in kept if each.stage == BLOCKED]
        assert not blocked or not numbers or max(numbers) < min(blocked)
        # Every number was acknowledged, is kept, or was dropped.
        gone = {each.number for each in placed} - {each.number for each in kept} - dropped
        assert gone <= set(range(1, acknowledged + 1))
        assert woken == waiting - len(blocked)


def test_what_was_sent_is_sent_again_first_and_in_order() -> None:
    outbox = Outbox(Bounds(10, 1_000, Block()))
    for number in range(1, 6):
        outgoing, _ = outbox.place(message(number))
        outbox.set_frame(outgoing, bytes([number]))
    assert outbox.take_frames(3) == [b"\1", b"\2", b"\3"]
    outbox.acknowledge(1)
    outbox.rewind()
    assert outbox.take_frames(1) == [b"\2"]
    outbox.rewind()

    assert outbox.take_frames(100) == [b"\2", b"\3", b"\4", b"\5"]


def test_an_event_that_is_not_encoded_yet_holds_back_those_behind_it() -> None:
    outbox = Outbox(Bounds(10, 1_000, Block()))
    first, _ = outbox.place(message(1))
    second, _ = outbox.place(message(2))
    outbox.set_frame(second, b"2")
    assert outbox.take_frames(100) == []

    outbox.set_frame(first, b"1")
    assert outbox.take_frames(100) == [b"1", b"2"]
