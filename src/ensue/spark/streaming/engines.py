"""The engines of a bucket, which read its settled events.

A rule runs in columns (`BatchEngine`) if it has a columnar form and events come in columns, and
event by event (`StepStream`) otherwise. Snapshots of both hold the keys with a partial match, and
no history. Rules that feed each other run in one engine, event by event. If the rules have changed
since a snapshot was taken, unchanged rules keep their state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import msgspec
import pyarrow as pa

from ensue.engine.batch import BatchEngine, path_on_machine
from ensue.engine.batch.exchanging import machine_of, states_from_step
from ensue.engine.batch.key_states import (
    KeyColumns,
    joined_columns,
    joined_plain,
    open_state,
    plain_due,
)
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.saved_states import SavedEvents, saved_rule
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.changing import is_unchanged
from ensue.engine.core.jit import FAR
from ensue.engine.core.saved_rules import SavedRule, SavedStream, save_machine
from ensue.engine.counts import Counts
from ensue.engine.step import StepStream
from ensue.engine.step.saving import restore_stream, save_stream
from ensue.engine.timing.alarms import longest_wait
from ensue.events.arrow import read_batches, table_of
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.parts import timeouts_in
from ensue.lang.printer import print_library
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.library import parse
from ensue.machine.records import MachineRecord
from ensue.spark.outputs import OutputColumns, output_columns, selected_rows
from ensue.spark.plan import JobPlan, RuleGroup
from ensue.spark.streaming.chunks import (
    EXTRAS,
    PAYLOAD,
    StreamTask,
    columns_of,
    planned,
    to_bytes,
)
from ensue.spark.streaming.parts import Era, RuleState, SavedParts
from ensue.spark.worker.event_rows import DEFAULT_SOURCE, disagreement, read_event, write_event

OUTPUTS_AT_ONCE = 8192
"""Outputs of rules that run event by event become a table when there are so many."""


@dataclass(frozen=True)
class GroupContext:
    """A group of rules with its plan and columns, for all its buckets and micro-batches."""

    task: StreamTask
    plan: JobPlan
    group: RuleGroup
    nulls: tuple[str, ...]
    columns: OutputColumns

    @classmethod
    def of(cls, task: StreamTask, group_name: str) -> GroupContext:
        plan, groups = planned(task.library, task.selected)
        group = next(each.group for each in groups if each.name == group_name)
        nulls = task.shuffled[group.number][1] if task.form == "columns" else ()
        return cls(task, plan, group, nulls, output_columns(plan, with_event=task.with_event))

    @cached_property
    def parts(self) -> Mapping[str, CheckedLibrary]:
        """The rules of the group by the engine that runs them."""
        names = {rule.name for rule in self.group.rules}
        chosen: dict[str, list[str]] = {}
        feeds = any(set(self.plan.library.feeds.get(name, ())) & names for name in names)
        plain = self.task.form == "columns" and not (feeds or self.columns.structs)
        for rule in self.group.rules:
            columnar = plain and path_on_machine(rule.correlation)[0].name != "events"
            chosen.setdefault("batch" if columnar else "step", []).append(rule.name)
        return {name: self._part(rules) for name, rules in chosen.items()}

    @cached_property
    def longest_wait(self) -> int | None:
        """The longest window or timeout of its rules."""
        return longest_wait(rule.correlation for rule in self.group.rules)

    @cached_property
    def text(self) -> str:
        """The rules as text, by which a change is recognised."""
        return print_library(self._part([rule.name for rule in self.group.rules]).tree)

    @cached_property
    def _timeouts(self) -> Mapping[str, Sequence[int]]:
        """The timeouts of filters, which begin with what a key remembers."""
        return {
            rule.name: [each.microseconds for each in timeouts_in(rule.correlation.branches)]
            for rule in self.group.rules
            if isinstance(rule.correlation, FilterCorrelation)
        }

    def due(self, rule: SavedRule, now: int) -> int:
        """When a key of a rule may have to be called next."""
        return plain_due(rule, self._timeouts.get(rule.name, ()), now)

    def windows_end(self, now: int, part: int, parts: int) -> int:
        """When all that the keys of a part hold by now has left its window.

        Parts are looked at once in the length of the longest window, one after the other.
        """
        longest = self.longest_wait
        if longest is None:
            return FAR
        turn = part * longest // parts
        return (now - turn) // longest * longest + turn + 2 * longest + 1

    def _part(self, names: Sequence[str]) -> CheckedLibrary:
        rules = tuple(rule for rule in self.group.rules if rule.name in names)
        group = self.group
        return self.plan.part(RuleGroup(group.number, 0, group.key_set, rules, ()))

    def events(self, table: pa.Table) -> Iterator[Event]:
        """The rows of a chunk as events."""
        types = self.plan.library.types
        if self.task.form == "events":
            for payload in table.column(PAYLOAD).to_pylist():
                yield read_event(payload, types)
        else:
            yield from _read_columns(self.as_columns(table), types)

    def in_form(self, waiting: pa.Table, form: str) -> pa.Table:
        """Waiting events in the present form; a change of rules may change the form."""
        if form == self.task.form:
            return waiting
        types = self.plan.library.types
        extras = waiting.select([name for name in EXTRAS if name in waiting.schema.names])
        if form == "columns":
            absent = {name for each in types for name in types.attributes(each.name)}
            absent -= set(waiting.schema.names)
            events = list(_read_columns(columns_of(waiting, sorted(absent)), types))
            payloads = pa.array([write_event(event) for event in events], pa.binary())
            return extras.append_column(PAYLOAD, payloads)
        events = [read_event(each, types) for each in waiting.column(PAYLOAD).to_pylist()]
        table = table_of(events, types)
        columns, _ = self.task.shuffled[self.group.number]
        for name in ("time", *(self.task.names[each] for each in columns)):
            if name in table.schema.names:
                extras = extras.append_column(name, table.column(name))
        return extras

    def as_columns(self, table: pa.Table) -> pa.Table:
        """The columns of events only, with nulls for attributes that were not shuffled."""
        return columns_of(table, self.nulls)


def _read_columns(table: pa.Table, types: TypeSystem) -> Iterator[Event]:
    for record in read_batches(
        table.to_batches(), table.schema, types, DEFAULT_SOURCE, where="the rows"
    ):
        if isinstance(record, Rejected):
            raise disagreement([record])
        yield record


class BucketEngine(Protocol):
    """Reads events that are in order, lets time pass, and saves the states of its rules."""

    def read(self, table: pa.Table) -> Iterator[pa.Table]: ...

    def advance(self, time: int) -> Iterator[pa.Table]: ...

    def save(self, parts: SavedParts) -> dict[str, RuleState]: ...


States = Mapping[str, Sequence[RuleState]]
"""The states of rules under the keys that were loaded, as they lay in parts."""


class ColumnEngine:
    """Rules in columns."""

    def __init__(
        self,
        context: GroupContext,
        part: CheckedLibrary,
        states: States,
        saved: SavedParts,
        settled: int | None,
    ) -> None:
        self._context = context
        self._part = part
        self._engine = BatchEngine(part, columns=context.columns.made)
        self._settled = settled
        restored = {
            rule.name: self._joined(rule, states[rule.name], saved)
            for rule in part.correlations
            if rule.name in states
        }
        self._engine.restore_states(saved.clock, restored)
        self._has_timers = self._engine.has_timers

    def _joined(self, rule: Correlation, states: Sequence[RuleState], saved: SavedParts) -> bytes:
        """One state of a rule as its engine reads it."""
        running = self._engine.correlations[rule.name]
        machine = saved.forms.get(rule.name, ("", None))[1]
        by_events = isinstance(running, EventCorrelation | RelatedCorrelation)
        if (by_events or rule.name in saved.by_events) and any(
            isinstance(each, SavedRule) for each in states
        ):
            plain = joined_plain([as_plain(self._part, rule, each) for each in states])
            if machine is None and (built := machine_of(self._part, rule)) is not None:
                machine = save_machine(built)
            plain = msgspec.structs.replace(plain, machine=None if machine is None else 0)
            return SavedEvents(self._settled, machine, plain).encode()
        columns = [
            each if isinstance(each, KeyColumns) else self._as_columns(rule, each, machine)
            for each in states
        ]
        return msgspec.msgpack.encode(joined_columns(columns).encode(to_bytes))

    def _as_columns(
        self, rule: Correlation, state: SavedRule, machine: MachineRecord | None
    ) -> KeyColumns:
        empty = [
            SavedRule(each.name, "memory", None, [], [], {}) for each in self._part.correlations
        ]
        state = msgspec.structs.replace(state, machine=None if machine is None else 0)
        rules = [state if each.name == rule.name else each for each in empty]
        stream = SavedStream([] if machine is None else [machine], rules, 1)
        found = states_from_step(self._engine, self._part, stream, None, {rule.name})
        opened = open_state(found[rule.name])
        assert isinstance(opened, KeyColumns), "the rule runs in columns"
        return opened

    def read(self, table: pa.Table) -> Iterator[pa.Table]:
        for made in self._engine.push_in_parts(self._context.as_columns(table), DEFAULT_SOURCE):
            yield self._table(made)
        if self._engine.rejected or self._engine.late:
            raise disagreement(self._engine.rejected)

    def _table(self, made: pa.Table) -> pa.Table:
        return self._context.columns.table(selected_rows(made, self._context.plan.selected))

    def advance(self, time: int) -> Iterator[pa.Table]:
        # Without timers, time alone makes no outputs.
        if self._has_timers:
            for made in self._engine.finish_in_parts(time):
                yield self._table(made)
        else:
            # Windows pass all the same.
            self._engine.pass_time(time)

    def save(self, parts: SavedParts) -> dict[str, RuleState]:
        found: dict[str, RuleState] = {}
        for name, data in self._engine.states().items():
            state = open_state(data)
            if isinstance(state, SavedEvents):
                if name not in parts.by_events:
                    parts.by_events.append(name)
                parts.forms.setdefault(name, (state.rule.form, state.machine))
            found[name] = state.rule if isinstance(state, SavedEvents) else state
        if self._engine.clock is not None:
            parts.clock = max(self._engine.clock, parts.clock or self._engine.clock)
        return found


class EventEngine:
    """Rules event by event."""

    def __init__(
        self, context: GroupContext, part: CheckedLibrary, states: States, saved: SavedParts
    ) -> None:
        self._context = context
        self._part = part
        self._now: int | None = None
        self._stream = StepStream(part, Counts())
        fresh = save_stream(self._stream, None)
        machines: list[MachineRecord] = []
        rules = []
        for rule, new in zip(part.correlations, fresh.rules, strict=True):
            machine = None if new.machine is None else fresh.machines[new.machine]
            form, machine = saved.forms.get(rule.name, (new.form, machine))
            held = [as_plain(part, rule, each) for each in states.get(rule.name, ())]
            if any(isinstance(each, KeyColumns) for each in states.get(rule.name, ())):
                saved.apart = True
            own = joined_plain(held) if held else new
            at = None if machine is None else len(machines)
            machines += [] if machine is None else [machine]
            form = form if form == "memory" or not held else own.form
            rules.append(msgspec.structs.replace(own, form=form, machine=at))
        stream = SavedStream(machines, rules, saved.read, saved.apart)
        restore_stream(self._stream, part, stream)

    def read(self, table: pa.Table) -> Iterator[pa.Table]:
        read = self._stream.read_in_parts
        events = self._context.events(table)
        yield from self._tables(part for event in events for part in read(event))

    def advance(self, time: int) -> Iterator[pa.Table]:
        self._now = time
        yield from self._tables(self._stream.advance_in_parts(time))

    def save(self, parts: SavedParts) -> dict[str, RuleState]:
        saved = save_stream(self._stream, self._now)
        parts.read, parts.apart = max(parts.read, saved.read), saved.apart
        for rule in saved.rules:
            machine = None if rule.machine is None else saved.machines[rule.machine]
            parts.forms.setdefault(rule.name, (rule.form, machine))
        return {rule.name: rule for rule in saved.rules}

    def _tables(self, parts: Iterator[list[Event]]) -> Iterator[pa.Table]:
        selected = frozenset(self._context.plan.selected)
        chosen: list[tuple[bytes, Event]] = []
        for part in parts:
            chosen += [(b"", each) for each in part if each.extensions["correlation"] in selected]
            if len(chosen) >= OUTPUTS_AT_ONCE:
                yield pa.Table.from_batches([self._context.columns.batch(chosen)])
                chosen = []
        if chosen:
            yield pa.Table.from_batches([self._context.columns.batch(chosen)])


def as_plain(library: CheckedLibrary, rule: Correlation, state: RuleState) -> SavedRule:
    if isinstance(state, SavedRule):
        return state
    machine = machine_of(library, rule)
    assert machine is not None, "what has run in columns has a machine"
    return saved_rule(rule, machine, state.encode())


def engines_of(
    context: GroupContext, states: States, saved: SavedParts, settled: int | None
) -> dict[str, BucketEngine]:
    """The engines of a bucket, with the keys that were loaded; time is settled up to `settled`."""
    found: dict[str, BucketEngine] = {}
    for name, part in context.parts.items():
        if name == "batch":
            found[name] = ColumnEngine(context, part, states, saved, settled)
        else:
            found[name] = EventEngine(context, part, states, saved)
    return found


def begin_era(context: GroupContext, saved: SavedParts) -> None:
    """Note which rules are as they were, if rules have changed since the last micro-batch."""
    if saved.text == context.text:
        return
    before = parse(saved.text).checked
    old = {each.name: each for each in before.correlations}
    types = context.plan.library.types
    same = {
        rule.name
        for rule in context.group.rules
        if rule.name in old and is_unchanged(old[rule.name], rule.correlation, before.types, types)
    }
    for era in saved.eras:
        era.valid = [name for name in era.valid if name in same]
    saved.eras.append(Era([rule.name for rule in context.group.rules]))
    saved.text = context.text
    saved.by_events = [name for name in saved.by_events if name in same]
    saved.forms = {name: form for name, form in saved.forms.items() if name in same}
    saved.rule_bytes = {name: held for name, held in saved.rule_bytes.items() if name in same}
