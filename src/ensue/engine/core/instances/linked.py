"""Filters that relate events along a chain, `a ; (b + c) ; d`, with the latest match of each part.

In come events by the mask of their ports; out come outputs. A key holds the latest match up to
each place of the chain (`links`): no other event can matter to a rule without aggregates. Whether
a match is in the window is asked of its first event; at a trigger, and where `unless` says so, a
key forgets by letting go of these matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ensue.engine.core.instances.firing import IN_LIST, Firing, Noted
from ensue.engine.core.instances.keys import Facts, FastKey, KeyInstance, whole_key
from ensue.engine.core.instances.windows import BEGINS, NOTHING, FirstMove
from ensue.engine.core.relating.form import Form, form_of
from ensue.engine.core.relating.having import Held, having_of
from ensue.engine.core.relating.links import Linked, Match, Read, chain_of
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import labels_in
from ensue.lang.syntax import EventPort, FilterCorrelation, TimerPort
from ensue.machine.stepping import Fired


class Taken:
    """What an event does to a key where it completes nothing: it is taken in, and that is all.

    It has what a move of `rows` has.
    """

    __slots__ = ("bind", "to")

    is_noop = False
    is_quiet = True

    def __init__(self, to: LinkedRow, bind: Callable[[Any, Noted], None]) -> None:
        self.to = to
        self.bind = bind


LinkedRow = dict[int, Taken]

NO_LASTS: list[Linked | None] = []
"""What keys of rules share that need no last events by themselves."""


class LinkedFacts(Facts):
    """What all instances of a filter share that runs from its latest matches."""

    def __init__(self, correlation: FilterCorrelation, form: Form, types: TypeSystem) -> None:
        self._correlation, self._types = correlation, types
        self._is_keyed = bool(correlation.clauses.by)
        self.ports = [port.name for port in correlation.ports]
        self._bit_of = {port: 1 << number for number, port in enumerate(self.ports)}
        self.width = len(self.ports)
        self.bits = [self._bit_of[port] for port in form.places]
        self.chain = chain_of(form.groups, self._bit_of)
        self.window = form.window
        self.binds_last = form.bind == "last"
        self.forgets = form.keep == "none"
        self.keeps_last = form.keep == "last"
        self.unless = self.mask_of(form.unless)
        labels = frozenset(each.label for each in labels_in(correlation.branches))
        places = tuple(range(len(form.places)))
        fired = Fired(0, labels, places)
        named = dict(enumerate(form.places))
        firing = Firing(correlation, types, fired, named, IN_LIST)
        self.fire = firing.quickly or firing.run
        self.having: Held | None = None
        if correlation.clauses.having is not None:
            names = {
                port.name: types.attributes(port.type)
                for port in correlation.ports
                if isinstance(port, EventPort)
            }
            self.having = having_of(correlation.clauses.having, form.places, names)

    def outputs(self, key: FastKey) -> Outputs:
        return Outputs(self._correlation.name, whole_key(key), self._is_keyed, self._types)

    def mask_of(self, ports: Sequence[str] | frozenset[str]) -> int:
        return sum(self._bit_of[port] for port in ports)

    def may_begin(self, mask: int) -> bool:
        """Whether an event does anything to a key that has not started."""
        return bool(mask & self.chain.masks[0])

    # --- what is known of masks, once an event of each has come ---------------------------------

    @cached_property
    def row(self) -> LinkedRow:
        """The events that are only taken in."""
        return {}

    @cached_property
    def first_steps(self) -> dict[int, FirstMove | Taken]:
        """What events do to a key that has not started."""
        return {}

    @cached_property
    def reads(self) -> dict[int, Read]:
        return {}

    def first_step(self, mask: int) -> FirstMove | Taken:
        known: FirstMove | Taken = BEGINS if self.may_begin(mask) else NOTHING
        if known is BEGINS:
            known = self.row.get(mask, BEGINS)
        self.first_steps[mask] = known
        return known

    def learn(self, mask: int) -> Read:
        """How events of a mask are read from now on."""
        read = self.reads[mask] = self.chain.reader(mask)
        if not mask & (self.chain.masks[-1] | self.unless):
            self.row[mask] = Taken(self.row, self._taking(mask, read))
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

        return take_last if self.binds_last else take

    # --- one key --------------------------------------------------------------------------------

    @property
    def most_events(self) -> int | None:
        """How many events a key has at most; None where there is no such number."""
        # Up to each place of the chain the latest match, of one event more than the one before.
        places = len(self.bits)
        return places * (places + 1) // 2

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
    """One key."""

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
        self.lasts: list[Linked | None] = [None] * len(facts.bits) if facts.binds_last else NO_LASTS

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
        if facts.binds_last:
            self._note_last(mask, linked)
        made: list[Event] = []
        if match is not None and (
            facts.window is None or facts.chain.begun(match) >= time - facts.window
        ):
            if facts.binds_last:
                match = self.lasts
            having = facts.having
            if having is None or having(match):
                said = self._said
                outputs = said if said.__class__ is Outputs else self.outputs
                made = facts.fire(outputs, match, time, linked[1].id)
                if facts.forgets:
                    self.links.forget()
                    return made
                if facts.keeps_last:
                    self._forget_before(mask, linked)
        if mask & facts.unless:
            self._forget_before(mask, linked)
        return made

    def _forget_before(self, mask: int, linked: Linked) -> None:
        """Forget all but an event that was read."""
        self.links.forget()
        self.facts.reads[mask](self.links, linked)

    def _note_last(self, mask: int, linked: Linked) -> None:
        for place, bit in enumerate(self.facts.bits):
            if mask & bit:
                self.lasts[place] = linked

    # --- what is remembered ---------------------------------------------------------------------

    def is_idle(self, now: int) -> bool:
        begin, window = self.links.latest_begin(), self.facts.window
        return begin is None or (window is not None and begin < now - window)

    def _alive(self, now: int | None) -> Iterator[Match]:
        window = self.facts.window
        for match in self.links.all():
            if window is None or now is None or self.facts.chain.begun(match) >= now - window:
                yield match

    def readings(self, now: int | None) -> list[Reading]:
        """The events that still count, in the order in which they were read."""
        events = {each[0]: each for match in self._alive(now) for each in match}
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
            if self.facts.binds_last:
                self._note_last(mask, linked)
