"""A channel that many threads use at once, in every way it has, and close in the middle of it.

Suppliers come and go, consumers connect, change, fail, publish from their turns and leave in them,
pullers iterate, timers run, strategies change, two threads close. Nothing is to hang: a storm that
does not end is told with the stacks of all threads. What must hold is in `accounting`: all that was
wanted is delivered or counted.
"""

from __future__ import annotations

import faulthandler
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import ensue
from ensue.channel import (
    Block,
    Channel,
    Disconnect,
    DropNewest,
    DropOldest,
    WallClock,
    all_of,
    correlated,
    want,
)
from ensue.channel.timing.clock_events import TIMEOUT
from ensue.events.event import Event
from tests.channel.making import builder, event
from tests.channel.scenarios import ALL_OF_THEM

SECONDS = 120
"""After so long a storm hangs."""

TIMED = ensue.parse("""
eventtype Notify { attribute long supplier; attribute long count; };
Notify correlation Silent (Notify a, deadline 2 ms d) d | a { case true: push a; }
""")
WANTS: tuple[Callable[[], Any], ...] = (
    *ALL_OF_THEM,
    lambda: correlated(TIMED),
    lambda: all_of("Notify", want("Notify", where="count >= 0")),
)


class Storm:
    """One storm over one channel. Every thread draws from a chance of its own."""

    def __init__(self, channel: Channel, chance: random.Random) -> None:
        self.channel = channel
        self.pushed = 0
        self.errors: list[BaseException] = []
        self._chance = chance
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._depth = threading.local()

    def run(self) -> None:
        works = [self.supply] * self._chance.randint(1, 4)
        works += [self.consume] * self._chance.randint(1, 3)
        works += [self.pull] * self._chance.randint(0, 2)
        works += [self.reconfigure] * self._chance.randint(0, 1)
        works += [self.look]
        threads = [
            threading.Thread(target=self._guarded, args=(work, self._chance.random()))
            for work in works
        ]
        for each in threads:
            each.start()
        time.sleep(self._chance.uniform(0.0, 0.15))
        closers = [threading.Thread(target=self._close) for _ in range(self._chance.randint(1, 3))]
        for each in closers:
            each.start()
        for each in closers:
            each.join()
        self._ends.set()
        for each in threads:
            each.join()

    def _close(self) -> None:
        self.channel.close(drain=self._chance.random() < 0.7, within="20 s")

    def _guarded(self, work: Callable[[random.Random], None], seed: float) -> None:
        chance = random.Random(seed)
        try:
            while not self._ends.is_set():
                work(chance)
        except ensue.UsageError as error:
            if "closed" not in str(error):
                self.errors.append(error)
        except BaseException as error:
            self.errors.append(error)

    # --- what threads do --------------------------------------------------------------------------

    def supply(self, chance: random.Random) -> None:
        name = f"s{chance.random()}"
        types = chance.choice([(), ("Notify",), ("Other",)])
        supplier = self.channel.suppliers.connect(name, types)
        for count in range(chance.randint(1, 60)):
            type_ = types[0] if types else "Notify"
            supplier.push(event(type_, supplier=1, count=count))
            with self._lock:
                self.pushed += 1
        if chance.random() < 0.9:
            supplier.disconnect()

    def consume(self, chance: random.Random) -> None:
        consumer = self.channel.consumers.connect(
            f"c{chance.random()}",
            self._turn(chance),
            chance.choice(WANTS)(),
            capacity=chance.choice([1, 3, 1000]),
            overflow=chance.choice(
                [DropOldest(), DropNewest(), Block("5 ms"), Block("0 s"), Disconnect()]
            ),
            conflate=chance.choice([False, False, True]),
            failures=chance.choice([None, 2]),
            time_to_live=chance.choice([None, None, "1 ms"]),
            deadline=chance.choice([None, "1 ms"]),
        )
        for _ in range(chance.randint(0, 4)):
            ways: list[Callable[[], object]] = [
                lambda: consumer.change(chance.choice(WANTS)()),
                lambda: consumer.require(priority=chance.randint(0, 5)),
                lambda: consumer.every("1 ms"),
                lambda: consumer.deadline("1 ms"),
                consumer.resume,
                lambda: time.sleep(0.002),
            ]
            chance.choice(ways)()
        if chance.random() < 0.8:
            consumer.disconnect()

    def _turn(self, chance: random.Random) -> Callable[[Event], None]:
        fails, publishes = chance.random() < 0.2, chance.random() < 0.2
        leaves = chance.random() < 0.1

        def turn(given: Event) -> None:
            if fails and chance.random() < 0.3:
                raise ValueError("no good")
            if publishes and given.type != TIMEOUT and given.data.get("count", 9) < 3:
                self.channel.push(event("Notify", supplier=9, count=9))
            if leaves and chance.random() < 0.1:
                for each in self.channel.consumers:
                    each.disconnect()
                    break

        return turn

    def pull(self, chance: random.Random) -> None:
        subscription = self.channel.subscribe(chance.choice(WANTS)(), capacity=50)
        for number, _ in enumerate(subscription):
            if number > chance.randint(0, 100):
                break
        subscription.close()

    def reconfigure(self, chance: random.Random) -> None:
        with self.channel.changing():
            self.channel.dispatch_by(
                chance.choice(["reactive", "pool"]), threads=chance.randint(1, 4)
            )
        time.sleep(0.001)

    def look(self, chance: random.Random) -> None:
        self.channel.figures()
        time.sleep(chance.uniform(0, 0.002))


def storm(chance: random.Random) -> None:
    """Whatever threads do at once, it ends, and what was wanted is delivered or counted."""
    made = builder("full").clock(WallClock())
    made.dispatching(chance.choice(["reactive", "pool"]), threads=chance.randint(1, 4))
    channel = made.done()
    before = threading.active_count()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        raging = Storm(channel, chance)
        raging.run()
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert not raging.errors, raging.errors[:3]
    for _ in range(2_000):
        if threading.active_count() <= before:
            break
        time.sleep(0.002)
    assert threading.active_count() <= before, threading.enumerate()
