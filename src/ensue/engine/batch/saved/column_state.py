"""The saved state of one rule in columns, and how its parts become bytes.

Keys with their states and places, and the events that those places refer to, are Arrow streams.
What reads and writes the state of a running rule is in `snapshots`; `to_step` and `from_step` turn
it into that of the step engine and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.column import Column
from ensue.errors import SnapshotError
from ensue.events import cloudevents
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import MISSING


class ColumnState(msgspec.Struct, frozen=True):
    """The saved state of a correlation in columns.

    `keys`, `kept` are Arrow streams; `general_keys` stands in where keys have several kinds.

    `stepped` says that the states of the machine are there with their starts, and not of a table.
    Events that may be sent on are in `packed`, as `pack_events` has them.
    """

    stepped: bool
    keys: bytes
    general_keys: bytes | None
    states: list[list[int]]
    kept: bytes
    objects: dict[str, bytes]
    counted_at: int | None
    counted: list[tuple[int, str, int]]
    packed: bytes | None = None


def arrow_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def pack_events(events: Sequence[Event]) -> bytes:
    """Events as one column, so that parts which all of them share take no room."""
    written = [_write_event(each) for each in events]
    return arrow_bytes(pa.table({"event": pa.array(written, pa.large_binary())}))


def whole_events(state: ColumnState) -> list[Event] | None:
    """The events that may be sent on; None if none are."""
    if state.packed is None:
        return None
    return [_read_event(each) for each in arrow_table(state.packed).column("event").to_pylist()]


def _write_event(event: Event) -> bytes:
    """An event for a snapshot, exactly; as JSON where msgpack has no room for its integers."""
    try:
        return msgspec.msgpack.encode(event)
    except OverflowError:
        return cloudevents.encode(event)


def _read_event(data: bytes) -> Event:
    if data[:1] == b"{":
        return cloudevents.decode(data)
    return msgspec.msgpack.decode(data, type=Event)


def arrow_table(data: bytes) -> pa.Table:
    try:
        table = pa.ipc.open_stream(data).read_all()
        # Lengths and offsets as well, which loops go by without looking.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from None
    return table


def object_bytes(column: Column) -> bytes:
    """Each value with a mark: missing, too large an integer for msgpack, or as it is."""

    def marked(value: Any) -> tuple[str, Any]:
        if value is MISSING:
            return "-", None
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            return "i", str(value)
        return "=", value

    return msgspec.msgpack.encode([marked(value) for value in column.to_list()])


def object_column(data: bytes) -> Column:
    marked = msgspec.msgpack.decode(data, type=list[tuple[str, Any]])
    values = np.empty(len(marked), object)
    values[:] = [
        MISSING if mark == "-" else int(value) if mark == "i" else value for mark, value in marked
    ]
    missing = np.array([mark == "-" for mark, _ in marked], np.bool_)
    return Column("object", values, missing)
