"""State between the step engine and the batch engine: a run that goes on with the other one.

In comes what one engine has saved; out goes what the other can go on from. The plain data of
`ensue.engine.core.saved_rules` is the form of exchange: for each rule its keys, the sets of active
states, and what is bound. `column_state` makes a `ColumnState` of it: keys, states or starts, due
times, and columns of what is bound; the way back is `saved_states.saved_rule`.

Both engines run the same machines, so that states keep their numbers, and timers their due times;
a snapshot on a machine that is built differently today cannot move. Of a bound event the batch
engine keeps only the names that statements ask for. The step engine goes on with an event of just
these. How events of different rules came after each other is not known then, so the rules are
stepped one by one from there on (`apart`).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.batch.engine import BatchEngine
from ensue.engine.batch.input.column import Column
from ensue.engine.batch.input.keys import plain_column
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.saved_states import (
    ColumnState,
    SavedEvents,
    arrow_bytes,
    object_bytes,
    pack_events,
    saved_rule,
)
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.batch.snapshots import decode_engine
from ensue.engine.core.instances.keys import whole_key
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import RuleTimers
from ensue.engine.core.rule_table import moving_states
from ensue.engine.core.saved_rules import (
    SavedEvent,
    SavedExtra,
    SavedPlace,
    SavedRule,
    SavedStream,
    restore_event,
    restore_key,
    save_machine,
)
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.lang.checked import CheckedLibrary
from ensue.lang.expressions.evaluation import MISSING, EventScope
from ensue.lang.expressions.names import Parts, is_time
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.plan import plan
from ensue.machine.prepared import brought_plan
from ensue.machine.records import MachineRecord


def column_state(
    rule: SavedRule, timers: RuleTimers, machine: Machine, names: tuple[Parts, ...], whole: bool
) -> ColumnState:
    """The state of a rule in columns, which keeps `names` of bound events, or `whole` events."""
    keys = [whole_key(restore_key(key)) for key, _, _ in rule.keys]
    bound: dict[BoundPlace, Event | int] = {}
    for at, (_, _, places) in enumerate(rule.keys):
        for place in places:
            what = place[2]
            # An event that one place wants as a whole is kept as a whole.
            if isinstance(what, SavedEvent):
                bound[_bound(at, place)] = restore_event(what)
            elif isinstance(what, str):
                bound.setdefault(_bound(at, place), Event(what, "", "", 0))
            else:
                bound[_bound(at, place)] = what
    order = {each: number for number, each in enumerate(sorted(bound))}
    kept = [bound[each] for each in order]
    ids = [None if isinstance(each, int) else each.id for each in kept]
    columns = _columns_of_places(rule, machine, order)
    stepped = machine.window is not None or len(timers) > 0
    if stepped:
        columns |= _columns_of_starts(rule, machine)
        columns["started"] = pa.array([True] * len(keys), pa.bool_())
    else:
        columns["state"] = pa.array([state for _, state, _ in rule.keys], pa.uint32())
    if len(timers):
        columns |= _columns_of_timers(rule, timers)
    general, plain = None, plain_column(keys)
    if plain is None:
        general = msgspec.msgpack.encode(keys)
    else:
        columns["key"] = plain
    counted_at, counted = _counted(rule)
    others = [name for name in names if name != ("id",)]
    return ColumnState(
        stepped=stepped,
        keys=arrow_bytes(pa.table(columns)),
        general_keys=general,
        states=[] if stepped else rule.states,
        kept=arrow_bytes(pa.table({"id": pa.array(ids, pa.string())})),
        objects={".".join(name): object_bytes(_column(kept, name)) for name in others},
        counted_at=counted_at,
        counted=counted,
        packed=pack_events([_as_event(each) for each in kept]) if whole and kept else None,
    )


BoundPlace = tuple[int, bool, int]
"""What is bound: its number, whether it is the firing of a timer, and of which key it is then."""


def _bound(at: int, place: SavedPlace) -> BoundPlace:
    """Events have their numbers for all keys, and firings of timers theirs for each key."""
    _, number, what = place
    is_firing = isinstance(what, int)
    return number, is_firing, at if is_firing else 0


def _as_event(what: Event | int) -> Event:
    return Event("", "", "", what) if isinstance(what, int) else what


def _columns_of_places(
    rule: SavedRule, machine: Machine, order: dict[BoundPlace, int]
) -> dict[str, pa.Array]:
    numbers = [place for branch in machine.branches for place, _, _ in branch.places]
    bound = [
        {place[0]: order[_bound(at, place)] for place in each}
        for at, (_, _, each) in enumerate(rule.keys)
    ]
    return {
        f"place {place}": pa.array([each.get(place) for each in bound], pa.int32())
        for place in range(max(numbers, default=-1) + 1)
    }


def _columns_of_timers(rule: SavedRule, timers: RuleTimers) -> dict[str, pa.Array]:
    """When each timer of a key is due; null where it does not run."""
    rows = []
    for at, (_, states, _) in enumerate(rule.keys):
        extra = rule.extras.get(at, SavedExtra())
        running = timers.running(frozenset(rule.states[states]))
        due = [extra.due.get(port.name) for port in timers.ports]
        due += [extra.timeouts.get(timer.state) for timer in timers.timeouts]
        rows.append([each if running >> n & 1 else None for n, each in enumerate(due)])
    numbers = [rule.extras.get(at, SavedExtra()).last_read for at in range(len(rule.keys))]
    return {
        **{f"due {n}": pa.array([row[n] for row in rows], pa.int64()) for n in range(len(timers))},
        "number": pa.array(numbers, pa.int64()),
    }


def _columns_of_starts(rule: SavedRule, machine: Machine) -> dict[str, pa.Array]:
    starts = []
    for at, (_, states, _) in enumerate(rule.keys):
        active = rule.states[states]
        # Without a window it does not matter when a state was set.
        held = rule.extras.get(at, SavedExtra()).starts or [None] * len(active)
        known = zip(active, held, strict=True)
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


def _column(kept: list[Event | int], name: Parts) -> Column:
    found = [_value(what, name) for what in kept]
    values = np.empty(len(found), object)
    values[:] = found
    return Column("object", values, np.array([each is MISSING for each in found], np.bool_))


def _value(what: Event | int, name: Parts) -> Any:
    """What a name stands for in an event; the firing of a timer has a time, and nothing else."""
    if isinstance(what, Event):
        return EventScope(what).lookup(name)
    return datetime_of(what) if is_time(name) else MISSING


def _cannot_move(name: str, why: str) -> SnapshotError:
    return SnapshotError(
        f"the state of `{name}` cannot move to another engine: {why};"
        " resume with the engine that the snapshot was taken on"
    )


def machine_of(library: CheckedLibrary, correlation: Correlation) -> Machine | None:
    planned = brought_plan(library, correlation) or plan(correlation)
    return None if planned.form == "memory" else planned.machine


# --- from step to batch ---------------------------------------------------------------------------


def restore_from_step(
    engine: BatchEngine, library: CheckedLibrary, saved: SavedStream, clock: int | None
) -> None:
    """Put a fresh engine of the same library into the state that the step engine has saved."""
    names = {rule.name for rule in saved.rules}
    engine.restore_states(clock, states_from_step(engine, library, saved, clock, names))


def states_from_step(
    engine: BatchEngine,
    library: CheckedLibrary,
    saved: SavedStream,
    clock: int | None,
    names: Container[str],
) -> dict[str, bytes]:
    """The saved states of the rules that an engine runs, in its own form, by rule."""
    states: dict[str, bytes] = {}
    for rule, correlation in zip(saved.rules, library.correlations, strict=True):
        if rule.name not in names:
            continue
        running = engine.correlations[rule.name]
        plain = None if rule.machine is None else saved.machines[rule.machine]
        if isinstance(running, EventCorrelation | RelatedCorrelation):
            number = None if plain is None else 0
            moved = msgspec.structs.replace(rule, machine=number)
            states[rule.name] = SavedEvents(clock, plain, moved).encode()
            continue
        machine = machine_of(library, correlation)
        if machine is None or save_machine(machine) != plain:
            raise _cannot_move(rule.name, "its machine is built differently today")
        asked, whole = running.remembered.names, running.remembered.whole
        column = column_state(rule, RuleTimers(correlation, machine), machine, asked, whole)
        states[rule.name] = msgspec.msgpack.encode(column)
    return states


# --- from batch to step ---------------------------------------------------------------------------


def stream_of_batch(snapshot: bytes, library: CheckedLibrary, fingerprint: str) -> SavedStream:
    """A snapshot of the batch engine in the form in which the step engine saves its state."""
    engine = decode_engine(snapshot, fingerprint)
    machines: dict[MachineRecord, int] = {}
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
) -> tuple[SavedRule, MachineRecord | None]:
    try:
        by_events = msgspec.msgpack.decode(state, type=SavedEvents)
    except msgspec.ValidationError:
        pass
    else:
        return by_events.rule, by_events.machine
    column = msgspec.msgpack.decode(state, type=ColumnState)
    machine = machine_of(library, correlation)
    assert machine is not None, "what runs in columns has a machine"
    return saved_rule(correlation, machine, column), save_machine(machine)
