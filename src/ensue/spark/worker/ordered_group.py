"""The rules of a group over the events of one partition, with a position for every output.

It works as `ensue.engine.stream` does, but positions decide what is read next instead of a queue:
events of the input, outputs of earlier stages (at the moment that made them), outputs of rules of
this group, and timers. So outputs of independent partitions and stages sort into the order of the
whole run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensue.engine.counts import Counts
from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, Ports, Reading
from ensue.engine.step import instance_starter
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.spark.plan import JobPlan, PlannedRule, RuleGroup
from ensue.spark.worker import positions

ALL_KEYS = -1
"""The mask of an event that may be read under all of its keys."""

NO_KEYS = 0
"""The mask of an event without a key, which is only counted."""

Positioned = tuple[bytes, Event]


@dataclass(slots=True)
class _InstanceState:
    """An instance, where its last event stands, and how often it has fired at the due time."""

    instance: Instance
    last_read: bytes
    due: int | None = None
    fired: int = 0


class OrderedGroup:
    """Reads events that the caller has sorted by position."""

    def __init__(self, plan: JobPlan, group: RuleGroup, counts: Counts) -> None:
        self._counts = counts
        self._running = [_RunningRule(rule, group, plan.library.types) for rule in group.rules]
        feeds = plan.part(group).feeds
        self._feeds = {name: frozenset(readers) for name, readers in feeds.items()}
        self._alarms: list[tuple[bytes, int, _RunningRule, Key]] = []
        self._pending: list[tuple[bytes, int, str, Event]] = []
        self._pushed = 0

    def read(
        self, position: bytes, event: Event, author: str | None, mask: int
    ) -> Iterator[Positioned]:
        """Read an event; `author` is the rule of an event that is an output."""
        yield from self._run_until(position, event.time)
        yield from self._deliver(position, event, author, mask)

    def finish(self, clock: int | None) -> Iterator[Positioned]:
        """The outputs of timers up to the end of the stream."""
        yield from self._run_until(None, 0)
        if clock is not None:
            yield from self._run_until(positions.before_events(clock), clock)

    def _run_until(self, position: bytes | None, time: int) -> Iterator[Positioned]:
        """Run outputs and timers that come before a position; without one, outputs only.

        The position is not before the time.
        """
        while True:
            alarm = self._alarms[0][0] if self._alarms and position is not None else None
            waiting = self._pending[0][0] if self._pending else None
            if waiting is not None and (alarm is None or waiting < alarm):
                if position is not None and waiting >= position:
                    return
                at, _, author, event = heapq.heappop(self._pending)
                yield from self._deliver(at, event, author, ALL_KEYS)
            elif alarm is not None and position is not None and alarm < position:
                yield from self._fire(time)
            else:
                return

    def _fire(self, time: int) -> list[Positioned]:
        moment, due, running, key = heapq.heappop(self._alarms)
        state = running.started[key]
        # Lazy deletion: the due time of the instance may have changed since.
        if due != state.instance.next_due():
            return []
        now = positions.alarm_moment(due, running.rule.number, state.last_read)
        if moment != now:
            # It has read events since, which leave it due at the same time.
            heapq.heappush(self._alarms, (now, due, running, key))
            return []
        # What another rule puts out may change what a firing does.
        is_fed = any(running.rule.name in readers for readers in self._feeds.values())
        if running.ports.timers and not is_fed and state.instance.skip_idle(time - 1):
            state.instance.armed_for = None
            self._arm(running, key, state)
            return []
        state.fired = state.fired + 1 if state.due == due else 0
        state.due = due
        state.instance.armed_for = None
        outputs = state.instance.fire(due)
        self._arm(running, key, state)
        at = positions.firing_position(moment, state.fired)
        return self._with_positions(running.rule, at, 0, 0, outputs)

    def _deliver(
        self, position: bytes, event: Event, author: str | None, mask: int
    ) -> list[Positioned]:
        made: list[Positioned] = []
        for running in self._running:
            made += self._read_by_rule(running, position, event, author, mask)
        return made

    def _read_by_rule(
        self,
        running: _RunningRule,
        position: bytes,
        event: Event,
        author: str | None,
        mask: int,
    ) -> list[Positioned]:
        matched = running.ports.matched(event, author)
        if not matched:
            return []
        readings = running.ports.readings(event, matched)
        if not readings and mask in (ALL_KEYS, NO_KEYS):
            self._counts.without_key[running.rule.name] += 1
        made: list[Positioned] = []
        count = 0
        for place, (key, reading) in enumerate(readings.items()):
            if mask == ALL_KEYS or any(running.bits[port] & mask for port in reading.ports):
                outputs = self._read_by_instance(running, position, place, key, reading)
                made += self._with_positions(running.rule, position, place, count, outputs)
                count += len(outputs)
        return made

    def _read_by_instance(
        self, running: _RunningRule, position: bytes, place: int, key: Key, reading: Reading
    ) -> list[Event]:
        state = running.started.get(key)
        outputs: list[Event] = []
        if state is None:
            instance = running.start(key, reading.time)
            state = running.started[key] = _InstanceState(instance, b"")
            outputs += instance.start(reading)
        state.last_read = positions.reading_of(position, place)
        outputs += state.instance.read(reading)
        self._arm(running, key, state)
        return outputs

    def _arm(self, running: _RunningRule, key: Key, state: _InstanceState) -> None:
        instance = state.instance
        due = instance.next_due()
        if due is not None and due != instance.armed_for:
            moment = positions.alarm_moment(due, running.rule.number, state.last_read)
            heapq.heappush(self._alarms, (moment, due, running, key))
        instance.armed_for = due

    def _with_positions(
        self, rule: PlannedRule, position: bytes, place: int, count: int, outputs: Sequence[Event]
    ) -> list[Positioned]:
        made: list[Positioned] = []
        for number, output in enumerate(outputs, count):
            at = positions.output_position(position, rule.number, place, number)
            made.append((at, output))
            if self._feeds.get(rule.name):
                self._pushed += 1
                heapq.heappush(self._pending, (at, self._pushed, rule.name, output))
        return made


class _RunningRule:
    """A rule, its instances, and for each port the bit of its key in masks."""

    def __init__(self, rule: PlannedRule, group: RuleGroup, types: TypeSystem) -> None:
        self.rule = rule
        self.ports = Ports(rule.correlation, types)
        self.started: dict[Key, _InstanceState] = {}
        self._types = types
        self._start = instance_starter(rule.correlation, types)
        places = {names: place for place, names in enumerate(group.key_set)}
        self.bits = {
            port.name: 1 << places[rule.key_names(port)] if places else 1
            for port in rule.event_ports
        }

    def start(self, key: Key, time: int) -> Instance:
        keyed = bool(self.rule.correlation.clauses.by)
        outputs = Outputs(self.rule.name, key, keyed, self._types)
        return self._start(self.ports.timers, outputs, time)

    def __lt__(self, other: _RunningRule) -> bool:
        return self.rule.number < other.rule.number
