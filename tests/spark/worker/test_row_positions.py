"""Positions of outputs in columns are those that the ordered pass writes, ties included."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.counts import Counts
from ensue.events.event import Event
from ensue.spark.plan import plan_of
from ensue.spark.worker import positions
from ensue.spark.worker.ordered_group import ALL_KEYS, OrderedGroup
from ensue.spark.worker.row_positions import SortedRows, output_positions

LIBRARY = ensue.parse(
    """
    eventtype A { attribute long K; };
    eventtype B { attribute long K; };
    eventtype Pair { attribute long K; };
    Pair correlation Both (A a, B b) a + b by K
    { case true: push new Pair { K = a.K }; push new Pair { K = b.K }; }
    Pair correlation After (A a, B b) a ; b || b ; a by K { case true: push new Pair { K = b.K }; }
    """
)


@pytest.mark.parametrize("seed", range(30))
def test_they_equal_those_of_the_ordered_pass(seed: int) -> None:
    random = Random(seed)
    times = sorted(random.choices(range(random.choice([3, 20, 1000])), k=60))
    # Ids come twice, also at one time.
    rows = [
        (random.choice("AB"), str(random.randrange(random.choice([4, 400]))), time, arrival * 7)
        for arrival, time in enumerate(times)
    ]
    keys = [random.randrange(3) for _ in rows]
    plan = plan_of(LIBRARY.checked)
    (group,) = plan.groups
    ordered = OrderedGroup(plan, group, Counts())
    wanted = [
        (position[:-8], output.id)
        for (type_, identity, time, arrival), key in zip(rows, keys, strict=True)
        for position, output in ordered.read(
            positions.event_position(time, arrival),
            Event(identity, "test", type_, time, {"K": key}, {}),
            None,
            ALL_KEYS,
        )
    ]

    table = pa.table(
        {
            "id": [identity for _, identity, _, _ in rows],
            "type": [type_ for type_, _, _, _ in rows],
            "time": pa.array([time for _, _, time, _ in rows], pa.timestamp("us", "UTC")),
            "K": keys,
        }
    )
    sorted_rows = SortedRows(table, pa.chunked_array([[arrival for *_, arrival in rows]]))
    engine = BatchEngine(plan.part(group))
    found = []
    for begin, end in sorted_rows.distinct_slices():
        made = engine.push_batch(table.slice(begin, end - begin), "test")
        at = output_positions(sorted_rows, begin, end, made, plan.numbered_names)
        assert at.to_pylist() == sorted(at.to_pylist())
        found += [
            (position[:-8], identity)
            for position, identity in zip(at.to_pylist(), made["id"].to_pylist(), strict=True)
        ]

    assert found == wanted


def test_rows_of_equal_time_and_id_are_cut_apart() -> None:
    table = pa.table({"id": ["x", "y", "x", "x"], "time": pa.array([1, 1, 1, 2], pa.int64())})

    rows = SortedRows(table, pa.chunked_array([[0, 1, 2, 3]]))

    assert list(rows.distinct_slices()) == [(0, 2), (2, 4)]
