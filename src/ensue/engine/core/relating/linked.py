"""Filters that relate events along a chain, `a ; (b + c) ; d`, with the latest match of each part.

A part may also have alternatives, `(a | b) ; c`: then it differs from trigger to trigger which
ports are bound and which labels are active.

In come events by the mask of their ports; out come outputs. A key holds the latest match up to
each place of the chain (`links`): no other event can matter to a rule without aggregates. Whether
a match is in the window is asked of its first event; at a trigger, and where `unless` says so, a
key drops these matches.

`ChainFacts` and `ChainFilter` are also the base of rules with aggregates (`stretched`) and of rules
with several branches (`branched`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from ensue.engine.core.instances.firing import EmitOutputs, NumberedEvent, outputs_of_firing
from ensue.engine.core.instances.keys import (
    BEGINS,
    NO_MOVE,
    FastKey,
    FirstMove,
    KeyInstance,
    SharedFacts,
)
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.having import HavingTest, having_of
from ensue.engine.core.relating.links import GroupLinks, Linked, LinkedMatch, chain_of
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import labels_in
from ensue.lang.syntax import EventPort, FilterCorrelation, TimerPort
from ensue.machine.stepping import Fired


class ChainFacts(SharedFacts, ABC):
    """The facts that all instances share of a filter whose branches are chains.

    `first_moves` has the moves that are known of a key that has not started.
    """

    correlation: FilterCorrelation

    def __init__(self, correlation: FilterCorrelation, types: TypeSystem) -> None:
        super().__init__(correlation, types)
        self.ports = [port.name for port in correlation.ports]
        self._bit_of = {port: 1 << number for number, port in enumerate(self.ports)}
        self.first_moves: dict[int, FirstMove] = {}

    def mask_of(self, ports: Sequence[str] | frozenset[str]) -> int:
        return sum(self._bit_of[port] for port in ports)

    def first_move(self, mask: int) -> FirstMove:
        known = self.first_moves[mask] = BEGINS if self.may_begin(mask) else NO_MOVE
        return known

    @abstractmethod
    def may_begin(self, mask: int) -> bool:
        """Whether an event does anything to a key that has not started."""

    @property
    @abstractmethod
    def most_events(self) -> int | None:
        """How many events a key has at most; None where there is no such number."""

    @abstractmethod
    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> ChainFilter:
        """A key that has read nothing."""


class ChainFilter(KeyInstance):
    """A filter under one key, whose branches are chains."""

    __slots__ = ("facts",)

    facts: ChainFacts

    @abstractmethod
    def branches(self) -> Sequence[LinkedFilter]: ...

    @abstractmethod
    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        """Take an event, by the mask of its ports."""

    @abstractmethod
    def is_idle(self, now: int) -> bool:
        """Whether it holds no event that could still count."""


class TriggerFunctions(NamedTuple):
    """`having` of a trigger, and the function that builds its outputs, over events of places."""

    having: HavingTest | None
    emit: EmitOutputs


NO_LASTS: list[Linked | None] = []
"""Shared by the keys of rules that need no last events of ports."""


class LinkedFacts(ChainFacts):
    """The facts that all instances share of a filter that runs from its latest matches."""

    def __init__(self, correlation: FilterCorrelation, form: ChainForm, types: TypeSystem) -> None:
        super().__init__(correlation, types)
        self.width = len(self.ports)
        self.bits = [self._bit_of[port] for port in form.places]
        self.chain = chain_of(form.groups, self._bit_of, form.either)
        self.window = form.window
        self.binds_last = form.bind == "last"
        self.forgets = form.keep == "none"
        self.keeps_last = form.keep == "last"
        self.unless = self.mask_of(form.unless)
        self.labels = frozenset(each.label for each in labels_in(correlation.branches))
        self._names = {
            port.name: types.attributes(port.type)
            for port in correlation.ports
            if isinstance(port, EventPort)
        }
        self._places = form.places
        self.label_masks = {label: self.mask_of(frozenset(ports)) for label, ports in form.choosing}
        """Labels inside of alternatives: each with the ports of which one has to have come."""
        self._begin_mask = reduce(or_, self.label_masks.values(), self.chain.masks[0])
        self.has_alternatives = bool(form.either)
        self.notes_lasts = bool(self.label_masks) or (self.binds_last and not self.has_alternatives)
        self._functions: dict[tuple[tuple[bool, ...], frozenset[str]], TriggerFunctions] = {}
        every = (True,) * len(form.places)
        self.having, self.emit = self.functions(every, self.labels)

    def functions(self, is_bound: tuple[bool, ...], labels: frozenset[str]) -> TriggerFunctions:
        """The functions for a trigger with events in some places, and with active labels.

        Both are given the events of these places.
        """
        known = self._functions.get((is_bound, labels))
        if known is None:
            ports = [port for port, here in zip(self._places, is_bound, strict=True) if here]
            fired = Fired(0, labels, tuple(range(len(ports))))
            named = dict(enumerate(ports))
            having = self.correlation.clauses.having
            known = self._functions[is_bound, labels] = TriggerFunctions(
                None if having is None else having_of(having, ports, self._names),
                outputs_of_firing(self.correlation, self.types, fired, named),
            )
        return known

    def may_begin(self, mask: int) -> bool:
        # A label is active by any event that is remembered, also from before its place is reached.
        return bool(mask & self._begin_mask)

    # --- one key --------------------------------------------------------------------------------

    @property
    def most_events(self) -> int | None:
        # Up to each place of the chain the latest match, of one event more than the one before.
        places = len(self.bits)
        return places * (places + 1) // 2 + (places if self.label_masks else 0)

    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> LinkedFilter:
        return LinkedFilter(self, timers, outputs, started)

    def ports_of(self, mask: int) -> list[str]:
        """The ports of a mask, or of a number that ends with one."""
        return sorted(port for port, bit in self._bit_of.items() if mask & bit)


class LinkedFilter(ChainFilter):
    """A filter of one branch under one key: the latest match up to each place of its chain.

    `lasts` has the last event of each place, where these are bound or make labels active.
    """

    __slots__ = ("lasts", "links")

    facts: LinkedFacts

    def __init__(
        self,
        facts: LinkedFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts = facts
        self.links = facts.chain.links()
        self.lasts: list[Linked | None] = (
            [None] * len(facts.bits) if facts.notes_lasts else NO_LASTS
        )

    def branches(self) -> Sequence[LinkedFilter]:
        return (self,)

    def read(self, reading: Reading) -> list[Event]:
        assert reading.event is not None, "such a rule has no timers"
        numbers = [each[0] for match in (*self.links.all(), self.lasts) for each in match if each]
        numbered = ((max(numbers, default=0) >> self.facts.width) + 1, reading.event)
        return self.step(self.facts.mask_of(reading.ports), reading.time, numbered)

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        facts = self.facts
        linked: Any = (numbered[0] << facts.width | mask, numbered[1])
        match: Any = facts.chain.reader(mask)(self.links, linked)
        if facts.notes_lasts:
            self._note_last(mask, linked)
        made: list[Event] = []
        if match is not None and (
            facts.window is None or facts.chain.start_time(match) >= time - facts.window
        ):
            having, emit = facts.having, facts.emit
            if facts.has_alternatives:
                match, having, emit = self._of_alternatives(match, time)
            elif facts.binds_last:
                match = self.lasts
            if having is None or having(match):
                held = self._outputs_or_key
                outputs = held if held.__class__ is Outputs else self.outputs
                made = emit(outputs, match, time, linked[1].id)
                if facts.forgets:
                    self._forget()
                    return made
                if facts.keeps_last:
                    self._forget_before(mask, linked)
        if mask & facts.unless:
            self._forget_before(mask, linked)
        return made

    def _of_alternatives(
        self, match: LinkedMatch, time: int
    ) -> tuple[list[Linked], HavingTest | None, EmitOutputs]:
        """The events that are bound where a part of the chain has alternatives, and the functions.

        The latest match has one event of alternatives; by themselves, ports stand for their last
        events, as far as these lie in their stretches.
        """
        facts = self.facts
        edge = -math.inf if facts.window is None else time - facts.window
        bound: Sequence[Linked | None] = match
        if facts.binds_last:
            assert isinstance(self.links, GroupLinks), "alternatives are a group"
            bound = self.links.alive(edge)
        labels = facts.labels
        if facts.label_masks:
            lasts = zip(self.lasts, facts.bits, strict=True)
            come = sum({bit for each, bit in lasts if each is not None and each[1].time >= edge})
            labels -= {label for label, mask in facts.label_masks.items() if not mask & come}
        having, emit = facts.functions(tuple([each is not None for each in bound]), labels)
        return [each for each in bound if each is not None], having, emit

    def _forget(self) -> None:
        self.links.forget()
        if self.facts.label_masks:
            self.lasts = [None] * len(self.lasts)

    def _forget_before(self, mask: int, linked: Linked) -> None:
        """Forget all but an event that was read."""
        self._forget()
        self.facts.chain.reader(mask)(self.links, linked)
        if self.facts.label_masks:
            self._note_last(mask, linked)

    def _note_last(self, mask: int, linked: Linked) -> None:
        for place, bit in enumerate(self.facts.bits):
            if mask & bit:
                self.lasts[place] = linked

    # --- what is remembered ---------------------------------------------------------------------

    def is_idle(self, now: int) -> bool:
        if self.facts.label_masks:
            return not any(self._alive(now))
        begin, window = self.links.latest_begin(), self.facts.window
        return begin is None or (window is not None and begin < now - window)

    def _alive(self, now: int | None) -> Iterator[LinkedMatch]:
        window = self.facts.window
        for match in self.links.all():
            if window is None or now is None or self.facts.chain.start_time(match) >= now - window:
                yield match
        if self.facts.label_masks:
            edge = -math.inf if window is None or now is None else now - window
            for last in self.lasts:
                if last is not None and last[1].time >= edge:
                    yield (last,)

    def readings(self, now: int | None) -> list[Reading]:
        """The events that still count, in the order in which they were read."""
        events = {each[0]: each for match in self._alive(now) for each in match if each is not None}
        return [
            Reading(event.time, frozenset(self.facts.ports_of(number)), event)
            for number, (_, event) in sorted(events.items())
        ]

    def tallies(self) -> SavedTallies | None:
        """What it holds that does not follow from its readings."""
        return None

    def restore(self, readings: Sequence[Reading], tallies: SavedTallies | None = None) -> None:
        """Take the readings of a snapshot in again, without any trigger.

        Raises `ValueError` if the tallies are not those of such a rule.
        """
        if tallies is not None:
            raise ValueError
        for number, reading in enumerate(readings, 1 - len(readings)):
            assert reading.event is not None, "such a rule has no timers"
            mask = self.facts.mask_of(reading.ports)
            linked = (number << self.facts.width | mask, reading.event)
            self.facts.chain.reader(mask)(self.links, linked)
            if self.facts.notes_lasts:
                self._note_last(mask, linked)
