"""The state of a batch engine as bytes, and back.

A versioned header in msgpack around Arrow tables: for each correlation its keys with their states
and places, and the events that are bound there. Keys that are in their first state are left out.
States are written as the sets of states of the machine that they stand for, so that the numbers of
a table, which depend on what came first, stay inside a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.column import Column, attribute_column
from ensue.engine.batch.many.group import GroupMember
from ensue.engine.batch.output.columns import present_or_none
from ensue.engine.batch.output.remembered import KeptReadings
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.related.saving import restore_related, save_related
from ensue.engine.batch.saved_states import (
    ColumnState,
    SavedEvents,
    arrow_bytes,
    arrow_table,
    object_bytes,
    object_column,
    pack_events,
    saved_rule,
    whole_events,
)
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.engine.core.cells import RuleCells
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, Rows, distinct
from ensue.engine.core.rule_table import first_starts, moving_states
from ensue.engine.core.saved_rules import damaged, save_machine
from ensue.engine.ports import Key
from ensue.engine.sizes import sizes
from ensue.errors import SnapshotError
from ensue.lang.expressions.names import Parts
from ensue.machine.model import Machine

FORMAT = "ensue-batch-snapshot"
VERSION = 5


class EngineState(msgspec.Struct, frozen=True):
    """The saved state of an engine; `correlations` has a state each, in the library's order."""

    format: str
    version: int
    library: str
    clock: int | None
    rows_read: int
    positioned: int
    correlations: list[bytes]


def encode_engine(state: EngineState) -> bytes:
    return msgspec.msgpack.encode(state)


def decode_engine(snapshot: bytes, library: str) -> EngineState:
    try:
        state = msgspec.msgpack.decode(snapshot, type=EngineState)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SnapshotError(f"these bytes are no snapshot of the batch engine: {error}") from None
    if state.format != FORMAT:
        raise SnapshotError("these bytes are no snapshot of the batch engine")
    if state.version != VERSION:
        raise SnapshotError(
            f"the snapshot has version {state.version}, and this version of ensue reads {VERSION}:"
            " use the version of ensue that wrote it"
        )
    if state.library != library:
        raise SnapshotError(
            "the snapshot was taken with another library (or another version of it); "
            "resume it with the library it was taken with"
        )
    return state


RunningRule = ColumnCorrelation | RelatedCorrelation | EventCorrelation | GroupMember
"""The object that runs one correlation."""


def encode_correlation(running: RunningRule) -> bytes:
    if isinstance(running, EventCorrelation):
        return running.save().encode()
    if isinstance(running, RelatedCorrelation):
        return save_related(running).encode()
    return msgspec.msgpack.encode(_save(running))


def decode_correlation(running: RunningRule, snapshot: bytes) -> bool:
    """Go on from a state; False if the rule has to run in another way for that.

    Raises `LeavesColumnsError` if a rule that relates events has to run event by event for it.
    """
    try:
        return _decode_correlation(running, snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, IndexError, pa.ArrowException) as e:
        raise SnapshotError(f"the snapshot is damaged: {e}") from None


def _decode_correlation(running: RunningRule, snapshot: bytes) -> bool:
    if isinstance(running, RelatedCorrelation):
        restore_related(running, msgspec.msgpack.decode(snapshot, type=SavedEvents))
        return True
    state = _column_state_in(snapshot)
    if isinstance(running, EventCorrelation):
        if state is None:
            running.restore(msgspec.msgpack.decode(snapshot, type=SavedEvents))
        else:
            machine = running.machine
            assert machine is not None, "what has run in columns has a machine"
            rule = saved_rule(running.correlation, machine, state)
            running.restore(SavedEvents(None, save_machine(machine), rule))
        return True
    return state is not None and _restore(running, state)


def _column_state_in(snapshot: bytes) -> ColumnState | None:
    """The state of a rule in columns; None if it is that of a rule that runs by events."""
    try:
        return msgspec.msgpack.decode(snapshot, type=ColumnState)
    except msgspec.ValidationError:
        return None


# --- the state of a rule in columns ---------------------------------------------------------------


def _save(running: ColumnCorrelation | GroupMember) -> ColumnState:
    running.make_room()
    running.drop_expired()
    held, keys = running.held, running.keys
    counts = running.maker.counts
    counted = {
        (key, trigger): number
        for (rule, key, trigger), number in counts.still_counted(running.latest).items()
        if rule == running.number
    }
    # Keys for which a group has no room any more have read nothing in it.
    count = min(keys.count, len(held.slots))
    keeps_all = running.has_start or not keys.keyed
    busy = np.ones(count, np.bool_) if keeps_all else held.is_busy()[:count]
    busy[[key for key, _ in counted]] = True
    chosen = np.flatnonzero(busy)
    columns, kept = _save_slots(running, chosen)
    is_stepped = _has_starts(held)
    states: list[list[int]] = []
    if not is_stepped:
        columns["state"], states = _save_states(held, chosen)
    else:
        columns |= _save_starts(held, chosen)
    if len(held.table.timers):
        columns |= _save_timers(held, chosen)
    general, plain = None, keys.column()
    if plain is not None:
        columns["key"] = plain.take(pa.array(chosen))
    else:
        every = keys.all()
        general = msgspec.msgpack.encode([every[number] for number in chosen.tolist()])
    named = {".".join(name): column for name, column in (kept.columns if kept else {}).items()}
    arrays = {n: present_or_none(c) for n, c in named.items() if c.kind != "object"}
    return ColumnState(
        stepped=is_stepped,
        keys=arrow_bytes(pa.table(columns)),
        general_keys=general,
        states=states,
        kept=arrow_bytes(pa.table(arrays)),
        objects={n: object_bytes(c) for n, c in named.items() if c.kind == "object"},
        counted_at=counts.at,
        counted=[(int(np.searchsorted(chosen, key)), id_, n) for (key, id_), n in counted.items()],
        packed=pack_events(kept.whole) if kept and kept.whole else None,
    )


def _has_starts(held: RuleCells) -> bool:
    """Whether keys are saved with the starts of their states, and not with a set of states."""
    return held.table.has_window or bool(held.table.timers)


def _save_slots(
    running: ColumnCorrelation | GroupMember, chosen: Rows
) -> tuple[dict[str, Any], KeptReadings | None]:
    """A column for each place, with rows of the readings that are bound; and these readings."""
    held = running.held
    slots, bound = held.slots[chosen], held.bound()[chosen]
    for slot in held.table.timer_slots:
        # A firing of a timer is kept beside the events, as a reading.
        assert isinstance(running, GroupMember), "only rules of groups have timers"
        here = np.flatnonzero(bound[:, slot])
        moments = slots[here, slot]
        slots[:, slot] = 0
        if here.size:
            slots[here, slot] = running.group.readings_of(moments)
    bound &= slots > 0
    numbers = distinct(slots[bound])
    at = np.searchsorted(numbers, slots).astype(np.int32)
    # A place that holds nothing any more, or nothing yet, is null.
    columns = {
        f"place {place}": pa.array(at[:, slot], mask=~bound[:, slot])
        for place, slot in enumerate(held.slot_of)
    }
    return columns, running.remembered.taken(numbers) if numbers.size else None


def _save_states(held: RuleCells, chosen: Rows) -> tuple[pa.Array, list[list[int]]]:
    """For each key the number of its set of states, and these sets; [-1] has not started."""
    used, codes = np.unique(held.states[chosen], return_inverse=True)
    known = [held.table.known[number] for number in used.tolist()]
    states = [[-1] if each is None else sorted(each.active) for each in known]
    return pa.array(codes.astype(np.uint16 if len(used) < 2**16 else np.uint32)), states


def _save_starts(held: RuleCells, chosen: Rows) -> dict[str, Any]:
    """The start of each state of the machine, null where it is not active."""
    columns: dict[str, Any] = {}
    starts = held.starts_of(chosen)
    for state in moving_states(held.machine):
        of = np.ascontiguousarray(starts[:, state])
        columns[f"start {state}"] = pa.array(of, mask=of == -FAR)
    columns["started"] = pa.array(held.started_of(chosen))
    return columns


def _save_timers(held: RuleCells, chosen: Rows) -> dict[str, Any]:
    """When each timer is due, null where it does not run; the order of the keys' last events."""
    columns: dict[str, Any] = {}
    for timer in range(len(held.table.timers)):
        due = held.due_of(chosen, timer)
        columns[f"due {timer}"] = pa.array(due, mask=due == FAR)
    columns["number"] = pa.array(held.ranks_of(chosen))
    return columns


def _restore(running: ColumnCorrelation | GroupMember, state: ColumnState) -> bool:
    """Go on from a state; False if the rule has to run in another way for that."""
    table = arrow_table(state.keys)
    _check_keys(running, state, table)
    if state.general_keys is not None:
        general = msgspec.msgpack.decode(state.general_keys, type=list[Key])
        at = running.keys.restore_keys(general)
    else:
        at = running.keys.restore(table.column("key").combine_chunks())
    running.make_room()
    if isinstance(running, GroupMember) and not running.group.has_room:
        return False
    held = running.held
    if state.stepped:
        if not held.take_starts(at, *_starts(held.machine, table), sizes().table_states):
            return False
        if len(held.table.timers):
            held.take_due(at, *_due(len(held.table.timers), table))
    else:
        states = range(len(held.machine.names))
        if any(each != [-1] and not set(each) <= set(states) for each in state.states):
            raise damaged(f"`{running.name}` is in states that it has not")
        known = [held.table.number_of_set(frozenset(each)) for each in state.states]
        if at.size:
            held.take_states(at, np.array(known, np.int64)[table.column("state").to_numpy()])
    _restore_slots(running, held, state, table, at)
    running.maker.counts.restore(
        state.counted_at,
        {(running.number, int(at[key]), id_): n for key, id_, n in state.counted},
    )
    return True


def _restore_slots(
    running: ColumnCorrelation | GroupMember,
    held: RuleCells,
    state: ColumnState,
    table: pa.Table,
    at: Numbers,
) -> None:
    """Take in the events that are bound, and bind them in the slots of keys `at`."""
    kept = arrow_table(state.kept)
    columns: dict[Parts, Column] = {}
    for name in kept.schema.names:
        column = attribute_column(kept.column(name).combine_chunks())
        if column is None:
            raise damaged(f"`{running.name}` has events whose `{name}` has no kind")
        columns[tuple(name.split("."))] = column
    for name, data in state.objects.items():
        columns[tuple(name.split("."))] = object_column(data)
    rows = len(next(iter(columns.values()))) if columns else 0
    _check_places(running, table, columns, rows, len(held.slot_of))
    first = running.remembered.restore(rows, columns, whole_events(state))
    timer_slots = held.table.timer_slots
    for place, slot in enumerate(held.slot_of):
        column_of_place = table.column(f"place {place}").cast(pa.int64())
        readings = column_of_place.fill_null(-first).to_numpy() + first
        if slot in timer_slots:
            assert isinstance(running, GroupMember), "only rules of groups have timers"
            there = np.flatnonzero(readings)
            if there.size:
                held.slots[at[there], slot] = running.group.moments_of(readings[there])
        else:
            held.slots[at, slot] = readings


def _check_keys(
    running: ColumnCorrelation | GroupMember, state: ColumnState, table: pa.Table
) -> None:
    """Raises `SnapshotError` unless each key has a state, and what is counted has a key."""
    count = len(table)
    if state.general_keys is None:
        keys = table.column("key")
        if keys.null_count or keys.type not in (pa.string(), pa.large_string(), pa.int64()):
            raise damaged(f"`{running.name}` has keys that are none")
    elif len(msgspec.msgpack.decode(state.general_keys, type=list[Key])) != count:
        raise damaged(f"`{running.name}` has keys without a state")
    if not state.stepped:
        codes = table.column("state")
        if codes.null_count or not pa.types.is_unsigned_integer(codes.type):
            raise damaged(f"`{running.name}` has keys without a state")
        if count and codes.to_numpy().max() >= len(state.states):
            raise damaged(f"`{running.name}` is in states that it has not")
    for name in table.schema.names:
        column = table.column(name)
        kind, _, _ = name.partition(" ")
        if kind in ("start", "due", "number") and not pa.types.is_int64(column.type):
            raise damaged(f"`{running.name}` has times that are none")
        if kind in ("number", "started") and column.null_count:
            raise damaged(f"`{running.name}` has keys that have not started")
        if kind == "started" and not pa.types.is_boolean(column.type):
            raise damaged(f"`{running.name}` has keys that have not started")
        if kind in ("start", "due") and count and column.null_count < count:
            found = column.drop_null().to_numpy()
            if found.min() < -FAR or found.max() > FAR:
                raise damaged(f"`{running.name}` has times that are none")
    if any(not 0 <= key < count or number < 0 for key, _, number in state.counted):
        raise damaged(f"`{running.name}` has counted outputs of a key that it has not")


def _check_places(
    running: ColumnCorrelation | GroupMember,
    table: pa.Table,
    columns: Mapping[Parts, Column],
    rows: int,
    places: int,
) -> None:
    """Raises `SnapshotError` if a place is bound to a reading that the snapshot does not hold."""
    if any(len(column) != rows for column in columns.values()):
        raise damaged(f"`{running.name}` has events of which parts are lacking")
    for place in range(places):
        column = table.column(f"place {place}")
        if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
            raise damaged(f"`{running.name}` has bound what is none")
        found = column.cast(pa.int64()).drop_null().to_numpy()
        if found.size and (found.min() < 0 or found.max() >= rows):
            raise damaged(f"`{running.name}` has bound events that are not there")


def _starts(machine: Machine, table: pa.Table) -> tuple[Any, Any]:
    """The starts of all states, by key, and which keys have started."""
    starts = np.tile(first_starts(machine), (len(table), 1))
    for state in moving_states(machine):
        starts[:, state] = table.column(f"start {state}").fill_null(-FAR).to_numpy()
    # What had nothing to do at its start was not always said to have started.
    moved = (starts != first_starts(machine)).any(axis=1)
    return starts, table.column("started").to_numpy() | moved


def _due(timers: int, table: pa.Table) -> tuple[Any, Any]:
    """The due times of all timers, by key, and in which order the keys have started."""
    due = np.full((len(table), timers), FAR, np.int64)
    for timer in range(timers):
        due[:, timer] = table.column(f"due {timer}").fill_null(FAR).to_numpy()
    return due, table.column("number").to_numpy()
