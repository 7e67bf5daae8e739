"""Lines of CSV as rows of typed columns, converted column by column.

In come lines as Spark's text reader gives them; out goes one row a record: typed columns of an
event, or the line with its problems. A line of the usual form (plain cells, canonical numbers and
times in UTC) is parsed and converted by pyarrow, over whole batches. Any other line is read by
`ensue.events.reading` (`line_records`), which alone rejects lines and words their problems. A cell
that holds a line break cannot be read here: its lines have the problem `OPEN_QUOTE`, and the caller
reads the files in another way.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ensue.events.cloudevents import VERSION
from ensue.events.columns import Layout, extension_column, is_attribute_column
from ensue.events.event import Event, Rejected
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.spark.worker.line_places import LINE_FIELDS, LinePlaces, is_first
from ensue.spark.worker.line_records import check_header, csv_records, types_of

_CELL = r'(?:"[^"\r]*"|[^",\r]*)'
_DATE = (
    r"[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = rf"^{_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z$"
_INTEGER = r"^-?[0-9]{1,18}$"
_REAL = r"^-?[0-9]{1,15}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?$"
_LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
_INSTANT = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(pa.string())
_TYPES: Mapping[str, tuple[pa.DataType, str]] = {
    "integer": (pa.int64(), "bigint"),
    "real": (pa.float64(), "double"),
    "boolean": (pa.bool_(), "boolean"),
    "string": (pa.string(), "string"),
    "timestamp": (_INSTANT, "timestamp"),
}

Mask = npt.NDArray[np.bool_]


class CsvTask(NamedTuple):
    """CSV files for a worker, as plain data.

    `library` has the tables of the library, `files` the paths of the files, `header` their first
    line, `names` its cells, and `kinds` the kind of each declared attribute that is a column.
    """

    library: bytes
    files: tuple[str, ...]
    header: bytes
    names: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]


def event_fields(task: CsvTask) -> list[tuple[str, pa.DataType, str]]:
    """The columns of an event by name, each with its type in Arrow and in Spark."""
    layout = Layout.of(task.names, "the file")
    texts = ["id", "source", "type", *(extension_column(name) for name, _ in layout.extensions)]
    fields = [(name, pa.string(), "string") for name in texts]
    fields.append(("time", _INSTANT, "timestamp"))
    kinds = dict(task.kinds)
    return fields + [(name, *_TYPES[kinds.get(name, "string")]) for name, _ in layout.attributes]


def column_kinds(names: Sequence[str], types: TypeSystem) -> tuple[tuple[str, str], ...] | None:
    """The kind of each declared attribute among the columns; None if one column cannot hold it.

    An attribute may be of different kinds in different types, a sequence, or an integer of 64 bits
    without a sign, for none of which there is a column.
    """
    found: dict[str, str] = {}
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in names or not is_attribute_column(name):
                continue
            if type_.kind not in _TYPES or type_.name == "unsigned long long":
                return None
            if found.setdefault(name, type_.kind) != type_.kind:
                return None
    return tuple(found.items())


def read_csv_lines(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Lines with their places as typed events, or with their problems."""
    task = CsvTask(*given)
    reader = _reader(task)
    places = LinePlaces(task.files)
    for batch in batches:
        if batch.num_rows:
            yield from reader.read(places.numbered(batch), batch.column("value"))


@lru_cache(maxsize=16)
def _reader(task: CsvTask) -> CsvReader:
    return CsvReader(task)


class CsvReader:
    """Reads lines of files with one header."""

    def __init__(self, task: CsvTask) -> None:
        self._task = task
        self._types = types_of(task.library)
        self._layout = Layout.of(task.names, "the file")
        self._fields = event_fields(task)
        self._schema = pa.schema(
            [*LINE_FIELDS, *((name, type_) for name, type_, _ in self._fields)]
        )
        width = len(task.names)
        self._usual = rf"^{_CELL}(?:,{_CELL}){{{width - 1}}}\r?$"
        self._attributes = {name for name, _ in self._layout.attributes}

    def read(self, places: pa.Table, lines: pa.Array) -> list[pa.RecordBatch]:
        """The records in lines, by `LINE_FIELDS` and the fields of events."""
        is_header = is_first(places)
        for number in np.flatnonzero(is_header).tolist():
            check_header(lines[number].as_py(), self._task.names)
        texts = _as_text(lines)
        usual = _mask(pc.match_substring_regex(texts, self._usual)) & ~is_header
        # A line without any cell is no record.
        usual &= ~_mask(pc.match_substring_regex(texts, r"^\s*$"))
        rows = np.flatnonzero(usual)
        table = self._parse(texts.take(pa.array(rows)))
        columns, fits = self._convert(table)
        kept = rows[fits]
        events = pa.table(columns).filter(pa.array(fits))
        others = np.setdiff1d(np.flatnonzero(~is_header), kept, assume_unique=True)
        found = [self._events(places.take(pa.array(kept)), events)]
        if len(others):
            found.append(self._read_singly(places.take(pa.array(others)), lines, others))
        batches: list[pa.RecordBatch] = pa.concat_tables(found).combine_chunks().to_batches()
        return batches

    # --- lines of the usual form ------------------------------------------------------------------

    def _parse(self, texts: pa.Array) -> pa.Table:
        """The cells as text, null where they are empty."""
        names = [str(number) for number in range(len(self._task.names))]
        types = dict.fromkeys(names, pa.string())
        if not len(texts):
            return pa.table({name: pa.array([], pa.string()) for name in names})
        ended = pc.binary_join_element_wise(texts, "\n", "")
        table = pa_csv.read_csv(
            io.BytesIO(b"".join(ended.to_pylist()) if ended.offset else _data(ended)),
            pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 26),
            pa_csv.ParseOptions(),
            pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
        assert len(table) == len(texts), "a line of the usual form is one row"
        return table

    def _convert(self, cells: pa.Table) -> tuple[dict[str, Any], Mask]:
        """The columns of events, and which rows surely are events that fit their types."""
        context = {
            name: _present(cells.column(place)) for name, place in self._layout.context.items()
        }
        fits = np.ones(len(cells), np.bool_)
        for name in ("id", "type"):
            fits &= _mask(pc.is_valid(context[name]))
        if "specversion" in context:
            version = context["specversion"]
            fits &= _mask(pc.fill_null(pc.equal(version, VERSION), True))
        time, timely = _instants(context["time"])
        fits &= timely & _mask(pc.is_valid(context["time"]))
        columns: dict[str, Any] = {name: context[name] for name in ("id", "type")}
        columns["source"] = context.get("source", pa.nulls(len(cells), pa.string()))
        columns["time"] = time
        for name, place in self._layout.extensions:
            columns[extension_column(name)] = _present(cells.column(place))
        kinds = dict(self._task.kinds)
        good: dict[str, Mask] = {}
        for name, place in self._layout.attributes:
            column, good[name] = _CONVERSIONS[kinds.get(name, "string")](
                _present(cells.column(place))
            )
            columns[name] = column
        return columns, fits & self._fit_types(context["type"], columns, good)

    def _fit_types(
        self, type_column: Any, columns: Mapping[str, Any], good: Mapping[str, Mask]
    ) -> Mask:
        """Whether every row fits the type that it names, if the library declares that."""
        fits = np.ones(len(type_column), np.bool_)
        for name in pc.unique(type_column).to_pylist():
            if name is None or name not in self._types:
                continue
            of_type = _mask(pc.fill_null(pc.equal(type_column, name), False))
            for attribute, type_ in self._types.attributes(name).items():
                if attribute not in self._attributes:
                    fits &= ~of_type
                    continue
                fitting = good[attribute] & _in_range(columns[attribute], type_)
                fits &= ~of_type | fitting
        return fits

    # --- other lines ------------------------------------------------------------------------------

    def _read_singly(self, places: pa.Table, lines: pa.Array, rows: Any) -> pa.Table:
        sources = places.column("source").to_pylist()
        others = lines.take(pa.array(rows)).to_pylist()
        read = csv_records(others, sources, self._task, self._types)
        kept = [number for number, record in enumerate(read) if record is not None]
        records = [record for record in read if record is not None]
        events = [record if isinstance(record, Event) else None for record in records]
        columns: dict[str, Any] = {}
        for name, type_, _ in self._fields:
            values = [None if each is None else self._value(each, name) for each in events]
            column = pa.array(values, pa.int64() if type_ == _INSTANT else type_)
            columns[name] = column.cast(type_)
        rejected = [record if isinstance(record, Rejected) else None for record in records]
        found = places.take(pa.array(kept, pa.int64()))
        return self._table(
            found,
            columns,
            pa.array([None if each is None else each.raw for each in rejected], pa.binary()),
            pa.array(
                [None if each is None else list(each.problems) for each in rejected],
                _TEXTS,
            ),
        )

    def _value(self, event: Event, name: str) -> Any:
        if name in ("id", "source", "type", "time"):
            return getattr(event, name)
        if is_attribute_column(name):
            declared = self._types.attributes(event.type).get(name)
            kind = dict(self._task.kinds).get(name)
            value = event.attributes.get(name)
            if declared is None and kind not in (None, "string"):
                # Of another type, where the cell is text that no rule reads.
                return None
            return _microseconds(value) if kind == "timestamp" else value
        return event.extensions.get(name.removeprefix("ce_"))

    # --- rows -------------------------------------------------------------------------------------

    def _events(self, places: pa.Table, events: pa.Table) -> pa.Table:
        columns = {name: events.column(name) for name, _, _ in self._fields}
        columns["source"] = pc.coalesce(columns["source"], places.column("source"))
        raw, problems = pa.nulls(len(events), pa.binary()), pa.nulls(len(events), _TEXTS)
        return self._table(places, columns, raw, problems)

    def _table(
        self, places: pa.Table, columns: Mapping[str, Any], raw: Any, problems: Any
    ) -> pa.Table:
        given = {**{name: places.column(name) for name in places.schema.names}, **columns}
        given |= {"raw": raw, "problems": problems}
        return pa.Table.from_arrays(
            [given[field.name] for field in self._schema], schema=self._schema
        )


def _as_text(lines: pa.Array) -> pa.Array:
    """The lines as text; a line that is no UTF-8 becomes a form that is not the usual one."""
    try:
        return lines.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(line) for line in lines.to_pylist()], pa.string())


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return '"'


def _data(texts: pa.Array) -> memoryview:
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1)
    return memoryview(data)[ends[0] : ends[-1]]


def _mask(booleans: Any) -> Mask:
    return np.asarray(booleans, np.bool_)


def _present(cells: Any) -> Any:
    """The cells of a column as one array, null where they are empty."""
    array = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    return pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)


def _guarded(cells: Any, pattern: str, type_: pa.DataType) -> tuple[Any, Mask]:
    """The cells that match a pattern as values of a type, and which cells match or are null."""
    matched = pc.match_substring_regex(cells, pattern)
    good = _mask(pc.fill_null(matched, True))
    if not good.all():
        cells = pc.if_else(pc.fill_null(matched, False), cells, pa.scalar(None, pa.string()))
    return cells.cast(type_), good


def _integers(cells: Any) -> tuple[Any, Mask]:
    return _guarded(cells, _INTEGER, pa.int64())


def _reals(cells: Any) -> tuple[Any, Mask]:
    return _guarded(cells, _REAL, pa.float64())


def _instants(cells: Any) -> tuple[Any, Mask]:
    return _guarded(cells, _TIME, _INSTANT)


def _booleans(cells: Any) -> tuple[Any, Mask]:
    lowered = pc.ascii_lower(cells)
    good = pc.is_in(lowered, pa.array(["true", "false"]))
    return pc.equal(lowered, "true"), _mask(good) | _mask(pc.is_null(cells))


def _strings(cells: Any) -> tuple[Any, Mask]:
    return cells, np.ones(len(cells), np.bool_)


_CONVERSIONS = {
    "integer": _integers,
    "real": _reals,
    "boolean": _booleans,
    "string": _strings,
    "timestamp": _instants,
}


def _in_range(column: Any, type_: ValueType) -> Mask | bool:
    """Whether values of the right kind fit a type; nulls do."""
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        if low <= -(10**18) and high >= 10**18:
            return True
        inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
    elif type_.name == "float":
        inside = pc.less(pc.abs(column), _LARGEST_FLOAT)
    elif type_.name == "char":
        inside = pc.equal(pc.utf8_length(column), 1)
    else:
        return True
    return _mask(pc.fill_null(inside, True))


def _microseconds(value: Any) -> int | None:
    return None if value is None else pa.scalar(value, _INSTANT).value
