"""Rules that run in the channel at the other end of a link: outputs cross it in place of events.

A consumer of `correlated(...)` needs the events of a rule's ports. Where its channel has a single
neighbour, they may all come over that link. So the channel tells the neighbour the rule along with
what its ports want (`RemoteRule`). Nothing happens until the first such event:

- It arises in the asking channel, and that takes its rule back (`AskedRules.meet`): the rule runs
  in its own channel, as without a link.
- It comes to the neighbour, which accepts the rule before anything else is done with the event
  (`HostedRules.meet`): the rule gets a consumer there, `CHANNEL/KEY`, whose outputs are sent back
  for the key, and its events are not sent any more. The asking channel hears that it `runs` there
  before any output, and lets its own run go, which has read nothing.

If both happen at once, the asking channel keeps its rule, and the neighbour sends the events that
it has kept until it was told which it is. Later events of the asking channel are wanted by the
rule where it runs, and go there. When the link is gone, the rule begins anew in its own channel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Protocol

import msgspec

from ensue.channel.links.messages import (
    LONGEST_RULE,
    RULES_A_CHANNEL,
    WANTS_A_RULE,
    RemoteRule,
    RemoteWant,
    Route,
    as_want,
    compacted,
)
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.lookup.interests import interests, selected_library
from ensue.channel.lookup.wants import Correlated, EventWant, Wants, any_of, correlated
from ensue.channel.policies import Quality
from ensue.channel.timing.clock import microseconds_in
from ensue.engine.timing.jumps import NONE
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.channel.consumers import Consumer, ConsumerAdmin
    from ensue.events.event import Event
    from ensue.events.types import TypeSystem


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
class AskedRule:
    """A rule of a consumer, which a neighbour is asked to run, or runs."""

    rank: tuple[int]
    consumer: Consumer
    told: RemoteRule
    wants: tuple[EventWant, ...]


class AskedRules:
    """The rules of one channel that its neighbour runs, or may run."""

    def __init__(self, channel: RuleHost) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._asked: dict[str, AskedRule] = {}
        self.awaited: TargetIndex[AskedRule] = TargetIndex(channel.types)
        """The rules of which nothing has been read yet, by what they want."""
        self.is_waiting = False

    def choose(self, neighbours: Sequence[str]) -> None:
        """Decide which rules a single neighbour is asked to run."""
        only = neighbours[0] if len(neighbours) == 1 else None
        for asked in list(self._asked.values()):
            consumer, told = asked.consumer, asked.told
            if self._has_left(asked):
                self._forget(asked)
            elif told.at not in neighbours or (not told.runs and only is None):
                self._forget(asked)
                consumer.run_here(is_decided=bool(neighbours))
        for consumer in self._channel.consumers:
            if consumer.is_undecided and neighbours:
                asks = None if only is None else self._rule(consumer, only)
                consumer.is_undecided = False
                if asks is not None:
                    self._asked[asks.told.key] = asks
                    consumer.key = asks.told.key
                    self._await(asks)

    def meet(self, event: Event) -> bool:
        """An event arises in this channel: rules that read it run here. Whether there are any."""
        found = self.awaited.find(event)
        for each in found:
            self._forget(each)
            each.consumer.key = None
        return bool(found)

    def learn(self, route: Route, own: str) -> bool:
        """A neighbour tells what it runs. Whether any rule has gone there, or comes back."""
        has_changed = False
        for channel, key in route.runs:
            asked = self._asked.get(key) if channel == own else None
            if asked is None or asked.told.runs or asked.told.at != route.channel:
                continue
            has_changed = True
            if asked.consumer.run_at(route.channel):
                # It wants nothing here any more.
                asked.told = msgspec.structs.replace(asked.told, wants=(), runs=True)
                self._stop_waiting(asked)
            else:
                self._forget(asked)
                asked.consumer.key = None
        return has_changed

    def rules(self) -> tuple[RemoteRule, ...]:
        """What neighbours are asked to run."""
        return tuple(each.told for each in self._asked.values() if not self._has_left(each))

    def wants(self, but: Consumer | None = None) -> Iterator[EventWant]:
        """What consumers want, but for those with rules that neighbours are asked to run."""
        for each in self._channel.consumers:
            if each.key is None and each.state != "disconnected" and each is not but:
                yield from interests(each.wants)

    def consumer_of(self, key: str) -> Consumer | None:
        return self._asked[key].consumer if key in self._asked else None

    def _has_left(self, asked: AskedRule) -> bool:
        consumer = asked.consumer
        is_known = self._channel.consumers.of(consumer.receiver) is consumer
        return consumer.key != asked.told.key or consumer.state == "disconnected" or not is_known

    def _await(self, asked: AskedRule) -> None:
        self.awaited.put(asked, asked.wants)
        self.is_waiting = True

    def _stop_waiting(self, asked: AskedRule) -> None:
        self.awaited.remove(asked)
        self.is_waiting = any(not each.told.runs for each in self._asked.values())

    def _forget(self, asked: AskedRule) -> None:
        self._asked.pop(asked.told.key, None)
        self._stop_waiting(asked)

    def _rule(self, consumer: Consumer, neighbour: str) -> AskedRule | None:
        """The rule of a consumer as a neighbour can be asked to run it; None if it stays here."""
        wanted, quality = consumer.wants, consumer.quality
        if not isinstance(wanted, Correlated) or wanted.library.checked.ontology is not None:
            return None
        if not consumer.is_fresh:
            return None
        if quality.conflate is not False or quality.time_to_live is not None:
            # These say which events the rule reads, and not which outputs the consumer gets.
            return None
        ports = tuple(interests(wanted))
        crossing = {each.type for each in self.wants(but=consumer)}
        if None in crossing or any(each.type in crossing for each in ports):
            # Another consumer wants such events, so that they cross the link all the same.
            return None
        if self._channel.has_supplier_of(ports) or len(self._asked) >= RULES_A_CHANNEL:
            return None
        number = next(self._numbers)
        told = RemoteRule(
            neighbour,
            f"{consumer.name[:100]}#{number}",
            selected_library(wanted).running_text,
            wanted.name,
            microseconds_in(wanted.lateness),
            None if wanted.max_jump == NONE else microseconds_in(wanted.max_jump),
            compacted(ports, self._channel.types),
        )
        if len(told.library) > LONGEST_RULE or len(told.wants) > WANTS_A_RULE:
            return None
        return AskedRule((number,), consumer, told, ports)


# --- where they run -------------------------------------------------------------------------------


@dataclass(eq=False)
class HostedRule:
    """A rule of another channel. `kept` has its events until that has let its own run go."""

    rank: tuple[int]
    asking: str
    told: RemoteRule
    consumer: Consumer | None = None
    is_refused: bool = False
    kept: list[Event] = field(default_factory=list)


class HostLinks(Protocol):
    """What hosted rules need of the links of their channel."""

    id: str

    def send_output(self, asking: str, key: str | None, event: Event) -> None:
        """Send an output for a key of a channel, or, without one, an event that it wants."""

    def rule_accepted(self, asking: str) -> None:
        """Send a channel no events of a rule that runs here now, and tell it so."""


class HostedRules:
    """The rules that run in one channel for its neighbours, and those that it is asked to run."""

    def __init__(self, channel: RuleHost, links: HostLinks) -> None:
        self._channel = channel
        self._links = links
        self._lock = threading.RLock()
        self._numbers = count(1)
        self._rules: dict[tuple[str, str], HostedRule] = {}
        self._watched: TargetIndex[HostedRule] = TargetIndex(channel.types)
        self.is_watching = False
        """Whether any rule waits for its first event, or for its channel to let its own run go."""

    @property
    def is_any(self) -> bool:
        return bool(self._rules)

    @property
    def running(self) -> tuple[tuple[str, str], ...]:
        """The channels and keys of the rules that run here."""
        with self._lock:
            return tuple(key for key, each in self._rules.items() if each.consumer is not None)

    def update(self, asking: str, rules: Iterable[RemoteRule], is_gone: bool = False) -> None:
        """A channel asks for these rules, and no others. Called before it is sent what it wants."""
        asked = {each.key: each for each in rules if each.at == self._links.id}
        with self._lock:
            mine = [each for each in self._rules.values() if each.asking == asking]
            for each in mine:
                if each.told.key not in asked:
                    self._end(each, is_gone)
            for key, told in asked.items():
                known = self._rules.get((asking, key))
                if known is None and not told.runs:
                    rule = HostedRule((next(self._numbers),), asking, told)
                    self._rules[asking, key] = rule
                    self._watched.put(rule, [as_want(each) for each in told.wants])
                elif known is not None and told.runs:
                    known.told = told
                    known.kept.clear()
                    self._watched.remove(known)
            self.is_watching = any(not each.told.runs for each in self._rules.values())

    def meet(self, event: Event) -> None:
        """An event comes to this channel: rules that read it run here from now on."""
        with self._lock:
            for rule in self._watched.find(event):
                if rule.consumer is None and not rule.is_refused:
                    self._accept(rule)
                if rule.consumer is not None:
                    rule.kept.append(event)

    def wants_of(self, asking: str, route: Route) -> tuple[RemoteWant, ...]:
        """What a channel is sent of the events that it wants, as its rules here read the others."""
        with self._lock:
            runs = {key for channel, key in self.running if channel == asking}
        others = (each.wants for each in route.rules if each.key not in runs)
        return tuple(dict.fromkeys([*route.wants, *(want for wants in others for want in wants)]))

    def _accept(self, rule: HostedRule) -> None:
        asking, told = rule.asking, rule.told
        if not self._channel.runs_rules:
            return

        def send(output: Event) -> None:
            self._links.send_output(asking, told.key, output)

        quality = Quality()
        try:
            rule.consumer = self._channel.consumers.connect(
                f"{asking}/{told.key}",
                send,
                _wants(told),
                capacity=quality.capacity,
                overflow=quality.overflow,
                conflate=False,
                time_to_live=None,
                failures=None,
            )
        except (EnsueError, RecursionError, ValueError):
            rule.is_refused = True
            return
        self._links.rule_accepted(asking)

    def _end(self, rule: HostedRule, is_gone: bool) -> None:
        del self._rules[rule.asking, rule.told.key]
        self._watched.remove(rule)
        if rule.consumer is not None:
            rule.consumer.disconnect()
        for event in () if is_gone else rule.kept:
            self._links.send_output(rule.asking, None, event)


def _wants(told: RemoteRule) -> Wants:
    """What the consumer of a rule wants: a group of one, which no other channel is asked to run."""
    from ensue.library import parse

    lateness = timedelta(microseconds=told.lateness)
    jump = NONE if told.max_jump is None else timedelta(microseconds=told.max_jump)
    return any_of(correlated(parse(told.library), told.name, lateness=lateness, max_jump=jump))
