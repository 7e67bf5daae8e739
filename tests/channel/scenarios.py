"""Channels under random load, each described by one seed: what must hold whatever the seed is.

A scenario draws a channel, its consumers and its troubles from `chance`, lets events flow, and
asserts. None of them depends on how quick the machine is. `test_scenarios` runs a few seeds of
each, and the hunt `channels` as many as there is time for. Links have scenarios of their own, in
`linked_scenarios`.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import ensue
from ensue.channel import (
    Block,
    Channel,
    Consumer,
    Disconnect,
    DropNewest,
    DropOldest,
    Reason,
    VirtualClock,
    any_of,
    correlated,
    want,
)
from ensue.channel.timing.callouts import Callout, CalloutQueue
from ensue.events.event import Event
from tests.channel.making import builder, empty, event, eventually, extended, held

Scenario = Callable[[random.Random], None]

FORWARDING = [
    ensue.parse(f"""
eventtype Notify {{ attribute long supplier; attribute long count; }};
Notify correlation {name} (Notify a) l:a {{ case l: push a; }}
""")
    for name in ("Forward", "Again")
]

ALL_OF_THEM: tuple[Callable[[], Any], ...] = (
    lambda: "Notify",
    lambda: None,
    lambda: want(source="test"),
    lambda: want("Notify", where="count >= 0"),
    lambda: want("Notify", where=lambda each: each.data["count"] >= 0),
    lambda: any_of("Notify", "Other"),
    lambda: correlated(FORWARDING[0]),
    lambda: correlated(FORWARDING[1]),
)
"""Wants that each let every event of the load through, by other ways."""


class Tally:
    """What a consumer got: each event once, each supplier's in order, one call at a time."""

    def __init__(self, chance: random.Random) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.faults: list[str] = []
        self._last: dict[int, int] = {}
        self._is_inside = False
        self._pauses = chance.random() < 0.3

    def __call__(self, given: Event) -> None:
        if self._is_inside:
            self.faults.append("called by two threads at once")
        self._is_inside = True
        supplier, count = given.data["supplier"], given.data["count"]
        if self._pauses and count % 7 == 0:
            time.sleep(0)
        self.seen[(supplier, count)] += 1
        if count <= self._last.get(supplier, -1):
            self.faults.append(f"{supplier}:{count} came after {self._last[supplier]}")
        self._last[supplier] = count
        self._is_inside = False

    def check(self, suppliers: int, events: int) -> None:
        assert not self.faults, self.faults[:3]
        assert len(self.seen) == suppliers * events, (len(self.seen), suppliers * events)
        assert set(self.seen.values()) <= {1}


def suppliers_of(
    channel: Channel,
    suppliers: int,
    events: int,
    before: Callable[[int], None] = lambda _: None,
) -> list[threading.Thread]:
    """Threads that push, with pauses in which something can be changed.

    Each calls `before` with the number of the event that it is about to push.
    """

    def supply(number: int) -> None:
        for count in range(events):
            before(count)
            channel.push(event("Notify", supplier=number, count=count))
            if count % 50 == 0:
                time.sleep(0.0005)

    threads = [threading.Thread(target=supply, args=(n,)) for n in range(suppliers)]
    for thread in threads:
        thread.start()
    return threads


def drawn_channel(chance: random.Random, **promises: Any) -> Channel:
    strategy, threads = chance.choice(["reactive", "pool"]), chance.randint(1, 5)
    is_urgent = chance.random() < 0.2
    made = builder("full").dispatching(strategy, threads=threads, real_time=is_urgent)
    return made.consumers(overflow=Block("60 s"), **promises).done()


def ordering(chance: random.Random) -> None:
    """Everybody gets every event once, each supplier's in order, by one thread at a time."""
    suppliers, events = chance.randint(1, 4), chance.randint(1, 400)
    channel = drawn_channel(chance, capacity=chance.choice([1, 2, 10, 10_000]))
    tallies = [Tally(chance) for _ in range(chance.randint(1, 6))]
    for number, tally in enumerate(tallies):
        channel.consumers.connect(
            f"c{number}",
            tally,
            chance.choice(ALL_OF_THEM)(),
            priority=chance.randint(0, 3),
            deadline=chance.choice([None, "1 s"]),
        )
    for thread in suppliers_of(channel, suppliers, events):
        thread.join()
    assert channel.settle("60 s")
    for tally in tallies:
        tally.check(suppliers, events)
    assert channel.figures().published == suppliers * events
    assert channel.close().drained


def priority(chance: random.Random) -> None:
    """What waits is taken up by priority, sub-priority and event priority; then by arrival."""
    channel, called = builder("full").dispatching("pool", threads=1).done(), []
    consumers: list[tuple[int, int]] = []
    for number in range(chance.randint(1, 8)):
        place = chance.randint(-2, 3), chance.randint(0, 2)
        consumers.append(place)

        def note(given: Event, number: int = number, place: tuple[int, int] = place) -> None:
            level = given.extensions.get("priority", 0)
            called.append(((-place[0], -place[1], -level), number, given.data["n"]))

        channel.consumers.connect(f"c{number}", note, f"T{number}", priority=place[0]).require(
            sub_priority=place[1]
        )
    pushed = chance.randint(1, 60)
    with held(channel):
        for count in range(pushed):
            level = chance.choice([{}, {}, {"priority": -3}, {"priority": 4}, {"priority": 9}])
            type_ = f"T{chance.randrange(len(consumers))}"
            channel.push(extended(type_, data={"n": count}, **level))
    assert len(called) == pushed
    assert [each[0] for each in called] == sorted(each[0] for each in called)
    for number in range(len(consumers)):
        for schedule_key in {each[0] for each in called}:
            own = [n for place, who, n in called if (place, who) == (schedule_key, number)]
            assert own == sorted(own)
    channel.close()


def overflow(chance: random.Random) -> None:
    """A full queue keeps and drops exactly what its policy says, and says which."""
    policy = chance.choice([DropOldest(), DropNewest(), Block("0 s"), Disconnect()])
    capacity, pushed = chance.randint(1, 6), chance.randint(1, 25)
    told: list[tuple[int, Reason]] = []
    channel = (
        builder("full")
        .dispatching("pool", threads=1)
        .on_drop(lambda _, lost, reason: told.append((lost.data["n"], reason)))
        .done()
    )
    got: list[int] = []
    consumer = channel.consumers.connect(
        "small", lambda each: got.append(each.data["n"]), "Notify", capacity=capacity,
        overflow=policy,
    )  # fmt: skip
    kept: list[tuple[int, int]] = []
    lost: list[tuple[int, Reason]] = []
    is_on = True
    with held(channel):
        for count in range(pushed):
            level = chance.choice([0, 0, 0, 5, -2])
            channel.push(extended("Notify", data={"n": count}, priority=level))
            if is_on and len(kept) < capacity:
                kept.append((-level, count))
            elif isinstance(policy, DropOldest):
                spared = min(kept, key=lambda each: (-each[0], each[1]))
                kept[kept.index(spared)] = (-level, count)
                lost.append((spared[1], Reason.OLDEST))
            elif isinstance(policy, Disconnect):
                # Once it is off, nobody looks for it any more.
                if is_on:
                    order = [n for _, n in sorted(kept)]
                    lost += [(n, Reason.DISCONNECTED) for n in (count, *order)]
                is_on, kept = False, []
            else:
                reason = Reason.NEWEST if isinstance(policy, DropNewest) else Reason.BLOCKED
                lost.append((count, reason))
    assert got == [count for _, count in sorted(kept)]
    assert told == lost
    assert consumer.figures.dropped == Counter(reason for _, reason in lost)
    channel.close()


def counted(chance: random.Random) -> None:
    """Whatever happens to a consumer, what it wanted is delivered or counted under a reason."""
    told: Counter[tuple[str, Reason]] = Counter()
    lock = threading.Lock()

    def note(name: str, _: Event, reason: Reason) -> None:
        with lock:
            told[(name, reason)] += 1

    made = builder("full").dispatching(chance.choice(["reactive", "pool"]), threads=3)
    channel = made.on_drop(note).done()
    policies = [DropOldest(), DropNewest(), Block("1 ms"), Block("0 s"), Disconnect()]
    consumers, counts = [], []
    for number in range(chance.randint(1, 5)):
        count, fails = [0], chance.choice([0.0, 0.0, 0.02, 0.5])

        def call(_: Event, count: list[int] = count, fails: float = fails) -> None:
            if chance.random() < fails:
                raise ValueError("no good")
            count[0] += 1

        counts.append(count)
        consumers.append(
            channel.consumers.connect(
                f"c{number}",
                call,
                chance.choice(ALL_OF_THEM)(),
                capacity=chance.choice([1, 3, 100]),
                overflow=chance.choice(policies),
                conflate=chance.choice([False, False, True, "count"]),
                failures=chance.choice([None, 2, 5]),
            )
        )
    threads = suppliers_of(channel, chance.randint(1, 3), 200)
    while any(thread.is_alive() for thread in threads):
        one = chance.choice(consumers)
        if chance.random() < 0.5:
            one.resume()
        time.sleep(0.001)
    assert channel.settle("60 s")
    for consumer, count in zip(consumers, counts, strict=True):
        figures = consumer.figures
        assert figures.delivered == count[0], figures
        assert figures.wanted == figures.delivered + sum(figures.dropped.values()), figures
        assert dict(figures.dropped) == {
            reason: n for (name, reason), n in told.items() if name == figures.name
        }
    channel.close()


def reconfiguration(chance: random.Random) -> None:
    """Strategies, filters, correlations and promises change under load, and nothing else does."""
    suppliers, events = chance.randint(1, 4), chance.randint(100, 500)
    channel = drawn_channel(chance, capacity=chance.choice([1, 20, 1_000]))
    tallies = [Tally(chance), Tally(chance)]
    consumers = [
        channel.consumers.connect(f"c{number}", tally, "Notify")
        for number, tally in enumerate(tallies)
    ]
    kinds: Sequence[Callable[[Consumer], object]] = (
        lambda _: channel.dispatch_by(
            chance.choice(["reactive", "pool"]), threads=chance.randint(1, 5)
        ),
        lambda one: one.change(chance.choice(ALL_OF_THEM)()),
        lambda one: one.require(priority=chance.randint(0, 5), capacity=chance.randint(1, 50)),
        lambda one: one.require(deadline=chance.choice([None, "10 ms"])),
        lambda _: channel.consumers.connect("guest", lambda _: None).disconnect(),
    )
    threads = suppliers_of(channel, suppliers, events)
    while any(thread.is_alive() for thread in threads):
        chance.choice(kinds)(chance.choice(consumers))
    assert channel.settle("60 s")
    for tally in tallies:
        tally.check(suppliers, events)
    assert channel.close().drained


def on_a_loop(chance: random.Random) -> None:
    """Coroutines and functions on a loop get every event once, while the strategy changes too."""

    async def main() -> None:
        suppliers, events = chance.randint(1, 3), chance.randint(50, 300)
        channel = builder("full").dispatching("asyncio").consumers(capacity=100_000).done()
        tallies = [Tally(chance) for _ in range(3)]
        may_swap = chance.random() < 0.5

        async def slowly(given: Event) -> None:
            if given.data["count"] % 11 == 0:
                await asyncio.sleep(0)
            tallies[0](given)

        channel.consumers.connect("coroutine", tallies[0] if may_swap else slowly, "Notify")
        channel.consumers.connect("function", tallies[1], chance.choice(ALL_OF_THEM)())
        pulled = channel.subscribe("Notify")
        threads = suppliers_of(channel, suppliers, events)
        while any(thread.is_alive() for thread in threads):
            if may_swap:
                channel.dispatch_by(chance.choice(["asyncio", "pool", "reactive"]), threads=2)
            await asyncio.sleep(0.001)
        closing = await channel.aclose(within="60 s")
        async for given in pulled:
            tallies[2](given)
        assert closing.drained
        for tally in tallies:
            tally.check(suppliers, events)

    asyncio.run(main())


def closing(chance: random.Random) -> None:
    """A channel that is closed while suppliers push delivers or counts all that it took."""
    channel = drawn_channel(chance, capacity=chance.choice([1, 50, 10_000]))
    got = [0]

    def call(_: Event) -> None:
        got[0] += 1

    consumer = channel.consumers.connect("one", call, chance.choice(ALL_OF_THEM)())
    refused = [0]

    def supply() -> None:
        for count in range(2_000):
            try:
                channel.push(event("Notify", supplier=0, count=count))
            except ensue.EnsueError:
                refused[0] += 1
                return

    threads = [threading.Thread(target=supply) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert eventually(lambda: got[0] > 0, 30)
    channel.close(drain=chance.random() < 0.5, within="60 s")
    for thread in threads:
        thread.join()
    assert eventually(lambda: not consumer.receiver.is_busy, 30)
    figures = consumer.figures
    assert figures.delivered == got[0]
    assert figures.wanted == figures.delivered + sum(figures.dropped.values()), figures


def timers(chance: random.Random) -> None:
    """Callouts run in the order of their times, whatever was scheduled and cancelled before."""
    queue, ran = CalloutQueue(), empty()
    model: dict[int, tuple[int, int, int, Callout]] = {}

    def calling(number: int) -> Callable[[int], None]:
        return lambda _: ran.append(number)

    for number in range(chance.randint(1, 200)):
        due, real_time = chance.randint(0, 50), chance.randint(0, 3)
        callout = queue.schedule(due, calling(number), real_time)
        model[number] = (due, -real_time, number, callout)
        if chance.random() < 0.4:
            gone = chance.choice(sorted(model))
            assert queue.cancel(model.pop(gone)[3])
    until = chance.randint(0, 60)
    assert queue.run_due(until) == len(ran)
    assert ran == [
        n for _, _, n, _ in sorted(model.values(), key=lambda m: m[:3]) if model[n][0] <= until
    ]
    clock, fired = VirtualClock(), empty()

    def noting(number: int) -> Callable[[Event], None]:
        return lambda given: fired.append((given.time, number))

    channel = builder().clock(clock).done()
    periods = [chance.randint(1, 20) for _ in range(chance.randint(1, 5))]
    for number, period in enumerate(periods):
        one = channel.consumers.connect(f"c{number}", noting(number))
        one.every(f"{period} ms")
    clock.advance("100 ms")
    assert sorted(fired) == sorted(
        (period * 1000 * beat, number)
        for number, period in enumerate(periods)
        for beat in range(1, 100 // period + 1)
    )
    assert [at for at, _ in fired] == sorted(at for at, _ in fired)
    channel.close()


SCENARIOS: tuple[Scenario, ...] = (
    ordering,
    priority,
    overflow,
    counted,
    reconfiguration,
    on_a_loop,
    closing,
    timers,
)
