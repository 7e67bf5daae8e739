"""Keys whose window or timeout has passed hold nothing in the state of a stream.

    ENSUE_KEYS=1000000 python -m pytest tests/spark/streaming/timing/test_freed_state.py

asks it of a tenth of so many keys that come once: of each rule in a simulated stream, and of all
rules together in the state store of a stream of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.spark import correlate
from ensue.spark.streaming.job import StreamJob, StreamOptions
from tests.spark.streaming.cutting import collected, stream_of, write_pieces
from tests.spark.streaming.simulation import SimulatedStream

KEYS = int(os.environ.get("ENSUE_KEYS", "60000")) // 10
FEW_KEYS = 60
START = 1_700_000_000_000_000
A_DAY = 86_400_000_000
TYPES = """
eventtype Login { attribute long user; attribute double amount; };
eventtype Payment { attribute long user; attribute double amount; };
eventtype Out { attribute long user; };
"""
RULES = {
    "first": "Out correlation R (Login a, Payment b) a ; b within 1 min by user bind first"
    " { case true: push new Out { user = b.user }; }",
    "unless": "Out correlation R (Login a, Payment b) a ; b within 1 min by user unless a"
    " { case true: push new Out { user = b.user }; }",
    "count": "Out correlation R (Login a) a within 1 min by user having count(a) > 5"
    " { case true: push new Out { user = a.user }; }",
    "timeout": "Out correlation R (Login a, Payment b) a ; timeout(1 min) by user unless b"
    " { case true: push new Out { user = a.user }; }",
    "ecl": "Out ecl R (Login a, Payment b) by user"
    " { repeat { notify { sequential { a, do { timeout(1 min) } unless { b } } } } }",
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("user", pa.int32()),
        ("amount", pa.float64()),
    ]
)


def logins(first: int, count: int, begin: int) -> pa.Table:
    """Users that come once, a hundred in a second."""
    users = np.arange(first, first + count)
    columns = [
        pa.array([f"e{user}" for user in users]),
        pa.array(["Login"] * count),
        pa.array(begin + users * 10_000).cast(SCHEMA.field("time").type),
        pa.array(users, pa.int32()),
        pa.array(np.ones(count)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def batches(keys: int = KEYS) -> Iterator[pa.Table]:
    """All users in three micro-batches, then one other user on each of two later days."""
    size = keys // 3
    for number in range(3):
        yield logins(number * size, size, START)
    for day in (1, 2):
        yield logins(KEYS + day, 1, START + day * A_DAY)


@pytest.mark.parametrize("rule", RULES)
def test_buckets_to_which_no_event_comes_let_go_of_their_keys(
    spark: SparkSession, rule: str
) -> None:
    library = ensue.parse(TYPES + RULES[rule])
    stream: SimulatedStream | None = None
    sizes = []
    outputs = 0
    for rows in batches():
        frame = spark.createDataFrame(rows).coalesce(1)
        job = StreamJob.of(frame, library, options=StreamOptions(buckets=4))
        if stream is None:
            stream = SimulatedStream(job.task)
        outputs += len(stream.read([job.rows().toArrow()]))
        sizes.append(stream.size)

    assert max(sizes) > 5 * KEYS
    assert 3 * sizes[-1] < max(sizes)
    assert outputs == (0 if rule in ("first", "unless", "count") else KEYS // 3 * 3 + 1)


def in_store(spark: SparkSession, checkpoint: Path, batch: int) -> int:
    """How many bytes the state store has for the buckets of a stream after a micro-batch."""
    store = spark.read.format("statestore").option("batchId", batch)
    found = []
    for name, column in (("head", "value"), ("parts", "user_map_value")):
        rows = store.option("stateVarName", name).load(str(checkpoint))
        found += rows.select(f"{column}.saved").collect()
    return sum(len(row[0]) for row in found)


def test_many_keys_leave_in_the_state_store_what_few_keys_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A bucket has a state once it has read something: few keys are enough for every bucket."""
    texts = [text.replace(" R (", f" R{number} (") for number, text in enumerate(RULES.values())]
    library = ensue.parse(TYPES + "\n".join(texts))
    sizes = {}
    for keys in (FEW_KEYS, KEYS):
        pieces = list(batches(keys))
        write_pieces(tmp_path / f"{keys}", pieces)
        made = correlate(stream_of(spark, tmp_path / f"{keys}"), library, buckets=4)
        outputs = collected(made, tmp_path / f"checkpoint-{keys}")
        sizes[keys] = [
            in_store(spark, tmp_path / f"checkpoint-{keys}", batch)
            for batch in (2, len(pieces) - 1)
        ]
        # Two of the rules wait for a minute without a payment.
        assert len(outputs) == 2 * (keys // 3 * 3 + 1)

    assert sizes[KEYS][0] > sizes[FEW_KEYS][0] + 10 * KEYS
    assert sizes[KEYS][1] <= sizes[FEW_KEYS][1] + 200
