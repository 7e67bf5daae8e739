"""The outputs of one correlation over one batch, as columns or as events.

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
from ensue.engine.batch.remembered import ID, Remembered
from ensue.engine.batch.walks import Firings
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
    source: str
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
            pa.repeat(pa.scalar(self.source), count),
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
                self.source,
                self.type,
                time,
                {n: None if v is MISSING else v for n, v in zip(names, values, strict=True)},
                dict(zip(self.provenance, extension, strict=True)),
            )
            for id_, time, values, extension in zip(
                self.ids.to_pylist(), self.times.tolist(), rows, extensions, strict=True
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
    """What a correlation has read of a batch: one row for each reading, in order."""

    first: int
    times: npt.NDArray[np.int64]
    keys: Numbers


class OutputMaker:
    """Makes the outputs of one correlation."""

    def __init__(
        self, name: str, bind_first: bool, keys: Keys, types: TypeSystem, remembered: Remembered
    ) -> None:
        self._name = name
        self._first = bind_first
        self._keys = keys
        self._types = types
        self._remembered = remembered
        self.counted_at: int | None = None
        self.counted: dict[tuple[int, str], int] = {}

    def make(self, firings: Firings, read: Readings) -> Made:
        sizes = np.array([len(action) for action in firings.table], np.int64)[firings.actions]
        total = int(sizes.sum())
        begins = np.cumsum(sizes) - sizes
        at = np.repeat(firings.at, sizes)
        if not total:
            return Made(at, [])
        triggers = self._remembered.column(ID, read.first + at).values
        numbers = self._numbers(at, read, triggers)
        groups: list[ColumnGroup | EventGroup] = []
        for action in np.unique(firings.actions[sizes > 0]).tolist():
            here = np.flatnonzero(firings.actions == action)
            places, bound = begins[here], firings.places[here]
            for offset, push in enumerate(firings.table[action]):
                groups.append(
                    self._group(push, places + offset, bound, at, read, triggers, numbers)
                )
        return Made(at, groups)

    def _numbers(self, at: Rows, read: Readings, triggers: pa.Array) -> Rows:
        """How many outputs this key has put out on this trigger, this one included."""
        starts = np.r_[True, at[1:] != at[:-1]]
        firsts = np.flatnonzero(starts)
        numbers = np.arange(len(at)) - np.repeat(firsts, np.diff(np.r_[firsts, len(at)])) + 1
        # An id may come twice at one time: then both count together.
        keys, times = read.keys[at[firsts]], read.times[at[firsts]]
        order = np.lexsort((times, keys))
        again = (keys[order][1:] == keys[order][:-1]) & (times[order][1:] == times[order][:-1])
        contested = np.zeros(len(firsts), np.bool_)
        contested[order[1:][again]] = True
        contested[order[:-1][again]] = True
        if self.counted_at is not None:
            contested |= times == self.counted_at
        last = int(read.times[-1])
        if contested.any() or (times == last).any():
            self._count_by_id(
                np.repeat(contested, np.diff(np.r_[firsts, len(at)])), at, read, triggers, numbers
            )
        return numbers

    def _count_by_id(
        self, contested: Any, at: Rows, read: Readings, triggers: pa.Array, numbers: Rows
    ) -> None:
        last = int(read.times[-1])
        counted = {(key, id_, self.counted_at): count for (key, id_), count in self.counted.items()}
        for place in np.flatnonzero(contested | (read.times[at] == last)).tolist():
            reading = at[place]
            key = (int(read.keys[reading]), triggers[place].as_py(), int(read.times[reading]))
            counted[key] = counted.get(key, 0) + 1
            numbers[place] = counted[key]
        self.counted_at = last
        self.counted = {(k, i): count for (k, i, time), count in counted.items() if time == last}

    def _group(
        self,
        push: Push,
        places: Rows,
        bound: npt.NDArray[np.int64],
        at: Rows,
        read: Readings,
        triggers: pa.Array,
        numbers: Rows,
    ) -> ColumnGroup | EventGroup:
        taken = pa.array(places)
        trigger = triggers.take(taken)
        times = read.times[at[places]]
        texts = self._keys.texts(read.keys[at[places]]) if self._keys.keyed else None
        readings = {port: self._reading(bound[:, each]) for port, each in push.shape.bound}
        provenance = self._provenance(push.shape, trigger, readings, texts)
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
        ids = self._ids(trigger, times, texts, numbers[places])
        source = f"ensue/{self._name}"
        return ColumnGroup(places, type_name, ids, source, times, data, provenance)

    def _reading(self, places: npt.NDArray[np.int64]) -> Any:
        if places.shape[1] == 1:
            return places[:, 0]
        return places.min(axis=1) if self._first else places.max(axis=1)

    def _ids(
        self, trigger: pa.Array, times: Any, texts: pa.Array | None, numbers: Rows
    ) -> pa.Array:
        key = [":", texts] if texts is not None else []
        return pc.binary_join_element_wise(
            f"{self._name}:", trigger, "@", pa.array(times).cast(pa.string()), *key,
            ":", pa.array(numbers).cast(pa.string()), "",
        )  # fmt: skip

    def _provenance(
        self,
        shape: Shape,
        trigger: pa.Array,
        readings: Mapping[str, Rows],
        texts: pa.Array | None,
    ) -> dict[str, pa.Array]:
        count = len(trigger)
        attributes = {
            "correlation": pa.repeat(pa.scalar(self._name), count),
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
            one = self._remembered.column(ID, row).values
            for earlier in ids:
                same = pc.fill_null(pc.equal(one, earlier), False)
                one = pc.if_else(same, pa.scalar(None, pa.string()), one)
            ids.append(one)
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
