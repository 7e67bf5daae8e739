"""The outputs of correlations over one batch, as columns or as events.

In come firings; out goes a `Made`: the outputs in their order, each with the reading that it came
from. The same to the letter as `ensue.engine.outputs`, but made by statement: all events that one
statement puts out in a batch are one group of columns. What is sent on (`push a`) is events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.actions import Emitted, Push, Sent, Shape
from ensue.engine.batch.column import Column, Rows, absent, column_of
from ensue.engine.batch.fitting import LARGEST_FLOAT
from ensue.engine.batch.keys import Keys, Numbers
from ensue.engine.batch.predicates import NotInColumnsError, Parts, outcomes, values_by_row
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.walks import Firings
from ensue.engine.outputs import TIMER
from ensue.events.arrow import CONTEXT_FIELDS, TIME, table_of
from ensue.events.arrow_types import arrow_type, field_of
from ensue.events.columns import extension_column, is_attribute_column
from ensue.events.conformance import conform_value
from ensue.events.event import Event
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING

PROVENANCE = ("correlation", "trigger", "labels", "causes", "partitionkey")


@dataclass(frozen=True)
class ColumnGroup:
    """Events of one type, made by one statement. `places` says where they stand in the order."""

    places: Rows
    type: str
    ids: pa.Array
    sources: pa.Array
    times: npt.NDArray[np.int64]
    data: Mapping[str, tuple[ValueType, Column]]
    provenance: Mapping[str, pa.Array]

    def table(self, types: TypeSystem) -> pa.Table:
        count = len(self.places)
        if not all(is_attribute_column(name) for name in types.attributes(self.type)):
            # An attribute that is named as one of CloudEvents stands in the rest of the data.
            return events_table(self.events(), types)
        fields = list(CONTEXT_FIELDS)
        columns = [
            self.ids,
            self.sources,
            pa.repeat(pa.scalar(self.type), count),
            pa.array(self.times).cast(TIME),
        ]
        for name, type_ in types.attributes(self.type).items():
            fields.append(field_of(name, type_))
            if name in self.data:
                columns.append(_arrow(*self.data[name]))
            else:
                columns.append(pa.nulls(count, arrow_type(type_)))
        for name, values in self.provenance.items():
            fields.append(pa.field(extension_column(name), pa.string()))
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def events(self) -> list[Event]:
        names = list(self.data)
        rows: Any = zip(*(column.to_list() for _, column in self.data.values()), strict=True)
        if not names:
            rows = [()] * len(self.places)
        extensions = zip(*(each.to_pylist() for each in self.provenance.values()), strict=True)
        return [
            Event(
                id_,
                source,
                self.type,
                time,
                {n: None if v is MISSING else v for n, v in zip(names, values, strict=True)},
                dict(zip(self.provenance, extension, strict=True)),
            )
            for id_, source, time, values, extension in zip(
                self.ids.to_pylist(),
                self.sources.to_pylist(),
                self.times.tolist(),
                rows,
                extensions,
                strict=True,
            )
        ]


@dataclass(frozen=True)
class EventGroup:
    places: Rows
    made: Sequence[Event]

    def table(self, types: TypeSystem) -> pa.Table:
        return events_table(self.made, types)

    def events(self) -> Sequence[Event]:
        return self.made


@dataclass(frozen=True)
class Made:
    """`at` says of each output, in their order, from which of the given readings it came."""

    at: Rows
    groups: Sequence[ColumnGroup | EventGroup]
    rules: Rows | None = None
    """Where several correlations have put out: which, by their numbers among those."""

    def __len__(self) -> int:
        return len(self.at)

    def events(self) -> list[Event]:
        out: list[Any] = [None] * len(self.at)
        for group in self.groups:
            for place, event in zip(group.places.tolist(), group.events(), strict=True):
                out[place] = event
        return out

    def table(self, types: TypeSystem) -> pa.Table | None:
        if not self.groups:
            return None
        joined = join_tables([group.table(types) for group in self.groups])
        order = np.argsort(np.concatenate([group.places for group in self.groups]), kind="stable")
        return reordered(joined, order)


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")


def reordered(table: pa.Table, order: Rows) -> pa.Table:
    if (order[1:] > order[:-1]).all():
        return table
    return table.take(pa.array(order))


def events_table(events: Sequence[Event], types: TypeSystem) -> pa.Table:
    """Outputs as a table; an attribute that nobody gave a value is null there."""
    whole = [
        Event(
            event.id,
            event.source,
            event.type,
            event.time,
            {**dict.fromkeys(types.attributes(event.type)), **event.attributes}
            if event.type in types
            else event.data,
            event.extensions,
        )
        for event in events
    ]
    return table_of(whole, types)


@dataclass(frozen=True, slots=True)
class Readings:
    """What a correlation has read of a batch: one row for each reading.

    Firings come in the order of the stream; the readings of different keys may not, where there
    are timers.
    """

    first: int
    times: npt.NDArray[np.int64]
    keys: Numbers
    latest: int | None = None

    @property
    def last(self) -> int:
        """The last moment at which something was read."""
        return int(self.times[-1]) if self.latest is None else self.latest


@dataclass(frozen=True, slots=True)
class _PutOut:
    """All outputs of a batch: from which reading each, of which correlation, on which trigger."""

    at: Rows
    rules: Rows | None
    read: Readings
    triggers: pa.Array
    numbers: Rows


class OutputMaker:
    """Makes the outputs of one correlation, or of several that put out by the same statements.

    `counted` says how many outputs a trigger had at the last moment that was read, so that an event
    of the same id and time goes on from there: by correlation, key and id.
    """

    def __init__(
        self,
        names: Sequence[str],
        bind_first: bool,
        keys: Keys,
        types: TypeSystem,
        remembered: Remembered,
    ) -> None:
        self._names = pa.array(names, pa.string())
        self._sources = pa.array([f"ensue/{name}" for name in names], pa.string())
        self._first = bind_first
        self._keys = keys
        self._types = types
        self._remembered = remembered
        self.counted_at: int | None = None
        self.counted: dict[tuple[int, int, str], int] = {}

    def make(self, firings: Firings, read: Readings) -> Made:
        sizes = np.array([len(action) for action in firings.table], np.int64)[firings.actions]
        total = int(sizes.sum())
        begins = np.cumsum(sizes) - sizes
        at = np.repeat(firings.at, sizes)
        if not total:
            return Made(at, [])
        rules = None if firings.rules is None else np.repeat(firings.rules, sizes)
        triggers = self._remembered.ids(read.first + at, TIMER)
        numbers = self._numbers(at, rules, read, triggers)
        put_out = _PutOut(at, rules, read, triggers, numbers)
        groups: list[ColumnGroup | EventGroup] = []
        for action in np.flatnonzero(np.bincount(firings.actions[sizes > 0])).tolist():
            here = np.flatnonzero(firings.actions == action)
            places, bound = begins[here], firings.places[here]
            for offset, push in enumerate(firings.table[action]):
                groups.append(self._group(push, places + offset, bound, put_out))
        return Made(at, groups, rules)

    def recall(self, at: int | None, counted: Mapping[tuple[int, int, str], int]) -> None:
        """Take in counts of a snapshot. Those of a moment before the last one are over."""
        if at is not None and (self.counted_at is None or at >= self.counted_at):
            if at != self.counted_at:
                self.counted = {}
            self.counted_at = at
            self.counted |= counted

    def _numbers(self, at: Rows, rules: Rows | None, read: Readings, triggers: pa.Array) -> Rows:
        """How many outputs this key has put out on this trigger, this one included."""
        starts = np.r_[True, at[1:] != at[:-1]]
        if rules is not None:
            starts[1:] |= rules[1:] != rules[:-1]
        firsts = np.flatnonzero(starts)
        sizes = np.diff(np.r_[firsts, len(at)])
        numbers = np.arange(len(at)) - np.repeat(firsts, sizes) + 1
        # An id may come twice at one time: then both count together.
        begun = at[firsts]
        keys, times = read.keys[begun], read.times[begun]
        contested = np.zeros(len(firsts), np.bool_)
        if ((times[1:] == times[:-1]) & (begun[1:] != begun[:-1])).any():
            of = np.zeros(len(firsts), np.int64) if rules is None else rules[firsts]
            order = np.lexsort((times, keys, of))
            again = np.ones(len(order) - 1, np.bool_)
            for each in (of[order], keys[order], times[order]):
                again &= each[1:] == each[:-1]
            contested[order[1:][again]] = True
            contested[order[:-1][again]] = True
        if self.counted_at is not None:
            contested |= times == self.counted_at
        last = read.last
        if contested.any() or times[-1] == last:
            self._count_by_id(np.repeat(contested, sizes), at, rules, read, triggers, numbers)
        return numbers

    def _count_by_id(
        self,
        contested: Any,
        at: Rows,
        rules: Rows | None,
        read: Readings,
        triggers: pa.Array,
        numbers: Rows,
    ) -> None:
        last = read.last
        counted = {(*known, self.counted_at): count for known, count in self.counted.items()}
        for place in np.flatnonzero(contested | (read.times[at] == last)).tolist():
            reading = at[place]
            rule = 0 if rules is None else int(rules[place])
            time = int(read.times[reading])
            key = (rule, int(read.keys[reading]), triggers[place].as_py(), time)
            counted[key] = counted.get(key, 0) + 1
            numbers[place] = counted[key]
        self.counted_at = last
        self.counted = {(r, k, i): n for (r, k, i, time), n in counted.items() if time == last}

    def _group(
        self, push: Push, places: Rows, bound: npt.NDArray[np.int64], put_out: _PutOut
    ) -> ColumnGroup | EventGroup:
        read, at = put_out.read, put_out.at[places]
        trigger = put_out.triggers.take(pa.array(places))
        times = read.times[at]
        texts = self._keys.texts(read.keys[at]) if self._keys.keyed else None
        readings = {port: self._reading(bound[:, each]) for port, each in push.shape.bound}
        rules = pa.array(
            np.zeros(len(at), np.int64) if put_out.rules is None else put_out.rules[places]
        )
        names = self._names.take(rules)
        provenance = self._provenance(push.shape, names, trigger, readings, texts)
        if isinstance(push.what, Sent):
            return self._sent(push.what, places, times, readings, provenance)
        type_name = push.what.type
        data: dict[str, tuple[ValueType, Column]] = {}
        if not isinstance(push.what, Emitted):
            lookup = _Bound(self._remembered, readings, len(places)).column
            attributes = self._types.attributes(type_name)
            data = {
                each.name: (
                    attributes[each.name],
                    _fitting(each.value, attributes[each.name], lookup, len(places)),
                )
                for each in push.what.assignments
            }
        ids = self._ids(names, trigger, times, texts, put_out.numbers[places])
        return ColumnGroup(
            places, type_name, ids, self._sources.take(rules), times, data, provenance
        )

    def _reading(self, places: npt.NDArray[np.int64]) -> Any:
        if places.shape[1] == 1:
            return places[:, 0]
        return places.min(axis=1) if self._first else places.max(axis=1)

    def _ids(
        self,
        names: pa.Array,
        trigger: pa.Array,
        times: Any,
        texts: pa.Array | None,
        numbers: Rows,
    ) -> pa.Array:
        key = [":", texts] if texts is not None else []
        return pc.binary_join_element_wise(
            names, ":", trigger, "@", pa.array(times).cast(pa.string()), *key,
            ":", pa.array(numbers).cast(pa.string()), "",
        )  # fmt: skip

    def _provenance(
        self,
        shape: Shape,
        names: pa.Array,
        trigger: pa.Array,
        readings: Mapping[str, Rows],
        texts: pa.Array | None,
    ) -> dict[str, pa.Array]:
        count = len(trigger)
        attributes = {
            "correlation": names,
            "trigger": trigger,
            "labels": pa.repeat(pa.scalar(shape.labels), count),
            "causes": self._causes(readings, count),
        }
        if texts is not None:
            attributes["partitionkey"] = texts
        return attributes

    def _causes(self, readings: Mapping[str, Rows], count: int) -> pa.Array:
        """The ids of the bound events, each once, in the order in which they were read."""
        if not readings:
            return pa.repeat(pa.scalar(""), count)
        ordered = np.sort(np.stack(list(readings.values())), axis=0)
        ids: list[pa.Array] = []
        for row in ordered:
            one = self._remembered.ids(row, None)
            for earlier in ids:
                same = pc.fill_null(pc.equal(one, earlier), False)
                one = pc.if_else(same, pa.scalar(None, pa.string()), one)
            ids.append(one)
        if ids[0].null_count:
            # Rows without any id would be left out by the joining below.
            there = np.logical_or.reduce([np.asarray(each.is_valid()) for each in ids])
            ids[0] = pc.if_else(pa.array(there), ids[0], "")
        if len(ids) == 1:
            return ids[0]
        return pc.binary_join_element_wise(*ids, ",", null_handling="skip")

    def _sent(
        self,
        sent: Sent,
        places: Rows,
        times: npt.NDArray[np.int64],
        readings: Mapping[str, Rows],
        provenance: Mapping[str, pa.Array],
    ) -> EventGroup:
        rows = zip(*(each.to_pylist() for each in provenance.values()), strict=True)
        made = [
            Event(
                event.id,
                event.source,
                event.type,
                time,
                event.data,
                {**event.extensions, **dict(zip(provenance, row, strict=True))},
            )
            for event, time, row in zip(
                self._remembered.events(readings[sent.port]), times.tolist(), rows, strict=True
            )
        ]
        return EventGroup(places, made)


class _Bound:
    """Names of a transformer: a port, then a name in the event that is bound to it."""

    def __init__(self, remembered: Remembered, readings: Mapping[str, Rows], count: int) -> None:
        self._remembered = remembered
        self._readings = readings
        self._count = count
        self._known: dict[Parts, Column] = {}

    def column(self, parts: Parts) -> Column:
        if parts not in self._known:
            port, *rest = parts
            if rest and port in self._readings:
                known = self._remembered.column(tuple(rest), self._readings[port])
            else:
                known = absent(self._count)
            self._known[parts] = known
        return self._known[parts]


def _fitting(expression: Expression, type_: ValueType, lookup: Any, count: int) -> Column:
    """The values of an expression, null where there was an error or where they do not fit."""
    try:
        found = outcomes(expression, lookup, count)
        column = Column(found.kind, found.values, found.errors)
        fitted = _fit(column, type_)
        if fitted is not None:
            return fitted
    except NotInColumnsError:
        pass
    return column_of(
        [_conformed(each, type_) for each in values_by_row(expression, lookup, np.arange(count))]
    )


def _conformed(value: Any, type_: ValueType) -> Any:
    if value is MISSING:
        return MISSING
    try:
        return conform_value(value, type_)
    except ValueError:
        return MISSING


def _fit(column: Column, type_: ValueType) -> Column | None:
    """The column as its attribute holds it; None if that has to be asked value by value."""
    values = column.values
    if type_.name in INTEGER_RANGES and column.kind == "integer":
        low, high = INTEGER_RANGES[type_.name]
        wrong = (values < low) | (values > min(high, 2**63 - 1))
        return Column(
            "integer", values, wrong if column.missing is None else wrong | column.missing
        )
    if type_.kind == "real" and column.kind in ("integer", "real"):
        reals = values.astype(np.float64, copy=False)
        wrong = ~(np.abs(reals) < (LARGEST_FLOAT if type_.name == "float" else np.inf))
        return Column("real", reals, wrong if column.missing is None else wrong | column.missing)
    if type_.name == column.kind and column.kind in ("boolean", "string", "timestamp"):
        return column
    return None


def _arrow(type_: ValueType, column: Column) -> pa.Array:
    wanted = arrow_type(type_)
    if column.kind == "object" or type_.element is not None:
        return pa.array([None if v is MISSING else v for v in column.to_list()], wanted)
    if column.missing is not None and column.missing.all():
        return pa.nulls(len(column), wanted)
    held = present_or_none(column)
    return held if held.type == wanted else held.cast(wanted)


def present_or_none(column: Column) -> pa.Array:
    """A column of one kind as an Arrow array, null where it is missing."""
    if column.kind == "string":
        if column.missing is None:
            return column.values
        return pc.if_else(pa.array(~column.missing), column.values, pa.scalar(None, pa.string()))
    held = pa.array(column.values, mask=column.missing)
    return held.cast(TIME) if column.kind == "timestamp" else held
