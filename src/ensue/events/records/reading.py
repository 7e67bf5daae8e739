"""Files of events, read record by record: JSON lines, CSV, Parquet and Arrow.

In comes a path, `InputFile`s of `sources` or an open binary file; out goes, for each record in its
order, a conformed `Event`, or a `Rejected` with the record and its problems, so that a bad record
never stops a run. A file that cannot be used at all (it does not exist, it is no Parquet, it has no
column `time`) is a `UsageError`. No file is held in memory as a whole. A single record is read in
`text_record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from ensue.errors import EventError, UsageError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping
from ensue.events.records.overlong import cut_lines
from ensue.events.records.progress import FileProgress, OnProgress
from ensue.events.records.text_record import CellReader, CsvRecords, LineReader
from ensue.events.sources import LINES, InputFile, open_inputs, with_content
from ensue.events.sources.contents import (
    HEAD_BYTES,
    Content,
    Given,
    check_format,
    compression_of,
    content_of,
)
from ensue.events.sources.inputs import size_of
from ensue.events.types import TypeSystem

_PROGRESS_STEP = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_events(
    source: Path | str | Sequence[InputFile] | BinaryIO,
    types: TypeSystem,
    format: str | None = None,  # noqa: A002 - the name that users know from the command line
    *,
    name: str | None = None,
    progress: OnProgress | None = None,
    mapping: Mapping | None = None,
    last: LastRecord | None = None,
) -> Iterator[Event | Rejected]:
    """The records of a file in order: events, and records that are refused.

    `source` may be `-` for the standard input, a folder, a pattern, or `InputFile`s. `format` is
    `jsonl`, `csv`, `parquet` or `arrow`; without it the first bytes and the ending of the file's
    name decide. An open file is `jsonl` unless `format` says otherwise. `name` is the `source` of
    records without one, and `mapping` says what the columns are. `last` is kept up to date with
    the record of `InputFile`s that was read last.
    """
    if isinstance(source, str | Path):
        source = open_inputs([str(source)], format)
    if isinstance(source, list | tuple):
        return read_inputs(source, types, name=name, progress=progress, mapping=mapping, last=last)
    assert not isinstance(source, Sequence)
    format = check_format(format or LINES)  # noqa: A001
    name = name or Path(str(getattr(source, "name", "stream"))).name
    if format in ("parquet", "arrow"):
        from ensue.events.records.parquet import read_arrow, read_parquet

        read = read_parquet if format == "parquet" else read_arrow
        return read(source, name, types, progress, mapping=mapping)
    lines = _measured(source, name, progress)
    return _streamed(lines, Content(format), types, name, mapping)


def read_inputs(
    inputs: Sequence[InputFile],
    types: TypeSystem,
    *,
    name: str | None = None,
    progress: OnProgress | None = None,
    mapping: Mapping | None = None,
    last: LastRecord | None = None,
    bounds: Bounds = BOUNDS,
) -> Iterator[Event | Rejected]:
    """The records of several files, one file after the other.

    A refused record has the number in its own file, and the path of that file. `last` is kept up to
    date with the record that was read last.
    """
    sizes = [each.size for each in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    before = 0
    for each in with_content(inputs):
        told = None if progress is None else FileProgress(progress, before, total)
        if last is not None:
            last.file = None if each.is_stdin else each.path
        for record in _records(each, types, name or each.name, told, mapping, last, bounds):
            yield record if isinstance(record, Event) else _in_file(record, each)
        before += each.size or 0
    if progress:
        progress(before, total)


def read_text(
    lines: Iterable[bytes],
    types: TypeSystem,
    name: str,
    given: Given,
    mapping: Mapping | None = None,
    label: str | None = None,
) -> Iterator[Event | Rejected]:
    """The records of lines that come from elsewhere than a file, each with its line end.

    `label` is the file in ids of records without one, by default `name`. Raises `UsageError` for
    columns of CSV that make no events, and for compressed bytes.
    """
    coming = iter(lines)
    first: list[bytes] = []
    size = 0
    for line in coming:
        first.append(line)
        size += len(line)
        if size >= HEAD_BYTES:
            break
    if first:
        first[0] = first[0].removeprefix(_BYTE_ORDER_MARK)
    head = b"".join(first)
    if (compression := compression_of(head)) is not None:
        raise UsageError(
            f"`{name}` is packed with {compression}, and comes here as it is: pack it with gzip,"
            " and let its name end in `.gz`"
        )
    content = content_of(name, head, given)
    every: Iterator[bytes] = chain(first, coming)
    if content.clean is not None:
        every = map(content.clean, every)
    return _streamed(every, content, types, name, mapping, label=label)


def _in_file(record: Rejected, file: InputFile) -> Rejected:
    return msgspec.structs.replace(record, file=None if file.is_stdin else file.path)


def _records(
    each: InputFile,
    types: TypeSystem,
    name: str,
    told: FileProgress | None,
    mapping: Mapping | None,
    last: LastRecord | None,
    bounds: Bounds,
) -> Iterator[Event | Rejected]:
    if each.format in ("parquet", "arrow"):
        yield from _tables(each, types, name, told, mapping, last)
        return
    with each.open(told) as file:
        lines = _measured(file, each.path, None, bounds)
        yield from _streamed(lines, each.content, types, name, mapping, last, bounds, each.label)


def _unreadable(path: Path | str, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"`{path}` cannot be read: {reason[:1].lower()}{reason[1:]}")


def _streamed(
    lines: Iterator[bytes],
    content: Content,
    types: TypeSystem,
    name: str,
    mapping: Mapping | None,
    last: LastRecord | None = None,
    bounds: Bounds = BOUNDS,
    label: str | None = None,
) -> Iterator[Event | Rejected]:
    """The records of lines; `name` is the `source` of records without one, `label` their file."""
    if content.format == LINES:
        return _json_lines(lines, LineReader(types, name, mapping, last, bounds, label))
    records = CsvRecords(lines, content.delimiter, bounds)
    header = content.header or records.header(name)
    nulls = content.nulls
    reader = CellReader(header, types, name, mapping, last, bounds, label=label, nulls=nulls)
    return _csv_rows(records, reader)


def _measured(
    file: BinaryIO, name: str, progress: OnProgress | None, bounds: Bounds = BOUNDS
) -> Iterator[bytes]:
    """The lines of a file without its byte order mark, with calls of `progress`."""
    total = size_of(file)
    done = told = 0
    try:
        for line in cut_lines(file, bounds):
            # Only before the first line is `done` zero.
            yield line.removeprefix(_BYTE_ORDER_MARK) if done == 0 else line
            done += len(line)
            if progress and done - told >= _PROGRESS_STEP:
                told = done
                progress(done, total)
    except OSError as error:
        raise _unreadable(name, error) from None
    if progress:
        progress(done, total)


def _json_lines(lines: Iterable[bytes], reader: LineReader) -> Iterator[Event | Rejected]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield reader.read(number, line)


def _csv_rows(records: CsvRecords, reader: CellReader) -> Iterator[Event | Rejected]:
    while True:
        try:
            cells = records.next()
        except EventError as error:
            yield Rejected(records.number, records.raw, error.problems)
            continue
        if cells is None:
            return
        yield reader.read(records.number, cells, records.raw)


def _tables(
    each: InputFile,
    types: TypeSystem,
    name: str,
    told: FileProgress | None,
    mapping: Mapping | None,
    last: LastRecord | None,
) -> Iterator[Event | Rejected]:
    # pyarrow takes longer to import than the rest of Ensue, and most runs do not need it.
    from ensue.events.records.parquet import read_arrow, read_parquet

    file = Path(each.path) if each.is_file else each.open()
    progress = None if told is None else told.by_rows(each.size)
    read = read_parquet if each.format == "parquet" else read_arrow
    yield from read(file, name, types, progress, mapping, last, each.label)
