"""Snapshots of the batch engine: small, exact, and refused where they do not belong."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.errors import SnapshotError

TEXT = """
eventtype Step {{ attribute string user; attribute double size; }};
eventtype A : Step {{}};
eventtype B : Step {{}};
eventtype C : Step {{}};
eventtype Found {{ attribute string user; attribute double first; attribute double last; }};
Found correlation Chain (A a, B b, C c) a ; b ; c {within} by user
{{ case true: push new Found {{ user = a.user, first = a.size, last = c.size }}; }}
"""
KEYS = 50_000


def library(within: str = "") -> ensue.Library:
    return ensue.parse(TEXT.format(within=within))


def steps(type_name: str, second: int, seed: int) -> pa.Table:
    """One event of a type for every user, in another order for every seed."""
    random = np.random.default_rng(seed)
    users = pa.array([f"user-{number:08d}" for number in range(KEYS)])
    times = 1_700_000_000_000_000 + second * 1_000_000 + np.arange(KEYS)
    return pa.table(
        {
            "id": pa.array([f"{type_name}{number}" for number in range(KEYS)]),
            "type": [type_name] * KEYS,
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "user": users.take(pa.array(random.permutation(KEYS))),
            "size": random.random(KEYS),
        }
    )


@pytest.mark.parametrize("within", ["", "within 1 min"])
def test_a_key_that_is_mid_match_takes_less_than_64_bytes(within: str) -> None:
    """And what goes on from the snapshot completes every one of them."""
    engine = BatchEngine(library(within).checked)
    engine.push_batch(steps("A", 0, 1))
    engine.push_batch(steps("B", 1, 2))
    snapshot = engine.snapshot()
    again = BatchEngine(library(within).checked)
    again.restore(snapshot)
    last = steps("C", 2, 3)

    assert len(snapshot) < 64 * KEYS
    out = again.push_batch(last)
    assert len(out) == KEYS
    assert out.equals(engine.push_batch(last))


def test_keys_that_have_nothing_under_way_take_no_room() -> None:
    engine = BatchEngine(library().checked)
    for second, type_name in enumerate("ABC"):
        engine.push_batch(steps(type_name, second, second))

    assert len(engine.snapshot()) < 10_000


def test_what_has_left_its_window_takes_no_room() -> None:
    """Nor do the events that it was bound to: one event is enough to move the clock past them."""
    engine = BatchEngine(library("within 1 min").checked)
    engine.push_batch(steps("A", 0, 1))
    engine.push_batch(steps("B", 1, 2))
    before = len(engine.snapshot())
    engine.push_batch(steps("A", 600, 3).slice(0, 1))

    assert len(engine.snapshot()) < 10_000 < before


def test_a_snapshot_of_another_library_is_refused() -> None:
    snapshot = BatchEngine(library().checked).snapshot()

    with pytest.raises(SnapshotError, match="another library"):
        BatchEngine(library("within 1 s").checked).restore(snapshot)


@pytest.mark.parametrize("data", [b"", b"nonsense", msgspec.msgpack.encode({"format": "x"})])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="no snapshot"):
        BatchEngine(library().checked).restore(data)
