"""A library over a stream: the clock, the keys, and rules over rules.

One clock for the whole stream. Each event first moves it: timers due at or before the event's time
fire, in the order of their due times. Then every correlation reads the event, in the order of the
library, and under each key of it its own instance. What they put out is read after that by the
correlations that name them, first in, first out; what an `internal` one puts out goes nowhere else.

What one correlation makes of a reading is an `Instance`, and there each engine differs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from ensue.engine.changing import is_unchanged
from ensue.engine.counts import Counts
from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, Ports
from ensue.engine.timing.alarms import Alarms
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation, TimerPort

InstanceStart = Callable[[Sequence[TimerPort], Outputs, int], Instance]
"""Starts an instance, given its timer ports, its `Outputs` and the time."""


class Stream:
    """Reads events in the order of their times; the caller has put them in order."""

    def __init__(
        self,
        library: CheckedLibrary,
        counts: Counts,
        starter: Callable[[Correlation], InstanceStart],
        outputs: Callable[[str, Key, bool, TypeSystem], Outputs] = Outputs,
    ) -> None:
        self._counts = counts
        self._starter = starter
        self._outputs = outputs
        self._types = library.types
        self._running: list[RunningCorrelation] = []
        self._alarms = Alarms[int]()
        self._readings = count(1)
        self.change(library)

    @property
    def running(self) -> Sequence[RunningCorrelation]:
        return self._running

    def change(self, library: CheckedLibrary) -> None:
        """Run another library from now on. A rule that means the same keeps its instances."""
        known = {running.correlation.name: running for running in self._running}
        changed = []
        for number, correlation in enumerate(library.correlations):
            running = RunningCorrelation(
                number, correlation, library.types, self._starter(correlation), self._outputs
            )
            old = known.get(correlation.name)
            if old and is_unchanged(old.correlation, correlation, self._types, library.types):
                running.instances = old.instances
            changed.append(running)
        self._running, self._types = changed, library.types
        self._alarms.clear()
        for running in changed:
            for instance in running.instances.values():
                instance.armed_for = None
                self._alarms.arm(running.number, running.number, instance)

    def read_in_parts(self, event: Event) -> Iterator[list[Event]]:
        """The outputs of the timers that fire before an event, and then those of the event."""
        yield from self.advance_in_parts(event.time)
        yield self._spread([event], author=None)

    def advance_in_parts(self, time: int) -> Iterator[list[Event]]:
        """Move the clock and fire what is due on the way; the outputs of each firing are a part."""
        while alarm := self._alarms.take(time):
            author = self._running[alarm.owner]
            fired = alarm.instance.fire(alarm.due)
            self._alarms.arm(alarm.owner, alarm.order, alarm.instance)
            if fired:
                yield author.shown(fired) + self._spread(fired, author)

    def may_be_due(self, time: int) -> bool:
        return bool(self._alarms.heap) and self._alarms.heap[0].due <= time

    def next_due(self) -> int | None:
        """When the next timer fires, if no event comes before."""
        return self._alarms.next_due()

    def _spread(self, events: Iterable[Event], author: RunningCorrelation | None) -> list[Event]:
        """Let correlations read events of an author, and then what they put out."""
        made: list[Event] = []
        waiting = deque((event, author) for event in events)
        while waiting:
            event, author = waiting.popleft()
            for running in self._running:
                outputs = self._let_read(running, event, author)
                made += running.shown(outputs)
                waiting.extend((output, running) for output in outputs)
        return made

    def _let_read(
        self, running: RunningCorrelation, event: Event, author: RunningCorrelation | None
    ) -> list[Event]:
        matched = running.ports.matched(event, None if author is None else author.name)
        if not matched:
            return []
        readings = running.ports.readings(event, matched)
        if not readings:
            self._counts.without_key[running.correlation.name] += 1
        made: list[Event] = []
        for key, reading in readings.items():
            instance = running.instances.get(key)
            if instance is None:
                instance = running.start(key, reading.time)
                made += instance.start(reading)
            made += instance.read(reading)
            instance.last_read = next(self._readings)
            self._alarms.arm(running.number, running.number, instance)
        return made


class RunningCorrelation:
    """A correlation of the library and its instances, one for each key that has started."""

    def __init__(
        self,
        number: int,
        correlation: Correlation,
        types: TypeSystem,
        start: InstanceStart,
        outputs: Callable[[str, Key, bool, TypeSystem], Outputs],
    ) -> None:
        self.number = number
        self.name = correlation.name
        self.correlation = correlation
        self.ports = Ports(correlation, types)
        self.instances: dict[Key, Instance] = {}
        self._types = types
        self._start = start
        self._outputs = outputs

    def shown(self, outputs: list[Event]) -> list[Event]:
        """The outputs that leave the library."""
        return [] if self.correlation.role == "internal" else outputs

    def start(self, key: Key, time: int) -> Instance:
        outputs = self._outputs(
            self.correlation.name, key, bool(self.correlation.clauses.by), self._types
        )
        instance = self._start(self.ports.timers, outputs, time)
        self.instances[key] = instance
        return instance
