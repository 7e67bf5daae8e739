"""Packs: which rows go where, and that nothing of them is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.packs.packed_types import unpack_arrivals, unpack_types
from ensue.spark.worker.packs.packing import (
    NO_OFFSET,
    GroupPacks,
    PartCounts,
    bucket_numbers,
    wanted_rows,
)

TIME = pa.timestamp("us", "UTC")
KEYS = st.lists(st.none() | st.integers(-(2**31), 2**31), min_size=1, max_size=30)


def rows(types: list[str], keys: list[int | None]) -> pa.RecordBatch:
    count = len(types)
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array([f"e{n}" for n in range(count)]),
            "type": pa.array(types, pa.string()),
            "time": pa.array(range(count), pa.int64()).cast(TIME),
            "Key": pa.array(keys, pa.int64()),
            ARRIVAL: pa.array([n * 7 for n in range(count)], pa.int64()),
        }
    )


@given(keys=KEYS, buckets=st.integers(1, 7))
def test_equal_keys_are_in_one_bucket_whatever_their_type(
    keys: list[int | None], buckets: int
) -> None:
    whole = bucket_numbers([pa.array(keys, pa.int64())], buckets)
    real = bucket_numbers([pa.array(keys, pa.float64())], buckets)
    texts = pa.array([None if key is None else str(key) for key in keys], pa.string())
    named = bucket_numbers([texts], buckets)

    assert (whole == real).all()
    for found in (whole, named):
        assert ((found >= 0) & (found < buckets)).all()
        assert len({(key, at) for key, at in zip(keys, found.tolist(), strict=True)}) == len(
            set(keys)
        )
    assert not whole[[key is None for key in keys]].any()


def test_zero_has_no_sign_and_keys_are_spread() -> None:
    zeros = bucket_numbers([pa.array([0.0, -0.0])], 1000)
    spread = np.bincount(bucket_numbers([pa.array(range(10_000))], 4))

    assert zeros[0] == zeros[1]
    assert spread.min() > 2000


@pytest.mark.parametrize("is_dictionary", [False, True])
def test_a_pack_has_the_rows_that_a_group_wants(is_dictionary: bool) -> None:
    types = ["A", "Other", "B", "A", "B"]
    given = rows(types, [1, 1, 2, None, 5])
    if is_dictionary:
        given = given.set_column(1, "type", given.column("type").dictionary_encode())
    group = GroupPacks(3, ("id", "time", "Key"), ("Key",), ("B", "A"), 2, True)

    found = dict(wanted_rows(group, given))
    table = pa.Table.from_batches(found.values()).sort_by("id")

    assert set(found) <= {0, 1}
    assert table.column("id").to_pylist() == ["e0", "e2", "e3", "e4"]
    assert table.column("Key").to_pylist() == [1, 2, None, 5]
    assert unpack_arrivals(table.column(ARRIVAL)).to_pylist() == [0, 14, 21, 28]
    kinds = unpack_types(table.column(ARRIVAL), ("B", "A"))
    assert kinds.to_pylist() == ["A", "B", "A", "B"]


def test_a_part_tells_counts_types_and_runs_of_times() -> None:
    counted = PartCounts(["A"], 2)
    counted.add_events(rows(["A", "C", "B"], [1, 2, 3]))
    late = rows(["A"], [1]).set_column(2, "time", pa.array([100], pa.int64()).cast(TIME))
    counted.add_events(late)
    counted.add_rejected(pa.array([[f"so: {NO_OFFSET}", "other"], ["other"]]))

    told = counted.told()

    assert (told["events"], told["rejected"], told["no_offset"]) == (4, 2, 1)
    assert (told["unread"], told["unread_type"]) == (2, "C")
    assert told["types"] == {"A": 2, "C": 1, "B": 1}
    assert told["latest"] == 100
    assert told["runs"] == [[0, 2, 3], [100, 100, 1]]
