"""The saved state of one rule: in columns, or as the plain data that the step engine saves.

`ColumnState` is the state of a rule in columns: keys with their states and places, and the events
that are bound there, are Arrow streams. `SavedEvents` is the state of any other rule, as plain data
(`ensue.engine.core.saved_rules`). What reads and writes the state of a running rule is in
`snapshots`.

`saved_rule` turns a `ColumnState` into plain data; the way back is in `exchanging`. Of a bound
event there may be no more than the names that statements ask for; a firing of a timer that is bound
has a time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.column import Column
from ensue.engine.core.instances.keys import fast_key
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import RuleTimers
from ensue.engine.core.rule_table import moving_states
from ensue.engine.core.saved_rules import (
    SavedEvent,
    SavedExtra,
    SavedKey,
    SavedPlace,
    SavedRule,
    save_event,
)
from ensue.engine.ports import Key
from ensue.errors import SnapshotError
from ensue.events import cloudevents
from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.expressions.names import Parts, is_time
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.records import MachineRecord


class ColumnState(msgspec.Struct, frozen=True):
    """The saved state of a correlation in columns.

    `keys` and `kept` are Arrow streams: a row for each key, and a row for each event that is bound.
    `general_keys` has the keys where they are not all texts or all integers. `stepped` says that
    each key has the starts of the machine's states; else it has a number in `states`, which lists
    sets of states. Values that Arrow cannot hold are in `objects`, by name, and events that may be
    sent on in `packed`. `counted` has the outputs of the moment `counted_at`: row of the key,
    trigger and number.
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


class SavedEvents(msgspec.Struct, frozen=True):
    """The saved state of a rule that runs event by event or relates events, and its machine."""

    clock: int | None
    machine: MachineRecord | None
    rule: SavedRule

    def encode(self) -> bytes:
        try:
            return msgspec.msgpack.encode(self)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise SnapshotError(
                f"an event that is still needed holds something that cannot be saved: {error}"
            ) from None


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
    """A column of objects: each value with a mark for missing, a large integer, or as it is."""

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


_CONTEXT = {("id",), ("source",), ("type",), ("time",)}


def saved_rule(correlation: Correlation, machine: Machine, column: ColumnState) -> SavedRule:
    """The state of a rule in columns as plain data."""
    table = arrow_table(column.keys)
    if column.general_keys is not None:
        found = msgspec.msgpack.decode(column.general_keys, type=list[Key])
        keys: list[SavedKey] = [saved_key(key) for key in found]
    else:
        keys = table.column("key").to_pylist()
    events = _kept_events(column)
    states: dict[tuple[int, ...], int] = {}
    saved: list[tuple[SavedKey, int, list[SavedPlace]]] = []
    extras: dict[int, SavedExtra] = {}
    held = {name: table.column(name).to_pylist() for name in table.schema.names}
    places = [name for name in held if name.startswith("place ")]
    timers = RuleTimers(correlation, machine)
    made: dict[int, dict[str, int]] = {}
    for at, trigger, number in column.counted:
        made.setdefault(at, {})[trigger] = number
    for at, key in enumerate(keys):
        if column.stepped:
            starts = _starts_of(machine, held, at)
            active = tuple(sorted(starts))
            has_started = held["started"][at] or starts != dict.fromkeys(machine.initial, FAR)
        else:
            active = tuple(column.states[held["state"][at]])
            starts = {}
            has_started = active != (-1,)
        if not has_started:
            continue
        bound: list[SavedPlace] = [
            (
                int(name.removeprefix("place ")),
                held[name][at] + 1,
                _saved(events[held[name][at]]),
            )
            for name in places
            if held[name][at] is not None
        ]
        timed = _saved_timers(timers, held, at) if len(timers) else SavedExtra()
        extra = msgspec.structs.replace(
            timed,
            outputs_at=column.counted_at if at in made else None,
            outputs_made=made.get(at, {}),
            starts=[None if starts[state] == FAR else starts[state] for state in active]
            if machine.window is not None
            else None,
        )
        if extra != SavedExtra():
            extras[len(saved)] = extra
        saved.append((key, states.setdefault(active, len(states)), bound))
    form = "table" if machine.window is None else "linear"
    sets = [list(each) for each in states]
    return SavedRule(correlation.name, form, 0, sets, saved, extras)


def _saved(what: Event | int) -> int | SavedEvent:
    return what if isinstance(what, int) else save_event(what)


def _saved_timers(timers: RuleTimers, held: dict[str, list[Any]], at: int) -> SavedExtra:
    due = [held[f"due {number}"][at] for number in range(len(timers))]
    ports, timeouts = due[: len(timers.ports)], due[len(timers.ports) :]
    return SavedExtra(
        last_read=held["number"][at],
        # The timers of a finished expression never fire.
        due={p.name: FAR if d is None else d for p, d in zip(timers.ports, ports, strict=True)},
        timeouts={
            timer.state: each
            for timer, each in zip(timers.timeouts, timeouts, strict=True)
            if each is not None
        },
    )


def saved_key(key: Key) -> SavedKey:
    plain = fast_key(tuple((kind, value) for kind, value in key))
    return list(plain) if isinstance(plain, tuple) else plain


def _starts_of(machine: Machine, held: dict[str, list[Any]], at: int) -> dict[int, int]:
    starts = dict.fromkeys(machine.initial - set(moving_states(machine)), FAR)
    for state in moving_states(machine):
        start = held[f"start {state}"][at]
        if start is not None and start != -FAR:
            starts[state] = start
    return starts


def _kept_events(column: ColumnState) -> list[Event | int]:
    """What is bound: an event as it was or with the names that were kept; of a firing its time."""
    table = arrow_table(column.kept)
    if "id" not in table.schema.names:
        return []
    values = {name: table.column(name).to_pylist() for name in table.schema.names}
    values |= {name: object_column(data).to_list() for name, data in column.objects.items()}
    whole = whole_events(column)
    kept: list[Event | int] = []
    for at, id_ in enumerate(values["id"]):
        known = {
            tuple(name.split(".")): each[at]
            for name, each in values.items()
            if each[at] is not None and each[at] is not MISSING
        }
        if id_ is None:
            when = next((value for name, value in known.items() if is_time(name)), None)
            kept.append(0 if when is None else microseconds_of(when))
        else:
            kept.append(event_of(known) if whole is None else whole[at])
    return kept


def event_of(known: dict[Parts, Any]) -> Event:
    """An event with the attributes that were kept of it, by their names."""
    data: dict[str, Any] = {}
    for name, value in known.items():
        *path, last = name
        if name in _CONTEXT:
            continue
        inner = data
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    time = known.get(("time",))
    return Event(
        known["id",],
        known.get(("source",), ""),
        known.get(("type",), ""),
        0 if time is None else microseconds_of(time),
        data,
    )
