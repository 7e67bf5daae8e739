"""The engines of a bucket: what reads its events, once they are in order.

Rules run in columns (`BatchEngine`) where they have such a form and events come in columns, and
event by event (`StepStream`) where not; the snapshots of both hold the keys that are in the middle
of something, and no history. Rules that feed each other run in one engine, event by event. When the
rules have changed since a snapshot was taken, those that read the same keep their state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import msgspec
import pyarrow as pa

from ensue.engine.batch import BatchEngine, path_of
from ensue.engine.batch.exchanging import states_from_step
from ensue.engine.changing import is_unchanged
from ensue.engine.counts import Counts
from ensue.engine.step import step_engine
from ensue.engine.step.saving import SavedStream, restore_stream, save_stream
from ensue.errors import JobError
from ensue.events.arrow import read_batches, table_of
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library
from ensue.library import parse
from ensue.spark.outputs import OutputColumns, output_columns, selected_rows
from ensue.spark.plan import Group, Plan
from ensue.spark.streaming.chunks import EXTRAS, PAYLOAD, Task, planned
from ensue.spark.worker.event_rows import DEFAULT_SOURCE, read_event, write_event

Saved = tuple[str, bytes]
"""The text of the rules that ran, and the snapshot of their engine."""


@dataclass(frozen=True)
class Setting:
    """What is known of a group, the same for all of its buckets and micro-batches."""

    task: Task
    plan: Plan
    group: Group
    nulls: tuple[str, ...]
    columns: OutputColumns

    @classmethod
    def of(cls, task: Task, group_name: str) -> Setting:
        plan, groups = planned(task.library, task.selected)
        group = next(each.group for each in groups if each.name == group_name)
        nulls = task.travelling[group.number][1] if task.form == "columns" else ()
        return cls(task, plan, group, nulls, output_columns(plan, with_event=task.with_event))

    @cached_property
    def parts(self) -> Mapping[str, CheckedLibrary]:
        """The rules of the group by the engine that runs them."""
        names = {rule.name for rule in self.group.rules}
        chosen: dict[str, list[str]] = {}
        feeds = any(set(self.plan.library.feeds.get(name, ())) & names for name in names)
        plain = self.task.form == "columns" and not (feeds or self.columns.structs)
        for rule in self.group.rules:
            columnar = plain and path_of(rule.correlation)[0].name != "events"
            chosen.setdefault("batch" if columnar else "step", []).append(rule.name)
        return {name: self._part(rules) for name, rules in chosen.items()}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The rules of each engine as text, by which a snapshot is known."""
        return {name: print_library(part.tree) for name, part in self.parts.items()}

    def _part(self, names: Sequence[str]) -> CheckedLibrary:
        rules = tuple(rule for rule in self.group.rules if rule.name in names)
        group = self.group
        return self.plan.part(Group(group.number, 0, group.key_set, rules, ()))

    def events(self, table: pa.Table) -> Iterator[Event]:
        """The rows of a chunk as events."""
        types = self.plan.library.types
        if self.task.form == "events":
            for payload in table.column(PAYLOAD).to_pylist():
                yield read_event(payload, types)
        else:
            yield from _read_columns(self.as_columns(table), types)

    def in_form(self, waiting: pa.Table, form: str) -> pa.Table:
        """What waited, as events come now: rules that change may change the form."""
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
        columns, _ = self.task.travelling[self.group.number]
        for name in (self.task.names[each] for each in columns):
            if name in table.schema.names:
                extras = extras.append_column(name, table.column(name))
        return extras

    def as_columns(self, table: pa.Table) -> pa.Table:
        """The columns of events only, and those that did not travel as nulls."""
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
            raise _disagreement([record])
        yield record


class Engine(Protocol):
    """Reads events that are in order, lets time pass, and saves itself."""

    def read(self, table: pa.Table) -> pa.Table: ...

    def advance(self, time: int) -> pa.Table: ...

    def save(self) -> Saved: ...


class ColumnEngine:
    """`by_events` is what ran by events and does no more; rules that run here now go on from it."""

    def __init__(
        self,
        setting: Setting,
        part: CheckedLibrary,
        saved: Saved | None,
        by_events: Saved | None = None,
    ) -> None:
        self._setting = setting
        self._part = part
        self._engine = BatchEngine(part)
        if saved is not None:
            text, snapshot = saved
            if text == print_library(part.tree):
                self._engine.restore(snapshot)
            else:
                self._engine = BatchEngine(parse(text).checked)
                self._engine.restore(snapshot)
                self._engine.change(part)
        self._has_timers = any(path.name == "timed" for path in self._engine.paths.values())
        if by_events is not None:
            self._go_on_from(*by_events)

    def _go_on_from(self, text: str, snapshot: bytes) -> None:
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
            self._engine.go_on(self._engine.clock, states)

    def read(self, table: pa.Table) -> pa.Table:
        made = self._engine.push_batch(self._setting.as_columns(table), DEFAULT_SOURCE)
        if self._engine.rejected or self._engine.late:
            raise _disagreement(self._engine.rejected)
        return self._table(made)

    def _table(self, made: pa.Table) -> pa.Table:
        return self._setting.columns.table(selected_rows(made, self._setting.plan.selected))

    def advance(self, time: int) -> pa.Table:
        if not self._has_timers:
            # Time alone changes nothing for them.
            return self._setting.columns.schema.empty_table()
        return self._table(self._engine.finish(time))

    def save(self) -> Saved:
        return print_library(self._part.tree), self._engine.snapshot()


class EventEngine:
    def __init__(self, setting: Setting, part: CheckedLibrary, saved: Saved | None) -> None:
        self._setting = setting
        self._part = part
        self._now: int | None = None
        if saved is None:
            self._stream = step_engine(part, Counts())
            return
        text, snapshot = saved
        same = text == print_library(part.tree)
        old = part if same else parse(text).checked
        self._stream = step_engine(old, Counts())
        restore_stream(self._stream, old, msgspec.msgpack.decode(snapshot, type=SavedStream))
        if not same:
            self._stream.change(part)

    def read(self, table: pa.Table) -> pa.Table:
        read = self._stream.read
        return self._table(
            [output for event in self._setting.events(table) for output in read(event)]
        )

    def advance(self, time: int) -> pa.Table:
        self._now = time
        return self._table(self._stream.advance(time))

    def save(self) -> Saved:
        saved = save_stream(self._stream, self._now)
        return print_library(self._part.tree), msgspec.msgpack.encode(saved)

    def _table(self, outputs: Sequence[Event]) -> pa.Table:
        selected = frozenset(self._setting.plan.selected)
        chosen = [(b"", each) for each in outputs if each.extensions["correlation"] in selected]
        return pa.Table.from_batches([self._setting.columns.batch(chosen)])


def engines_of(setting: Setting, saved: Mapping[str, Saved]) -> dict[str, Engine]:
    """The engines of a bucket, each from where it was."""
    found: dict[str, Engine] = {}
    by_events = saved.get("step")
    if by_events is not None and by_events[0] == setting.texts.get("step"):
        by_events = None
    for name, part in setting.parts.items():
        if name == "batch":
            found[name] = ColumnEngine(setting, part, saved.get(name), by_events)
        else:
            found[name] = EventEngine(setting, part, saved.get(name))
    return found


def _disagreement(rejected: Sequence[Rejected]) -> JobError:
    shown = "; ".join(problem for each in rejected[:3] for problem in each.problems)
    return JobError(
        f"rows that SQL took for events were refused in the worker; please report this: {shown}"
    )
