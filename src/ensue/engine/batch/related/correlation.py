"""A rule that relates events, over batches: in compiled loops, by candidates.

In come segments, as for any correlation; out goes what the rule puts out. Every event goes through
the registers of its key, which carry the latest match (`latest_matches`); a match that an event
completes is a *candidate*. Which candidates trigger is decided here: `having` is computed over
their columns, and what a trigger or `unless` makes a key forget is a number below which no match
may begin (its *floor*). Only where more counts than the latest match (aggregates, the first events)
do all remembered events of a key go through `counting`.

What is remembered of a key is a list of readings, and everything that a key holds follows from it:
a snapshot is that list, and going on from it means to read it again.

The module is long because all ways into a rule (a batch, the clock, a snapshot, clearing up) change
the same arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.engine.batch.input.column import Column
from ensue.engine.batch.input.keys import Keys
from ensue.engine.batch.input.matching import Gathered, Matcher, Segment, gathered
from ensue.engine.batch.output.build import OutputMaker
from ensue.engine.batch.output.columns import Made
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.order import Positions, alarm_positions
from ensue.engine.batch.output.remembered import Remembered
from ensue.engine.batch.paths import Path
from ensue.engine.batch.related import latest_matches, waiting
from ensue.engine.batch.related.counting import Counting, LeavesColumnsError
from ensue.engine.batch.related.having import operands_of
from ensue.engine.batch.related.latest_matches import MatchRegisters
from ensue.engine.batch.related.port_aggregates import EventStore
from ensue.engine.batch.related.waiting import FiringsOfClock, MatchClock, Waiting
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, Rows, taller
from ensue.engine.core.relating.form import COMPUTED, ChainForm
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import names_of_bound_events, sends_events
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.syntax import FilterCorrelation
from ensue.machine.model import PortAtom

__all__ = ["LeavesColumnsError", "RelatedCorrelation"]

SMALLEST_CLEARING = 1 << 18
"""The fewest readings for which it pays to drop readings that count no longer."""


class RelatedCorrelation:
    """One rule over one stream, with all of its keys."""

    machine = None

    def __init__(
        self,
        correlation: FilterCorrelation,
        form: ChainForm,
        types: TypeSystem,
        counts: Counts,
        number: int = 0,
    ) -> None:
        """`number` is its place in the library."""
        self._number = number
        self.is_timed = form.after is not None
        self.name = correlation.name
        self.correlation = correlation
        self.form = form
        self.path = Path("related")
        self.types = types
        self._counts = counts
        self._matcher = Matcher(correlation, None, types)
        names = names_of_bound_events(correlation)
        having = correlation.clauses.having
        if having is not None:
            names += [parts[1:] for parts in names_in(having) if len(parts) > 1]
        names += [each.name for each in form.aggregates if each.name]
        self._names, self._whole = names, sends_events(correlation)
        self.clear()

    def clear(self) -> None:
        """Go back to the state of a rule that has read nothing."""
        self.keys = Keys(bool(self.correlation.clauses.by))
        self.clock: int | None = None
        self.remembered = Remembered(self._names, self._whole)
        bind_first = self.form.bind == "first"
        self.maker = OutputMaker(
            [self.name], bind_first, self.keys, self.types, self.remembered, key_places={}
        )
        self._enough = SMALLEST_CLEARING
        self._latest = MatchRegisters(self.form, self.bit_of)
        self._floors = np.zeros(0, np.int64)
        self._counting = (
            Counting(self.form, self.bit_of, self.remembered.column)
            if self.form.needs_stretches
            else None
        )
        self._clock: MatchClock | None = None
        if self.form.after is not None:
            ports = [] if self.form.bind == "latest" else [self.bit_of(p) for p in self.form.slots]
            bits = np.array(ports, np.uint64)
            self._clock = MatchClock(self.form.after, len(self.form.places), bits)
        width = 2 if self._counting is None else self._counting.width
        self._events = EventStore(width, self.remembered.next)

    def bit_of(self, port: str) -> int:
        return self._matcher.bit_of[PortAtom(port)]

    # --- reading --------------------------------------------------------------------------------

    def read(self, segments: Sequence[Segment], clock: int | None) -> tuple[Made, Positions]:
        """What it puts out, and the place in the stream of the reading behind each output.

        Raises `LeavesColumnsError` if it cannot read them; then nothing has changed but that it
        knows more keys.
        """
        self.clear_up()
        found, missing = gathered(self._matcher, self.keys, segments, np.empty((0, 1), np.int64))
        if self._clock is not None and clock is not None:
            self._move_on(clock, missing)
            return self._read_timed(self._clock, found, clock)
        if not found.rows.size:
            self._move_on(clock, missing)
            return Made(found.rows, []), found.positions()
        number = self._remember(found)
        self._move_on(clock, missing)
        letters = found.bits.astype(np.uint64)
        self._store(letters, found.times)
        firings = self._triggers(letters, found.times, found.keys, number)
        latest = int(found.times[-1])
        made = self.maker.make(firings, Readings(number, found.times, found.keys, latest))
        return made, found.positions(made.at)

    # --- the clock --------------------------------------------------------------------------------

    def _read_timed(self, of: MatchClock, found: Gathered, clock: int) -> tuple[Made, Positions]:
        """The firings up to the clock of a rule with a `timeout` behind its chain."""
        number, letters = self.remembered.next, found.bits.astype(np.uint64)
        if found.rows.size:
            number = self._remember(found)
            self._store(letters, found.times)
        self._grow()
        matches, at = self._matches(of, letters, found.times, found.keys, number)
        fired = of.fire(matches, at, letters, found.times, found.keys, number, clock)
        chosen = self._fired(letters, found.keys, number, fired)
        of.forget_before(self._floors, self._window)
        due, keys = fired.matches.due[chosen], fired.matches.keys[chosen]
        if not chosen.size:
            return Made(chosen, []), alarm_positions(due, 0, due, due, 1)
        every = np.arange(chosen.size)
        firings = Firings(
            every, np.zeros(chosen.size, np.int64), fired.slots[chosen], [self.form.action]
        )
        readings = Readings(number, due, keys.astype(np.int32), clock, np.zeros_like(due))
        made = self.maker.make(firings, readings)
        places = alarm_positions(due, self._number, fired.last_read[chosen], every, 1)
        return made, places[made.at]

    def _matches(
        self, of: MatchClock, letters: Any, times: Any, keys: Numbers, number: int
    ) -> tuple[Waiting, Rows]:
        """The matches that events complete, and which rows these are."""
        at, starts, slots = self._latest.link(letters, times, keys, number)
        start_times = self._events.times(starts)
        return of.matches(times[at], keys[at], starts, start_times, slots), at

    def _fired(self, letters: Any, keys: Numbers, number: int, fired: FiringsOfClock) -> Rows:
        """The firings that trigger."""
        matches = fired.matches
        holds = matches.start_times >= matches.due - self._window
        if self.form.condition is not None:
            known, errors = operands_of(self.form, fired.slots, self.remembered)
            holds &= (known[0] != 0) & ~errors[0]
        unless = np.uint64(sum(1 << self.bit_of(port) for port in self.form.unless))
        ends = np.flatnonzero(letters & unless)
        out = np.empty(len(holds), np.int64)
        count = waiting.settle_firings(
            waiting.JudgedFirings(fired.before, holds, matches.starts, matches.keys),
            waiting.Resets(ends + number, keys[ends]),
            self._floors,
            self.form.keep == "all",
            out,
        )
        return out[:count]

    @property
    def _window(self) -> int:
        return FAR if self.form.window is None else self.form.window

    @property
    def has_timers(self) -> bool:
        return self.is_timed

    def next_due(self) -> int | None:
        """When the first match that waits is due."""
        if self._clock is None or not len(self._clock.waiting.due):
            return None
        return int(self._clock.waiting.due[0])

    def last_read(self, key: int) -> int:
        """When a key has read its last event, in the order of all events of the rule."""
        return 0 if self._clock is None else int(self._clock.last_read[key])

    def recall_reads(self, last_read: Mapping[int, int]) -> None:
        """Take in from a snapshot when keys have read their last events."""
        if self._clock is not None:
            self._grow()
            for key, number in last_read.items():
                self._clock.last_read[key] = number
            self._clock.read = 1 + max(last_read.values(), default=0)

    # --- readings ---------------------------------------------------------------------------------

    def _remember(self, found: Gathered) -> int:
        """Remember the rows that were found; returns the number of the first reading."""
        remembered = self.remembered
        remembered.add(found.batches, found.rows, found.which)
        number = remembered.next - len(found.rows)
        if self._counting is not None:
            try:
                self._counting.check(
                    np.arange(number, remembered.next), found.bits.astype(np.uint64)
                )
            except LeavesColumnsError:
                remembered.take_back()
                raise
            if self._counting.is_outgrown:
                # Sums get more limbs, and what they hold is read again.
                remembered.take_back()
                self._counting.widen()
                self.read_again(self.live())
                return self._remember(found)
        return number

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not this rule has read anything since."""
        self.clock = clock if self.clock is None else max(self.clock, clock)

    def _move_on(self, clock: int | None, missing: int) -> None:
        self.clock = clock
        if missing:
            self._counts.without_key[self.name] += missing

    def _store(self, letters: Any, times: Any) -> None:
        """Append the events of a batch to the remembered ones."""
        rows = self._events.add(letters, times)
        if self._counting is not None:
            self._counting.fill_in(rows)

    def _triggers(self, letters: Any, times: Any, keys: Numbers, number: int) -> Firings:
        """The candidates that trigger, as firings."""
        self._grow()
        at, starts, slots = self._latest.link(letters, times, keys, number)
        computed: dict[Parts, Column] = {}
        if self._counting is None:
            chosen = self._settled(letters, keys, number, at, starts, slots)
            slots = slots[chosen]
        else:
            # A match that its key has forgotten is none, and its readings may be dropped.
            known = np.flatnonzero(starts >= self._floors[keys[at]])
            at, starts, slots = at[known], starts[known], slots[known]
            found = self._counting.read(
                self._events, keys, number, at, starts, self._floors,
                operands_of(self.form, slots, self.remembered),
            )  # fmt: skip
            chosen = found.candidates
            slots = slots[chosen]
            if self.form.bind == "first":
                places = self.form.places
                slots = found.firsts[:, [places.index(port) for port in self.form.slots]]
            computed = {
                (COMPUTED, str(number)): each for number, each in enumerate(found.aggregates)
            }
        actions = np.zeros(len(chosen), np.int64)
        return Firings(at[chosen], actions, slots, [self.form.action], computed=computed)

    def _settled(
        self, letters: Any, keys: Numbers, number: int, at: Rows, starts: Rows, slots: Any
    ) -> Rows:
        """The candidates that trigger, where only the latest match counts."""
        holds = np.ones(len(at), np.bool_)
        if self.form.condition is not None:
            known, errors = operands_of(self.form, slots, self.remembered)
            holds = (known[0] != 0) & ~errors[0]
        if not self.form.forgets:
            return np.flatnonzero(holds)
        unless = np.uint64(sum(1 << self.bit_of(port) for port in self.form.unless))
        ends = np.flatnonzero(letters & unless) if unless else np.empty(0, np.int64)
        out = np.empty(len(at), np.int64)
        forgetting = latest_matches.Forgetting(
            ends, self._floors, self.form.keep == "none", self.form.keep == "last"
        )
        count = latest_matches.settle(at, holds, starts, keys, number, forgetting, out)
        return out[:count]

    def _grow(self) -> None:
        count = self.keys.count
        if count > len(self._latest):
            size = max(count, 2 * len(self._latest))
            self._latest.grow(size)
            self._floors = taller(self._floors, size)
        if self._counting is not None:
            self._counting.grow(len(self._latest))
        if self._clock is not None:
            self._clock.grow(len(self._latest))

    # --- what is remembered ---------------------------------------------------------------------

    @property
    def oldest(self) -> int | None:
        """The edge of the window: events before this time count no longer."""
        if self.form.window is None or self.clock is None:
            return None
        return self.clock - self.form.window

    def live(self) -> tuple[Rows, Rows]:
        """The readings that count for what may come, each with its key, by key and in order."""
        if self._counting is not None and not self.form.is_running:
            return self._counting.remembered(self._events, self.oldest)
        every_key, every_row = self._latest.readings(self._floors, self.oldest)
        if self._counting is not None:
            keys, rows = self._counting.kept()
            every_key.append(keys)
            every_row.append(rows)
            is_live = self._counting.has_counted()
            for keys in every_key:
                is_live[keys] = True
            for last in self._latest.last_events():
                keys = np.flatnonzero(is_live & (last > 0) & (last >= self._floors))
                every_key.append(keys)
                every_row.append(last[keys])
        if self._clock is not None:
            self._clock.forget_before(self._floors, self._window)
            waiting = self._clock.waiting
            for column in range(waiting.slots.shape[1]):
                every_key.append(waiting.keys)
                every_row.append(waiting.slots[:, column])
            is_live = np.zeros(len(self._latest), np.bool_)
            for keys in every_key:
                is_live[keys] = True
            for column in range(self._clock.lasts.shape[1]):
                last = self._clock.lasts[:, column]
                keys = np.flatnonzero(is_live & (last > 0) & (last >= self._floors))
                every_key.append(keys)
                every_row.append(last[keys])
        keys = np.concatenate(every_key) if every_key else np.empty(0, np.int64)
        rows = np.concatenate(every_row) if every_row else np.empty(0, np.int64)
        pairs = np.unique(np.column_stack([keys, rows]), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def tallies(self) -> dict[int, SavedTallies]:
        """What keys hold that does not follow from their readings."""
        if self._counting is None or not self.form.is_running:
            return {}
        counting, tallies = self._counting, self._counting.tallies()
        keys = np.flatnonzero(counting.has_counted()).tolist()
        return {key: tallies.save(key, self.form) for key in keys}

    def facts_of(self, rows: Rows) -> tuple[Any, Any]:
        """The letters and the times of readings."""
        return self._events.letters(rows), self._events.times(rows)

    def ports_of(self, letter: int) -> list[str]:
        return sorted(
            atom.name
            for atom, bit in self._matcher.bit_of.items()
            if isinstance(atom, PortAtom) and letter >> bit & 1
        )

    def letter_of(self, ports: Sequence[str]) -> int:
        return sum(1 << self.bit_of(port) for port in ports)

    def read_again(self, live: tuple[Rows, Rows]) -> None:
        """Rebuild what keys hold from a choice of their readings, and forget all other readings."""
        keys, rows = live
        letters, times = self.facts_of(rows)
        counting = self._counting if self.form.is_running else None
        tallies = None if counting is None else counting.tallies()
        self.take_up(keys, letters, times, self.remembered.renumber(rows))
        if counting is not None and tallies is not None:
            counting.put_back(tallies)

    def take_up(
        self,
        keys: Rows,
        letters: Any,
        times: Any,
        number: int,
        tallies: Mapping[int, SavedTallies] | None = None,
    ) -> None:
        """Read readings that are remembered already, from `number` on; nothing triggers.

        Raises `ValueError` if the tallies are not those of such a rule.
        """
        self._latest.clear()
        self._floors[:] = 0
        self._events.clear(number)
        if self._counting is not None and len(letters):
            self._counting.check(np.arange(number, number + len(letters)), letters)
            self._counting.widen()
        if tallies:
            if self._counting is None or not self.form.is_running:
                raise ValueError
            self._counting.widen_for(tallies.values())
        if self._counting is not None:
            self._counting.clear()
        self._grow()
        if self._clock is not None:
            self._clock.clear()
        if len(letters):
            self._read_silently(keys, letters, times, number)
        if tallies and self._counting is not None:
            self._counting.take_in(tallies)

    def _read_silently(self, keys: Rows, letters: Any, times: Any, number: int) -> None:
        read_under = keys.astype(np.int32)
        if self._clock is not None:
            self._store(letters, times)
            matches, _ = self._matches(self._clock, letters, times, read_under, number)
            # These are read key by key, and moments come in their order.
            self._clock.take_up(matches.at(np.argsort(matches.due, kind="stable")), self.clock)
            for column, port in enumerate(self._clock.ports):
                here = np.flatnonzero(letters >> port & np.uint64(1))
                self._clock.lasts[read_under[here], column] = number + here
            return
        self._latest.link(letters, times, read_under, number)
        self._store(letters, times)
        if self._counting is not None:
            none = np.empty(0, np.int64)
            self._counting.read(self._events, read_under, number, none, none, self._floors, None)

    def clear_up(self) -> None:
        """Drop readings that no key remembers any more, if there are many."""
        if self._counting is not None and self.form.window is not None:
            self._slide(self._counting)
        elif self.remembered.recent_rows > max(SMALLEST_CLEARING, len(self._latest)):
            self.read_again(self.live())
        if self.remembered.is_heavy:
            self.read_again(self.live())

    def _slide(self, counting: Counting) -> None:
        """Drop the readings before the first one that is in the window of its key."""
        if self.clock is None or len(self._events) <= max(self._enough, len(self._latest)):
            return
        first = counting.first_that_counts(self._events, self.clock) or self.remembered.next
        self._events.drop_before(first)
        self.remembered.drop_before(first)
        self._enough = max(SMALLEST_CLEARING, 2 * len(self._events))
