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
from ensue.engine.batch.exchanging import states_from_step
from ensue.engine.changing import is_unchanged
from ensue.engine.core.saved_rules import SavedStream
from ensue.engine.counts import Counts
from ensue.engine.step import StepStream
from ensue.engine.step.saving import restore_stream, save_stream
from ensue.engine.timing.alarms import longest_wait
from ensue.events.arrow import read_batches, table_of
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library
from ensue.library import parse
from ensue.spark.outputs import OutputColumns, output_columns, selected_rows
from ensue.spark.plan import JobPlan, RuleGroup
from ensue.spark.streaming.chunks import EXTRAS, PAYLOAD, StreamTask, planned
from ensue.spark.worker.event_rows import DEFAULT_SOURCE, disagreement, read_event, write_event

OUTPUTS_AT_ONCE = 8192
"""Outputs of rules that run event by event become a table when there are so many."""

Saved = tuple[str, bytes]
"""The text of the rules of an engine, and its snapshot."""


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
    def texts(self) -> Mapping[str, str]:
        """The rules of each engine as text, by which a snapshot is recognised."""
        return {name: print_library(part.tree) for name, part in self.parts.items()}

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
            events = list(_read_columns(_columns_of(waiting, sorted(absent)), types))
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
        return _columns_of(table, self.nulls)


def _columns_of(table: pa.Table, nulls: Sequence[str]) -> pa.Table:
    table = table.drop_columns([name for name in EXTRAS if name in table.schema.names])
    for name in nulls:
        if name not in table.schema.names:
            table = table.append_column(name, pa.nulls(len(table)))
    return table


def _read_columns(table: pa.Table, types: TypeSystem) -> Iterator[Event]:
    for record in read_batches(
        table.to_batches(), table.schema, types, DEFAULT_SOURCE, where="the rows"
    ):
        if isinstance(record, Rejected):
            raise disagreement([record])
        yield record


class BucketEngine(Protocol):
    """Reads events that are in order, lets time pass, and saves itself."""

    def read(self, table: pa.Table) -> Iterator[pa.Table]: ...

    def advance(self, time: int) -> Iterator[pa.Table]: ...

    def save(self) -> Saved: ...


class ColumnEngine:
    """Rules in columns. `by_events` is the state of rules that ran event by event before."""

    def __init__(
        self,
        context: GroupContext,
        part: CheckedLibrary,
        saved: Saved | None,
        by_events: Saved | None = None,
    ) -> None:
        self._context = context
        self._part = part
        self._engine = BatchEngine(part, columns=context.columns.made)
        if saved is not None:
            text, snapshot = saved
            if text == print_library(part.tree):
                self._engine.restore(snapshot)
            else:
                self._engine = BatchEngine(parse(text).checked, columns=context.columns.made)
                self._engine.restore(snapshot)
                self._engine.change(part)
        self._has_timers = self._engine.has_timers
        if by_events is not None:
            self._restore_from_events(*by_events)

    def _restore_from_events(self, text: str, snapshot: bytes) -> None:
        before = parse(text).checked
        old = {each.name: each for each in before.correlations}
        moved = {
            each.name
            for each in self._part.correlations
            if each.name in old
            and is_unchanged(old[each.name], each, before.types, self._part.types)
        }
        if moved:
            saved = msgspec.msgpack.decode(snapshot, type=SavedStream)
            states = states_from_step(self._engine, before, saved, None, moved)
            self._engine.restore_states(self._engine.clock, states)

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

    def save(self) -> Saved:
        return print_library(self._part.tree), self._engine.snapshot()


class EventEngine:
    """Rules event by event."""

    def __init__(self, context: GroupContext, part: CheckedLibrary, saved: Saved | None) -> None:
        self._context = context
        self._part = part
        self._now: int | None = None
        if saved is None:
            self._stream = StepStream(part, Counts())
            return
        text, snapshot = saved
        same = text == print_library(part.tree)
        old = part if same else parse(text).checked
        self._stream = StepStream(old, Counts())
        restore_stream(self._stream, old, msgspec.msgpack.decode(snapshot, type=SavedStream))
        if not same:
            self._stream.change(part)

    def read(self, table: pa.Table) -> Iterator[pa.Table]:
        read = self._stream.read_in_parts
        events = self._context.events(table)
        yield from self._tables(part for event in events for part in read(event))

    def advance(self, time: int) -> Iterator[pa.Table]:
        self._now = time
        yield from self._tables(self._stream.advance_in_parts(time))

    def save(self) -> Saved:
        saved = save_stream(self._stream, self._now)
        return print_library(self._part.tree), msgspec.msgpack.encode(saved)

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


def engines_of(context: GroupContext, saved: Mapping[str, Saved]) -> dict[str, BucketEngine]:
    """The engines of a bucket, restored from their snapshots."""
    found: dict[str, BucketEngine] = {}
    by_events = saved.get("step")
    if by_events is not None and by_events[0] == context.texts.get("step"):
        by_events = None
    for name, part in context.parts.items():
        if name == "batch":
            found[name] = ColumnEngine(context, part, saved.get(name), by_events)
        else:
            found[name] = EventEngine(context, part, saved.get(name))
    return found
