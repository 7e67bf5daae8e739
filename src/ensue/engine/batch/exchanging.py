"""State between the step engine and the batch engine: a run that goes on with the other one.

In comes what one engine has saved; out goes what the other can go on from. The plain data of
the step engine (`ensue.engine.step.saving`) is the form of exchange: for each rule its keys, the
sets of active states, and what is bound. Both engines run the same machines, so that states keep
their numbers; a snapshot on a machine that is built differently today cannot move, and neither can
timers that are run in columns, whose due times each engine keeps in its own way.

Of a bound event the batch engine keeps only the names that statements ask for. The step engine goes
on with an event of just these. How events of different rules came after each other is not known
then, so the rules are stepped one by one from there on (`apart`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.by_event import EventCorrelation, SavedEvents
from ensue.engine.batch.column import Column
from ensue.engine.batch.engine import BatchEngine
from ensue.engine.batch.kernels import FAR
from ensue.engine.batch.remembered import read_event, write_event
from ensue.engine.batch.snapshots import (
    ColumnState,
    arrow_bytes,
    arrow_table,
    decode_engine,
    object_bytes,
    object_column,
)
from ensue.engine.batch.timed import TimedCorrelation
from ensue.engine.batch.walks import moving_states
from ensue.engine.ports import Key
from ensue.engine.step.machines import PlainMachine, to_plain
from ensue.engine.step.rules import fast_key, whole_key
from ensue.engine.step.saving import (
    SavedEvent,
    SavedExtra,
    SavedKey,
    SavedPlace,
    SavedRule,
    SavedStream,
    restore_event,
    restore_key,
    save_event,
)
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.lang.checked import CheckedLibrary
from ensue.lang.expressions.evaluation import MISSING, EventScope
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.plan import plan
from ensue.machine.prepared import brought_plan

Parts = tuple[str, ...]
_CONTEXT = ("id", "source", "type", "time")


def _cannot_move(name: str, why: str) -> SnapshotError:
    return SnapshotError(
        f"the state of `{name}` cannot move to another engine: {why};"
        " resume with the engine that the snapshot was taken on"
    )


def _machine(library: CheckedLibrary, correlation: Correlation) -> Machine | None:
    planned = brought_plan(library, correlation) or plan(correlation)
    return None if planned.form == "memory" else planned.machine


# --- from step to batch ---------------------------------------------------------------------------


def restore_from_step(
    engine: BatchEngine, library: CheckedLibrary, saved: SavedStream, clock: int | None
) -> None:
    """Put a fresh engine of the same library into the state that the step engine has saved."""
    states: dict[str, bytes] = {}
    for rule, correlation in zip(saved.rules, library.correlations, strict=True):
        plain = None if rule.machine is None else saved.machines[rule.machine]
        running = engine.correlations[rule.name]
        if isinstance(running, EventCorrelation):
            number = None if plain is None else 0
            moved = msgspec.structs.replace(rule, machine=number)
            states[rule.name] = msgspec.msgpack.encode(SavedEvents(clock, plain, moved))
            continue
        if isinstance(running, TimedCorrelation):
            raise _cannot_move(rule.name, "its timers are run in columns")
        machine = _machine(library, correlation)
        if machine is None or to_plain(machine) != plain:
            raise _cannot_move(rule.name, "its machine is built differently today")
        names, whole = running.remembered.names, running.remembered.whole
        column = _column_state(rule, machine, names, whole)
        states[rule.name] = msgspec.msgpack.encode(column)
    engine.go_on(clock, states)


def _column_state(
    rule: SavedRule, machine: Machine, names: tuple[Parts, ...], whole: bool
) -> ColumnState:
    keys = [whole_key(restore_key(key)) for key, _, _ in rule.keys]
    events: dict[int, Event] = {}
    for _, _, places in rule.keys:
        for _, number, what in places:
            # An event that one place wants as a whole is kept as a whole.
            if isinstance(what, SavedEvent):
                events[number] = restore_event(what)
            elif isinstance(what, str):
                events.setdefault(number, Event(what, "", "", 0))
    order = {number: at for at, number in enumerate(sorted(events))}
    kept = [events[number] for number in order]
    columns = _columns_of_places(rule, machine, order)
    if machine.window is None:
        columns["state"] = pa.array([state for _, state, _ in rule.keys], pa.uint32())
    else:
        columns |= _columns_of_starts(rule, machine)
        columns["started"] = pa.array([True] * len(keys), pa.bool_())
    values = [key[0][1] for key in keys if len(key) == 1]
    kinds = {type(value) for value in values}
    general = None
    if len(values) == len(keys) and kinds in ({str}, {int}):
        columns["key"] = pa.array(values, pa.string() if kinds == {str} else pa.int64())
    else:
        general = msgspec.msgpack.encode(keys)
    counted_at, counted = _counted(rule)
    others = [name for name in names if name != ("id",)]
    return ColumnState(
        stepped=machine.window is not None,
        keys=arrow_bytes(pa.table(columns)),
        general_keys=general,
        states=rule.states if machine.window is None else [],
        kept=arrow_bytes(pa.table({"id": pa.array([each.id for each in kept], pa.string())})),
        objects={".".join(name): object_bytes(_column(kept, name)) for name in others},
        whole=[write_event(each) for each in kept] if whole and kept else None,
        counted_at=counted_at,
        counted=counted,
    )


def _columns_of_places(
    rule: SavedRule, machine: Machine, order: dict[int, int]
) -> dict[str, pa.Array]:
    numbers = [place for branch in machine.branches for place, _, _ in branch.places]
    bound = [{place: order[number] for place, number, _ in each} for _, _, each in rule.keys]
    return {
        f"place {place}": pa.array([each.get(place) for each in bound], pa.int32())
        for place in range(max(numbers, default=-1) + 1)
    }


def _columns_of_starts(rule: SavedRule, machine: Machine) -> dict[str, pa.Array]:
    starts = []
    for at, (_, states, _) in enumerate(rule.keys):
        held = rule.extras.get(at, SavedExtra()).starts or []
        known = zip(rule.states[states], held, strict=True)
        starts.append({state: FAR if start is None else start for state, start in known})
    return {
        f"start {state}": pa.array([each.get(state) for each in starts], pa.int64())
        for state in moving_states(machine)
    }


def _counted(rule: SavedRule) -> tuple[int | None, list[tuple[int, str, int]]]:
    latest = max(
        (each.outputs_at for each in rule.extras.values() if each.outputs_at), default=None
    )
    return latest, [
        (at, trigger, number)
        for at, extra in rule.extras.items()
        if extra.outputs_at is not None and extra.outputs_at == latest
        for trigger, number in extra.outputs_made.items()
    ]


def _column(events: list[Event], name: Parts) -> Column:
    found = [EventScope(event).lookup(name) for event in events]
    values = np.empty(len(found), object)
    values[:] = found
    return Column("object", values, np.array([each is MISSING for each in found], np.bool_))


# --- from batch to step ---------------------------------------------------------------------------


def stream_of_batch(snapshot: bytes, library: CheckedLibrary, fingerprint: str) -> SavedStream:
    """What the batch engine has saved, as the step engine saves it."""
    engine = decode_engine(snapshot, fingerprint)
    machines: dict[PlainMachine, int] = {}
    rules = []
    read = 1
    for correlation, state in zip(library.correlations, engine.correlations, strict=True):
        rule, plain = _rule_of(library, correlation, state)
        number = None if plain is None else machines.setdefault(plain, len(machines))
        rules.append(msgspec.structs.replace(rule, machine=number))
        places = [number for _, _, each in rule.keys for _, number, _ in each]
        read = max([read, *places])
    return SavedStream(list(machines), rules, read + 1, apart=True)


def _rule_of(
    library: CheckedLibrary, correlation: Correlation, state: bytes
) -> tuple[SavedRule, PlainMachine | None]:
    try:
        by_events = msgspec.msgpack.decode(state, type=SavedEvents)
    except msgspec.ValidationError:
        pass
    else:
        return by_events.rule, by_events.machine
    try:
        column = msgspec.msgpack.decode(state, type=ColumnState)
    except msgspec.ValidationError:
        raise _cannot_move(correlation.name, "it was saved as all the events it had read") from None
    machine = _machine(library, correlation)
    assert machine is not None, "what runs in columns has a machine"
    table = arrow_table(column.keys)
    if any(name.startswith("due ") for name in table.schema.names):
        raise _cannot_move(correlation.name, "its timers are run in columns")
    return _saved_rule(correlation, machine, column, table), to_plain(machine)


def _saved_rule(
    correlation: Correlation, machine: Machine, column: ColumnState, table: pa.Table
) -> SavedRule:
    if column.general_keys is not None:
        found = msgspec.msgpack.decode(column.general_keys, type=list[Key])
        keys: list[SavedKey] = [_saved_key(key) for key in found]
    else:
        keys = table.column("key").to_pylist()
    events = _kept_events(column)
    states: dict[tuple[int, ...], int] = {}
    saved: list[tuple[SavedKey, int, list[SavedPlace]]] = []
    extras: dict[int, SavedExtra] = {}
    held = {name: table.column(name).to_pylist() for name in table.schema.names}
    places = [name for name in held if name.startswith("place ")]
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
                save_event(events[held[name][at]]),
            )
            for name in places
            if held[name][at] is not None
        ]
        extra = SavedExtra(
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
    return SavedRule(correlation.name, form, 0, len(saved), sets, saved, extras)


def _saved_key(key: Key) -> SavedKey:
    plain = fast_key(tuple((kind, value) for kind, value in key))
    return list(plain) if isinstance(plain, tuple) else plain


def _starts_of(machine: Machine, held: dict[str, list[Any]], at: int) -> dict[int, int]:
    starts = dict.fromkeys(machine.initial - set(moving_states(machine)), FAR)
    for state in moving_states(machine):
        start = held[f"start {state}"][at]
        if start is not None and start != -FAR:
            starts[state] = start
    return starts


def _kept_events(column: ColumnState) -> list[Event]:
    """The events that are bound: as they were, or with the names that were kept of them."""
    if column.whole is not None:
        return [read_event(each) for each in column.whole]
    table = arrow_table(column.kept)
    values = {name: table.column(name).to_pylist() for name in table.schema.names}
    values |= {name: object_column(data).to_list() for name, data in column.objects.items()}
    count = len(next(iter(values.values()))) if values else 0
    events = []
    for at in range(count):
        known = {name: each[at] for name, each in values.items()}
        data: dict[str, Any] = {}
        for name, value in known.items():
            *path, last = name.split(".")
            if name in _CONTEXT or value is None or value is MISSING:
                continue
            inner = data
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = value
        time = known.get("time")
        events.append(
            Event(
                known.get("id") or "",
                known.get("source") or "",
                known.get("type") or "",
                0 if time is None else microseconds_of(time),
                data,
            )
        )
    return events
