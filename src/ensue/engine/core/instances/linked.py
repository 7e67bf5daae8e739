"""Filters that relate events along a chain, `a ; b ; c`, with the latest match of each part.

In come events by the mask of their ports; out come outputs. For each place of the chain the latest
match up to it is held as a tuple of its events, which the next place goes on from: no other event
can matter to a rule without aggregates. Whether a match is in the window is asked of its first
event; at a trigger, and where `unless` says so, a key forgets by letting go of these tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.engine.core.instances.firing import IN_LIST, Firing, Noted
from ensue.engine.core.instances.keys import Facts, FastKey, KeyInstance, whole_key
from ensue.engine.core.relating.form import Form, form_of
from ensue.engine.core.relating.having import Held, having_of
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import labels_in
from ensue.lang.syntax import EventPort, FilterCorrelation, TimerPort
from ensue.machine.stepping import Fired

Linked = tuple[int, Event]
"""An event of a match: when it was read and, in the lowest bits of that, the mask of its ports."""

Match = tuple[Linked, ...]

NO_STEPS: dict[int, Any] = {}


class Nothing:
    """What an event does to a key that has not started, where it begins no match."""

    is_noop = True


NOTHING = Nothing()


class LinkedFacts(Facts):
    """What all instances of a filter share that runs from its latest matches."""

    def __init__(self, correlation: FilterCorrelation, form: Form, types: TypeSystem) -> None:
        self._correlation, self._types = correlation, types
        self._is_keyed = bool(correlation.clauses.by)
        self.ports = [port.name for port in correlation.ports]
        self._bit_of = {port: 1 << number for number, port in enumerate(self.ports)}
        self.width = len(self.ports)
        self.bits = [self._bit_of[port] for port in form.places]
        self.inner = list(range(len(self.bits) - 2, 0, -1))
        """The places that have others on both sides, from the last to the first."""
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
        return bool(mask & self.bits[0])

    def ports_of(self, mask: int) -> list[str]:
        """The ports of a mask, or of a number that ends with one."""
        return sorted(port for port, bit in self._bit_of.items() if mask & bit)


def linked_facts(correlation: FilterCorrelation, types: TypeSystem) -> LinkedFacts | None:
    """The facts of a rule that is a chain of single ports and asks for its latest events only."""
    form = form_of(correlation, types)
    if isinstance(form, str) or form.needs_stretches:
        return None
    if any(len(group) > 1 for group in form.groups):
        return None
    return LinkedFacts(correlation, form, types)


class LinkedFilter(KeyInstance):
    """One key. `matches` has the latest match up to each place but the last."""

    __slots__ = ("_lasts", "_matches", "facts")

    row = NO_STEPS
    """No step of it is known beforehand."""

    def __init__(
        self,
        facts: LinkedFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts: LinkedFacts = facts
        self._matches: list[Match | None] = [None] * (len(facts.bits) - 1)
        self._lasts: list[Linked | None] = [None] * len(facts.bits) if facts.binds_last else []

    def start(self, first: Reading) -> list[Event]:  # noqa: ARG002
        return []

    def read(self, reading: Reading) -> list[Event]:
        assert reading.event is not None, "such a rule has no timers"
        numbers = [
            each[0] for match in (*self._matches, self._lasts) for each in match or () if each
        ]
        noted = ((max(numbers, default=0) >> self.facts.width) + 1, reading.event)
        return self.step(self.facts.mask_of(reading.ports), reading.time, noted)

    def step(self, mask: int, time: int, noted: Noted) -> list[Event]:
        facts, matches = self.facts, self._matches
        bits = facts.bits
        linked: Any = (noted[0] << facts.width | mask, noted[1])
        match: Any = None
        if mask & bits[-1]:
            match = (linked,)
            if matches:
                before = matches[-1]
                match = None if before is None else (*before, linked)
            window = facts.window
            if match is not None and window is not None and match[0][1].time < time - window:
                match = None
        self._link(mask, linked)
        made: list[Event] = []
        if match is not None:
            if facts.binds_last:
                match = self._lasts
            having = facts.having
            if having is None or having(match):
                made = facts.fire(self.outputs, match, time, linked[1].id)
                if facts.forgets:
                    self._matches = [None] * len(matches)
                    return made
                if facts.keeps_last:
                    self._keep_only(mask, linked)
        if mask & facts.unless:
            self._keep_only(mask, linked)
        return made

    def _link(self, mask: int, linked: Linked) -> None:
        """Let an event go on from what was held before it."""
        facts, matches = self.facts, self._matches
        bits = facts.bits
        for place in facts.inner:
            if mask & bits[place]:
                before = matches[place - 1]
                if before is not None:
                    matches[place] = (*before, linked)
        if matches and mask & bits[0]:
            matches[0] = (linked,)
        if facts.binds_last:
            for place, bit in enumerate(bits):
                if mask & bit:
                    self._lasts[place] = linked

    def _keep_only(self, mask: int, linked: Linked) -> None:
        """Forget all but the event just read."""
        matches: list[Match | None] = [None] * len(self._matches)
        if matches and mask & self.facts.bits[0]:
            matches[0] = (linked,)
        self._matches = matches

    # --- what is remembered ---------------------------------------------------------------------

    def is_idle(self, now: int) -> bool:
        return not any(self._alive(now))

    def _alive(self, now: int | None) -> Iterator[Match]:
        window = self.facts.window
        for match in self._matches:
            if match is not None and (
                window is None or now is None or match[0][1].time >= now - window
            ):
                yield match

    def readings(self, now: int | None) -> list[Reading]:
        """The events that still count, in the order in which they were read."""
        events = {each[0]: each for match in self._alive(now) for each in match}
        return [
            Reading(event.time, frozenset(self.facts.ports_of(number)), event)
            for number, (_, event) in sorted(events.items())
        ]

    def take_up(self, readings: Sequence[Reading]) -> None:
        """Read some readings again without any trigger."""
        for number, reading in enumerate(readings, 1 - len(readings)):
            assert reading.event is not None, "such a rule has no timers"
            mask = self.facts.mask_of(reading.ports)
            self._link(mask, (number << self.facts.width | mask, reading.event))
