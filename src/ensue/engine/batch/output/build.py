"""Makes the outputs of correlations over one batch.

In come firings; out go `SourceOutputs`: the outputs in their order, each with the reading that it
came from. Outputs are equal to those of `ensue.engine.outputs` byte for byte, but are made in
columns, a bundle for each statement: one loop writes a text of all outputs of a bundle, of however
many rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input import text_writing
from ensue.engine.batch.input.column import (
    NO_TEXTS,
    Column,
    Texts,
    absent,
    column_of,
    conformed,
    fitted,
    fitted_keys,
    repeated_text,
    write_texts,
)
from ensue.engine.batch.input.keys import Keys, TextNumbers
from ensue.engine.batch.input.predicates import NotInColumnsError, outcomes, values_by_row
from ensue.engine.batch.output.columns import (
    ColumnBundle,
    EventBundle,
    SourceOutputs,
    extension_rows,
)
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.remembered import BoundPorts, Bundle, RememberedReadings, bundles_of
from ensue.engine.core.effects import Emitted, Sent
from ensue.engine.core.numbering import Mask, Numbers, Rows
from ensue.engine.outputs import TIMER, with_extensions
from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.names import Parts

Counted = tuple[int, int, str]
"""A correlation, a key and the id of a trigger."""
_BESIDE_TEXTS = 24
"""The bytes of an id besides names, triggers and keys: a time and a number, mostly."""


@dataclass(frozen=True, slots=True)
class _Origins:
    """Where outputs come from, as columns: correlation, time, key, and the id of the trigger."""

    rules: Rows
    times: npt.NDArray[np.int64]
    keys: Numbers
    triggers: Texts
    trigger_of: Rows

    def taken(self, ranks: Rows) -> _Origins:
        """The origins of the outputs with these places among all outputs."""
        rules, times, keys = self.rules[ranks], self.times[ranks], self.keys[ranks]
        return _Origins(rules, times, keys, self.triggers, self.trigger_of[ranks])

    def trigger_ids(self, ranks: Rows | slice) -> pa.Array:
        return self.triggers.take(self.trigger_of[ranks])


class OutputMaker:
    """Makes the outputs of one correlation, or of several that put out by the same statements."""

    def __init__(
        self,
        names: Sequence[str],
        bind_first: bool,
        keys: Keys,
        types: TypeSystem,
        remembered: RememberedReadings,
        key_places: Mapping[str, int],
    ) -> None:
        self._names = Texts.of(pa.array(names, pa.string()))
        self._sources = Texts.of(pa.array([f"ensue/{name}" for name in names], pa.string()))
        self._first = bind_first
        self._keys = keys
        self._types = types
        self._remembered = remembered
        self._key_places = key_places
        self.counts = TriggerCounts()

    def make(self, firings: Firings, read: Readings) -> SourceOutputs:
        """The outputs of firings, whose arrays may be written over afterwards."""
        occurring = np.flatnonzero(np.bincount(firings.actions, minlength=1)).tolist()
        sizes_of = np.array([len(action) for action in firings.table], np.int64)
        one_each = all(sizes_of[each] == 1 for each in occurring)
        if one_each:
            at, rules = firings.at.copy(), firings.rules
            rules = None if rules is None else rules.copy()
            begins = np.arange(len(at))
        else:
            sizes = sizes_of[firings.actions]
            begins = np.cumsum(sizes) - sizes
            at = np.repeat(firings.at, sizes)
            rules = None if firings.rules is None else np.repeat(firings.rules, sizes)
        if not len(at):
            return SourceOutputs(at, [])
        origins, alarms = self._origins_of(at, rules, read)
        numbers = self.counts.number(origins, at, read.last, alarms)
        made: list[ColumnBundle | EventBundle] = []
        bundles = bundles_of(firings.table, occurring)
        for bundle in bundles:
            # A firing may put out nothing: a stepped machine learns which do by their first time.
            if len(bundles) == 1 and one_each:
                bound = self._bound(bundle, firings, slice(None))
                made.append(self._make_bundle(bundle, begins, bound, origins, numbers))
                continue
            is_here = np.zeros(len(firings.table), np.bool_)
            is_here[list(bundle.bound_in)] = True
            here = np.flatnonzero(is_here[firings.actions])
            ranks = begins[here] + bundle.offset
            bound = self._bound(bundle, firings, here)
            chosen = origins.taken(ranks)
            made.append(self._make_bundle(bundle, ranks, bound, chosen, numbers[ranks]))
        return SourceOutputs(at, made, rules)

    def _bound(self, bundle: Bundle, firings: Firings, here: Rows | slice) -> BoundPorts:
        """The bound events of some firings."""
        computed: dict[Parts, Column] = {}
        if firings.computed:
            every = np.arange(len(firings.at))[here]
            computed = {name: each.take(every) for name, each in firings.computed.items()}
        actions, slots = firings.actions[here], firings.slots[here]
        return BoundPorts(bundle, actions, slots, self._remembered, self._first, computed)

    def _origins_of(
        self, at: Rows, rules: Rows | None, read: Readings
    ) -> tuple[_Origins, Mask | None]:
        """The origins of outputs; where there are alarms, which outputs come from one."""
        alarms = None
        recent = self._remembered.recent_ids()
        if read.numbers is None and recent is not None and recent[1] == read.first:
            triggers, _, rows = recent
            trigger_of = rows[at] if rows.size else at
        elif read.numbers is None:
            old, new, trigger_of = self._remembered.ids(read.first + at, TIMER)
            triggers = new if old is NO_TEXTS else old
        else:
            alarms = read.numbers[at] == 0
            triggers, trigger_of = self._triggers(read.numbers, at)
        of = np.zeros(len(at), np.int64) if rules is None else rules
        return _Origins(of, read.times[at], read.keys[at], triggers, trigger_of), alarms

    def _triggers(self, readings: Rows, at: Rows) -> tuple[Texts, Rows]:
        """The ids of triggers, `timer` for alarms, and the number of each output's trigger."""
        events = np.flatnonzero(readings)
        texts = pa.array([TIMER], pa.string())
        if events.size:
            old, new, places = self._remembered.ids(readings[events], TIMER)
            ids = (new if old is NO_TEXTS else old).take(places)
            texts = pa.concat_arrays([texts.cast(ids.type), ids])
        text_of = np.zeros(len(readings), np.int64)
        text_of[events] = np.arange(1, 1 + events.size)
        return Texts.of(texts), text_of[at]

    def _make_bundle(
        self,
        bundle: Bundle,
        ranks: Rows,
        bound: BoundPorts,
        origins: _Origins,
        numbers: Rows,
    ) -> ColumnBundle | EventBundle:
        """The outputs of one statement; origins and numbers are of these outputs only."""
        keys, key_of = NO_TEXTS, np.zeros(0, np.int64)
        if self._keys.keyed:
            keys, key_of = self._keys.held_texts(origins.keys)
        count = len(ranks)
        provenance = {
            "correlation": self._names.take(origins.rules),
            "trigger": origins.trigger_ids(slice(None)),
            "labels": repeated_text(bundle.labels, count),
            "causes": bound.causes(),
        }
        if self._keys.keyed:
            provenance["partitionkey"] = keys.take(key_of)
        own = {
            each.name: (each.type, _values_of(each.value, each.type, bound.column, count))
            for each in ([] if isinstance(bundle.what, Emitted) else bundle.what.extensions)
        }
        if isinstance(bundle.what, Sent):
            readings = bound.readings(bundle.what.port)
            return self._sent(ranks, origins.times, readings, extension_rows(own, provenance))
        type_name = bundle.what.type
        data: dict[str, tuple[ValueType, Column]]
        if isinstance(bundle.what, Emitted):
            data = self._filled(type_name, origins.keys)
        else:
            attributes = self._types.attributes(type_name)
            data = {
                each.name: (
                    attributes[each.name],
                    _values_of(each.value, attributes[each.name], bound.column, count),
                )
                for each in bundle.what.assignments
            }
        ids = write_texts(
            text_writing.write_ids, count,
            _BESIDE_TEXTS + self._names.mean + origins.triggers.mean + keys.mean,
            self._names, origins.triggers, keys,
            text_writing.IdParts(
                origins.rules, origins.trigger_of, origins.times, key_of, numbers
            ),
        )  # fmt: skip
        sources = self._sources.take(origins.rules)
        return ColumnBundle(ranks, type_name, ids, sources, origins.times, data, provenance, own)

    def _filled(self, type_name: str, keys: Numbers) -> dict[str, tuple[ValueType, Column]]:
        """The data of outputs that carry nothing but their key."""
        attributes = self._types.attributes(type_name)
        carried = {name: at for name, at in self._key_places.items() if name in attributes}
        if not carried:
            return {}
        distinct, places = np.unique(keys, return_inverse=True)
        found: dict[str, tuple[ValueType, Column]] = {}
        for name, at in carried.items():
            column = fitted_keys(self._keys.values(at, distinct), attributes[name])
            found[name] = attributes[name], column.take(places)
        return found

    def _sent(
        self,
        ranks: Rows,
        times: npt.NDArray[np.int64],
        readings: Rows,
        extensions: Iterable[Iterable[tuple[str, Any]]],
    ) -> EventBundle:
        """The events of readings, sent on with the attributes of an output."""
        made = [
            Event(
                event.id,
                event.source,
                event.type,
                time,
                event.data,
                with_extensions(event.extensions, own),
            )
            for event, time, own in zip(
                self._remembered.events(readings), times.tolist(), extensions, strict=True
            )
        ]
        return EventBundle(ranks, made)


def _values_of(expression: Expression, type_: ValueType, lookup: Any, count: int) -> Column:
    """The values of an expression, null where there was an error or where they do not fit."""
    try:
        found = outcomes(expression, lookup, count)
        column = Column(found.kind, found.values, found.errors)
        if column.missing is not None and column.missing.all():
            # A port that is bound in none of these outputs: its column has no kind to be fitted.
            return absent(count)
        held = fitted(column, type_)
        if held is not None:
            return held
    except NotInColumnsError:
        pass
    return column_of(
        [conformed(each, type_) for each in values_by_row(expression, lookup, np.arange(count))]
    )


class TriggerCounts:
    """Numbers the outputs of each trigger: the last part of an output's id.

    A trigger is an event under a key of a correlation, so nearly always its outputs stand together.
    Only where an id comes twice at one time, in a batch or in two that follow each other, do both
    count together; such outputs are counted one by one. `at` is the last moment at which something
    was put out, and `counted` has how many outputs each trigger had then.
    """

    def __init__(self) -> None:
        self.at: int | None = None
        self._counted: dict[Counted, int] = {}
        # Outputs of that moment which are not in `_counted` yet: they may never be asked for.
        self._waiting: list[tuple[Any, Any, pa.Array, Any]] = []
        self._ids = TextNumbers()

    @property
    def counted(self) -> dict[Counted, int]:
        """How many outputs each trigger had at the moment `at`."""
        for rules, keys, ids, numbers in self._waiting:
            for rule, key, id_, number in zip(
                rules.tolist(), keys.tolist(), ids.to_pylist(), numbers.tolist(), strict=True
            ):
                known = self._counted.get((rule, key, id_), 0)
                self._counted[rule, key, id_] = max(known, number)
        self._waiting = []
        return self._counted

    def still_counted(self, clock: int | None) -> dict[Counted, int]:
        """The counts that a snapshot needs: none once the clock has left their moment."""
        is_over = self.at is None or (clock is not None and self.at < clock)
        return {} if is_over else self.counted

    def restore(self, at: int | None, counted: Mapping[Counted, int]) -> None:
        """Take in counts of a snapshot. Counts of a moment before the last one are dropped."""
        if at is not None and (self.at is None or at >= self.at):
            self._begin(at)
            self._counted |= counted
            self._ids.number(pa.array([id_ for _, _, id_ in counted], pa.string()))

    def _begin(self, at: int) -> None:
        if at != self.at:
            self.at = at
            self._counted = {}
            self._waiting = []
            self._ids = TextNumbers()

    def number(self, origins: _Origins, at: Rows, last: int, alarms: Mask | None) -> Rows:
        """The number of each output among the outputs of its trigger.

        `at` has the reading of each output. `last` is the last moment that was read: its triggers
        may put out more in the next batch. `alarms` marks outputs of timers: all outputs of one
        correlation, key and moment come from one reading, and the text for timers is the first of
        the triggers, so that only an event with that text for an id could be taken for a timer.
        """
        times, rules = origins.times, origins.rules
        again = at[1:] == at[:-1]
        heads = np.r_[0, np.flatnonzero(~again) + 1]
        again &= rules[1:] == rules[:-1]
        numbers = np.ones(len(at), np.int64)
        if again.any():
            firsts = np.r_[0, np.flatnonzero(~again) + 1]
            sizes = np.diff(np.r_[firsts, len(at)])
            numbers = np.arange(1, len(at) + 1) - np.repeat(firsts, sizes)
        contested = self._contested(origins, heads, alarms)
        if contested.any():
            sizes = np.diff(np.r_[heads, len(at)])
            chosen = np.flatnonzero(np.repeat(contested, sizes))
            self._count_each(chosen, origins, numbers)
        if times[-1] == last:
            self._begin(last)
            # Outputs are in the order of their times.
            here = slice(int(np.searchsorted(times, last)), None)
            texts = origins.trigger_ids(here)
            self._waiting.append((rules[here].copy(), origins.keys[here], texts, numbers[here]))
            self._ids.number(texts)
        return numbers

    def _contested(self, origins: _Origins, heads: Rows, alarms: Mask | None) -> Mask:
        """For each event that puts out: whether its id may come twice at its time and key.

        `heads` has the first output of each event.
        """
        when = origins.times[heads]
        contested = np.zeros(len(heads), np.bool_)
        same = when[1:] == when[:-1]
        if alarms is not None and same.any():
            by_alarms = alarms[heads]
            names = TextNumbers()
            names.number(origins.triggers.take(np.zeros(1, np.int64)))
            events = names.number(origins.trigger_ids(heads[~by_alarms]), grow=False)
            if not (events == 0).any():
                same &= ~(by_alarms[1:] & by_alarms[:-1])
        if same.any():
            chosen = np.flatnonzero(np.r_[same, False] | np.r_[False, same])
            names = TextNumbers()
            numbers = names.number(origins.trigger_ids(heads[chosen]))
            if names.count < len(chosen):
                pairs = numbers.astype(np.int64) << 32 | origins.keys[heads[chosen]]
                _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
                contested[chosen] = counts[places] > 1
        if self.at is not None:
            chosen = np.flatnonzero(when == self.at)
            if chosen.size:
                known = self._ids.number(origins.trigger_ids(heads[chosen]), grow=False)
                contested[chosen] |= known >= 0
        return contested

    def _count_each(self, chosen: Rows, origins: _Origins, numbers: Rows) -> None:
        """Write the numbers of contested outputs, which are counted one by one."""
        counted = {(*known, self.at): count for known, count in self.counted.items()}
        rules, keys, times = (
            each[chosen].tolist() for each in (origins.rules, origins.keys, origins.times)
        )
        ids = origins.trigger_ids(chosen).to_pylist()
        for place, known in zip(
            chosen.tolist(), zip(rules, keys, ids, times, strict=True), strict=True
        ):
            counted[known] = counted.get(known, 0) + 1
            numbers[place] = counted[known]
