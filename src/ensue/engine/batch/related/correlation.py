"""A rule that relates events, over batches: in compiled loops, by candidates.

In come segments, as for any correlation; out go outputs. Every event goes through the registers of
its key, which carry the latest match (`latest_matches`); a match that an event completes is a
*candidate*. Which candidates trigger is decided here: `having` is computed over their columns
(`conditions`), and what a trigger or `unless` makes a key forget is a number below which no match
may begin (its *floor*). Only where more counts than the latest match (aggregates, the first events)
do all remembered events of a key go through `stretch_registers`. With a `timeout` behind the chain,
matches wait in a queue until the clock fires them (`waiting`).

What is remembered of a key is a list of readings, and everything that a key holds follows from it:
a snapshot is that list (`saving`), and going on from it means to read it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.engine.batch.input.column import Column
from ensue.engine.batch.input.keys import Keys
from ensue.engine.batch.input.matching import Gathered, Matcher, Segment, gathered
from ensue.engine.batch.output.build import OutputMaker
from ensue.engine.batch.output.columns import SourceOutputs
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.order import Positions, alarm_positions
from ensue.engine.batch.output.remembered import RememberedReadings
from ensue.engine.batch.paths import Path
from ensue.engine.batch.related.aggregated_values import LeavesColumnsError
from ensue.engine.batch.related.conditions import operands_of
from ensue.engine.batch.related.latest_matches import (
    Candidates,
    JudgedMatches,
    MatchRegisters,
    ReadEvents,
    Resets,
    choose_triggers,
)
from ensue.engine.batch.related.port_aggregates import EventStore
from ensue.engine.batch.related.stretch_registers import StretchRegisters
from ensue.engine.batch.related.waiting import MatchClock
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Mask, Rows, taller
from ensue.engine.core.relating.form import COMPUTED, ChainForm
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.counts import Counts
from ensue.engine.sizes import sizes
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import names_of_bound_events, sends_events
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.syntax import FilterCorrelation
from ensue.machine.model import PortAtom

__all__ = ["LeavesColumnsError", "RelatedCorrelation"]


class RelatedCorrelation:
    """One rule over one stream, with all of its keys; `number` is its place in the library."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        form: ChainForm,
        types: TypeSystem,
        counts: Counts,
        number: int,
    ) -> None:
        self.has_timers = form.after is not None
        self.name = correlation.name
        self.correlation = correlation
        self.form = form
        self.path = Path("related")
        self.types = types
        self._number = number
        self._counts = counts
        self._matcher = Matcher(correlation, None, types)
        self._unless = np.uint64(self.letter_of(form.unless))
        self._window = FAR if form.window is None else form.window
        names = names_of_bound_events(correlation)
        having = correlation.clauses.having
        if having is not None:
            names += [parts[1:] for parts in names_in(having) if len(parts) > 1]
        names += [each.name for each in form.aggregates if each.name]
        self._names, self._whole = names, sends_events(correlation)
        self.clear()

    def clear(self) -> None:
        """Go back to the state of a rule that has read nothing."""
        form = self.form
        self.keys = Keys(bool(self.correlation.clauses.by))
        self.clock: int | None = None
        self.remembered = RememberedReadings(self._names, self._whole)
        self.maker = OutputMaker(
            [self.name], form.bind == "first", self.keys, self.types, self.remembered, key_places={}
        )
        self._next_slide = sizes().rows_before_clearing
        self._latest = MatchRegisters(form, self.bit_of)
        self._floors = np.zeros(0, np.int64)
        self._stretches: StretchRegisters | None = None
        if form.needs_stretches:
            self._stretches = StretchRegisters(form, self.bit_of, self.remembered.column)
        self._clock: MatchClock | None = None
        if form.after is not None:
            ports = [] if form.bind == "latest" else [self.bit_of(port) for port in form.slots]
            self._clock = MatchClock(form.after, len(form.places), np.array(ports, np.uint64))
        width = 2 if self._stretches is None else self._stretches.values.width
        self._events = EventStore(width, self.remembered.next)

    def bit_of(self, port: str) -> int:
        return self._matcher.bit_of[PortAtom(port)]

    # --- reading --------------------------------------------------------------------------------

    def read(
        self, segments: Sequence[Segment], clock: int | None
    ) -> tuple[SourceOutputs, Positions]:
        """Its outputs, and the position of the reading behind each output.

        Raises `LeavesColumnsError` if it cannot read them; then nothing has changed but that it
        knows more keys.
        """
        self.clear_up()
        found, without_key = gathered(self._matcher, self.keys, segments)
        number = self._remember(found) if found.rows.size else self.remembered.next
        self.clock = clock
        if without_key:
            self._counts.without_key[self.name] += without_key
        events = ReadEvents(found.bits.astype(np.uint64), found.times, found.keys, number)
        if found.rows.size:
            self._store(events)
        self._grow()
        if self._clock is not None and clock is not None:
            return self._read_with_clock(self._clock, events, clock)
        if not found.rows.size:
            return SourceOutputs(found.rows, []), found.positions()
        firings = self._triggers(events)
        latest = int(found.times[-1])
        made = self.maker.make(firings, Readings(number, found.times, found.keys, latest))
        return made, found.positions(made.at)

    def _remember(self, found: Gathered) -> int:
        """Remember the rows that were found; returns the number of the first reading."""
        remembered, stretches = self.remembered, self._stretches
        remembered.add(found.batches, found.rows, found.which)
        number = remembered.next - len(found.rows)
        if stretches is None:
            return number
        try:
            stretches.values.check(np.arange(number, remembered.next), found.bits.astype(np.uint64))
        except LeavesColumnsError:
            remembered.remove_last()
            raise
        if not stretches.values.is_outgrown:
            return number
        # Sums get more limbs, and what they are of is read again.
        remembered.remove_last()
        stretches.values.widen()
        self._rebuild_from(self.live())
        return self._remember(found)

    def _store(self, events: ReadEvents) -> None:
        """Append events to the remembered ones."""
        rows = self._events.add(events.letters, events.times)
        if self._stretches is not None:
            self._stretches.values.write(rows)

    def _grow(self) -> None:
        count = self.keys.count
        if count > len(self._latest):
            size = max(count, 2 * len(self._latest))
            self._latest.grow(size)
            self._floors = taller(self._floors, size)
        if self._stretches is not None:
            self._stretches.grow(len(self._latest))
        if self._clock is not None:
            self._clock.grow(len(self._latest))

    def _triggers(self, events: ReadEvents) -> Firings:
        """The candidates that trigger, as firings."""
        found = self._latest.link(events)
        computed: dict[Parts, Column] = {}
        if self._stretches is None:
            chosen = self._chosen(found, events)
            slots = found.slots[chosen]
        else:
            # A match that its key has forgotten is none, and its readings may be dropped.
            found = found.taken(np.flatnonzero(found.starts >= self._floors[events.keys[found.at]]))
            operands = operands_of(self.form, found.slots, self.remembered)
            triggers = self._stretches.read(self._events, events, found, self._floors, operands)
            chosen = triggers.candidates
            slots = found.slots[chosen]
            if self.form.bind == "first":
                places = self.form.places
                slots = triggers.firsts[:, [places.index(port) for port in self.form.slots]]
            computed = {
                (COMPUTED, str(number)): each for number, each in enumerate(triggers.aggregates)
            }
        actions = np.zeros(len(chosen), np.int64)
        return Firings(found.at[chosen], actions, slots, [self.form.action], computed=computed)

    def _chosen(self, found: Candidates, events: ReadEvents) -> Rows:
        """The candidates that trigger, where only the latest match counts."""
        holds = self._condition_holds(found.slots)
        if not self.form.forgets:
            return np.flatnonzero(holds)
        numbers, keys = events.number + found.at, events.keys[found.at].astype(np.int64)
        matches = JudgedMatches(numbers, holds, found.starts, keys)
        # With `keep none` the event that completes a match is forgotten as well.
        return self._choose_triggers(matches, events, int(self.form.keep == "none"))

    def _condition_holds(self, slots: Any) -> Mask:
        """For which matches, by the readings in their slots, `having` holds."""
        if self.form.condition is None:
            return np.ones(len(slots), np.bool_)
        known, errors = operands_of(self.form, slots, self.remembered)
        return np.asarray((known[0] != 0) & ~errors[0])

    def _choose_triggers(self, matches: JudgedMatches, events: ReadEvents, forgotten: int) -> Rows:
        """The matches that trigger; changes the floors of their keys."""
        ends = np.empty(0, np.int64)
        if self._unless:
            ends = np.flatnonzero(events.letters & self._unless)
        resets = Resets(ends + events.number, events.keys[ends])
        out = np.empty(len(matches.holds), np.int64)
        keeps_all = self.form.keep == "all"
        count = choose_triggers(matches, resets, self._floors, keeps_all, forgotten, out)
        return out[:count]

    # --- the clock --------------------------------------------------------------------------------

    def _read_with_clock(
        self, waiting: MatchClock, events: ReadEvents, clock: int
    ) -> tuple[SourceOutputs, Positions]:
        """The outputs up to the clock of a rule with a `timeout` behind its chain."""
        found = self._latest.link(events)
        matches = waiting.matches(found, events, self._events.times(found.starts))
        fired = waiting.fire(matches, found.at, events, clock)
        holds = fired.matches.start_times >= fired.matches.due - self._window
        holds &= self._condition_holds(fired.slots)
        judged = JudgedMatches(fired.before, holds, fired.matches.starts, fired.matches.keys)
        chosen = self._choose_triggers(judged, events, 0)
        waiting.forget_before(self._floors, self._window)
        due, keys = fired.matches.due[chosen], fired.matches.keys[chosen]
        if not chosen.size:
            return SourceOutputs(chosen, []), alarm_positions(due, 0, due, due, 1)
        every = np.arange(chosen.size)
        firings = Firings(
            every, np.zeros(chosen.size, np.int64), fired.slots[chosen], [self.form.action]
        )
        readings = Readings(events.number, due, keys.astype(np.int32), clock, np.zeros_like(due))
        made = self.maker.make(firings, readings)
        positions = alarm_positions(due, self._number, fired.last_read[chosen], every, 1)
        return made, positions[made.at]

    def next_due(self) -> int | None:
        """When the first match that waits is due."""
        if self._clock is None or not len(self._clock.waiting.due):
            return None
        return int(self._clock.waiting.due[0])

    def last_read(self, key: int) -> int:
        """The last event of a key, in the order of all events of the rule."""
        return 0 if self._clock is None else int(self._clock.last.of_key[key])

    def restore_last(self, last_read: Mapping[int, int]) -> None:
        """Take in the last events of keys from a snapshot."""
        if self._clock is not None:
            self._grow()
            self._clock.restore_last(last_read)

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not this rule has read anything since."""
        self.clock = clock if self.clock is None else max(self.clock, clock)

    # --- what is remembered ---------------------------------------------------------------------

    def live(self) -> tuple[Rows, Rows]:
        """The readings that count for what may come, each with its key, by key and in order."""
        oldest = None
        if self.form.window is not None and self.clock is not None:
            oldest = self.clock - self.form.window
        stretches, clock = self._stretches, self._clock
        if stretches is not None and not self.form.is_running:
            return stretches.remembered(self._events, oldest)
        every_key, every_row = self._latest.readings(self._floors, oldest)
        is_live = np.zeros(len(self._latest), np.bool_)
        lasts: list[Rows] = []
        if stretches is not None:
            keys, rows = stretches.kept_readings()
            every_key.append(keys)
            every_row.append(rows)
            is_live |= stretches.has_counted()
            lasts += self._latest.last_events()
        if clock is not None:
            clock.forget_before(self._floors, self._window)
            for rows in clock.waiting.slots.T:
                every_key.append(clock.waiting.keys)
                every_row.append(rows)
            lasts += list(clock.last.of_ports.T)
        for keys in every_key:
            is_live[keys] = True
        for last in lasts:
            keys = np.flatnonzero(is_live & (last > 0) & (last >= self._floors))
            every_key.append(keys)
            every_row.append(last[keys])
        none = np.empty(0, np.int64)
        pairs = np.column_stack(
            [np.concatenate([none, *every]) for every in (every_key, every_row)]
        )
        pairs = np.unique(pairs, axis=0)
        return pairs[:, 0], pairs[:, 1]

    def tallies(self) -> dict[int, SavedTallies]:
        """What keys hold that does not follow from their readings."""
        if self._stretches is None or not self.form.is_running:
            return {}
        tallies = self._stretches.tallies()
        keys = np.flatnonzero(self._stretches.has_counted()).tolist()
        return {key: tallies.save(key, self.form) for key in keys}

    def letters_and_times(self, readings: Rows) -> tuple[Any, Any]:
        return self._events.letters(readings), self._events.times(readings)

    def ports_of(self, letter: int) -> list[str]:
        return sorted(
            atom.name
            for atom, bit in self._matcher.bit_of.items()
            if isinstance(atom, PortAtom) and letter >> bit & 1
        )

    def letter_of(self, ports: Sequence[str]) -> int:
        return sum(1 << self.bit_of(port) for port in ports)

    def _rebuild_from(self, live: tuple[Rows, Rows]) -> None:
        """Rebuild what keys hold from a choice of their readings, and forget all other readings."""
        keys, rows = live
        letters, times = self.letters_and_times(rows)
        stretches = self._stretches if self.form.is_running else None
        tallies = None if stretches is None else stretches.tallies()
        number = self.remembered.renumber(rows)
        self.replay(ReadEvents(letters, times, keys.astype(np.int32), number))
        if stretches is not None and tallies is not None:
            stretches.put_back(tallies)

    def replay(self, events: ReadEvents, tallies: Mapping[int, SavedTallies] | None = None) -> None:
        """Read events that are remembered already, as the first of the rule; nothing triggers.

        Raises `ValueError` if the tallies are not those of such a rule.
        """
        self._latest.clear()
        self._floors[:] = 0
        self._events.clear(events.number)
        stretches, count = self._stretches, len(events.letters)
        if stretches is not None and count:
            readings = np.arange(events.number, events.number + count)
            stretches.values.check(readings, events.letters)
            stretches.values.widen()
        if tallies:
            if stretches is None or not self.form.is_running:
                raise ValueError
            stretches.values.widen_for(tallies.values())
        if stretches is not None:
            stretches.clear()
        self._grow()
        if self._clock is not None:
            self._clock.clear()
        if count:
            self._store(events)
            found = self._latest.link(events)
            if stretches is not None:
                stretches.read(self._events, events, found.taken(slice(0)), self._floors, None)
            if self._clock is not None:
                starts = self._events.times(found.starts)
                matches = self._clock.matches(found, events, starts)
                self._clock.replay(matches, events, self.clock)
        if tallies and stretches is not None:
            stretches.restore_tallies(tallies)

    def clear_up(self) -> None:
        """Drop readings that no key remembers any more, if there are many."""
        if self._stretches is not None and self.form.window is not None:
            self._slide(self._stretches)
        elif self.remembered.recent_rows > max(sizes().rows_before_clearing, len(self._latest)):
            self._rebuild_from(self.live())
        if self.remembered.is_heavy:
            self._rebuild_from(self.live())

    def _slide(self, stretches: StretchRegisters) -> None:
        """Drop the readings before the first one that is in the window of its key."""
        if self.clock is None or len(self._events) <= max(self._next_slide, len(self._latest)):
            return
        first = stretches.first_that_counts(self._events, self.clock) or self.remembered.next
        self._events.drop_before(first)
        self.remembered.drop_before(first)
        self._next_slide = max(sizes().rows_before_clearing, 2 * len(self._events))
