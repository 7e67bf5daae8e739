"""A correlation event by event, inside the batch engine: for what has no form in columns.

In come the same segments as in `correlation`, and the time up to which the clock has come; out go
events. It has its own alarms: a timer that is due before a reading fires first, and takes its own
place in the order of the stream. The instances are those of the step engine, and so is the form in
which they are saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from itertools import count
from typing import cast

import numpy as np

from ensue.engine.batch.input.batches import accepted_types
from ensue.engine.batch.input.matching import Segment
from ensue.engine.batch.output.columns import EventBundle, SourceOutputs
from ensue.engine.batch.output.order import ALARM, Positions, alarm_position
from ensue.engine.batch.paths import Path
from ensue.engine.batch.saved_states import SavedEvents
from ensue.engine.core.instances.keys import fast_key
from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, SavedForm
from ensue.engine.core.predicates import predicate_test
from ensue.engine.core.relating.linked import ChainFilter
from ensue.engine.core.saved_rules import (
    last_read_in,
    restore_machine,
    restore_rule,
    save_machine,
    save_rule,
)
from ensue.engine.counts import Counts
from ensue.engine.timing.alarms import Alarms
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, EventPort
from ensue.machine.model import Machine
from ensue.machine.plan import Form

_Note = Callable[[list[Event], Positions], None]
"""Takes outputs, and the position of the reading that has made them."""


class EventCorrelation:
    """A correlation that runs event by event, on instances of the step engine.

    `number` is its place in the library; `depth` is the length of the longest chain of rules.
    """

    def __init__(
        self,
        correlation: Correlation,
        path: Path,
        number: int,
        depth: int,
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        self.name = correlation.name
        self.path = path
        self.correlation = correlation
        self._number = number
        self._depth = depth
        self._types = types
        self._counts = counts
        self._rule = Rule(correlation, types, SharedTables(), count(1))
        self._ports = self._rule.ports
        self._tests: dict[str, Callable[[Event], bool]] = {}
        self._alarms = Alarms[None]()
        self._readings = count(1)
        self._fired = 0
        self._clock: int | None = None
        self._wanted = np.zeros(len(types.types) + 1, np.bool_)
        for port in correlation.ports:
            if isinstance(port, EventPort):
                self._wanted |= accepted_types(types, port.type)
                if port.where is not None:
                    test = predicate_test(port.where, types.attributes(port.type))
                    self._tests[port.name] = test

    @property
    def machine(self) -> Machine | None:
        return self._rule.machine

    @property
    def instances(self) -> Sized:
        """The keys that have instances."""
        return self._rule.instances

    @property
    def has_timers(self) -> bool:
        return self._rule.has_clock

    def read(
        self, segments: Sequence[Segment], clock: int | None, is_counted: bool = False
    ) -> tuple[SourceOutputs, Positions]:
        """Its outputs, and the position of the reading behind each of them.

        `is_counted` says that events without a key were counted before.
        """
        events: list[tuple[Event, str | None]] = []
        every: list[Positions] = []
        for segment in segments:
            rows = np.flatnonzero(segment.batch.rows_of_types(self._wanted))
            events += [(event, segment.author) for event in segment.batch.events(rows)]
            every.append(segment.positions[rows])
        positions = np.concatenate(every) if every else np.empty((0, 0), np.int64)
        made: list[Event] = []
        roots: list[Positions] = []

        def note(outputs: list[Event], root: Positions) -> None:
            made.extend(outputs)
            roots.extend([root] * len(outputs))

        for at in np.lexsort(positions.T[::-1]).tolist() if len(positions) else []:
            place = positions[at]
            self._fire_before(int(place[0]), int(place[1]), int(place[2]), note)
            event, author = events[at]
            note(self._read_event(event, author, is_counted), place)
        if clock is not None:
            self._fire_before(clock, ALARM + 1, 0, note)
            self._clock = clock
            self._rule.sweep_if_due(clock)
        at_made = np.arange(len(made))
        groups = [EventBundle(at_made, made)] if made else []
        return SourceOutputs(at_made, groups), np.stack(roots) if roots else positions[:0]

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not this rule has read anything since."""
        self._clock = clock if self._clock is None else max(self._clock, clock)

    def next_due(self) -> int | None:
        """When the first of its timers is due."""
        return self._alarms.next_due()

    def _fire_before(self, time: int, kind: int, number: int, note: _Note) -> None:
        """Fire what is due before a position in the stream: another rule's alarm, or an event."""
        limit = time if (ALARM, self._number) < (kind, number) else time - 1
        while alarm := self._alarms.take(limit):
            instance = alarm.instance
            if self._ports.timers and instance.skip_idle(time - 1):
                self._alarms.arm(None, self._number, instance)
                continue
            fired = instance.fire(alarm.due)
            self._alarms.arm(None, self._number, instance)
            self._fired += 1
            root = (alarm.due, self._number, alarm.last_read, self._fired)
            note(fired, alarm_position(*root, self._depth))

    def _read_event(self, event: Event, author: str | None, is_counted: bool) -> list[Event]:
        tests = self._tests
        fitting = self._ports.fitting(event, author)
        matched = [port for port in fitting if port not in tests or tests[port](event)]
        readings = self._ports.readings(event, matched)
        if matched and not readings and not is_counted:
            self._counts.without_key[self.name] += 1
        made: list[Event] = []
        for key, reading in readings.items():
            instance = self._rule.instances.get(fast_key(key))
            if instance is None:
                instance = self._rule.begin(fast_key(key), reading.time)
                made += instance.start(reading)
            instance.last_read = next(self._readings)
            if isinstance(instance, ChainFilter):
                mask = instance.facts.mask_of(reading.ports)
                made += instance.step(mask, reading.time, (instance.last_read, event))
            else:
                made += instance.read(reading)
            self._alarms.arm(None, self._number, instance)
        return made

    # --- snapshots --------------------------------------------------------------------------------

    def save(self) -> SavedEvents:
        rule = self._rule
        if self._clock is not None:
            rule.sweep(self._clock)
        machine = None if rule.machine is None else save_machine(rule.machine)
        saved = save_rule(rule, None if machine is None else 0, self._clock)
        return SavedEvents(self._clock, machine, saved)

    def restore(self, saved: SavedEvents) -> None:
        """Go on from a state; nothing has been read yet."""
        machine = None
        if saved.machine is not None:
            machine = self._rule.machine
            if machine is None or save_machine(machine) != saved.machine:
                machine = restore_machine(saved.machine, self.correlation)
        form: SavedForm = (cast(Form, saved.rule.form), machine)
        self._rule = Rule(self.correlation, self._types, SharedTables(), count(1), form)
        restore_rule(self._rule, saved.rule)
        self._readings = count(1 + last_read_in([saved.rule]))
        self._clock = saved.clock
        self._alarms.clear()
        for instance in self._rule.instances.values():
            instance.armed_for = None
            self._alarms.arm(None, self._number, instance)
