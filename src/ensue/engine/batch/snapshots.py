"""The state of a batch engine as bytes, and back.

A versioned header in msgpack around Arrow tables: for each correlation its keys with their states
and places, and the events that those places refer to. Keys that stand as if they had never read
anything are left out. States are written as the sets of states of the machine that they stand for,
so that the numbers of a table, which depend on what came first, stay inside a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.by_event import EventCorrelation
from ensue.engine.batch.column import Column
from ensue.engine.batch.correlations import (
    TABLE_STATES,
    ColumnCorrelation,
    PastReading,
    Walk,
    held_by,
)
from ensue.engine.batch.groups import Member
from ensue.engine.batch.linear_walk import LinearWalk
from ensue.engine.batch.made import present_or_none
from ensue.engine.batch.ranks import ranks_in
from ensue.engine.batch.remembered import read_event, write_event
from ensue.engine.batch.timed_walk import TimedWalk
from ensue.engine.batch.walks import TableWalk, first_starts, moving_states
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.jit import FAR
from ensue.engine.ports import Key
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import MISSING
from ensue.machine.model import Machine

FORMAT = "ensue-batch-snapshot"
VERSION = 4
READABLE = (2, 3, 4)
"""In version 2, what ran by events was saved as all the events that it had read; up to version 3,
events that may be sent on were written one by one."""


class EngineState(msgspec.Struct, frozen=True):
    """`correlations` holds one state each, in the order of the library."""

    format: str
    version: int
    library: str
    clock: int | None
    rows_read: int
    positioned: int
    correlations: list[bytes]


class ColumnState(msgspec.Struct, frozen=True):
    """`keys`, `kept` are Arrow streams; `general_keys` stands in where keys have several kinds.

    `stepped` says that the states of the machine are there with their starts, and not of a table.
    Events that may be sent on are in `packed`, as `pack_events` has them; older states have them
    in `whole`.
    """

    stepped: bool
    keys: bytes
    general_keys: bytes | None
    states: list[list[int]]
    kept: bytes
    objects: dict[str, bytes]
    whole: list[bytes] | None
    counted_at: int | None
    counted: list[tuple[int, str, int]]
    packed: bytes | None = None


def encode_engine(state: EngineState) -> bytes:
    return msgspec.msgpack.encode(state)


def decode_engine(snapshot: bytes, library: str) -> EngineState:
    try:
        state = msgspec.msgpack.decode(snapshot, type=EngineState)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SnapshotError(f"these bytes are no snapshot of the batch engine: {error}") from None
    if state.format != FORMAT:
        raise SnapshotError("these bytes are no snapshot of the batch engine")
    if state.version not in READABLE:
        raise SnapshotError(
            f"the snapshot has version {state.version}, and this version of ensue reads"
            f" {' and '.join(map(str, READABLE))}: use the version of ensue that wrote it"
        )
    if state.library != library:
        raise SnapshotError(
            "the snapshot was taken with another library (or another version of it); "
            "resume it with the library it was taken with"
        )
    return state


def encode_correlation(running: ColumnCorrelation | EventCorrelation | Member) -> bytes:
    if isinstance(running, EventCorrelation):
        return running.snapshot()
    return msgspec.msgpack.encode(_column_state(running))


def is_stepped(snapshot: bytes) -> bool:
    """Whether this is the state of a correlation in columns that had no table, or had left it."""
    return msgspec.msgpack.decode(snapshot, type=ColumnState).stepped


def decode_correlation(
    running: ColumnCorrelation | EventCorrelation | Member, snapshot: bytes
) -> bool:
    """Go on from a state; False if a member of a group has to leave it for that."""
    past = _past_of(snapshot)
    if past is not None:
        if isinstance(running, Member):
            return False
        running.read_again(*past)
    elif isinstance(running, EventCorrelation):
        running.restore(snapshot)
    else:
        return _restore(running, msgspec.msgpack.decode(snapshot, type=ColumnState))
    return True


def _past_of(snapshot: bytes) -> tuple[int | None, list[PastReading]] | None:
    """The clock, and all that was read, if the state is saved in that way."""
    try:
        return msgspec.msgpack.decode(snapshot, type=tuple[int | None, list[PastReading]])
    except msgspec.ValidationError:
        return None


def _column_state(running: ColumnCorrelation | Member) -> ColumnState:
    walk, keys, maker = running.walk, running.keys, running.maker
    running.make_room()
    if isinstance(running, ColumnCorrelation):
        running.drop_expired()
    count = keys.count
    keeps_all = running.has_start or not keys.keyed
    busy = np.ones(count, np.bool_) if keeps_all else walk.is_busy()[:count]
    counted = {(k, i): n for (rule, k, i), n in maker.counted.items() if rule == running.number}
    busy[[key for key, _ in counted]] = True
    chosen = np.flatnonzero(busy)
    numbers = held_by([walk])
    kept = running.remembered.taken(numbers) if numbers.size else None
    # A place that holds nothing any more, or nothing yet, is null.
    held = walk.places[chosen, :-1]
    bound = walk.bound()[chosen, :-1] & (held > 0)
    at = ranks_in(numbers, held).astype(np.int32)
    columns: dict[str, Any] = {
        f"place {place}": pa.array(at[:, place], mask=~bound[:, place])
        for place in range(held.shape[1])
    }
    states: list[list[int]] = []
    if isinstance(walk, TableWalk):
        used, codes = np.unique(walk.states[chosen], return_inverse=True)
        known = [walk.filled.known[number] for number in used.tolist()]
        states = [[-1] if each is None else sorted(each.active) for each in known]
        columns["state"] = pa.array(codes.astype(np.uint16 if len(used) < 2**16 else np.uint32))
    else:
        starts = walk.starts_of(chosen)
        for state in moving_states(walk.machine):
            of = np.ascontiguousarray(starts[:, state])
            columns[f"start {state}"] = pa.array(of, mask=of == -FAR)
        columns["started"] = pa.array(walk.started_of(chosen))
    if isinstance(walk, TimedWalk):
        for timer in range(len(walk.filled.timers)):
            due = walk.due_of(chosen, timer)
            columns[f"due {timer}"] = pa.array(due, mask=due == FAR)
        columns["number"] = pa.array(walk.numbers[chosen])
    general = None
    texts = keys.column()
    if texts is not None:
        columns["key"] = texts.take(pa.array(chosen))
    else:
        every = keys.all()
        general = msgspec.msgpack.encode([every[number] for number in chosen.tolist()])
    plain = {n: c for n, c in (kept.columns if kept else {}).items() if c.kind != "object"}
    objects = {n: c for n, c in (kept.columns if kept else {}).items() if c.kind == "object"}
    return ColumnState(
        stepped=not isinstance(walk, TableWalk),
        keys=arrow_bytes(pa.table(columns)),
        general_keys=general,
        states=states,
        kept=arrow_bytes(pa.table({_name(n): present_or_none(c) for n, c in plain.items()})),
        objects={_name(n): object_bytes(c) for n, c in objects.items()},
        whole=None,
        counted_at=maker.counted_at,
        counted=[(int(np.searchsorted(chosen, key)), id_, n) for (key, id_), n in counted.items()],
        packed=pack_events(kept.whole) if kept and kept.whole else None,
    )


def _restore(running: ColumnCorrelation | Member, state: ColumnState) -> bool:
    table = arrow_table(state.keys)
    keys, remembered, maker = running.keys, running.remembered, running.maker
    if state.general_keys is not None:
        at = keys.restore_general(msgspec.msgpack.decode(state.general_keys, type=list[Key]))
    else:
        at = keys.restore(table.column("key").combine_chunks())
    running.make_room()
    if isinstance(running, Member) and not running.has_room:
        return False
    walk: Walk = running.walk
    if state.stepped:
        if isinstance(running, ColumnCorrelation):
            running.take_starts(at, *_starts(running.machine, table))
            walk = running.walk
        else:
            assert isinstance(walk, WindowWalk), "who has left its table is in no group"
            if not walk.take_starts(at, *_starts(walk.machine, table), TABLE_STATES):
                return False
        if isinstance(walk, TimedWalk):
            walk.take_due(at, *_due(len(walk.filled.timers), table))
    else:
        assert isinstance(walk, TableWalk)
        known = [walk.filled.number_of_set(frozenset(each)) for each in state.states]
        if at.size:
            walk.states[at] = np.array(known, np.int32)[table.column("state").to_numpy()]
    kept = arrow_table(state.kept)
    columns = {_parts(name): _column(kept.column(name)) for name in kept.schema.names}
    columns |= {_parts(name): object_column(held) for name, held in state.objects.items()}
    rows = len(next(iter(columns.values()))) if columns else 0
    first = remembered.restore(rows, columns, whole_events(state))
    for place in range(walk.places.shape[1] - 1):
        column = table.column(f"place {place}").cast(pa.int64())
        walk.places[at, place] = column.fill_null(-first).to_numpy() + first
    if isinstance(running, Member):
        assert not isinstance(walk, LinearWalk), "who has left its table is in no group"
        running.put_back(walk)
    maker.recall(
        state.counted_at,
        {(running.number, int(at[key]), id_): n for key, id_, n in state.counted},
    )
    return True


def _starts(machine: Machine, table: pa.Table) -> tuple[Any, Any]:
    """The starts of all states, by key, and which keys have started."""
    starts = np.tile(first_starts(machine), (len(table), 1))
    for state in moving_states(machine):
        starts[:, state] = table.column(f"start {state}").fill_null(-FAR).to_numpy()
    # What had nothing to do at its start was not always said to have started.
    moved = (starts != first_starts(machine)).any(axis=1)
    return starts, table.column("started").to_numpy() | moved


def _due(timers: int, table: pa.Table) -> tuple[Any, Any]:
    """The due times of all timers, by key, and the numbers of the keys."""
    due = np.full((len(table), timers), FAR, np.int64)
    for timer in range(timers):
        due[:, timer] = table.column(f"due {timer}").fill_null(FAR).to_numpy()
    return due, table.column("number").to_numpy()


def _name(parts: tuple[str, ...]) -> str:
    return ".".join(parts)


def _parts(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def arrow_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def pack_events(events: Sequence[Event]) -> bytes:
    """Events as one column: what all of them have in common takes no room then."""
    written = [write_event(each) for each in events]
    return arrow_bytes(pa.table({"event": pa.array(written, pa.large_binary())}))


def whole_events(state: ColumnState) -> list[Event] | None:
    """The events that may be sent on; None if none are."""
    if state.packed is not None:
        return [read_event(each) for each in arrow_table(state.packed).column("event").to_pylist()]
    return None if state.whole is None else [read_event(each) for each in state.whole]


def arrow_table(data: bytes) -> pa.Table:
    try:
        return pa.ipc.open_stream(data).read_all()
    except pa.ArrowException as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from None


def _column(held: pa.ChunkedArray) -> Column:
    array = held.combine_chunks() if held.num_chunks != 1 else held.chunk(0)
    missing = np.asarray(array.is_null()) if array.null_count else None
    if pa.types.is_string(array.type):
        return Column("string", array.fill_null(""), missing)
    if pa.types.is_timestamp(array.type):
        instants = array.cast(pa.int64()).fill_null(0)
        return Column("timestamp", instants.to_numpy(zero_copy_only=False), missing)
    kinds = {pa.bool_(): "boolean", pa.int64(): "integer", pa.float64(): "real"}
    zero = False if pa.types.is_boolean(array.type) else 0
    values = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return Column(kinds[array.type], values, missing)


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
