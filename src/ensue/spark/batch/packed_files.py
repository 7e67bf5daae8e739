"""A library over files that workers open themselves: read once, and packed for the shuffle.

In come parts of files (`file_parts`) and a job; out go outputs as `files.FileOutputs` gives them.
The parts are read in one pass, whose packs executors keep until `close`; it tells how many events
and rejected records there are and how far the clock comes, so that another way of reading is known
to be needed before any rule runs. Rules whose events SQL cannot choose, or that read outputs of
others, are left to `files`.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.timing.agreeing import TimeRun, TimeRuns
from ensue.engine.timing.jumps import UNBOUNDED, check_advance
from ensue.lang.derived.wanted import types_read
from ensue.spark.batch.job import Job, shuffle_partitions
from ensue.spark.batch.rejected import RejectedRecords, numbered_lines
from ensue.spark.plan import RuleGroup
from ensue.spark.sql.scan import Scan
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.column_parts import ColumnsTask
from ensue.spark.worker.files.file_parts import FilePart, count_lines
from ensue.spark.worker.files.line_chunks import (
    NEEDS_EVENT,
    NEEDS_NUMBER,
    OPEN_QUOTE,
    LinesTask,
)
from ensue.spark.worker.packs.packed_runs import OUTPUT_PACKS_DDL, run_packs, run_packs_to_packs
from ensue.spark.worker.packs.packing import (
    PACKS_DDL,
    REJECTED,
    TOLD,
    GroupPacks,
    PackTask,
    pack_columns,
    pack_lines,
)
from ensue.spark.worker.packs.storage import PACK_COLUMNS
from ensue.spark.worker.remote_call import for_workers
from ensue.spark.worker.tasks import GroupTask

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MOST_BATCH_BYTES = str(32 << 20)
"""A pack is a row of megabytes, of which Spark would else hand over ten thousand at once."""


@dataclass(frozen=True)
class FilesInParts:
    """Files in parts, and how they are read.

    `columns` are the columns that workers make of them. `as_rows` has Spark read the files.
    """

    spark: SparkSession
    parts: tuple[FilePart, ...]
    task: LinesTask | ColumnsTask
    columns: frozenset[str]
    format: str
    max_jump: float
    as_rows: Callable[[], Any]


def lines_before(
    spark: SparkSession, parts: Sequence[FilePart]
) -> tuple[tuple[str, int, int], ...]:
    """How many lines of its file come before each part; a pass over the bytes of the files."""
    if all(part.begin == 0 for part in parts):
        return tuple((part.file, 0, 0) for part in parts)
    read = for_workers(count_lines, tuple(map(tuple, parts)))
    ddl = "rank bigint, start bigint, lines bigint"
    rows = numbers(spark, len(parts)).mapInArrow(read, ddl).collect()
    counted = {(row["rank"], row["start"]): row["lines"] for row in rows}
    found: list[tuple[str, int, int]] = []
    done = 0
    for part in parts:
        done = 0 if part.begin == 0 else done
        found.append((part.file, part.begin, done))
        done += counted.get((part.rank, part.begin), 0)
    return tuple(found)


def numbers(spark: SparkSession, count: int) -> DataFrame:
    """A row for each part, in a partition of its own."""
    return spark.range(0, count, 1, max(1, count))


def can_be_packed(job: Job, given: FilesInParts) -> bool:
    """Whether the columns that workers make of files hold all that the rules of a job read."""
    for group in _wanted(job):
        scan = job.scans[group.number]
        if not isinstance(scan, Scan) or group.fed_by:
            return False
        if not {name for name, _ in scan.shuffled} <= given.columns:
            return False
        if not all(each.is_plain for each in scan.keys):
            return False
    return True


def _wanted(job: Job) -> list[RuleGroup]:
    selected = set(job.plan.selected)
    return [g for g in job.plan.groups if any(rule.name in selected for rule in g.rules)]


def _folder_for_packs(spark: SparkSession) -> str | None:
    """A new folder that all workers see; None if some may be on other machines.

    Spark removes it when the session ends, if `close` has not.
    """
    if not re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or ""):
        return None
    return tempfile.mkdtemp(prefix="packs-", dir=SparkFiles.getRootDirectory())


class PackedRun:
    """The packs of a job over parts of files. They are made when what they tell is first asked."""

    def __init__(self, job: Job, given: FilesInParts) -> None:
        self._job = job
        self._given = given
        self._max_jump = given.max_jump
        self._spark = given.spark
        self._batch_bytes = self._spark.conf.get(BATCH_BYTES, None)
        self._spark.conf.set(BATCH_BYTES, MOST_BATCH_BYTES)
        read = tuple(sorted(types_read(job.plan.library)))
        groups = tuple(tuple(self._packs_of(group)) for group in _wanted(job))
        parts = tuple(map(tuple, given.parts))
        self._folder = _folder_for_packs(self._spark)
        task = PackTask(tuple(given.task), parts, groups, read, given.max_jump, self._folder)
        rows = numbers(self._spark, len(parts))
        pack = pack_lines if isinstance(given.task, LinesTask) else pack_columns
        self._packs = rows.mapInArrow(for_workers(pack, task), PACKS_DDL).persist()

    def _packs_of(self, group: RuleGroup) -> GroupPacks:
        scan = self._scan(group)
        packed = self._job.packed_types(scan)
        names = tuple(name for name, _ in scan.shuffled if not (packed and name == "type"))
        keys = tuple(name for each in scan.keys for name in each.names)
        buckets = self._partitions if keys else 1
        return GroupPacks(group.number, names, keys, scan.types, buckets, bool(packed))

    def _scan(self, group: RuleGroup) -> Scan:
        scan = self._job.scans[group.number]
        assert isinstance(scan, Scan)
        return scan

    @cached_property
    def _partitions(self) -> int:
        return self._job.partitions or shuffle_partitions(self._job.events)

    # --- what the parts tell ----------------------------------------------------------------------

    @cached_property
    def _told(self) -> list[Mapping[str, Any]]:
        rows = self._packs.filter(sf.col("group") == TOLD).select("told").collect()
        return [json.loads(row["told"]) for row in rows]

    @property
    def suffices(self) -> bool:
        """Whether packs hold all that there is to tell: columns do not tell why they are wrong."""
        if isinstance(self._given.task, LinesTask):
            return True
        return not self.found["rejected"] and not self.found["needs_event"]

    @cached_property
    def found(self) -> Mapping[str, Any]:
        """The counts of records, as `files.FileOutputs` asks for them."""
        names = {
            "events": "events",
            "rejected": "rejected",
            "open": OPEN_QUOTE,
            "needs_event": NEEDS_EVENT,
            "needs_number": NEEDS_NUMBER,
            "no_offset": "no_offset",
            "unread": "unread",
        }
        found: dict[str, Any] = {
            name: sum(each.get(key) or 0 for each in self._told) for name, key in names.items()
        }
        types = [each["unread_type"] for each in self._told if each["unread_type"] is not None]
        found["unread_type"] = max(types, default=None)
        if self._reach is not None:
            # What is rejected for its time is told as a whole, which columns are not.
            found["needs_event"] += found["events"] - self._reach.events
        return found

    @cached_property
    def _reach(self) -> TimeRun | None:
        """The times between which the clock goes, where it may not jump everywhere."""
        if self._max_jump == UNBOUNDED:
            return None
        runs = TimeRuns(self._max_jump)
        for each in self._told:
            for run in each["runs"]:
                runs.add(*run)
        return runs.largest()

    @property
    def latest(self) -> int | None:
        """The time of the last event."""
        times = [each["latest"] for each in self._told if each["latest"] is not None]
        return max(times, default=None)

    @property
    def types(self) -> Counter[str]:
        """How many events there are of each type."""
        found: Counter[str] = Counter()
        for each in self._told:
            found.update(each["types"])
        return found

    @cached_property
    def rejected(self) -> RejectedRecords:
        """The rejected records, with the numbers of their lines."""
        lines = {(each["rank"], each["start"]): each.get("lines", 0) for each in self._told}
        before: list[tuple[str, int, int]] = []
        done, rank = 0, -1
        for part in self._given.parts:
            done, rank = (done if part.rank == rank else 0), part.rank
            before.append((part.file, part.begin, done))
            done += lines.get((part.rank, part.begin), 0)
        rows = self._packs.filter(sf.col("group") == REJECTED)
        return RejectedRecords(numbered_lines(rows, before), self._given.format)

    # --- outputs ----------------------------------------------------------------------------------

    def rows(self) -> DataFrame:
        """The outputs, and rows that count events without a key."""
        ddl = self._job.columns.ddl
        return reduce(
            DataFrame.unionAll,
            [
                self._spread(group).mapInArrow(for_workers(run_packs, self._task(group)), ddl)
                for group in _wanted(self._job)
            ],
        )

    def packs(self) -> DataFrame:
        """The outputs in packs, by `OUTPUT_PACKS_DDL`."""

        def made(group: RuleGroup) -> DataFrame:
            task = tuple(self._task(group)), self._folder
            function = for_workers(run_packs_to_packs, task)
            return self._spread(group).mapInArrow(function, OUTPUT_PACKS_DDL)

        return reduce(DataFrame.unionAll, map(made, _wanted(self._job)))

    @property
    def is_here(self) -> bool:
        """Whether packs are files of this machine."""
        return self._folder is not None

    def _task(self, group: RuleGroup) -> GroupTask:
        scan, job = self._scan(group), self._job
        packed = job.packed_types(scan)
        names = [name for name, _ in scan.shuffled if not (packed and name == "type")]
        return job.task._replace(
            group=group.number,
            names=(*names, ARRIVAL),
            nulls=scan.nulls,
            packed=packed,
            clock=self._clock if group.has_timers else None,
        )

    def _spread(self, group: RuleGroup) -> DataFrame:
        """The packs of a group, each in the partition of its bucket."""
        rows = self._packs.filter(sf.col("group") == group.number).select("bucket", *PACK_COLUMNS)
        if self._scan(group).keys:
            return rows.repartitionById(self._partitions, "bucket")
        return rows.repartition(1)

    @property
    def _clock(self) -> int | None:
        """Where the clock stands at the end. Raises `UsageError` if it may not go so far."""
        until = self._job.until
        latest = self.latest if self._reach is None else self._reach.high
        if until is None or latest is None:
            return latest
        if self._reach is not None:
            check_advance(until, latest, self._max_jump)
        return max(latest, until)

    def close(self) -> None:
        self._packs.unpersist()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._batch_bytes is not None:
            self._spark.conf.set(BATCH_BYTES, self._batch_bytes)
        else:
            self._spark.conf.unset(BATCH_BYTES)
