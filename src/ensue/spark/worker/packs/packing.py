"""Events that a worker has read itself, packed for the shuffle: one value for many rows.

In come rows of columns that fit their types; out go, for each group of rules and each partition
behind the shuffle, a pack of the columns that its rules read of the events that it wants
(`storage`), in a row of `PACKS_DDL`. Spark looks at no event. What was counted on the way, and
records that are no events, come out beside them. `packed_runs` takes packs apart.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.timing.agreeing import TimeRuns
from ensue.engine.timing.jumps import UNBOUNDED
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.column_parts import ColumnsReader, ColumnsTask
from ensue.spark.worker.files.file_parts import FilePart, asked_parts, read_part
from ensue.spark.worker.files.line_chunks import MARKS, LinesReader, LinesTask
from ensue.spark.worker.files.line_places import LINE_DDL, LINE_FIELDS
from ensue.spark.worker.packs.packed_types import pack_codes
from ensue.spark.worker.packs.storage import PACK_DDL, PACK_FIELDS, PackWriter, repeated

TOLD, REJECTED = -1, -2
"""What stands in the column `group` of rows that are no packs."""
PACKS_DDL = f"`group` int, bucket int, {PACK_DDL}, told string, {LINE_DDL}"
NO_OFFSET = "the offset is missing"
"""Part of the problem that is said of a time without an offset, where no time zone was given."""
MOST_TYPES = 1000
"""How many types of events a part tells of, the most frequent first."""

_OWN = [
    ("group", pa.int32()),
    ("bucket", pa.int32()),
    *PACK_FIELDS,
    ("told", pa.string()),
]
_SCHEMA = pa.schema([*_OWN, *LINE_FIELDS])

Batches = Iterator[pa.RecordBatch]
ReadPart = Callable[[FilePart, dict[str, Any]], Batches]
"""Reads a part; what else it tells goes into the dictionary."""
Numbers = npt.NDArray[np.uint64]


class GroupPacks(NamedTuple):
    """What a group of rules reads, as plain data.

    `names` are the columns that travel, `keys` the columns that decide on the bucket, one of
    `buckets`, and `types` the types of events. With `packs_types` the type of an event stands in
    its arrival (`packed_types`).
    """

    number: int
    names: tuple[str, ...]
    keys: tuple[str, ...]
    types: tuple[str, ...]
    buckets: int
    packs_types: bool


class PackTask(NamedTuple):
    """Parts of files for a worker, as plain data; `read` has the types that any rule reads.

    `reading` is a `LinesTask` or a `ColumnsTask`; packs are written to `folder`, if there is one.
    """

    reading: tuple[Any, ...]
    parts: tuple[tuple[Any, ...], ...]
    groups: tuple[tuple[Any, ...], ...]
    read: tuple[str, ...]
    max_jump: float = UNBOUNDED
    folder: str | None = None


def pack_lines(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The parts of files of lines whose numbers come in."""
    task = PackTask(*given)
    reader = LinesReader(LinesTask(*task.reading))
    yield from _packed(task, batches, lambda part, told: read_part(reader, part, told))


def pack_columns(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The parts of files of columns whose numbers come in."""
    task = PackTask(*given)
    yield from _packed(task, batches, ColumnsReader(ColumnsTask(*task.reading)).read)


def _packed(task: PackTask, batches: Batches, read: ReadPart) -> Batches:
    groups = [GroupPacks(*each) for each in task.groups]
    for part in asked_parts(task.parts, batches):
        told: dict[str, Any] = {"rank": part.rank, "start": part.begin}
        counted = PartCounts(task.read, task.max_jump)
        with PackWriter(task.folder) as writer:
            for records in read(part, told):
                if "problems" in records.schema.names and records.column("problems")[0].is_valid:
                    counted.add_rejected(records.column("problems"))
                    yield _row_batch({"group": REJECTED}, records)
                    continue
                counted.add_events(records)
                for group in groups:
                    for bucket, rows in wanted_rows(group, records):
                        pack = writer.write(rows)
                        yield _row_batch({"group": group.number, "bucket": bucket, **pack})
        yield _row_batch({"group": TOLD, "told": json.dumps(counted.told() | told)})


class PartCounts:
    """What is known of a part: how many events and rejected records, and the times of events."""

    def __init__(self, read: Sequence[str], max_jump: float) -> None:
        self._read = frozenset(read)
        self._types: Counter[str] = Counter()
        self._runs = TimeRuns(max_jump) if max_jump != UNBOUNDED else None
        self._max_jump = max_jump
        self._latest: int | None = None
        self._problems: Counter[str] = Counter()

    def add_events(self, rows: pa.RecordBatch) -> None:
        for each in pc.value_counts(rows.column("type")).to_pylist():
            self._types[each["values"]] += each["counts"]
        times = rows.column("time").cast(pa.int64()).to_numpy()
        latest = int(times.max())
        self._latest = latest if self._latest is None else max(self._latest, latest)
        if self._runs is not None:
            times = np.sort(times)
            ends = np.flatnonzero(np.diff(times) > self._max_jump) + 1
            bounds = [0, *ends.tolist(), len(times)]
            for first, end in pairwise(bounds):
                self._runs.add(int(times[first]), int(times[end - 1]), end - first)

    def add_rejected(self, problems: pa.Array) -> None:
        self._problems["rejected"] += len(problems)
        for mark in MARKS:
            self._problems[mark] += int(pc.sum(pc.equal(problems.flatten(), mark)).as_py() or 0)
        found = pc.match_substring(pc.binary_join(problems, " "), NO_OFFSET)
        self._problems["no_offset"] += int(pc.sum(found).as_py() or 0)

    def told(self) -> dict[str, Any]:
        unread = [name for name in self._types if name not in self._read]
        return {
            **self._problems,
            "events": self._types.total(),
            "unread": sum(self._types[name] for name in unread),
            "unread_type": max(unread, default=None),
            "types": dict(self._types.most_common(MOST_TYPES)),
            "latest": self._latest,
            "runs": [] if self._runs is None else [list(each) for each in self._runs.merge()],
        }


def wanted_rows(group: GroupPacks, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The columns of the rows that a group wants, for each bucket that gets any."""
    codes = _codes(rows.column("type"), pa.array(group.types, pa.string()))
    wanted = codes >= 0
    if not wanted.any():
        return
    arrivals = rows.column(ARRIVAL).to_numpy()
    if group.packs_types:
        arrivals = pack_codes(arrivals, codes)
    columns = [_plain(rows.column(name)) for name in group.names]
    packed = pa.RecordBatch.from_arrays(
        [*columns, pa.array(arrivals)], names=[*group.names, ARRIVAL]
    )
    places = np.flatnonzero(wanted)
    if group.buckets == 1:
        yield 0, packed if len(places) == len(codes) else packed.take(pa.array(places))
        return
    keys = [_plain(rows.column(name)) for name in group.keys]
    buckets = bucket_numbers(keys, group.buckets)[places]
    # Short integers are sorted digit by digit, which takes no comparison.
    width = np.uint16 if group.buckets <= np.iinfo(np.uint16).max else np.int64
    order = np.argsort(buckets.astype(width), kind="stable")
    taken = packed.take(pa.array(places[order]))
    first = 0
    for bucket, count in enumerate(np.bincount(buckets).tolist()):
        if count:
            yield bucket, taken.slice(first, count)
            first += count


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _codes(types: pa.Array, known: pa.Array) -> Any:
    """The place of each row's type among the known types, -1 for any other type."""
    if not pa.types.is_dictionary(types.type):
        return pc.index_in(types, known).fill_null(-1).to_numpy()
    codes = _codes(types.dictionary.cast(pa.string()), known)
    return codes[types.indices.to_numpy()] if len(codes) else np.full(len(types), -1, np.int32)


def _row_batch(values: Mapping[str, Any], records: pa.RecordBatch | None = None) -> pa.RecordBatch:
    """One row of `PACKS_DDL`, or one for each of the records."""
    count = 1 if records is None else records.num_rows
    arrays = []
    for field in _SCHEMA:
        value = values.get(field.name)
        if value is None and records is not None and field.name in records.schema.names:
            arrays.append(records.column(field.name))
        else:
            arrays.append(repeated(value, count, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


# --- buckets ------------------------------------------------------------------------------------


def bucket_numbers(keys: Sequence[pa.Array], buckets: int) -> npt.NDArray[np.int64]:
    """For each row a number below `buckets`, equal for equal keys in every process.

    Rows that lack a part of their key, which workers only count, are all in one bucket.
    """
    mixed = np.zeros(len(keys[0]), np.uint64)
    lacking = np.zeros(len(keys[0]), np.bool_)
    for key in keys:
        mixed = _mixed(mixed ^ _key_numbers(key))
        if key.null_count:
            lacking |= key.is_null().to_numpy(zero_copy_only=False)
    mixed[lacking] = 0
    found: npt.NDArray[np.int64] = (mixed % np.uint64(buckets)).astype(np.int64)
    return found


def _key_numbers(key: pa.Array) -> Numbers:
    if pa.types.is_string(key.type):
        coded = key.dictionary_encode()
        texts = coded.dictionary.cast(pa.binary()).to_pylist()
        numbers = np.array([zlib.crc32(each) for each in texts] or [0], np.uint64)
        places = coded.indices.fill_null(0).to_numpy()
        held: Numbers = numbers[places]
        return held
    if pa.types.is_timestamp(key.type):
        key = key.cast(pa.int64())
    # To rules 1 and 1.0 are one key; adding zero turns -0.0 into 0.0.
    reals = key.fill_null(False if pa.types.is_boolean(key.type) else 0)
    found: Numbers = (reals.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0).view(np.uint64)
    return found


def _mixed(numbers: Numbers) -> Numbers:
    """Numbers in which every bit depends on all bits of those given (SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
