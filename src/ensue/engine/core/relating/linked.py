"""Filters that relate events along a chain, `a ; (b + c) ; d`, with the latest match of each part.

A part may also have alternatives, `(a | b) ; c`: then it differs from trigger to trigger which
ports are bound and which labels are active.

In come events by the mask of their ports; out come outputs. A key holds the latest match up to
each place of the chain (`links`): no other event can matter to a rule without aggregates. Whether
a match is in the window is asked of its first event; at a trigger, and where `unless` says so, a
key forgets by letting go of these matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

from ensue.engine.core.instances.firing import IN_LIST, Firing, Noted, RunStatements
from ensue.engine.core.instances.keys import FastKey, KeyInstance, SharedFacts, whole_key
from ensue.engine.core.instances.windows import BEGINS, NOTHING, FirstMove
from ensue.engine.core.relating.form import ChainForm, form_of
from ensue.engine.core.relating.having import HavingTest, having_of
from ensue.engine.core.relating.links import GroupLinks, Linked, LinkedMatch, Read, chain_of
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import labels_in
from ensue.lang.syntax import EventPort, FilterCorrelation, TimerPort
from ensue.machine.stepping import Fired


class TakenIn:
    """What an event does to a key where it completes nothing: it is taken in, and that is all.

    It has what a move of `rows` has.
    """

    __slots__ = ("bind", "to")

    is_noop = False
    is_quiet = True

    def __init__(self, to: LinkedRow, bind: Callable[[Any, Noted], None]) -> None:
        self.to = to
        self.bind = bind


LinkedRow = dict[int, TakenIn]


class Choice(NamedTuple):
    """`having` and what a trigger does, as functions over the events of places."""

    having: HavingTest | None
    fire: RunStatements


NO_LASTS: list[Linked | None] = []
"""What keys of rules share that need no last events by themselves."""


class LinkedFacts(SharedFacts):
    """What all instances of a filter share that runs from its latest matches."""

    def __init__(self, correlation: FilterCorrelation, form: ChainForm, types: TypeSystem) -> None:
        self._correlation, self._types = correlation, types
        self._is_keyed = bool(correlation.clauses.by)
        self.ports = [port.name for port in correlation.ports]
        self._bit_of = {port: 1 << number for number, port in enumerate(self.ports)}
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
        self.choosing = {label: self.mask_of(frozenset(ports)) for label, ports in form.choosing}
        self.chooses = bool(form.either)
        self.notes_lasts = (self.binds_last and not self.chooses) or bool(self.choosing)
        self._choices: dict[tuple[tuple[bool, ...], frozenset[str]], Choice] = {}
        every = (True,) * len(form.places)
        self.having, self.fire = self.choice(every, self.labels)

    def choice(self, is_bound: tuple[bool, ...], labels: frozenset[str]) -> Choice:
        """What is asked and done at a trigger with events in some places, and active labels.

        What it is given are the events of these places.
        """
        known = self._choices.get((is_bound, labels))
        if known is None:
            ports = [port for port, here in zip(self._places, is_bound, strict=True) if here]
            fired = Fired(0, labels, tuple(range(len(ports))))
            named = dict(enumerate(ports))
            firing = Firing(self._correlation, self._types, fired, named, IN_LIST)
            having = self._correlation.clauses.having
            known = self._choices[is_bound, labels] = Choice(
                None if having is None else having_of(having, ports, self._names),
                firing.quickly or firing.run,
            )
        return known

    def outputs(self, key: FastKey) -> Outputs:
        return Outputs(self._correlation.name, whole_key(key), self._is_keyed, self._types)

    def mask_of(self, ports: Sequence[str] | frozenset[str]) -> int:
        return sum(self._bit_of[port] for port in ports)

    def may_begin(self, mask: int) -> bool:
        """Whether an event does anything to a key that has not started."""
        # A label is active by any event that is remembered, also from before its place is reached.
        return bool(mask & (self.chain.masks[0] | self._choosing_mask))

    @cached_property
    def _choosing_mask(self) -> int:
        return reduce(or_, self.choosing.values(), 0)

    # --- what is known of masks, once an event of each has come ---------------------------------

    @cached_property
    def row(self) -> LinkedRow:
        """The events that are only taken in."""
        return {}

    @cached_property
    def first_steps(self) -> dict[int, FirstMove | TakenIn]:
        """What events do to a key that has not started."""
        return {}

    @cached_property
    def reads(self) -> dict[int, Read]:
        return {}

    def first_step(self, mask: int) -> FirstMove | TakenIn:
        known: FirstMove | TakenIn = BEGINS if self.may_begin(mask) else NOTHING
        if known is BEGINS:
            known = self.row.get(mask, BEGINS)
        self.first_steps[mask] = known
        return known

    def learn(self, mask: int) -> Read:
        """How events of a mask are read from now on."""
        read = self.reads[mask] = self.chain.reader(mask)
        if not mask & (self.chain.masks[-1] | self.unless):
            self.row[mask] = TakenIn(self.row, self._taking(mask, read))
            self.first_steps.pop(mask, None)
        return read

    def _taking(self, mask: int, read: Read) -> Callable[[Any, Noted], None]:
        width = self.width
        lasts = [place for place, bit in enumerate(self.bits) if mask & bit]

        def take(held: LinkedFilter, noted: Any) -> None:
            read(held.links, (noted[0] << width | mask, noted[1]))

        def take_last(held: LinkedFilter, noted: Any) -> None:
            linked = (noted[0] << width | mask, noted[1])
            read(held.links, linked)
            for place in lasts:
                held.lasts[place] = linked

        return take_last if self.notes_lasts else take

    # --- one key --------------------------------------------------------------------------------

    @property
    def most_events(self) -> int | None:
        """How many events a key has at most; None where there is no such number."""
        # Up to each place of the chain the latest match, of one event more than the one before.
        places = len(self.bits)
        return places * (places + 1) // 2 + (places if self.choosing else 0)

    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> LinkedFilter:
        """A key that has read nothing."""
        return LinkedFilter(self, timers, outputs, started)

    def ports_of(self, mask: int) -> list[str]:
        """The ports of a mask, or of a number that ends with one."""
        return sorted(port for port, bit in self._bit_of.items() if mask & bit)


def linked_facts(correlation: FilterCorrelation, types: TypeSystem) -> LinkedFacts | None:
    """The facts of a rule that is a chain of groups and asks for its latest events only."""
    form = form_of(correlation, types, in_columns=False)
    if isinstance(form, str) or form.needs_stretches:
        return None
    return LinkedFacts(correlation, form, types)


class LinkedFilter(KeyInstance):
    """A filter under one key: the latest match up to each place of its chain."""

    __slots__ = ("facts", "lasts", "links", "row")

    def __init__(
        self,
        facts: LinkedFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts: LinkedFacts = facts
        self.row = facts.row
        self.links = facts.chain.links()
        self.lasts: list[Linked | None] = (
            [None] * len(facts.bits) if facts.notes_lasts else NO_LASTS
        )

    def branches(self) -> Sequence[LinkedFilter]:
        """The branches of the filter; this is the only one."""
        return (self,)

    def start(self, first: Reading) -> list[Event]:  # noqa: ARG002
        return []

    def read(self, reading: Reading) -> list[Event]:
        assert reading.event is not None, "such a rule has no timers"
        numbers = [each[0] for match in (*self.links.all(), self.lasts) for each in match if each]
        noted = ((max(numbers, default=0) >> self.facts.width) + 1, reading.event)
        return self.step(self.facts.mask_of(reading.ports), reading.time, noted)

    def step(self, mask: int, time: int, noted: Noted) -> list[Event]:
        facts = self.facts
        linked: Any = (noted[0] << facts.width | mask, noted[1])
        read = facts.reads.get(mask) or facts.learn(mask)
        match: Any = read(self.links, linked)
        if facts.notes_lasts:
            self._note_last(mask, linked)
        made: list[Event] = []
        if match is not None and (
            facts.window is None or facts.chain.start_time(match) >= time - facts.window
        ):
            having, fire = facts.having, facts.fire
            if facts.chooses:
                match, having, fire = self._chosen(match, time)
            elif facts.binds_last:
                match = self.lasts
            if having is None or having(match):
                said = self._said
                outputs = said if said.__class__ is Outputs else self.outputs
                made = fire(outputs, match, time, linked[1].id)
                if facts.forgets:
                    self._forget()
                    return made
                if facts.keeps_last:
                    self._forget_before(mask, linked)
        if mask & facts.unless:
            self._forget_before(mask, linked)
        return made

    def _chosen(
        self, match: LinkedMatch, time: int
    ) -> tuple[list[Linked], HavingTest | None, RunStatements]:
        """The events that are bound where a part of the chain has alternatives, and what follows.

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
        if facts.choosing:
            lasts = zip(self.lasts, facts.bits, strict=True)
            come = sum({bit for each, bit in lasts if each is not None and each[1].time >= edge})
            labels -= {label for label, mask in facts.choosing.items() if not mask & come}
        having, fire = facts.choice(tuple([each is not None for each in bound]), labels)
        return [each for each in bound if each is not None], having, fire

    def _forget(self) -> None:
        self.links.forget()
        if self.facts.choosing:
            self.lasts = [None] * len(self.lasts)

    def _forget_before(self, mask: int, linked: Linked) -> None:
        """Forget all but an event that was read."""
        self._forget()
        self.facts.reads[mask](self.links, linked)
        if self.facts.choosing:
            self._note_last(mask, linked)

    def _note_last(self, mask: int, linked: Linked) -> None:
        for place, bit in enumerate(self.facts.bits):
            if mask & bit:
                self.lasts[place] = linked

    # --- what is remembered ---------------------------------------------------------------------

    def is_idle(self, now: int) -> bool:
        if self.facts.choosing:
            return not any(self._alive(now))
        begin, window = self.links.latest_begin(), self.facts.window
        return begin is None or (window is not None and begin < now - window)

    def _alive(self, now: int | None) -> Iterator[LinkedMatch]:
        window = self.facts.window
        for match in self.links.all():
            if window is None or now is None or self.facts.chain.start_time(match) >= now - window:
                yield match
        if self.facts.choosing:
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

    def take_up(self, readings: Sequence[Reading], tallies: SavedTallies | None = None) -> None:
        """Read some readings again without any trigger.

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
