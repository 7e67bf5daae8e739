"""Outputs as JSON lines, written from columns.

In come the outputs of a batch; out goes an array of lines, each with its line break, in the bytes
that `ensue.events.cloudevents.encode` gives for the same events. Events that are sent on (`push a`)
are encoded one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import LARGEST_OFFSET, Column, Texts
from ensue.engine.batch.output.columns import (
    BatchOutputs,
    ColumnBundle,
    EventBundle,
    PartedOutputs,
    SourceOutputs,
    joined_texts,
)
from ensue.events.cloudevents import VERSION, encode, write_json
from ensue.events.event import Event
from ensue.events.kernels.json_writing import (
    needs_escapes,
    put_constant,
    put_texts,
    write_strings,
    write_times,
)
from ensue.events.nesting import is_nested
from ensue.lang.expressions.evaluation import MISSING

_LONGEST_TIME = 29


class WrittenValues(NamedTuple):
    """The JSON of the values of a column: `data[begins[n]:ends[n]]` is that of row n."""

    data: Any
    begins: Any
    ends: Any


LinePart = bytes | WrittenValues


def batch_lines(outputs: BatchOutputs, only: str | None = None) -> pa.Array:
    """The outputs of a batch in the order of the stream; or those of one correlation."""
    lines = outputs.ordered_texts([lines_of(made) for made in outputs.sources])
    if only is None:
        return lines
    return lines.filter(pc.equal(batch_correlations(outputs), only))


def batch_correlations(outputs: BatchOutputs) -> pa.Array:
    """The correlation of each output of a batch, in the order of the stream."""
    return outputs.ordered_texts(
        [_of_outputs(made, _bundle_correlations) for made in outputs.sources]
    )


def lines_of(made: SourceOutputs | PartedOutputs) -> pa.Array:
    """The lines of outputs, in their order."""
    return _of_outputs(made, _bundle_lines)


def _of_outputs(
    made: SourceOutputs | PartedOutputs, of_bundle: Callable[[ColumnBundle | EventBundle], pa.Array]
) -> pa.Array:
    """Texts of outputs, in their order; `of_bundle` makes the texts of one bundle."""
    if isinstance(made, PartedOutputs):
        return joined_texts([_of_outputs(part, of_bundle) for part in made.parts if len(part)])
    parts = [of_bundle(bundle) for bundle in made.bundles]
    if len(parts) < 2:
        return joined_texts(parts)
    order = np.argsort(np.concatenate([bundle.ranks for bundle in made.bundles]), kind="stable")
    return Texts.of(joined_texts(parts)).take(order)


def _bundle_correlations(bundle: ColumnBundle | EventBundle) -> pa.Array:
    if isinstance(bundle, ColumnBundle):
        return bundle.provenance["correlation"]
    return pa.array([each.extensions["correlation"] for each in bundle.outputs], pa.string())


def _bundle_lines(bundle: ColumnBundle | EventBundle) -> pa.Array:
    if isinstance(bundle, EventBundle):
        return event_lines(bundle.outputs)
    is_gone = any(column.missing_mask().any() for _, column in bundle.extensions.values())
    if is_gone or any(is_nested(name) for name in bundle.data):
        return event_lines(bundle.events())
    count = len(bundle.ranks)
    parts: list[LinePart] = [
        b'{"specversion":"' + VERSION.encode() + b'","id":',
        _strings(bundle.ids),
    ]
    parts += [b',"source":', _strings(bundle.sources)]
    parts += [b',"type":' + _json(bundle.type) + b',"time":', _times(bundle.times, None)]
    for name, (_, column) in bundle.extensions.items():
        parts += [b"," + _json(name) + b":", _values(column)]
    for name, values in bundle.provenance.items():
        parts += [b"," + _json(name) + b":", _strings(values)]
    parts.append(b',"data":{')
    for place, (name, (_, column)) in enumerate(bundle.data.items()):
        parts += [(b"," if place else b"") + _json(name) + b":", _values(column)]
    parts.append(b"}}\n")
    return _put_together(parts, count)


def event_lines(events: Sequence[Event]) -> pa.Array:
    """The lines of outputs that are events."""
    # The lines are bytes of JSON in UTF-8.
    lines = pa.array([encode(event) + b"\n" for event in events], pa.binary())
    return lines.cast(pa.string())


def _put_together(parts: Sequence[LinePart], count: int) -> pa.Array:
    lengths = np.full(count, sum(len(part) for part in parts if isinstance(part, bytes)), np.int64)
    for part in parts:
        if isinstance(part, WrittenValues):
            lengths += part.ends - part.begins
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    positions = offsets[:-1].copy()
    for part in parts:
        if isinstance(part, WrittenValues):
            put_texts(part.data, part.begins, part.ends, positions, out)
        else:
            put_constant(np.frombuffer(part, np.uint8), positions, out)
    type_ = pa.string() if len(out) <= LARGEST_OFFSET else pa.large_string()
    held = offsets.astype(np.int32) if len(out) <= LARGEST_OFFSET else offsets
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(held), pa.py_buffer(out)])


# --- values ---------------------------------------------------------------------------------------


def _json(text: str) -> bytes:
    return msgspec.json.encode(text)


def _values(column: Column) -> WrittenValues:
    """The values of a column as JSON."""
    match column.kind:
        case "string":
            return _strings(column.values, column.missing)
        case "timestamp":
            return _times(column.values, column.missing)
        case "boolean" | "integer":
            held = pa.array(column.values, mask=column.missing).cast(pa.string())
            return _of_array(pc.fill_null(held, "null") if held.null_count else held)
        case "real":
            values = column.values.tolist()
            if column.missing is not None:
                gone = column.missing.tolist()
                values = [None if each else value for value, each in zip(values, gone, strict=True)]
            return _numbers(values)
    texts = ["null" if each is MISSING else write_json(each) for each in column.to_list()]
    return _of_array(pa.array(texts, pa.string()))


def _numbers(values: list[float | None]) -> WrittenValues:
    """Reals in the shortest exact form, written as one JSON list and cut at its commas."""
    data = np.frombuffer(msgspec.json.encode(values), np.uint8)
    commas = np.flatnonzero(data == 44)
    return WrittenValues(
        data, np.append(1, commas + 1)[: len(values)], np.append(commas, len(data) - 1)
    )


def _strings(texts: pa.Array, missing: Any = None) -> WrittenValues:
    source = Texts.of(texts)
    ends = source.offsets.astype(np.int64)
    gone = np.zeros(len(texts), np.bool_) if missing is None else missing
    size = int(ends[-1] - ends[0])
    most = 6 if needs_escapes(source.data[int(ends[0]) : int(ends[-1])]) else 1
    out = np.empty(most * size + 4 * len(texts), np.uint8)
    offsets = np.empty(len(texts) + 1, np.int64)
    write_strings(source.data, ends[:-1], ends[1:], gone, out, offsets)
    return WrittenValues(out, offsets[:-1], offsets[1:])


def _times(values: Any, missing: Any) -> WrittenValues:
    gone = np.zeros(len(values), np.bool_) if missing is None else missing
    out = np.empty(len(values) * _LONGEST_TIME, np.uint8)
    offsets = np.empty(len(values) + 1, np.int64)
    write_times(np.ascontiguousarray(values), gone, True, out, offsets)
    return WrittenValues(out, offsets[:-1], offsets[1:])


def _of_array(texts: pa.Array) -> WrittenValues:
    source = Texts.of(texts)
    ends = source.offsets.astype(np.int64)
    return WrittenValues(source.data, ends[:-1], ends[1:])
