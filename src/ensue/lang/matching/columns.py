"""The predicates that hold for many events at once: an Arrow table, or a list of events.

The buckets and cells of a value are found once for each distinct value of a name. A column of
numbers that is only compared with numbers needs not even that. The compiled loops then go over the
events, chunk by chunk. `ensue.events.columns` says what the columns of a table are. A name whose
column is not plain (nested data, times, extensions) is read from the event of a row, and so is
every name in an atom that only evaluation can decide.

The module is long because one loop fills the cells of a chunk of events, the buckets of their
values, and the room for its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.arrow import events_of
from ensue.events.columns import DATA_COLUMN, extension_column, is_attribute_column
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.asking import AskingScope
from ensue.lang.expressions.scopes import MISSING, EventScope, Scope
from ensue.lang.expressions.tree import ConceptTerm, TemporalTerm
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.lang.matching.attribute import AttributeIndex
from ensue.lang.matching.index import PredicateIndex
from ensue.lang.matching.packed import kernels as k
from ensue.lang.matching.tests import Parts

CHUNK = 32_768
_walk_rows: Any = k.walk_rows
_stab_rows: Any = k.stab_rows


def match_columns(index: PredicateIndex, given: Any) -> Iterator[tuple[Any, Any, int]]:
    """For each chunk: positions of events, the predicate that holds for each, and its size.

    Positions count from the first event of the chunk and ascend; a pair of position and predicate
    comes once.
    """
    source = _Events(given) if isinstance(given, Sequence) else _TableRows(given)
    known = _FactCache(index)
    for begin in range(0, len(source), CHUNK):
        chunk = source.slice(begin, CHUNK)
        positions, numbers = _Chunk(index, chunk, known).match()
        yield positions, numbers, len(chunk)


class _Events:
    """A list of events as the source of chunks."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    def slice(self, begin: int, count: int) -> _Events:
        return _Events(self._events[begin : begin + count])

    def event(self, row: int) -> Event:
        return self._events[row]

    def column(self, attribute: AttributeIndex) -> Any:  # noqa: ARG002 - as for rows
        """A plain Arrow column for a name, where there is one."""
        return None

    def values(self, attribute: AttributeIndex) -> list[Any]:
        return [attribute.read(event) for event in self._events]


class _TableRows:
    """An Arrow table as the source of chunks; a row becomes an event when one is needed."""

    def __init__(self, table: Any, offset: int = 0) -> None:
        self._table = pa.table(table) if not isinstance(table, pa.Table) else table
        self._offset = offset
        self._names = set(self._table.column_names)
        self._all: list[Event] | None = None
        self._columns: dict[Parts, Any] = {}
        self.event = lru_cache(maxsize=None)(self._event)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def slice(self, begin: int, count: int) -> _TableRows:
        return _TableRows(self._table.slice(begin, count), self._offset + begin)

    def _event(self, row: int) -> Event:
        if self._all is not None:
            return self._all[row]
        return next(events_of(self._table.slice(row, 1), TypeSystem()))

    def column(self, attribute: AttributeIndex) -> Any:
        if attribute.parts not in self._columns:
            self._columns[attribute.parts] = self._find(attribute)
        return self._columns[attribute.parts]

    def _find(self, attribute: AttributeIndex) -> Any:
        name, *further = attribute.parts
        is_text = name in ("type", "source") and name in self._names
        if further or (not is_text and not self._is_plain(name)):
            return None
        column = self._table.column(name)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        kind = column.type
        if is_text:
            return column if pa.types.is_string(kind) and not column.null_count else None
        plain = (
            pa.types.is_signed_integer(kind)
            or pa.types.is_float64(kind)
            or pa.types.is_string(kind)
            or pa.types.is_boolean(kind)
            or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type))
        )
        return column if plain else None

    def _is_plain(self, name: str) -> bool:
        """Whether a name is read from the column of that name only."""
        return (
            name in self._names
            and is_attribute_column(name)
            and DATA_COLUMN not in self._names
            and extension_column(name) not in self._names
            and name == name.lower()
        )

    def values(self, attribute: AttributeIndex) -> list[Any]:
        if self._all is None:
            self._all = list(events_of(self._table, TypeSystem()))
        return [attribute.read(event) for event in self._all]


class _ValueFacts(NamedTuple):
    """What an index knows of one value of a name: its buckets, its cells, and its intervals."""

    buckets: list[int]
    cells: list[float]
    odd: bool
    stabbed: list[tuple[Any, float]]


class _FactCache:
    """The facts of values, for as long as the index does not change."""

    def __init__(self, index: PredicateIndex) -> None:
        self._index = index
        self._about: dict[Any, _ValueFacts] = {}
        self._scratch = np.tile(k.BLANK, max(1, len(index.by_slot)))

    def of(self, attribute: AttributeIndex, value: Any) -> _ValueFacts:
        # 1, 1.0 and TRUE are equal in Python; a value without a hash is not cached.
        key = (attribute.slot, value.__class__, value)
        try:
            about = self._about.get(key)
        except TypeError:
            return self._look(attribute, value)
        if about is None:
            about = self._about[key] = self._look(attribute, value)
        return about

    def _look(self, attribute: AttributeIndex, value: Any) -> _ValueFacts:
        index = self._index
        buckets: list[int] = []
        attribute.probe(value, buckets, index.ontology)
        begin = attribute.slot * k.CELLS
        odd = attribute.note(value, self._scratch.data, index.codes.by_text)
        cells = self._scratch[begin : begin + k.CELLS].tolist()
        self._scratch[begin : begin + k.CELLS] = k.BLANK
        stabbed: list[tuple[Any, float]] = []
        attribute.stab(value, stabbed)
        return _ValueFacts(list(set(buckets)), cells, odd, stabbed)


class _Chunk:
    def __init__(self, index: PredicateIndex, source: Any, known: _FactCache) -> None:
        self._index = index
        self._source = source
        self._known = known
        count = len(source)
        self._width = k.CELLS * max(1, len(index.by_slot))
        self._facts = np.tile(k.BLANK, (count, max(1, len(index.by_slot))))
        self._odd = np.zeros(count, np.bool_)
        # List 0 has the buckets that every event opens.
        self._opened: list[list[int]] = [list(index.always.values())]
        self._lists: list[Any] = [np.zeros(count, np.int32)]
        self._stabbed: list[tuple[Any, Any, Any]] = []
        self._by_row: dict[int, dict[int, bool | None]] = {}

    def match(self) -> tuple[Any, Any]:
        index = self._index
        for attribute in index.attributes.values():
            column = self._source.column(attribute)
            if column is not None and attribute.is_numeric and _is_number(column.type):
                self._note_numbers(attribute, column)
            else:
                self._note_distinct(attribute, column)
        self._ask()
        positions, entries = self._search()
        keep = self._asked_on(positions, entries)
        positions, numbers = positions[keep], index.storage.predicate[entries[keep] & k.ENTRY]
        # Several conjunctions of a predicate may hold for an event.
        pairs = np.sort(positions.astype(np.int64) << 32 | numbers)
        if len(pairs):
            pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
        return pairs >> 32, pairs & (2**32 - 1)

    def _note_numbers(self, attribute: AttributeIndex, column: Any) -> None:
        """Write the cells of a column of numbers that matters as numbers only."""
        valid = ~np.asarray(column.is_null()) if column.null_count else np.ones(len(column), bool)
        values = np.asarray(pc.fill_null(column, 0))
        reals = values.astype(np.float64)
        cells = self._cells(attribute)
        cells[valid, k.PRESENT] = 1.0
        large = valid & (np.abs(reals) >= EXACT_IN_DOUBLES) if values.dtype.kind == "i" else False
        cells[valid & ~np.asarray(large), k.NUMBER] = reals[valid & ~np.asarray(large)]
        self._odd |= valid & (np.isnan(reals) | large)
        if attribute.present or attribute.by_number or attribute.slot in attribute.absent:
            distinct, inverse = np.unique(reals, return_inverse=True)
            always = list(attribute.present.values())
            found = map(attribute.by_number.get, distinct.tolist())
            opened = [always if each is None else [*always, each] for each in found]
            self._open(attribute, opened, np.where(valid, inverse, -1))
        if len(attribute.numbers):
            self._stabbed.append((attribute.numbers, reals, valid))

    def _note_distinct(self, attribute: AttributeIndex, column: Any) -> None:
        """Write the cells of any column, by the facts of each distinct value."""
        if column is None:
            distinct, codes = _distinct(self._source.values(attribute))
        else:
            distinct, codes = _dictionary(column)
        cells = np.tile(k.BLANK, (len(distinct) + 1, 1))
        odd = np.zeros(len(distinct) + 1, np.bool_)
        known = [self._known.of(attribute, value) for value in distinct]
        opened = [each.buckets for each in known]
        if known:
            cells[:-1] = [each.cells for each in known]
            odd[:-1] = [each.odd for each in known]
        self._cells(attribute)[:] = cells[codes]
        self._odd |= odd[codes]
        self._open(attribute, opened, codes)
        for intervals in (attribute.numbers, attribute.times, attribute.own_times):
            if len(intervals):
                values = np.zeros(len(distinct) + 1)
                valid = np.zeros(len(distinct) + 1, np.bool_)
                for at, each in enumerate(known):
                    for where, number in each.stabbed:
                        if where is intervals:
                            values[at], valid[at] = number, True
                self._stabbed.append((intervals, values[codes], valid[codes]))

    def _cells(self, attribute: AttributeIndex) -> Any:
        begin = attribute.slot * k.CELLS
        return self._facts[:, begin : begin + k.CELLS]

    def _open(self, attribute: AttributeIndex, opened: list[list[int]], codes: Any) -> None:
        """Let events open lists of buckets, by codes; the code -1 stands for a missing value."""
        missing = [attribute.absent[attribute.slot]] if attribute.slot in attribute.absent else []
        if not missing and not any(opened):
            return
        first = len(self._opened)
        self._opened += [*opened, missing]
        self._lists.append((np.where(codes < 0, len(opened), codes) + first).astype(np.int32))

    def _ask(self) -> None:
        """Open the buckets of conjunctions that wait for an atom which only evaluation decides."""
        index = self._index
        if not index.awaited_buckets:
            return
        known: dict[tuple[int, ...], int] = {}
        lists = np.zeros(len(self._source), np.int32)
        for row in range(len(self._source)):
            scope, outcomes = self._scope(row), self._outcomes(row)
            buckets = tuple(index.opened_by_evaluation(scope, outcomes))
            if buckets not in known:
                known[buckets] = len(self._opened)
                self._opened.append(list(buckets))
            lists[row] = known[buckets]
        self._lists.append(lists)

    def _search(self) -> tuple[Any, Any]:
        index, count = self._index, len(self._source)
        storage = index.storage
        sizes = [len(each) for each in self._opened]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        buckets = np.array([each for opened in self._opened for each in opened], np.int32)
        entries = k.Entries(*storage.arrays())
        events = k.FactRows(self._facts.reshape(-1), self._width, self._odd)
        # A list that all events open has a number for each event, too.
        opened = k.Opened(np.stack(self._lists), starts, buckets, storage.heads)
        room = _Room(4 * count + 1024)
        room.fill(count, lambda begin, found: _walk_rows(begin, opened, entries, events, found))
        for held, values, valid in self._stabbed:
            intervals = k.IntervalArrays(*held.arrays())
            stabbed = k.Stabbed(values, valid, np.empty(max(1, intervals.total), np.int64))

            def stab(begin: int, found: Any, of: Any = (stabbed, intervals)) -> Any:
                return _stab_rows(begin, *of, entries, events, found)

            room.fill(count, stab)
        return room.taken()

    def _asked_on(self, positions: Any, entries: Any) -> Any:
        """Which pairs hold after evaluation of the atoms that the loops could not decide."""
        keep = np.ones(len(entries), np.bool_)
        for at in np.flatnonzero(entries > k.ENTRY).tolist():
            row = int(positions[at])
            keep[at] = self._index.entry_holds(
                int(entries[at]), self._scope(row), self._outcomes(row)
            )
        return keep

    def _scope(self, row: int) -> Scope:
        return _RowScope(self._source, row, self._index)

    def _outcomes(self, row: int) -> dict[int, bool | None]:
        return self._by_row.setdefault(row, {})


class _RowScope:
    """One event of a chunk: plain columns are read directly, other names from the event."""

    def __init__(self, source: Any, row: int, index: PredicateIndex) -> None:
        self._source = source
        self._row = row
        self._index = index

    def lookup(self, parts: Parts) -> Any:
        attribute = self._index.attributes.get(parts)
        column = None if attribute is None else self._source.column(attribute)
        if column is None:
            return EventScope(self._source.event(self._row)).lookup(parts)
        value = column[self._row].as_py()
        return MISSING if value is None else value

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        event = self._source.event(self._row)
        return AskingScope(event, self._index.history, self._index.ontology).answer(term)


class _Room:
    """Room for the results of the loops, which grows when it is full."""

    def __init__(self, size: int) -> None:
        self._found = _room(size)
        self._taken: list[tuple[Any, Any]] = []

    def fill(self, count: int, search: Callable[[int, k.FoundRows], tuple[int, int]]) -> None:
        """Search all events. `search` takes an event; it returns the next one and a count."""
        begin = 0
        while begin < count:
            found = self._found
            following, total = search(begin, found)
            self._taken.append((found.events[:total].copy(), found.entries[:total].copy()))
            if following < count:
                self._found = _room(4 * found.entries.size)
            begin = following

    def taken(self) -> tuple[Any, Any]:
        positions, entries = zip(*self._taken, strict=True)
        return np.concatenate(positions), np.concatenate(entries)


def _room(size: int) -> k.FoundRows:
    return k.FoundRows(np.empty(size, np.int32), np.empty(size, np.int64))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_float64(kind))


def _distinct(values: Sequence[Any]) -> tuple[list[Any], Any]:
    """The distinct values, and for each place the number of its value, or -1 if it is missing."""
    known: dict[Any, int] = {}
    distinct: list[Any] = []
    codes = np.empty(len(values), np.int64)
    for at, value in enumerate(values):
        if value is MISSING:
            codes[at] = -1
            continue
        # 1, 1.0 and TRUE are equal in Python; a value without a hash counts as distinct.
        try:
            key: Any = (value.__class__, value)
            code = known.setdefault(key, len(distinct))
        except TypeError:
            code = len(distinct)
        if code == len(distinct):
            distinct.append(value)
        codes[at] = code
    return distinct, codes


def _dictionary(column: Any) -> tuple[list[Any], Any]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return column.dictionary.to_pylist(), codes
