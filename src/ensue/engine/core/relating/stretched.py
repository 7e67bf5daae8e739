"""Filters that ask for more than a latest match: aggregates, `x{n}` of many, and `bind first`.

In come events by the mask of their ports; out come outputs. The filter is a chain of groups of
ports, `(a + b) ; c`. A key holds, for each port, the events of its stretch: from where the groups
before it are complete, and inside the window. As time goes on a stretch only moves forward, so that
events come in at its end and leave at its start, and aggregates go along with it. While the groups
before a port are not complete, its events can never count, and are not held.

Without a window a stretch never moves. Then a key holds what aggregates are so far (`tallies`), and
of the events of a port only the first for each place and the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.engine.core.instances.firing import NumberedEvent, outputs_of_firing
from ensue.engine.core.instances.keys import FastKey, KeyInstance
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.having import having_of
from ensue.engine.core.relating.linked import NO_LASTS, LinkedFacts, LinkedFilter
from ensue.engine.core.relating.links import Linked, LinkedMatch, PortLinks
from ensue.engine.core.relating.sliding import (
    NOT_BEGUN,
    LastingStretch,
    PortStretch,
    SlidingAggregate,
    WantedAggregate,
    sliding_aggregate,
)
from ensue.engine.core.relating.tallies import CountTally, SavedTallies, SumTally, Tally, tally
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.relating import aggregated_name, aggregates_of, assigned_aggregates
from ensue.lang.expressions import Expression
from ensue.lang.syntax import FilterCorrelation, TimerPort
from ensue.machine.stepping import Fired

AT_ONCE = -NOT_BEGUN
"""Where the first group begins."""
NO_LINKS = PortLinks()
"""What keys of rules share that ask for no latest match."""


class StretchedFacts(LinkedFacts):
    """The facts that all instances of a filter with aggregates share."""

    def __init__(self, correlation: FilterCorrelation, form: ChainForm, types: TypeSystem) -> None:
        super().__init__(correlation, form, types)
        ports = list(dict.fromkeys(form.places))
        self.stretch_bits = [self._bit_of[port] for port in ports]
        """The bit of each port of the filter; there is a stretch for each."""
        self.groups = [[ports.index(port) for port in group] for group in form.groups]
        self.groups_before, self.last_group = self.groups[:-1], self.groups[-1]
        self.last_mask = self.mask_of(form.groups[-1])
        first_groups = [
            next(g for g, group in enumerate(form.groups) if port in group) for port in ports
        ]
        self.starts_here = [
            [stretch for stretch in range(len(ports)) if first_groups[stretch] == group]
            for group in range(len(form.groups))
        ]
        """For each group the numbers of the stretches that begin where it does."""
        self.first_groups = first_groups
        self.rounds = form.rounds
        self.is_running = form.is_running
        self.counted = [(port, ports.index(port)) for port in form.counted]
        self.later_places = [
            [stretch for stretch in set(group) if first_groups[stretch] < number]
            for number, group in enumerate(self.groups)
        ]
        """For each group the stretches of ports that an earlier group has, too."""
        self.binds_first = form.bind == "first"
        self.binds_latest = form.bind == "latest" and form.rounds == 1
        self.columns_of_places = [ports.index(port) for port in form.places]
        self.asked = form.aggregates
        calls = list(dict.fromkeys(aggregates_of(correlation)))
        paths = [aggregated_name(call)[1:] for call in calls]
        self.wanted = [WantedAggregate(*each) for each in zip(form.aggregates, paths, strict=True)]
        self.aggregates_of_stretches = [
            [number for number, each in enumerate(form.aggregates) if each.port == port]
            for port in ports
        ]
        if correlation.clauses.having is not None:
            kinds: dict[Expression, str] = {
                call: each.result for call, each in zip(calls, form.aggregates, strict=True)
            }
            self.having = having_of(
                correlation.clauses.having, form.places, self._names, kinds, self.binds_first
            )
        if assigned_aggregates(correlation):
            named = dict(enumerate(form.places))
            fired = Fired(0, self.labels, tuple(named))
            self.emit = outputs_of_firing(correlation, types, fired, named, calls)

    @property
    def most_events(self) -> int | None:
        """The number of events of a key where stretches lose none.

        The first one of each place and the last one of each port, those of the latest matches, and
        the one of each value that aggregates have.
        """
        if not self.is_running:
            return None
        places = len(self.bits)
        matches = places * (places - 1) // 2 if self.binds_latest else 0
        values = sum(each.function not in ("COUNT", "SUM") for each in self.asked)
        return places + len(self.stretch_bits) + matches + values

    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> StretchedFilter:
        return StretchedFilter(self, timers, outputs, started)


class StretchedFilter(LinkedFilter):
    """A filter under one key: the stretch of each port, and the latest match if it is bound."""

    __slots__ = ("_runs", "_stretches")

    facts: StretchedFacts

    def __init__(
        self,
        facts: StretchedFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts = facts
        self.links = facts.chain.links() if facts.binds_latest else NO_LINKS
        self.lasts = NO_LASTS
        self._stretches: Sequence[PortStretch]
        self._runs: Sequence[SlidingAggregate | Tally]
        if facts.is_running:
            tallies = [tally(each.asked, each.path) for each in facts.wanted]
            self._runs = tallies
            self._stretches = [
                LastingStretch([tallies[number] for number in numbers])
                for numbers in facts.aggregates_of_stretches
            ]
        else:
            runs = [sliding_aggregate(each) for each in facts.wanted]
            self._runs = runs
            self._stretches = [
                PortStretch([runs[number] for number in numbers])
                for numbers in facts.aggregates_of_stretches
            ]

    def read(self, reading: Reading) -> list[Event]:
        assert reading.event is not None, "such a rule has no timers"
        latest = max((each.events[-1][0] for each in self._stretches if each.events), default=0)
        numbered = ((latest >> self.facts.width) + 1, reading.event)
        return self.step(self.facts.mask_of(reading.ports), reading.time, numbered)

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        facts, stretches = self.facts, self._stretches
        if facts.window is not None:
            edge = time - facts.window
            for stretch in stretches:
                events = stretch.events
                if events and events[stretch.start][1].time < edge:
                    stretch.drop_before_time(edge)
        linked: Any = (numbered[0] << facts.width | mask, numbered[1])
        match = facts.chain.reader(mask)(self.links, linked) if facts.binds_latest else None
        last = self._take(mask, linked)
        made: list[Event] = []
        if mask & facts.last_mask and self._is_complete(last):
            held = self._held(match)
            having = facts.having
            if having is None or having(held):
                made = facts.emit(self.outputs, held, time, linked[1].id)
                if facts.forgets:
                    self._forget()
                    return made
                if facts.keeps_last:
                    self._keep_only(mask, linked)
        if mask & facts.unless:
            self._keep_only(mask, linked)
        return made

    def _take(self, mask: int, linked: Linked) -> int:
        """Hold an event where it can count; returns the number at which the last group begins."""
        facts, stretches = self.facts, self._stretches
        for stretch in facts.starts_here[0]:
            if mask & facts.stretch_bits[stretch]:
                stretches[stretch].append(linked)
        begin = AT_ONCE
        for number, group in enumerate(facts.groups_before, 1):
            begin = 1 + max([stretches[stretch].first_from(begin) for stretch in group])
            if begin > linked[0]:
                # Complete by this event at the earliest: nothing behind it has begun.
                for later in facts.starts_here[number:]:
                    for stretch in later:
                        stretches[stretch].clear()
                return NOT_BEGUN
            self._begin(number, begin, mask, linked)
        return begin

    def _begin(self, group: int, begin: int, mask: int, linked: Linked) -> None:
        """Let a group begin at a number, and take in an event that lies in its stretches."""
        facts = self.facts
        for number in facts.starts_here[group]:
            stretch = self._stretches[number]
            stretch.drop_before(begin)
            if mask & facts.stretch_bits[number]:
                stretch.append(linked)
        for number in facts.later_places[group]:
            self._stretches[number].add_begin(begin)

    def _is_complete(self, begin: int) -> bool:
        """Whether the last group is complete, if it begins at a number."""
        if begin == NOT_BEGUN:
            return False
        stretches, group = self._stretches, self.facts.last_group
        if self.facts.rounds > 1:
            return len(stretches[group[0]]) >= self.facts.rounds
        # Of a group of one port the event itself is there.
        return len(group) == 1 or all(
            stretches[each].first_from(begin) < NOT_BEGUN for each in group
        )

    def _held(self, match: LinkedMatch | None) -> list[Any]:
        """What the places hold at a trigger, and behind them the aggregates.

        `match` is the latest match that this event completes, where that is bound.
        """
        facts, stretches = self.facts, self._stretches
        held: list[Any]
        if facts.binds_latest:
            assert match is not None, "there is a match, so there is a latest one"
            held = [*match]
        else:
            held = [
                stretches[each].events[stretches[each].start if facts.binds_first else -1]
                for each in facts.columns_of_places
            ]
        held += [each.result() for each in self._runs]
        return held

    def _forget(self) -> None:
        self.links.forget()
        for stretch in self._stretches:
            stretch.clear()

    def _keep_only(self, mask: int, linked: Linked) -> None:
        facts = self.facts
        if facts.binds_latest:
            self.links.forget()
            facts.chain.reader(mask)(self.links, linked)
        for number, stretch in enumerate(self._stretches):
            stretch.clear()
            if mask & facts.stretch_bits[number] and facts.first_groups[number] == 0:
                stretch.append(linked)

    # --- what is remembered ---------------------------------------------------------------------

    def is_idle(self, now: int) -> bool:
        window = self.facts.window
        if window is None:
            return not any(self._alive(now))
        edge = now - window
        for stretch in self._stretches:
            if stretch.events and stretch.events[-1][1].time >= edge:
                return False
        return True

    def _alive(self, now: int | None) -> Iterator[LinkedMatch]:
        window = self.facts.window
        edge = None if window is None or now is None else now - window
        for stretch in self._stretches:
            held = stretch.events[stretch.start :]
            if edge is not None:
                held = [each for each in held if each[1].time >= edge]
            if held:
                yield tuple(held)
        if self.facts.is_running:
            yield from super()._alive(now)
            for each in self._runs:
                if isinstance(each, Tally) and (linked := tuple(each.held())):
                    yield linked

    def tallies(self) -> SavedTallies | None:
        if not self.facts.is_running or not any(map(len, self._stretches)):
            return None
        counts = {port: len(self._stretches[stretch]) for port, stretch in self.facts.counted}
        sums = {
            number: saved
            for number, each in enumerate(self._runs)
            if isinstance(each, Tally) and (saved := each.saved()) is not None
        }
        return SavedTallies(counts, sums)

    def restore(self, readings: Sequence[Reading], tallies: SavedTallies | None = None) -> None:
        for number, reading in enumerate(readings, 1 - len(readings)):
            assert reading.event is not None, "such a rule has no timers"
            mask = self.facts.mask_of(reading.ports)
            linked = (number << self.facts.width | mask, reading.event)
            if self.facts.binds_latest:
                self.facts.chain.reader(mask)(self.links, linked)
            self._take(mask, linked)
        if tallies is not None:
            self._restore_tallies(tallies)

    def _restore_tallies(self, tallies: SavedTallies) -> None:
        """Put back what does not follow from the readings. Raises `ValueError`."""
        facts = self.facts
        sums = {number for number, each in enumerate(self._runs) if isinstance(each, SumTally)}
        if not facts.is_running or not tallies.fit([port for port, _ in facts.counted], sums):
            raise ValueError
        for port, number in facts.counted:
            stretch = self._stretches[number]
            assert isinstance(stretch, LastingStretch), "a running rule has such stretches"
            stretch.count = tallies.counts[port]
            for each in stretch.tallies:
                if isinstance(each, CountTally):
                    each.count = stretch.count
        for number, run in enumerate(self._runs):
            if isinstance(run, SumTally):
                run.restore(tallies.sums[number])
