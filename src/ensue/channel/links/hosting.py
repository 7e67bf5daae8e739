"""Rules that run in the channel at the other end of a link: outputs cross it in place of events.

A consumer of `correlated(...)` needs the events of a rule's ports. All of them may come over one
link. So the channel tells its neighbours, over TCP, the rule along with what its ports want
(`RemoteRule`), and the first event decides:

- It arises in the asking channel, which keeps its rule (`KEPT`) and says so.
- It comes to a neighbour, which keeps the event and all later ones, and offers to run the rule.
  The asking channel agrees if its rule has read nothing: from then on the rule is `AWAY`, and the
  neighbour runs it with what it has kept. Otherwise the neighbour sends what it has kept. So does
  another one that has offered it too, and the asking channel sends that on to the rule.

Neighbours are asked where they are linked through the asking channel alone, so that what one of
them has sent first is read first.

So a rule has read nothing when it moves, and no state has to travel. Every event names the rules
that read it elsewhere (`Carried.rules`), so that it is read once, by whichever end. When the link
ends, the neighbour keeps the rule as it stands. The asking channel begins it anew with the first
event of its own; without one, the rule goes on at the neighbour when the link is back.

This is the end that runs rules; `asking` has the other one. Every method but `prepare` is called
with the lock of the federation held, which also guards the look-up of what other channels want.
What it leaves to be done without the lock is in `later`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.links.messages import RemoteRule, Route, as_want
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.lookup.interests import selected_library
from ensue.channel.lookup.wants import Correlated, EventWant, correlated
from ensue.engine.timing.jumps import NONE
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.channel.consumers import Consumer, ConsumerAdmin
    from ensue.channel.delivery.receiver import Receiver
    from ensue.events.event import Event
    from ensue.events.types import TypeSystem

MOST_KEPT = 10_000
"""The events that are kept of a rule until its channel has agreed; more are counted as unsent."""
RULES_LEFT = 64
"""The rules that are kept of channels that cannot be reached."""


class RuleHost(Protocol):
    """What rules of other channels need of a channel."""

    types: TypeSystem

    @property
    def consumers(self) -> ConsumerAdmin: ...

    @property
    def runs_rules(self) -> bool:
        """Whether it can run any rule."""

    def has_supplier_of(self, wanted: Sequence[EventWant]) -> bool: ...


@dataclass(eq=False)
class HostedRule:
    """A rule of another channel, as a target of the look-up.

    `kept` has its events from the first one until its channel has agreed that it runs here.
    """

    rank: tuple[int, int]
    asking: str
    told: RemoteRule
    wanted: Correlated
    wants: tuple[EventWant, ...]
    consumer: Consumer | None = None
    is_offered: bool = False
    kept: list[Event] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        return self.consumer is not None and self.told.runs


class RuleLinks(Protocol):
    """What hosted rules need of the links of their channel."""

    id: str
    later: list[Callable[[], object]]

    def send_output(self, asking: str, key: str, event: Event) -> None: ...

    def send_kept(self, asking: str, key: str, events: Sequence[Event]) -> None:
        """Send a channel the events of a rule that runs there after all."""

    def lose_kept(self, count: int) -> None:
        """Count events that were kept for too long."""


class HostedRules:
    """The rules that one channel runs for others, or may run."""

    def __init__(self, channel: RuleHost, links: RuleLinks, index: TargetIndex[Any]) -> None:
        self._channel = channel
        self._links = links
        self._index = index
        self._numbers = count(1)
        self._rules: dict[str, HostedRule] = {}
        self._left: list[str] = []
        """Channels that cannot be reached, whose rules are kept: first the one that went first."""

    @property
    def is_any(self) -> bool:
        return bool(self._rules)

    @property
    def offers(self) -> tuple[str, ...]:
        return tuple(key for key, each in self._rules.items() if each.is_offered)

    def wants(self) -> Iterator[EventWant]:
        """What the rules want to be sent that run here."""
        for each in self._rules.values():
            if each.is_offered:
                yield from each.wants

    def of(self, key: str | None) -> HostedRule | None:
        return self._rules.get(key) if key is not None else None

    def prepare(self, route: Route) -> dict[str, Correlated]:
        """The rules that a neighbour asks for, as far as they can run here. Needs no lock."""
        if not self._channel.runs_rules:
            return {}
        asked = self._asked_of_this(route).values()
        found = {each.key: self._read(each) for each in asked if each.key not in self._rules}
        return {key: wanted for key, wanted in found.items() if wanted is not None}

    def update(self, asking: str, route: Route | None, new: dict[str, Correlated]) -> None:
        """A channel asks for these rules, and no others; for none that is known, if it is gone."""
        mine = [each for each in self._rules.values() if each.asking == asking]
        if route is None:
            for each in mine:
                self._index.remove(each)
            self._leave(asking if mine else None)
            return
        if asking in self._left:
            self._left.remove(asking)
        asked = self._asked_of_this(route)
        for each in mine:
            if each.told.key not in asked:
                self._end(each)
                self._links.send_kept(asking, each.told.key, each.kept)
        for key, told in asked.items():
            rule = self._rules.get(key)
            if rule is None and key in new and not told.runs:
                wants = tuple(as_want(each) for each in told.wants)
                rule = HostedRule((1, next(self._numbers)), asking, told, new[key], wants)
                self._rules[key] = rule
            if rule is not None:
                self._index.put(rule, rule.wants)
                rule.told = told
                if told.runs and rule.is_offered:
                    self._run(rule)

    def _asked_of_this(self, route: Route) -> dict[str, RemoteRule]:
        """What a channel asks for, under keys that no other channel can have."""
        prefix = f"{route.channel}/"
        mine = [each for each in route.rules if self._links.id in each.at]
        return {each.key: each for each in mine if each.key.startswith(prefix)}

    def unhosted(self, route: Route) -> Iterator[EventWant]:
        """What a channel is sent: what it wants, but not for rules that are known here."""
        yield from map(as_want, route.wants)
        for rule in route.rules:
            if rule.key not in self._rules:
                yield from map(as_want, rule.wants)

    def read_by(
        self, found: Iterable[object], origin: str, rules: Sequence[str]
    ) -> list[HostedRule]:
        """The rules among targets that read an event here, and not elsewhere.

        What arises in the asking channel is for its rule only if it says so.
        """
        hosted = [each for each in found if isinstance(each, HostedRule)]
        return [
            each
            for each in hosted
            if (each.told.key in rules) == (origin == each.asking)
            and (each.told.runs or origin != each.asking)
        ]

    def read(self, rules: Sequence[HostedRule], event: Event) -> tuple[list[Receiver], bool]:
        """Let rules read an event: who gets it, and whether any rule is newly offered."""
        receivers, has_changed = [], False
        for rule in rules:
            if rule.runs and rule.consumer is not None:
                receivers.append(rule.consumer.receiver)
            elif len(rule.kept) < MOST_KEPT:
                rule.kept.append(event)
                has_changed = has_changed or not rule.is_offered
                rule.is_offered = True
            else:
                self._links.lose_kept(1)
        return receivers, has_changed

    def _run(self, rule: HostedRule) -> None:
        """Run a rule, as its channel has agreed, beginning with the events that were kept."""
        key, kept = rule.told.key, rule.kept
        if rule.consumer is None:
            try:
                rule.consumer = self._channel.consumers.host(
                    key, lambda event: self._links.send_output(rule.asking, key, event), rule.wanted
                )
            except EnsueError:
                # A part of the channel was taken away meanwhile.
                self._end(rule)
                self._links.send_kept(rule.asking, key, kept)
                return
        if kept:
            rule.kept = []
            receiver = rule.consumer.receiver
            if receiver.accept_all(kept):
                self._links.later.append(receiver.schedule)

    def _end(self, rule: HostedRule) -> None:
        del self._rules[rule.told.key]
        self._index.remove(rule)
        if rule.consumer is not None:
            self._links.later.append(rule.consumer.disconnect)

    def _leave(self, asking: str | None) -> None:
        """Keep the rules of a channel that is gone, and end those of the channel gone longest."""
        if asking is not None and asking not in self._left:
            self._left.append(asking)
        while sum(each.asking in self._left for each in self._rules.values()) > RULES_LEFT:
            first = self._left.pop(0)
            for each in [each for each in self._rules.values() if each.asking == first]:
                self._end(each)
                self._links.lose_kept(len(each.kept))

    @staticmethod
    def _read(told: RemoteRule) -> Correlated | None:
        from ensue.library import parse

        lateness = timedelta(microseconds=told.lateness)
        jump = NONE if told.max_jump is None else timedelta(microseconds=told.max_jump)
        try:
            for each in told.wants:
                as_want(each)
            library = parse(told.library)
            wanted = correlated(library, told.name, lateness=lateness, max_jump=jump)
            selected_library(wanted)
        except (EnsueError, RecursionError, ValueError, OverflowError):
            return None
        return wanted
