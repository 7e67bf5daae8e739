"""A correlation event by event, inside the batch engine: for what has no form in columns.

In come the same segments as in `correlations`, and the time up to which the clock has come; out go
events. It has its own alarms: a timer that is due before a reading fires first, and takes its own
place in the order of the stream. The instances are those of the step engine.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec
import numpy as np

from ensue.engine.batch.correlations import Path, Positions, Segment
from ensue.engine.batch.made import EventGroup, Made
from ensue.engine.batch.order import ALARM, alarm_position
from ensue.engine.batch.remembered import events_of, read_event, write_event
from ensue.engine.counts import Counts
from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, Ports
from ensue.engine.step import instance_starter
from ensue.engine.stream import Alarm
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, EventPort

PastReading = tuple[bytes, int, int]
"""An event that was read, and the kind and number of the root that it came from."""


class EventCorrelation:
    """`number` is its place in the library; `depth` how long a way through rules may get."""

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
        self._number = number
        self._depth = depth
        self._types = types
        self._counts = counts
        self._keyed = bool(correlation.clauses.by)
        self._ports = Ports(correlation, types)
        self._start = instance_starter(correlation, types)
        self._instances: dict[Key, Instance] = {}
        self._alarms: list[Alarm] = []
        self._fired = 0
        self._clock: int | None = None
        self._history: list[PastReading] = []
        names = list(types.types)
        self._wanted = np.zeros(len(names) + 1, np.bool_)
        for port in correlation.ports:
            if isinstance(port, EventPort):
                self._wanted[[names.index(name) for name in types.subtypes(port.type)]] = True

    def read(self, segments: Sequence[Segment], clock: int | None) -> tuple[Made, Positions]:
        events: list[Event] = []
        every: list[Positions] = []
        for segment in segments:
            rows = np.flatnonzero(segment.batch.rows_of_types(self._wanted))
            events += events_of(segment.batch, rows)
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
            note(self._let_read(events[at], int(place[1]), int(place[2])), place)
        if clock is not None:
            self._fire_before(clock, ALARM + 1, 0, note)
            self._clock = clock
        at_made = np.arange(len(made))
        groups = [EventGroup(at_made, made)] if made else []
        return Made(at_made, groups), np.stack(roots) if roots else positions[:0]

    def _fire_before(self, time: int, kind: int, number: int, note: object) -> None:
        """Fire what is due before a place in the order: another rule's alarm, or an event."""
        assert callable(note)
        while self._alarms:
            due = self._alarms[0].due
            if (due, ALARM, self._number) >= (time, kind, number):
                break
            alarm = heapq.heappop(self._alarms)
            if alarm.due == alarm.instance.next_due():
                alarm.instance.armed_for = None
                fired = alarm.instance.fire(alarm.due)
                self._arm(alarm.instance)
                self._fired += 1
                root = (alarm.due, self._number, alarm.instance.number, self._fired)
                note(fired, alarm_position(*root, self._depth))

    def _let_read(self, event: Event, kind: int, number: int) -> list[Event]:
        matched = self._ports.matched(event)
        readings = self._ports.readings(event, matched)
        if matched:
            self._history.append((write_event(event), kind, number))
        if matched and not readings:
            self._counts.without_key[self.name] += 1
        made: list[Event] = []
        for key, reading in readings.items():
            instance = self._instances.get(key)
            if instance is None:
                outputs = Outputs(self.name, key, self._keyed, self._types)
                number = len(self._instances)
                instance = self._start(number, self._ports.timers, outputs, reading.time)
                self._instances[key] = instance
                made += instance.start(reading)
            made += instance.read(reading)
            self._arm(instance)
        return made

    def _arm(self, instance: Instance) -> None:
        due = instance.next_due()
        if due is not None and due != instance.armed_for:
            heapq.heappush(self._alarms, Alarm(due, self._number, instance.number, instance))
        instance.armed_for = due

    # --- snapshots: what was read, to be read again -----------------------------------------------

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode((self._clock, self._history))

    def restore(self, snapshot: bytes) -> None:
        clock, history = msgspec.msgpack.decode(snapshot, type=tuple[int | None, list[PastReading]])

        def forget(outputs: list[Event], root: Positions) -> None: ...

        counted = self._counts.without_key[self.name]
        for text, kind, number in history:
            event = read_event(text)
            self._fire_before(event.time, kind, number, forget)
            self._let_read(event, kind, number)
        if clock is not None:
            self._fire_before(clock, ALARM + 1, 0, forget)
            self._clock = clock
        self._counts.without_key[self.name] = counted
