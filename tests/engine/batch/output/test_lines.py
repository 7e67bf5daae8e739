"""Outputs written from columns are, byte for byte, the events as they are encoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.output.columns import ColumnBundle, SourceOutputs
from ensue.engine.batch.output.lines import lines_of
from ensue.events.cloudevents import encode
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import ValueType
from ensue.lang.expressions.evaluation import MISSING

texts = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = {
    "string": texts,
    "long long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
}


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_values_of_every_kind(data: st.DataObject, kind: str) -> None:
    rows = st.lists(
        st.tuples(texts, st.integers(EARLIEST, LATEST), VALUES[kind] | st.just(MISSING)),
        min_size=1,
        max_size=6,
    )
    drawn = data.draw(rows)
    ids = pa.array([each for each, _, _ in drawn], pa.string())
    times = np.array([each for _, each, _ in drawn], np.int64)
    values: Column = column_of([each for _, _, each in drawn])
    group = ColumnBundle(
        np.arange(len(drawn)),
        data.draw(texts),
        ids,
        ids,
        times,
        {
            "a": (ValueType(kind), values),
            'b"': (ValueType("timestamp"), Column("timestamp", times)),
        },
        {"correlation": ids, "labels": ids},
        {"own": (ValueType(kind), values)}
        if kind in ("boolean", "long", "string", "timestamp")
        else {},
    )
    lines = lines_of(SourceOutputs(np.arange(len(drawn)), [group]))
    assert lines.to_pylist() == [encode(each).decode() + "\n" for each in group.events()]
