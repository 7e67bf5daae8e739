"""Lines of JSON and CSV, read in columns as `ensue.events.files` reads them in one process.

In come lines as Spark's text reader gives them; out goes one row a record: typed columns of an
event, or the event as bytes where columns cannot hold what rules ask for, or the record with its
problems. What cannot be read in this way is marked, and the caller reads the files in another way:
a cell with a line break (`OPEN_QUOTE`), a record that has no id while records are not numbered
(`NEEDS_NUMBER`), and an event with an attribute that no column shows (`NEEDS_EVENT`).

The module is long because one reader decides for each record which of these ways it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.batches import TableReading
from ensue.events.columns import EXTENSION_PREFIX, is_attribute_column
from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.files.text.csv_rows import CellChunks
from ensue.events.files.text.json_lines import LineChunks
from ensue.events.mapping import NO_MAPPING, PlainMapping
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.nesting import value_at
from ensue.events.sources import LINES, rest_of_line, zeek
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.line_places import (
    BYTE_ORDER_MARK,
    LINE_FIELDS,
    LinePlaces,
    is_first,
    name_of,
    plain_path,
)
from ensue.spark.worker.files.line_records import bytes_of, check_header, record_batches, types_of

OPEN_QUOTE = "a quote is not closed in its line"
NEEDS_NUMBER = "the record has no id, and its number is not known"
NEEDS_EVENT = "the event has attributes that no column shows"
MARKS = (OPEN_QUOTE, NEEDS_NUMBER, NEEDS_EVENT)

_INSTANT = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(pa.string())
KINDS: Mapping[str, tuple[pa.DataType, str]] = {
    "integer": (pa.int64(), "bigint"),
    "real": (pa.float64(), "double"),
    "boolean": (pa.bool_(), "boolean"),
    "string": (pa.string(), "string"),
    "timestamp": (_INSTANT, "timestamp"),
}
_BLOCK_BYTES = 8_000_000
"""How many bytes of lines are read at a time. Spark hands over ten thousand lines in a batch."""
_UNKNOWN = -(2**62)
"""What stands in for the number of a record that is not known: less than any number of a file."""

Batches = Iterator[pa.RecordBatch]
Rows = npt.NDArray[np.int64]


class LinesTask(NamedTuple):
    """Files of lines for a worker, as plain data.

    `header` has the names of the columns of CSV; with `has_header` they stand in the first line of
    each file, and else that line is a record. `own_cells` has the files, by their plain paths,
    whose delimiter and header are others. `is_zeek` is for logs of Zeek, with `has_fields` if
    their own names are used, and `has_rest` for logs whose last column takes the rest of each line.
    `nulls` are texts that stand for a null. `mapping` is that of the user. `labels` has the files,
    by their plain paths, that are called other than by their names in ids of records without one.
    `fields` has the typed columns to make, each with its kind; without any, events are made in
    bytes. `before` says, by file and start of a block, how many lines of the file come before it;
    without it records are not numbered. With `keeps_raw` events in bytes come with their lines,
    since they may be rejected later.
    """

    library: bytes
    files: tuple[str, ...]
    format: str
    header: tuple[str, ...] = ()
    delimiter: str = ","
    mapping: PlainMapping = NO_MAPPING
    fields: tuple[tuple[str, str], ...] = ()
    before: tuple[tuple[str, int, int], ...] | None = None
    has_header: bool = True
    is_zeek: bool = False
    has_fields: bool = False
    keeps_raw: bool = False
    own_cells: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    has_rest: bool = False
    nulls: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def label_of(self, file: str) -> str:
        """What a file is called in ids."""
        return dict(self.labels).get(plain_path(file), name_of(file))

    @property
    def is_log(self) -> bool:
        """Whether lines are CSV only after cleaning."""
        return self.is_zeek or self.has_rest

    def cells_of(self, file: str) -> tuple[str, tuple[str, ...]]:
        """The delimiter and the header of a file."""
        own = {path: (delimiter, header) for path, delimiter, header in self.own_cells}
        return own.get(plain_path(file), (self.delimiter, self.header))

    def cleaned(self, lines: bytes) -> bytes:
        """Whole lines of a log as CSV. Raises `UsageError` for a log of Zeek of other columns."""
        if self.has_rest:
            return rest_of_line.cleaner(self.delimiter, len(self.header))(lines)
        if self.has_fields:
            zeek.check_fields(lines, self.header)
        return zeek.cleaned(lines)


def read_lines(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Lines with their places as events, or with their problems."""
    task = LinesTask(*given)
    reader = LinesReader(task)
    places = LinePlaces(task.files)
    for batch in _in_large_blocks(batches):
        yield from reader.read(places.numbered(batch), batch.column("value"))


def _in_large_blocks(batches: Batches) -> Batches:
    """The lines in fewer batches: what a batch costs by itself is that of thousands of lines."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _BLOCK_BYTES:
            yield pa.concat_batches(held)
            held, size = [], 0
    if any(each.num_rows for each in held):
        yield pa.concat_batches(held)


@lru_cache(maxsize=16)
def _before(task: LinesTask) -> Mapping[tuple[str, int], int]:
    return {(plain_path(file), start): count for file, start, count in task.before or ()}


class LinesReader:
    """Reads the lines of a task, block by block."""

    def __init__(self, task: LinesTask) -> None:
        self._task = task
        self._types = types_of(task.library)
        self._mapping = UserMapping.from_plain(task.mapping)
        self._readings: dict[tuple[str, ...], TableReading] = {}
        self._chunks: dict[str, LineChunks | CellChunks] = {}
        self._before = _before(task)
        self._schema = pa.schema(
            [*LINE_FIELDS, *((name, KINDS[kind][0]) for name, kind in task.fields)]
        )

    def read(self, places: pa.Table, lines: pa.Array) -> Batches:
        """The records in lines, with their places."""
        files = places.column("file").combine_chunks()
        firsts = np.flatnonzero(is_first(places))
        lines = self._without_firsts(firsts, files, lines.fill_null(b""))
        if self._task.is_log:
            whole = self._task.cleaned(_joined(lines.cast(pa.binary())))
            lines = pa.array(whole.removesuffix(b"\n").split(b"\n"), pa.binary())
        is_blank = np.asarray(pc.equal(_trimmed_lengths(lines), 0))
        codes = np.asarray(files.indices)
        starts = places.column("start").to_numpy()
        changes = np.flatnonzero((codes[1:] != codes[:-1]) | (starts[1:] != starts[:-1])) + 1
        for begin, end in pairwise([0, *changes.tolist(), len(lines)]):
            rows = begin + np.flatnonzero(~is_blank[begin:end])
            file = plain_path(files.dictionary[int(codes[begin])].as_py())
            yield from self._read_block((file, int(starts[begin])), places, lines, rows)

    def _without_firsts(self, firsts: Rows, files: pa.DictionaryArray, lines: pa.Array) -> pa.Array:
        """The lines; the first of a file without its byte order mark, or checked as a header."""
        if not len(firsts):
            return lines
        texts = lines.to_pylist()
        for number in firsts.tolist():
            if self._task.format == LINES or not self._task.has_header:
                texts[number] = texts[number].removeprefix(BYTE_ORDER_MARK)
            else:
                delimiter, header = self._task.cells_of(files[number].as_py())
                check_header(texts[number], header, delimiter)
                texts[number] = b""
        return pa.array(texts, pa.binary())

    def _read_block(
        self, block: tuple[str, int], places: pa.Table, lines: pa.Array, rows: Rows
    ) -> Batches:
        numbers = self._numbers(block, places, rows)
        texts = lines if len(rows) == len(lines) else lines.take(pa.array(rows))
        if self._task.format != LINES:
            is_open = np.asarray(pc.count_substring(texts, '"')) % 2 == 1
            if is_open.any():
                marked: list[Event | Rejected | None] = [
                    Rejected(0, text, (OPEN_QUOTE,))
                    for text in texts.filter(pa.array(is_open)).to_pylist()
                ]
                yield from self._rejected(places, rows[is_open], marked)
                rows, numbers = rows[~is_open], numbers[~is_open]
                texts = texts.filter(pa.array(~is_open))
        if len(rows):
            file, _ = block
            chunk = self._chunk(file, _joined(texts), numbers)
            if chunk is not None:
                yield from self._events(places, rows, chunk)
            else:
                yield from self._read_singly(file, places, rows, texts, numbers)

    def _read_singly(
        self, file: str, places: pa.Table, rows: Rows, texts: pa.Array, numbers: Rows
    ) -> Batches:
        """Lines among which is one that is no record."""
        for at in range(len(rows)):
            chunk = self._chunk(file, _joined(texts.slice(at, 1)), numbers[at : at + 1])
            if chunk is not None:
                yield from self._events(places, rows[at : at + 1], chunk)

    def _numbers(self, block: tuple[str, int], places: pa.Table, rows: Rows) -> Rows:
        """The numbers of lines in their file."""
        if self._task.before is None:
            return np.full(len(rows), _UNKNOWN, np.int64) - np.arange(len(rows))
        lines: Rows = places.column("line").to_numpy()[rows]
        return lines + (self._before.get(block, 0) + 1)

    def _chunk(self, file: str, block: bytes, numbers: Rows) -> Chunk | None:
        """A chunk with a row for each line; None if one of them makes none."""
        reader = self._chunks.get(file)
        if reader is None:
            reader = self._chunks[file] = self._reader(file)
        if isinstance(reader, LineChunks):
            found = reader.chunk(block, numbers)
        else:
            try:
                found, _ = reader.chunk(block, True, numbers)
            except ValueError:
                return None
        return found if len(found) == len(numbers) else None

    def _reader(self, file: str) -> LineChunks | CellChunks:
        label = self._task.label_of(file)
        if self._task.format == LINES:
            return LineChunks(self._types, name_of(file), self._mapping, label=label)
        delimiter, header = self._task.cells_of(file)
        nulls = self._task.nulls
        cells = CellChunks(
            self._types, name_of(file), delimiter, self._mapping, label=label, nulls=nulls
        )
        cells.use_header(list(header))
        return cells

    # --- rows -------------------------------------------------------------------------------------

    def _events(self, places: pa.Table, rows: Rows, chunk: Chunk) -> Batches:
        if not self._task.fields:
            every = np.arange(len(chunk))
            records = [self._numbered(each) for each in chunk.singly(every)]
            lines = chunk.original(every) if self._task.keeps_raw else []
            raws = [bytes_of(each.raw) for each in lines]
            yield from record_batches(places.take(pa.array(rows)), records, raws)
            return
        if chunk.is_clashing:
            yield from self._marked(places, rows, NEEDS_EVENT)
            return
        reading = self._reading(tuple(chunk.rows.schema.names))
        wrong = chunk.doubtful | reading.misfits(chunk.rows, reading.codes(chunk.rows))
        asked = np.flatnonzero(wrong)
        records = chunk.singly(asked) if len(asked) else []
        is_event = np.array([isinstance(each, Event) for each in records], np.bool_)
        if not is_event.all():
            refused = [each for each in records if isinstance(each, Rejected)]
            yield from self._rejected(places, rows[asked[~is_event]], refused)
        if is_event.any():
            events = [each for each in records if isinstance(each, Event)]
            held = self._columns_of(events)
            if held is None:
                yield from self._marked(places, rows[asked[is_event]], NEEDS_EVENT)
            else:
                yield from self._with_ids(places, rows[asked[is_event]], held)
        if not wrong.all():
            kept = np.flatnonzero(~wrong)
            found = chunk.rows if len(kept) == len(rows) else chunk.rows.take(pa.array(kept))
            yield from self._with_ids(places, rows[kept], found)

    def _with_ids(self, places: pa.Table, rows: Rows, found: pa.RecordBatch) -> Batches:
        """Typed rows, but for those whose ids would be numbers that are not known."""
        if self._task.before is None:
            missing = _without_ids(found.column(found.schema.get_field_index("id")))
            if missing.any():
                yield from self._marked(places, rows[missing], NEEDS_NUMBER)
                rows, found = rows[~missing], found.filter(pa.array(~missing))
        if len(rows):
            yield from self._typed(places.take(pa.array(rows)), found)

    def _columns_of(self, events: Sequence[Event]) -> pa.RecordBatch | None:
        """Events that were read singly as columns; None if one of them does not fit in."""
        columns = {}
        try:
            for name, kind in self._task.fields:
                values = [self._value(event, name, kind) for event in events]
                columns[name] = pa.array(values, KINDS[kind][0])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return None
        return pa.RecordBatch.from_pydict(columns)

    def _value(self, event: Event, name: str, kind: str) -> Any:
        if name == "time":
            return event.at
        if name in ("id", "source", "type"):
            return getattr(event, name)
        if not is_attribute_column(name):
            return event.extensions.get(name.removeprefix(EXTENSION_PREFIX))
        if kind != "string" and name not in self._types.attributes(event.type):
            # Of another type, where the value is one that no rule reads.
            return None
        value = value_at(event.data, name)[1] if isinstance(event.data, Mapping) else None
        return value if kind != "string" or isinstance(value, str) else None

    def _reading(self, names: tuple[str, ...]) -> TableReading:
        known = self._readings.get(names)
        if known is None:
            known = self._readings[names] = TableReading(names, self._types)
        return known

    def _numbered(self, record: Event | Rejected) -> Event | Rejected:
        if isinstance(record, Event) and self._task.before is None and _is_unknown(record.id):
            return Rejected(0, b"", (NEEDS_NUMBER,))
        return record

    def _typed(self, places: pa.Table, found: pa.RecordBatch) -> Batches:
        # Where an event stood is asked only of records that are none.
        columns: dict[str, Any] = {ARRIVAL: places.column(ARRIVAL)}
        names = set(found.schema.names)
        columns |= {
            name: found.column(found.schema.get_field_index(name)).cast(KINDS[kind][0])
            if name in names
            else pa.nulls(len(places), KINDS[kind][0])
            for name, kind in self._task.fields
        }
        yield from self._table(columns, len(places))

    def _marked(self, places: pa.Table, rows: Rows, mark: str) -> Batches:
        records: list[Event | Rejected | None] = [Rejected(0, b"", (mark,))] * len(rows)
        yield from self._rejected(places, rows, records)

    def _rejected(
        self, places: pa.Table, rows: Rows, records: Sequence[Event | Rejected | None]
    ) -> Batches:
        taken = places.take(pa.array(rows))
        if not self._task.fields:
            yield from record_batches(taken, records)
            return
        columns = {name: taken.column(name).cast(type_) for name, type_ in LINE_FIELDS[:4]}
        raws = [each.raw if isinstance(each, Rejected) else b"" for each in records]
        columns["raw"] = pa.array([bytes_of(raw) for raw in raws], pa.binary())
        columns["problems"] = pa.array(
            [list(each.problems) if isinstance(each, Rejected) else [] for each in records], _TEXTS
        )
        yield from self._table(columns, len(taken))

    def _table(self, columns: Mapping[str, Any], count: int) -> Batches:
        given = [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in self._schema
        ]
        table = pa.Table.from_arrays(given, schema=self._schema)
        yield from table.combine_chunks().to_batches()


def _trimmed_lengths(lines: pa.Array) -> pa.Array:
    """The lengths of lines without white space around them; they may be no UTF-8."""
    return pc.binary_length(pc.ascii_trim_whitespace(lines.view(pa.string())))


def _joined(texts: pa.Array) -> bytes:
    """The texts as lines."""
    ends = pa.array([0, len(texts)], pa.int32())
    (joined,) = pc.binary_join(pa.ListArray.from_arrays(ends, texts), b"\n").to_pylist()
    return bytes(joined) + b"\n"


def _without_ids(ids: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.match_substring(ids.cast(pa.string()), _UNKNOWN_SIGN))


_UNKNOWN_SIGN = f":{str(_UNKNOWN)[:8]}"


def _is_unknown(identity: str) -> bool:
    return _UNKNOWN_SIGN in identity
