"""Outputs written from columns are, byte for byte, the events as they are encoded."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.input.intake import EventBatch
from ensue.engine.batch.output.columns import ColumnBundle, SourceOutputs
from ensue.engine.batch.output.lines import batch_lines, lines_of
from ensue.events.cloudevents import encode
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import ValueType
from ensue.lang.expressions.evaluation import MISSING
from tests.oracle.agreement import read_events
from tests.oracle.generator import scenario


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_lines_are_the_encoded_events(first: int) -> None:
    for seed in range(first, first + 50):
        drawn = scenario(seed)
        library = ensue.parse(drawn.library)
        events = sorted(read_events(drawn, library), key=lambda event: event.time)
        by_event, by_line = BatchEngine(library.checked), BatchEngine(library.checked)
        middle = len(events) // 2
        for part in (events[:middle], events[middle:]):
            wanted = b"".join(encode(each) + b"\n" for each in by_event.read_all(part))
            outputs = list(by_line.read_batch(EventBatch(part, library.checked.types)))
            lines = [line for each in outputs for line in batch_lines(each).to_pylist()]
            assert "".join(lines).encode() == wanted, seed
            for name in library.correlations.names:
                only = [
                    line
                    for line in wanted.splitlines(keepends=True)
                    if json.loads(line)["correlation"] == name
                ]
                found = [line for each in outputs for line in batch_lines(each, name).to_pylist()]
                assert found == [line.decode() for line in only]


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
    )
    lines = lines_of(SourceOutputs(np.arange(len(drawn)), [group]))
    assert lines.to_pylist() == [encode(each).decode() + "\n" for each in group.events()]
