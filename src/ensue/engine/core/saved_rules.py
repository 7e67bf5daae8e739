"""The state of rules on instances as plain data: what a snapshot holds, and how it comes back.

For each rule: its form, the machine that it runs on, and its keys. A key is [key, states, places]:
the key itself, the number of its set of active states in `states`, and what is bound in each place
that counts: [place, when, what]. Most keys need no more; the others have an entry in `extras`.

Only what matters later is kept. A key that stands as before its start is left out; so is a place
that is not bound, what has left its window, and the count of outputs of a moment that is over. Of
an event that no statement looks at, only its id is kept, for the `causes` of an output.

A snapshot holds the machines of its rules, since a later version may build a better machine for the
same text, and saved states mean something on the old one only. A machine that comes back is checked
by `ensue.machine.records`, and its predicates must be those of its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from ensue.engine.core.instances.ecl import EclRunner
from ensue.engine.core.instances.filters import FilterRunner, TabledFilter, WindowedFilter
from ensue.engine.core.instances.keys import FastKey
from ensue.engine.core.instances.rules import Rule, Runner
from ensue.engine.core.relating.linked import ChainFilter
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.ports import Reading
from ensue.engine.reference.filters import FilterInstance
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import values_in
from ensue.lang.expressions import Expression
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.syntax import (
    Correlation,
    EclCorrelation,
    FilterCorrelation,
    Holds,
    PushPort,
)
from ensue.machine.model import Machine
from ensue.machine.records import MachineRecord, machine_of_record, record_of_machine
from ensue.machine.stepping import NOW

Item = TypeVar("Item")

MOST_READINGS = 2**40
"""More readings than any rule has made: the numbers of readings are smaller."""


class SavedEvent(msgspec.Struct, array_like=True, frozen=True):
    """An event as a snapshot has it."""

    id: str
    source: str
    type: str
    time: int
    data: Any
    extensions: dict[str, Any]


SavedKey = str | int | float | list[tuple[str, Any]]
SavedPlace = tuple[int, int, int | str | SavedEvent]
"""The place, when it was bound, and by what: a firing's time, the id of an event, or all of it."""


class SavedBranch(msgspec.Struct, array_like=True, frozen=True):
    """The remembered readings of a branch, as (time, ports, event).

    `tallies` are over these readings and over those that a rule without a window has dropped.
    """

    readings: list[tuple[int, list[str], SavedEvent | None]]
    aborted: list[str]
    revived: dict[str, int]
    tallies: SavedTallies | None = None


class SavedExtra(msgspec.Struct, array_like=True, frozen=True):
    """What few keys have: the number of the last event, due times, counts of outputs, starts."""

    last_read: int = 0
    due: dict[str, int] = {}
    outputs_at: int | None = None
    outputs_made: dict[str, int] = {}
    timeouts: dict[int, int] = {}
    starts: list[int | None] | None = None
    branches: list[SavedBranch] | None = None


class SavedRule(msgspec.Struct, frozen=True):
    """The state of one rule: its form, its machine by number, and its keys."""

    name: str
    form: str
    machine: int | None
    states: list[list[int]]
    keys: list[tuple[SavedKey, int, list[SavedPlace]]]
    extras: dict[int, SavedExtra]


def last_read_in(rules: Iterable[SavedRule]) -> int:
    """The largest number of a last event; what is read next has a larger one."""
    return max((extra.last_read for rule in rules for extra in rule.extras.values()), default=0)


class SavedStream(msgspec.Struct, frozen=True):
    """The state of all rules of a stream, and the machines that they run on.

    `read` is the number of the next event that is bound. With `apart`, numbers of events compare
    within a rule only, so that rules are not stepped together.
    """

    machines: list[MachineRecord]
    rules: list[SavedRule]
    read: int
    apart: bool = False


# --- machines and events ------------------------------------------------------------------------


def save_machine(machine: Machine) -> MachineRecord:
    return record_of_machine(machine, print_expression, with_names=False)


def restore_machine(saved: MachineRecord, correlation: Correlation) -> Machine:
    """The machine again, for the correlation that it was built from."""
    parts = expressions_in(correlation.body) if isinstance(correlation, EclCorrelation) else ()
    held = [each.predicate for each in parts if isinstance(each, Holds)]
    predicates = {print_expression(each): each for each in held}

    def own(text: str) -> Expression:
        if text not in predicates:
            raise ValueError(f"`{text}` is no predicate of `{correlation.name}`")
        return predicates[text]

    try:
        return machine_of_record(saved, own)
    except ValueError as error:
        raise damaged(str(error)) from None


def save_event(event: Event) -> SavedEvent:
    data = dict(event.data) if isinstance(event.data, Mapping) else event.data
    extensions = dict(event.extensions)
    return SavedEvent(event.id, event.source, event.type, event.time, data, extensions)


def restore_event(saved: SavedEvent) -> Event:
    return Event(saved.id, saved.source, saved.type, saved.time, saved.data, saved.extensions)


# --- saving -------------------------------------------------------------------------------------


def save_rule(rule: Rule, machine: int | None, now: int | None) -> SavedRule:
    """The state of one rule; `machine` says where its machine is kept."""
    states: dict[tuple[int, ...], int] = {}
    keys: list[tuple[SavedKey, int, list[SavedPlace]]] = []
    extras: dict[int, SavedExtra] = {}
    read_whole = _ports_read(rule)
    for key, instance in rule.held().items():
        active = sorted(active_states(instance, now))
        number = states.setdefault(tuple(active), len(states))
        saved_key = list(key) if isinstance(key, tuple) else key
        places = _save_places(instance, frozenset(active), read_whole)
        extra = _extra(rule, instance, active, now)
        if extra != SavedExtra():
            extras[len(keys)] = extra
        keys.append((saved_key, number, places))
    sets = [list(each) for each in states]
    return SavedRule(rule.name, rule.form, machine, sets, keys, extras)


def active_states(instance: Runner, now: int | None) -> Iterable[int]:
    """The active states of an instance on a machine, without those that a window has left."""
    if isinstance(instance, WindowedFilter):
        oldest = -NOW if now is None else now - (instance.facts.machine.window or 0)
        return [state for state, start in instance.active.items() if start >= oldest]
    if isinstance(instance, FilterInstance | ChainFilter):
        return ()
    return instance.row.active


def _save_places(
    instance: Runner, active: frozenset[int], read_whole: frozenset[str]
) -> list[SavedPlace]:
    if not isinstance(instance, TabledFilter | WindowedFilter):
        return []
    facts = instance.facts
    saved: list[SavedPlace] = []
    for place, numbered in enumerate(instance.places):
        if numbered is None or facts.bound_states[place] not in active:
            continue
        number, what = numbered
        if isinstance(what, int):
            saved.append((place, number, what))
        else:
            whole = facts.ports[place] in read_whole
            saved.append((place, number, save_event(what) if whole else what.id))
    return saved


def _extra(rule: Rule, instance: Runner, active: list[int], now: int | None) -> SavedExtra:
    outputs = instance.made_outputs
    if outputs is not None and (outputs.time is None or (now is not None and outputs.time < now)):
        outputs = None
    starts = None
    if isinstance(instance, WindowedFilter):
        held = [instance.active[state] for state in active]
        starts = [None if start == NOW else int(start) for start in held]
    return SavedExtra(
        # Needed only to order keys whose timers are due together.
        last_read=instance.last_read if rule.has_clock else 0,
        due=dict(instance.timers_due),
        outputs_at=None if outputs is None else outputs.time,
        outputs_made={} if outputs is None else outputs.made,
        timeouts=dict(instance.timeouts) if isinstance(instance, EclRunner) else {},
        starts=starts,
        branches=_branches(instance, now),
    )


def _branches(instance: Runner, now: int | None) -> list[SavedBranch] | None:
    if isinstance(instance, ChainFilter):
        return [
            SavedBranch(_save_readings(each.readings(now)), [], {}, each.tallies())
            for each in instance.branches()
        ]
    if not isinstance(instance, FilterInstance):
        return None
    return [
        SavedBranch(_save_readings(each.readings), sorted(each.aborted), dict(each.revived))
        for each in instance.branches
    ]


def _save_readings(
    readings: Iterable[Reading],
) -> list[tuple[int, list[str], SavedEvent | None]]:
    return [
        (each.time, sorted(each.ports), save_event(each.event) if each.event else None)
        for each in readings
    ]


def _ports_read(rule: Rule) -> frozenset[str]:
    """The ports whose events a statement reads or sends on; of others, only the id is needed."""
    correlation = rule.correlation
    if not isinstance(correlation, FilterCorrelation):
        return frozenset()
    found: set[str] = set()
    statements = [each for case in correlation.cases for each in case.statements]
    found.update(each.port for each in statements if isinstance(each, PushPort))
    found.update(name[0] for value in values_in(statements) for name in names_in(value))
    return frozenset(found)


# --- bringing back ------------------------------------------------------------------------------


def restore_rule(rule: Rule, saved: SavedRule) -> None:
    """Put a fresh rule, on the machine that was saved, into the state that was saved."""
    largest = len(rule.machine.names) if rule.machine else 0
    for states in saved.states:
        if any(not 0 <= state < largest for state in states):
            raise damaged(f"`{rule.name}` is in states that it has not")
    for place, (saved_key, number, places) in enumerate(saved.keys):
        extra = saved.extras.get(place, SavedExtra())
        if not 0 <= extra.last_read < MOST_READINGS or not all(map(_is_instant, _times_in(extra))):
            raise damaged(f"`{rule.name}` has times or numbers out of range")
        instance = rule.begin(restore_key(saved_key), 0)
        instance.last_read = extra.last_read
        active = item_at(saved.states, number)
        if extra.due.keys() != instance.timers_due.keys():
            raise damaged(f"`{rule.name}` has other timers")
        instance.timers_due = dict(extra.due)
        if extra.outputs_at is not None:
            instance.outputs.time = extra.outputs_at
            instance.outputs.made = dict(extra.outputs_made)
        match instance:
            case ChainFilter():
                _restore_linked(instance, extra.branches or [])
            case FilterInstance():
                _restore_memory(instance, extra.branches or [])
            case WindowedFilter():
                starts = extra.starts if extra.starts is not None else []
                if len(starts) != len(active):
                    raise damaged(f"`{rule.name}` has states without a start")
                instance.active = {
                    state: NOW if start is None else start
                    for state, start in zip(active, starts, strict=True)
                }
                _restore_places(instance, places, active)
            case TabledFilter():
                instance.row = instance.rows.row_of(active)
                _restore_places(instance, places, active)
            case EclRunner():
                instance.row = instance.rows.row_of(active)
                if not extra.timeouts.keys() <= set(active):
                    raise damaged(f"`{rule.name}` has timeouts that are not under way")
                instance.timeouts = dict(extra.timeouts)


def _restore_places(instance: FilterRunner, saved: list[SavedPlace], active: list[int]) -> None:
    facts = instance.facts
    for place, number, what in saved:
        if not 0 <= place < facts.place_count:
            raise damaged(f"`{facts.correlation.name}` has no place {place}")
        match what:
            case SavedEvent():
                instance.places[place] = (number, restore_event(what))
            case str():
                instance.places[place] = (number, Event(what, "", "", 0))
            case int():
                instance.places[place] = (number, what)
    for place, state in facts.bound_states.items():
        if state in active and instance.places[place] is None:
            raise damaged(f"`{facts.correlation.name}` has lost what it has bound")


def _restore_memory(instance: FilterInstance, saved: list[SavedBranch]) -> None:
    if len(saved) != len(instance.branches):
        raise damaged("a rule has other branches")
    for branch, state in zip(instance.branches, saved, strict=True):
        if state.tallies is not None:
            raise damaged("a rule has lost events that it goes by")
        if not (set(state.aborted) | state.revived.keys()) <= branch.labels:
            raise damaged("a branch has other labels")
        branch.restore(_restore_readings(state), set(state.aborted), dict(state.revived))


def _restore_linked(instance: ChainFilter, saved: list[SavedBranch]) -> None:
    branches = instance.branches()
    if len(saved) != len(branches):
        raise damaged("a rule has other branches")
    known = set(instance.facts.ports)
    for branch, state in zip(branches, saved, strict=True):
        if not all(known.issuperset(ports) and event for _, ports, event in state.readings):
            raise damaged("a rule has other ports")
        readings = _restore_readings(state)
        try:
            branch.restore(readings, state.tallies)
        except ValueError:
            raise damaged("a rule has other aggregates") from None


def _restore_readings(saved: SavedBranch) -> list[Reading]:
    return [
        Reading(time, frozenset(ports), restore_event(event) if event else None)
        for time, ports, event in saved.readings
    ]


def restore_key(saved: SavedKey) -> FastKey:
    if isinstance(saved, list):
        try:
            hash(key := tuple((kind, value) for kind, value in saved))
        except TypeError:
            raise damaged("a key is no single value") from None
        return key
    return saved


def _times_in(extra: SavedExtra) -> Iterator[int]:
    yield from extra.due.values()
    yield from extra.timeouts.values()
    yield from (start for start in extra.starts or () if start is not None)


def _is_instant(time: int) -> bool:
    """Whether a time fits a word, as all times of events and timers do."""
    return -(2**63) <= time < 2**63


def item_at(items: list[Item], place: int) -> Item:
    if not 0 <= place < len(items):
        raise damaged("it refers to something that is not in it")
    return items[place]


def damaged(why: str) -> SnapshotError:
    return SnapshotError(f"the snapshot is damaged: {why}")
