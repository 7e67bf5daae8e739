"""State between the step engine and the batch engine: a run that goes on with the other one.

In comes what one engine has saved; out goes what the other can go on from. The plain data of
`ensue.engine.core.saved.rules` is the form of exchange: for each rule its keys, the sets of active
states, and what is bound. Both engines run the same machines, so that states keep
their numbers, and timers their due times; a snapshot on a machine that is built differently today
cannot move.

Of a bound event the batch engine keeps only the names that statements ask for. The step engine goes
on with an event of just these. How events of different rules came after each other is not known
then, so the rules are stepped one by one from there on (`apart`).
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from ensue.engine.batch.engine import BatchEngine
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.saved.column_state import ColumnState, arrow_table
from ensue.engine.batch.saved.from_step import column_state
from ensue.engine.batch.saved.snapshots import decode_engine
from ensue.engine.batch.saved.to_step import saved_rule
from ensue.engine.batch.single.by_event import EventCorrelation, SavedEvents
from ensue.engine.core.saved.machines import PlainMachine, to_plain
from ensue.engine.core.saved.rules import SavedRule, SavedStream
from ensue.engine.core.timer_table import Timers
from ensue.errors import SnapshotError
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.plan import plan
from ensue.machine.prepared import brought_plan


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
    names = {rule.name for rule in saved.rules}
    engine.go_on(clock, states_from_step(engine, library, saved, clock, names))


def states_from_step(
    engine: BatchEngine,
    library: CheckedLibrary,
    saved: SavedStream,
    clock: int | None,
    names: Container[str],
) -> dict[str, bytes]:
    """What an engine goes on from, by rule: of rules that it runs as well."""
    states: dict[str, bytes] = {}
    for rule, correlation in zip(saved.rules, library.correlations, strict=True):
        if rule.name not in names:
            continue
        running = engine.correlations[rule.name]
        plain = None if rule.machine is None else saved.machines[rule.machine]
        if isinstance(running, EventCorrelation | RelatedCorrelation):
            number = None if plain is None else 0
            moved = msgspec.structs.replace(rule, machine=number)
            states[rule.name] = msgspec.msgpack.encode(SavedEvents(clock, plain, moved))
            continue
        machine = _machine(library, correlation)
        if machine is None or to_plain(machine) != plain:
            raise _cannot_move(rule.name, "its machine is built differently today")
        asked, whole = running.remembered.names, running.remembered.whole
        column = column_state(rule, Timers(correlation, machine), machine, asked, whole)
        states[rule.name] = msgspec.msgpack.encode(column)
    return states


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
    column = msgspec.msgpack.decode(state, type=ColumnState)
    machine = _machine(library, correlation)
    assert machine is not None, "what runs in columns has a machine"
    table = arrow_table(column.keys)
    return saved_rule(correlation, machine, column, table), to_plain(machine)
