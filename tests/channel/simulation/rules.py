"""Rules over links, beside the same rules in one channel to which every event comes.

Two or three channels, in a chain, a star or a circle, over the simulated network. Consumers of
rules of random libraries come while events flow, and may want something else later; links are cut
and come back, or end and are made anew. An event is published where it arises, and the next one of
another channel only when it has arrived everywhere, so that its place in the order is known. In the
end each consumer has got what one in a channel by itself has got, which was given every event that
could be reached.

A rule that was half done at the other end of a link that has ended begins anew with the first event
of its own channel: so does the one beside it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from ensue.channel import Channel, VirtualClock, build, correlated
from ensue.channel.consumers import Consumer
from ensue.channel.links.asking import AWAY, KEPT, OPEN
from ensue.channel.links.federation import Federation
from ensue.channel.lookup.wants import Wants
from ensue.events.event import Event
from ensue.library import Library
from tests.channel.accounting import unbalanced
from tests.channel.simulation.loop import SimulatedLinks, VirtualLoop
from tests.channel.simulation.network import Network
from tests.federation.placement.random_trials import Trial, trial

SHAPES = {
    "pair": ("ab",),
    "chain": ("ab", "bc"),
    "star": ("ab", "ac"),
    "circle": ("ab", "bc", "ca"),
}


@dataclass
class Watch:
    """A consumer in a linked channel, and the one beside it."""

    at: str
    consumer: Consumer
    beside: Consumer
    got: list[Event] = field(default_factory=list)
    due: list[Event] = field(default_factory=list)
    state: str = ""


class RuleWorld:
    """Everything that one seed describes."""

    def __init__(self, seed: int) -> None:
        self.drawn: Trial = trial(seed)
        self.chance = chance = random.Random(seed)
        self.loop = VirtualLoop()
        self.network = self.loop.network = Network(self.loop, chance)
        self._links = SimulatedLinks(self.loop, chance)
        self.shape = chance.choice(list(SHAPES))
        self._library: Library | None = self.drawn.library if chance.random() < 0.5 else None
        names = sorted(set("".join(SHAPES[self.shape])))
        self.channels = {name: self._channel(name) for name in names}
        for channel in self.channels.values():
            channel._federation = Federation(channel, self._links)
        self.alone = self._channel("alone")
        self.up = {pair: self._link(pair) for pair in SHAPES[self.shape]}
        self.watches: list[Watch] = []
        self.tried = Counter[str]()

    def _channel(self, name: str) -> Channel:
        made = build("full", name).clock(VirtualClock()).dispatching("reactive")
        return (made.library(self._library) if self._library is not None else made).done()

    def _link(self, pair: str) -> object:
        there, here = (self.channels[each] for each in self.chance.sample(pair, 2))
        address = there.federation.listen()
        return here.federation.connect(
            *address, backoff="5 ms", longest_backoff="500 ms", seed=self.chance.randrange(1_000)
        )

    def _wants(self) -> Wants:
        rules = self.drawn.library.correlations
        shown = [each.name for each in rules if each.role != "internal"]
        return correlated(self.drawn.library, self.chance.choice([None, *shown]), max_jump="none")

    def _connect(self) -> None:
        at, wants, name = (
            self.chance.choice(list(self.channels)),
            self._wants(),
            f"w{len(self.watches)}",
        )
        got: list[Event] = []
        due: list[Event] = []
        consumer = self.channels[at].consumers.connect(name, got.append, wants)
        beside = self.alone.consumers.connect(name, due.append, wants)
        self.watches.append(Watch(at, consumer, beside, got, due))

    def _change(self) -> None:
        if self.watches:
            watch, wants = self.chance.choice(self.watches), self._wants()
            watch.consumer.change(wants)
            watch.beside.change(wants)

    def _cut(self) -> None:
        self._count("cuts")
        self.network.cut_one()

    def _end_or_make(self) -> None:
        pair = self.chance.choice(SHAPES[self.shape])
        made = self.up.pop(pair, None)
        if made is not None:
            self._count("ends")
            made.close()  # type: ignore[attr-defined]
        else:
            self.up[pair] = self._link(pair)
        self._settle()

    def _settle(self) -> None:
        self.loop.run_for(3.0)
        self._begin_anew()
        linked = self.channels.values()
        assert self.loop.run_until(lambda: not sum(e.federation.in_transit for e in linked), 60.0)
        self.loop.run_for(3.0)

    def _reach(self, origin: str) -> set[str]:
        found, waiting = {origin}, [origin]
        while waiting:
            here = waiting.pop()
            near = {other for pair in self.up if here in pair for other in pair} - found
            found |= near
            waiting += near
        return found

    def _publish(self, origin: str, event: Event) -> None:
        reached = self._reach(origin)
        self.channels[origin].push(event)
        self._begin_anew()
        receivers = self.alone.lookup.find(event)
        far = {each.beside.receiver for each in self.watches if each.at not in reached}
        self.alone.spread_to(event, [each for each in receivers if each not in far])

    def _begin_anew(self) -> None:
        """Let a rule begin anew beside one that has been taken back from where it ran."""
        for each in self.watches:
            before, each.state = each.state, self._state(each)
            if each.state == KEPT and before in (AWAY, OPEN):
                self._count("anew")
                each.beside.change(each.consumer.wants)

    def _state(self, watch: Watch) -> str:
        asked = self.channels[watch.at].federation._asked._asked.values()
        return next((each.state for each in asked if each.consumer is watch.consumer), "")

    def _count(self, name: str, by: int = 1) -> None:
        self.tried[name] += by

    def run(self) -> Counter[str]:
        chance = self.chance
        if chance.random() < 0.8:
            self._settle()
        self._connect()
        self._settle()
        sites = sorted({site for site, _ in self.drawn.events})
        homes = {site: chance.choice(list(self.channels)) for site in sites}
        if chance.random() < 0.5:
            homes = dict.fromkeys(sites, chance.choice(list(self.channels)))
        before = ""
        for site, event in self.drawn.events:
            if homes[site] != before or chance.random() < 0.2:
                self._settle()
            before = homes[site]
            if chance.random() < 0.1:
                self._settle()
                kinds = [self._connect, self._change, self._cut, self._end_or_make]
                chance.choices(kinds, weights=[3, 1, 4, 2])[0]()
                # Wants have to be known where the next event arises.
                self._settle()
            self._publish(before, event)
        self._settle()
        self._check()
        return self.tried

    def _check(self) -> None:
        assert not self.loop.errors, self.loop.errors[0]
        for each in self.watches:
            assert each.got == each.due, (
                f"{self.shape} at {each.at}: {each.got} {each.due}\n{self.drawn}"
            )
            self._count("outputs", len(each.due))
        faults = unbalanced(list(self.channels.values()))
        assert not faults, faults
        asked = [e for c in self.channels.values() for e in c.federation._asked._asked.values()]
        self._count("away", sum(each.state == "away" for each in asked))
        self._count("asked", len(asked))
        self._count("sent", sum(each.federation.sent for each in self.channels.values()))

    def close(self) -> None:
        for channel in (*self.channels.values(), self.alone):
            channel.close(within="0 s")
        self.loop.run_for(1.0)
        self.loop.close()


def compare_rules(seed: int) -> Counter[str]:
    """Run the world of a seed to its end. Returns what was tried."""
    world = RuleWorld(seed)
    try:
        return world.run()
    finally:
        world.close()
