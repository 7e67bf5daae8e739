"""What the measurements on Spark share: a session over two cores, events in files, and its rules.

The events are written once, as Parquet and as CSV in several files, and all that is compared reads
them. The rule is `a ; b ; c` by key, reset by `d`; a fifth of the events is of a type that it does
not want. What is measured is the time on the wall, since a job runs in several processes and on two
cores; what is compared takes turns, after a round that does not count.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ensue.errors import UsageError
from ensue_bench.workload import FIRST_TIME

CORES = 2
FILES = 8
KINDS = ("A", "B", "C", "D", "Other")
TYPES = """
eventtype Event { attribute long Key; attribute double Value; };
eventtype A : Event { }; eventtype B : Event { }; eventtype C : Event { }; eventtype D : Event { };
eventtype Found { attribute long Key; };
"""
NEEDED = ("id", "type", "time", "Key")
"""The columns that the rule needs."""
CSV_SCHEMA = "id string, type string, time timestamp, millis bigint, Key int, Value double"
ONE = "A a, B b, C c, D d"


def rule(name: str, ports: str = ONE, story: str = "a ; b ; c", within: str = "") -> str:
    """A rule by key that `d` resets."""
    return (
        f"Found correlation {name} ({ports}) s:({story}) | d {within} by Key"
        " { case s: push new Found { Key = c.Key }; }\n"
    )


def one_rule() -> str:
    return TYPES + rule("Rule0")


def rules_with_predicates(count: int) -> str:
    """One story over larger and larger values: all but the first fire seldom."""
    texts = [rule("Rule0")]
    texts += [rule(f"Rule{number}", _choosy(number)) for number in range(1, count)]
    return TYPES + "".join(texts)


def rules_with_windows(count: int) -> str:
    """Each in a window of its own length: that of the first holds ten events of a key."""
    texts = [rule("Rule0", within="within 100 s")]
    texts += [
        rule(f"Rule{number}", _choosy(number), within=f"within {100 + number} s")
        for number in range(1, count)
    ]
    return TYPES + "".join(texts)


def _choosy(number: int) -> str:
    """Ports that few events fit; no two numbers below a hundred have the same."""
    first, second = divmod(number, 10)
    return f"A a where Value > {0.9 + first / 100:.2f}, B b where Value > 0.9{second}, C c, D d"


def rules_of_many_lengths(count: int) -> str:
    """Longer and longer stories, no two alike: all but the first few fire seldom."""
    texts = [rule("Rule0")]
    for number in range(1, count):
        story = f"a{{{1 + number // 2}}} ; b{{{1 + (number + 1) // 2}}} ; c"
        texts.append(rule(f"Rule{number}", story=story))
    return TYPES + "".join(texts)


def rules_over_several_events() -> Mapping[str, str]:
    """A condition between two events, and aggregates over a window of ten events of a key."""
    pair = "case true: push new Found { Key = b.Key };"
    counted = "case true: push new Found { Key = f.Key };"
    window = "within 100 s"
    return {
        "`a ; b having`": f"{TYPES}Found correlation Pair (A a, B b) a ; b"
        f" having b.Value < 0.2 * a.Value keep all bind latest by Key {{ {pair} }}\n",
        "`count`": f"{TYPES}Found correlation Counted (Event f) f {window}"
        f" having count(f) > 22 keep all by Key {{ {counted} }}\n",
        "`sum`": f"{TYPES}Found correlation Counted (Event f) f {window}"
        f" having sum(f.Value) > 11.0 keep all by Key {{ {counted} }}\n",
        "`distinct`": f"{TYPES}Found correlation Counted (Event f) f {window}"
        f" having distinct(f.Value) > 22 keep all by Key {{ {counted} }}\n",
    }


MANY: Mapping[str, Callable[[int], str]] = {
    "predicates": rules_with_predicates,
    "lengths": rules_of_many_lengths,
    "windows": rules_with_windows,
}


# --- events -------------------------------------------------------------------------------------


def events(count: int, keys: int, first_id: int = 0, seed: int = 1) -> pa.Table:
    """Events in the order of their times, a millisecond apart, with keys drawn at random."""
    draw = np.random.default_rng(seed)
    kinds = draw.integers(0, len(KINDS), count)
    return event_table(kinds, draw.integers(0, keys, count), draw.random(count), first_id)


def event_table(kinds: Any, keys: Any, values: Any, first_id: int = 0) -> pa.Table:
    """`millis` says the time once more, for readers that take no microseconds from Parquet."""
    numbers = np.arange(first_id, first_id + len(kinds))
    millis = FIRST_TIME // 1000 + numbers
    return pa.table(
        {
            "id": pa.array(numbers).cast(pa.string()),
            "type": pa.array(KINDS).take(pa.array(kinds)),
            "time": pa.array(millis * 1000).cast(pa.timestamp("us", "UTC")),
            "millis": millis,
            "Key": np.asarray(keys, np.int32),
            "Value": np.asarray(values, np.float64),
        }
    )


def write_events(folder: Path, table: pa.Table, files: int = FILES) -> str:
    """The folder, with the events in files that are in order."""
    folder.mkdir(parents=True)
    for number in range(files):
        first, end = (each * len(table) // files for each in (number, number + 1))
        write_file(folder, number, table.slice(first, end - first))
    return str(folder)


def write_csv(folder: Path, table: pa.Table, files: int = FILES) -> str:
    """The folder, with the events in files of CSV that are in order; times are RFC 3339 text."""
    folder.mkdir(parents=True)
    times = pc.strftime(table.column("time"), format="%Y-%m-%dT%H:%M:%SZ")
    table = table.set_column(table.schema.get_field_index("time"), "time", times)
    for number in range(files):
        first, end = (each * len(table) // files for each in (number, number + 1))
        path = folder / f"part-{number:05d}.csv"
        pyarrow.csv.write_csv(table.slice(first, end - first), path)
    return str(folder)


def write_in_step(folder: Path, table: pa.Table) -> str:
    """The folder, with the events in turns in as many files as are read at once, each in order."""
    folder.mkdir(parents=True)
    for number in range(CORES):
        write_file(folder, number, table.take(np.arange(number, len(table), CORES)))
    return str(folder)


def write_file(folder: Path, number: int, table: pa.Table) -> None:
    path = folder / f"part-{number:05d}.parquet"
    pq.write_table(table, path)
    # A stream reads files by their age, which would be the same for several of them.
    os.utime(path, (FIRST_TIME // 10**6 + number,) * 2)


# --- jobs ---------------------------------------------------------------------------------------


@contextmanager
def session() -> Iterator[Any]:
    """The session at hand, or a local one over two cores that ends with the measurement.

    Its settings are Spark's own, but for the memory of a driver that is an executor too, and for
    the partitions of a shuffle: a stream has a store of state in each, with rules by hand too.
    """
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise UsageError("`ensue bench spark` needs Java 17 on the path, and there is none")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError(
            "`ensue bench spark` needs PySpark, and it is not installed: install `ensue[spark]`"
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    started = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("ensue-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .getOrCreate()
    )
    try:
        yield started
    finally:
        started.stop()


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([rows])], names=["rows"])


def scan(frame: Any) -> None:
    """Every value of the columns that the rule needs, read and no more."""
    from pyspark.sql import functions as sf

    frame.agg(*(sf.max(name) for name in NEEDED)).collect()


def hand_over(frame: Any, partitions: int = CORES, names: Sequence[str] = NEEDED) -> None:
    """The least that a job in Python can do: a shuffle by key, and every row as Arrow."""
    from pyspark.sql import functions as sf

    rows = frame.select(*names).repartition(partitions, "Key")
    rows.mapInArrow(counted, "rows bigint").agg(sf.sum("rows")).collect()


def correlated(frame: Any, text: str, partitions: int = CORES) -> int:
    """The whole job, planning included; how many outputs it had."""
    from pyspark.sql import functions as sf

    from ensue.spark import correlate

    made = correlate(frame, text, partitions=partitions)
    (found,) = made.agg(sf.count("*"), sf.max("time")).collect()
    return int(found[0])


Jobs = Mapping[str, Callable[[], object]]


def wall_clock(jobs: Jobs, repeats: int) -> dict[str, list[float]]:
    """The seconds of each job in each round; the first round starts workers and does not count."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(repeats + 1):
        for name, job in jobs.items():
            begin = time.perf_counter()
            job()
            if number:
                found[name].append(time.perf_counter() - begin)
    return found
