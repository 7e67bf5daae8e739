"""Many events at once: from an Arrow table, or from events that are in Python already.

In come rows, or the firings of timers, which are remembered as events are; out goes a `Batch`. It
can be asked for a name's values as a column, for which rows a predicate holds (once, however many
ports ask), and for a row as an event. Whether the columns of a table can be read so, and which rows
fit, is for `table_reading` to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, Mask, Rows, absent, arrow_column, column_of
from ensue.engine.batch.input.predicates import NotInColumnsError, outcomes, values_by_row
from ensue.engine.batch.input.table_reading import (
    Instants,
    TableReading,
    attribute_column,
    plain_text,
    present_codes,
)
from ensue.events.event import CONTEXT, Event
from ensue.events.files.chunk import Chunk
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, EventScope
from ensue.lang.expressions.names import Parts


class Batch(ABC):
    """Rows in the order in which they are read. `times` are microseconds since 1970."""

    times: Instants
    types: TypeSystem
    held_bytes = 0
    """How much memory is held on to with a batch, where that may be much."""

    def __init__(self) -> None:
        self._columns: dict[Parts, Column] = {}
        self._held: dict[Expression, Mask] = {}
        self._asked: dict[Expression, Mask] = {}

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    @abstractmethod
    def type_codes(self) -> npt.NDArray[np.int32]:
        """The place of each row's type among the declared types, -1 if it is none of them."""

    @cached_property
    @abstractmethod
    def ids(self) -> pa.Array: ...

    @abstractmethod
    def _column(self, parts: Parts) -> Column: ...

    @abstractmethod
    def event(self, row: int) -> Event: ...

    @abstractmethod
    def since(self, row: int, end: int | None = None) -> Batch:
        """The rows from this one on, or up to an end, as a batch of their own."""

    def column(self, parts: Parts) -> Column:
        """What a name stands for in each row."""
        if parts not in self._columns:
            self._columns[parts] = self._column(parts)
        return self._columns[parts]

    def holds(self, predicate: Expression, wanted: Callable[[], Mask]) -> Mask:
        """The rows of which a predicate holds; only what it says of the wanted rows counts.

        Which rows are wanted is asked for where the predicate is evaluated row by row.
        """
        held = self._held.get(predicate)
        if held is None:
            try:
                found = outcomes(predicate, self.column, len(self))
            except NotInColumnsError:
                held = np.zeros(len(self), np.bool_)
                self._asked[predicate] = np.zeros(len(self), np.bool_)
            else:
                if found.kind != "boolean":
                    held = np.zeros(len(self), np.bool_)
                elif found.errors is None:
                    held = found.values
                else:
                    held = found.values & ~found.errors
            self._held[predicate] = held
        asked = self._asked.get(predicate)
        if asked is not None:
            rows = np.flatnonzero(wanted() & ~asked)
            values = values_by_row(predicate, self.column, rows)
            held[rows] = [value is True for value in values]
            asked[rows] = True
        return held

    def rows_of_types(self, accepted: npt.NDArray[np.bool_]) -> Mask:
        """The rows of these types; `accepted` has a place for each type and one for all others."""
        return accepted[self.type_codes]


class EventBatch(Batch):
    """Events that are in Python already, each of them conformed."""

    def __init__(self, events: Sequence[Event], types: TypeSystem) -> None:
        super().__init__()
        self.events = events
        self.types = types
        self.times = np.fromiter((event.time for event in events), np.int64, len(events))

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        places = {name: place for place, name in enumerate(self.types.types)}
        found = (places.get(event.type, -1) for event in self.events)
        return np.fromiter(found, np.int32, len(self.events))

    @cached_property
    def ids(self) -> pa.Array:
        return pa.array([event.id for event in self.events], pa.string())

    def _column(self, parts: Parts) -> Column:
        return column_of([EventScope(event).lookup(parts) for event in self.events])

    def event(self, row: int) -> Event:
        return self.events[row]

    def since(self, row: int, end: int | None = None) -> EventBatch:
        return EventBatch(self.events[row:end], self.types)


class TableBatch(Batch):
    """Rows in plain columns, all of which fit their types.

    `places` says where each row stands in its chunk, which reads rows as events.
    """

    def __init__(
        self,
        rows: pa.RecordBatch,
        reading: TableReading,
        times: Instants,
        type_codes: npt.NDArray[np.int32],
        chunk: Chunk,
        places: Rows,
    ) -> None:
        super().__init__()
        self.rows = rows
        self.types = reading.types
        self.times = times
        self._reading = reading
        self._type_codes = type_codes
        self._chunk = chunk
        self._places = places
        self.held_bytes = chunk.held_bytes

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return self._type_codes

    @cached_property
    def ids(self) -> pa.Array:
        return self._context("id")

    @cached_property
    def _present_types(self) -> list[str]:
        present = present_codes(self.type_codes, len(self.types.types))
        return [name for name, is_there in zip(self.types.types, present, strict=True) if is_there]

    def _column(self, parts: Parts) -> Column:
        name = ".".join(parts)
        places = dict(self._reading.layout.attributes)
        extensions = dict(self._reading.layout.extensions)
        if len(parts) > 1:
            is_hidden = self._chunk.has_other_data
            candidates = [False, name in places]
        else:
            match name:
                case "id" | "source" | "type":
                    return Column("string", plain_text(self._context(name)))
                case "time":
                    return Column("timestamp", self.times)
                case "specversion":
                    return Column("string", pa.array(["1.0"] * len(self), pa.string()))
            is_hidden = self._chunk.has_other_data or self._chunk.has_extensions
            candidates = [name in extensions, name in places]
            lower = name.lower()
            if lower != name:
                known = lower in extensions or lower in CONTEXT or self._chunk.has_extensions
                candidates.append(known)
        if sum(candidates) > 1 or (sum(candidates) == 1 and not any(candidates[:2])):
            return self._by_event(parts)
        if candidates[0]:
            column = arrow_column(self.rows.column(extensions[name]))
        elif candidates[1]:
            column = self._attribute(name, self.rows.column(places[name]))
        else:
            return self._by_event(parts) if is_hidden else absent(len(self))
        return column if column is not None else self._by_event(parts)

    def _context(self, name: str) -> pa.Array:
        return self.rows.column(self._reading.layout.context[name])

    def _attribute(self, name: str, array: pa.Array) -> Column | None:
        """The values as conforming leaves them: an integer in a real attribute becomes a real."""
        column = attribute_column(array)
        if column is None:
            return None
        # What holds of all declared types holds of those that are there.
        if self._kinds(name, column.kind, self.types.types) <= {column.kind}:
            return column
        kinds = self._kinds(name, column.kind, self._present_types)
        if kinds <= {column.kind}:
            return column
        if kinds == {"real"} and column.kind == "integer":
            return Column("real", column.values.astype(np.float64), column.missing)
        if kinds == {"integer"} and column.kind == "real":
            with np.errstate(invalid="ignore"):
                return Column("integer", column.values.astype(np.int64), column.missing)
        return None

    def _kinds(self, name: str, given: str, types: Iterable[str]) -> set[str]:
        """The kinds that types give to a name; a type that does not declare it has the given."""
        every = (self.types.attributes(each) for each in types)
        return {declared[name].kind if name in declared else given for declared in every}

    def _by_event(self, parts: Parts) -> Column:
        known = self.type_codes >= 0
        return column_of(
            [
                EventScope(event).lookup(parts) if declared else MISSING
                for event, declared in zip(self._all_events, known.tolist(), strict=True)
            ]
        )

    @cached_property
    def _all_events(self) -> list[Event]:
        return self.events(np.arange(len(self)))

    def event(self, row: int) -> Event:
        return self.events(np.array([row]))[0]

    def since(self, row: int, end: int | None = None) -> TableBatch:
        return TableBatch(
            self.rows[row:end],
            self._reading,
            self.times[row:end],
            self._type_codes[row:end],
            self._chunk,
            self._places[row:end],
        )

    def events(self, rows: Rows) -> list[Event]:
        return [each for each in self._chunk.singly(self._places[rows]) if isinstance(each, Event)]


class AlarmBatch(Batch):
    """Firings of timers. Each has a time, and nothing else."""

    def __init__(self, times: Instants, types: TypeSystem) -> None:
        super().__init__()
        self.times = times
        self.types = types

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return np.full(len(self), -1, np.int32)

    @cached_property
    def ids(self) -> pa.Array:
        return pa.nulls(len(self), pa.string())

    def _column(self, parts: Parts) -> Column:
        if len(parts) == 1 and parts[0].lower() == "time":
            return Column("timestamp", self.times)
        return absent(len(self))

    def since(self, row: int, end: int | None = None) -> AlarmBatch:
        return AlarmBatch(self.times[row:end], self.types)

    def event(self, row: int) -> Event:
        """Stands in the place of an event; it is never sent on."""
        return Event("", "", "", int(self.times[row]))
