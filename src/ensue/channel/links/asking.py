"""The rules of one channel that neighbours run, or may run: whom it asks, and what it agrees to.

`hosting` tells how a rule moves, and has the other end. Every method is called with the lock of the
federation held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from ensue.channel.delivery.steps import AwayStep
from ensue.channel.links.hosting import RuleHost
from ensue.channel.links.messages import (
    LONGEST_NAME,
    LONGEST_RULE,
    RULES_A_CHANNEL,
    WANTS_A_RULE,
    RemoteRule,
    Route,
    compacted,
)
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.lookup.interests import interests, selected_library
from ensue.channel.lookup.wants import Correlated, EventWant
from ensue.channel.timing.clock import microseconds_in
from ensue.engine.timing.jumps import NONE

if TYPE_CHECKING:
    from ensue.channel.consumers import Consumer
    from ensue.channel.delivery.receiver import Receiver
    from ensue.events.event import Event

OPEN: Final = "open"
KEPT: Final = "kept"
AWAY: Final = "away"


@dataclass(eq=False)
class AskedRule:
    """A rule of a consumer, which a neighbour is asked to run, or runs."""

    rank: tuple[int]
    consumer: Consumer
    wanted: Correlated
    told: RemoteRule
    step: AwayStep
    state: Literal["open", "kept", "away"] = "open"

    @property
    def host(self) -> str:
        """Where it is away."""
        return self.told.at[0]

    @property
    def has_left(self) -> bool:
        return self.consumer.wants is not self.wanted or self.consumer.has_left


class AskedRules:
    """The rules of one channel that its neighbour runs, or may run."""

    def __init__(self, channel: RuleHost, own: str, send_on: Callable[[str, Event], None]) -> None:
        self._channel = channel
        self._own = own
        self._send_on = send_on
        self._numbers = count(1)
        self._asked: dict[str, AskedRule] = {}
        self._index: TargetIndex[AskedRule] = TargetIndex(channel.types)
        """The rules that are open or away, by what they want."""
        self.away: frozenset[Receiver] = frozenset()

    @property
    def is_any(self) -> bool:
        return bool(self._asked)

    def of(self, key: str | None) -> AskedRule | None:
        return self._asked.get(key) if key is not None else None

    def choose(self, neighbours: Sequence[str], asks: bool) -> None:
        """Decide which rules are asked for. With `asks`, the neighbours can be asked."""
        for each in list(self._asked.values()):
            if each.has_left:
                self._forget(each)
                continue
            if each.state == AWAY and each.host not in neighbours:
                self._come_back(each, KEPT if neighbours else OPEN)
            if each.state == OPEN and neighbours:
                if asks:
                    each.told = msgspec.structs.replace(each.told, at=tuple(neighbours))
                else:
                    self.keep(each)
        if not neighbours:
            return
        for consumer in self._channel.consumers:
            if consumer.may_move:
                consumer.may_move = False
                if asks:
                    self._ask(consumer, tuple(neighbours))

    def meet(self, event: Event, rules: Sequence[str] = ()) -> tuple[list[AskedRule], bool]:
        """An event is to be read here, but by `rules`: others that are open run here from now on.

        Returns the rules that read it elsewhere, and whether any is kept.
        """
        elsewhere, has_changed = [], False
        for each in self._index.find(event):
            if each.state == AWAY or each.told.key in rules:
                elsewhere.append(each)
            else:
                self.keep(each)
                has_changed = True
        return elsewhere, has_changed

    def keep(self, asked: AskedRule) -> None:
        """Let a rule run here for good."""
        if asked.state == AWAY:
            self._come_back(asked, KEPT)
        asked.state = KEPT
        self._index.remove(asked)

    def agree(self, asked: AskedRule, host: str) -> None:
        """Let a rule run at a neighbour that was asked to, if it has read nothing here."""
        if not asked.consumer.run_away(asked.step, asked.wanted):
            self.keep(asked)
            return
        asked.state = AWAY
        asked.told = msgspec.structs.replace(asked.told, at=(host,), wants=(), runs=True)
        self.away |= {asked.consumer.receiver}

    def learn(self, route: Route) -> bool:
        """A neighbour tells which rules it offers to run. Whether any has moved."""
        has_changed = False
        for asked in list(self._asked.values()):
            is_offered = asked.told.key in route.offers
            if route.channel not in asked.told.at or asked.has_left:
                continue
            if asked.state == OPEN and is_offered:
                self.agree(asked, route.channel)
                has_changed = True
            elif asked.state == AWAY and not is_offered:
                self.keep(asked)
                has_changed = True
        return has_changed

    def rules(self) -> tuple[RemoteRule, ...]:
        """What neighbours are asked to run."""
        return tuple(each.told for each in self._asked.values() if each.state != KEPT)

    def wants(self) -> Iterator[EventWant]:
        """What consumers want to be sent, but for those whose rules neighbours are asked to run."""
        is_open = {each.consumer for each in self._asked.values() if each.state == OPEN}
        for each in self._channel.consumers:
            # One that has just come is told of when it has been decided whom to ask.
            if each not in is_open and not each.may_move and each.state != "disconnected":
                yield from each.looked_up()

    def _come_back(self, asked: AskedRule, state: Literal["open", "kept"]) -> None:
        wants = compacted(interests(asked.wanted), self._channel.types)
        asked.told = msgspec.structs.replace(asked.told, wants=wants, runs=False)
        asked.state = state
        self.away -= {asked.consumer.receiver}
        asked.consumer.run_here(asked.wanted)

    def _forget(self, asked: AskedRule) -> None:
        asked.step.is_over = True
        del self._asked[asked.told.key]
        self._index.remove(asked)
        self.away -= {asked.consumer.receiver}

    def _ask(self, consumer: Consumer, neighbours: tuple[str, ...]) -> None:
        wanted, quality = consumer.wants, consumer.quality
        if not isinstance(wanted, Correlated) or wanted.library.checked.ontology is not None:
            return
        if quality.conflate is not False or quality.time_to_live is not None:
            # These say which events the rule reads, and not which outputs the consumer gets.
            return
        if consumer.receiver.offered:
            return
        ports = tuple(interests(wanted))
        others = [each for each in self._channel.consumers if each is not consumer]
        crossing = {
            want.type for each in others for want in each.looked_up() if not self._asks(each)
        }
        if not ports or None in crossing or any(each.type in crossing for each in ports):
            # Another consumer wants such events, so that they cross the link all the same.
            return
        if self._channel.has_supplier_of(ports) or len(self.rules()) >= RULES_A_CHANNEL:
            return
        number = next(self._numbers)
        key = f"{self._own}/{consumer.name[:100]}#{number}"
        told = RemoteRule(
            neighbours,
            key,
            selected_library(wanted).running_text,
            wanted.name,
            microseconds_in(wanted.lateness),
            None if wanted.max_jump == NONE else microseconds_in(wanted.max_jump),
            compacted(ports, self._channel.types),
        )
        sizes = (len(told.library), LONGEST_RULE), (len(told.wants), WANTS_A_RULE)
        if any(given > most for given, most in (*sizes, (len(key), LONGEST_NAME))):
            return
        step = AwayStep(lambda event: self._send_on(key, event))
        asked = self._asked[key] = AskedRule((number,), consumer, wanted, told, step)
        self._index.put(asked, ports)

    def _asks(self, consumer: Consumer) -> bool:
        return any(
            each.consumer is consumer and each.state != KEPT for each in self._asked.values()
        )
