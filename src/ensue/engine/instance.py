"""One correlation under one key: what filters and ECL expressions have in common.

An instance starts at the first event that it reads. It holds its timer ports: `every` fires at its
period from the start; `deadline` when the correlation has not triggered for that long. What a
reading means is the body's: `filters` or `ecl`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.lang.syntax import TimerPort

# Most correlations have no timer port, and their instances, of which there may be millions, share
# the due times that they do not have.
NO_TIMERS: dict[str, int] = {}

ENDLESS = 1 << 62
"""A time that no clock reaches."""


class Instance(ABC):
    """A correlation under one key; `started` is the time of its first event.

    `last_read` is the number of the last event that the instance has read, which the stream sets:
    of instances whose timers are due together, the one with the smallest fires first. `armed_for`
    is the due time for which there is an alarm.
    """

    __slots__ = ("_due", "_timers", "armed_for", "last_read", "outputs")

    def __init__(self, timers: Sequence[TimerPort], outputs: Outputs, started: int) -> None:
        self.last_read = 0
        self.outputs = outputs
        self.armed_for: int | None = None
        self._timers = timers
        self._due = (
            {port.name: started + port.period.microseconds for port in timers}
            if timers
            else NO_TIMERS
        )

    def start(self, first: Reading) -> list[Event]:  # noqa: ARG002
        """Run the statements before the first `case`, before any event is read."""
        return []

    @abstractmethod
    def read(self, reading: Reading) -> list[Event]:
        """Read an event or the firing of a timer port."""

    @property
    def timers_due(self) -> dict[str, int]:
        """When each timer port fires next."""
        return self._due

    @timers_due.setter
    def timers_due(self, due: dict[str, int]) -> None:
        self._due = due if self._timers else NO_TIMERS

    def next_due(self) -> int | None:
        """When the clock has to call `fire` next."""
        return min(self._due.values(), default=None)

    def fire(self, time: int) -> list[Event]:
        """Fire the first timer port that is due."""
        for port in self._timers:
            if self._due[port.name] == time:
                self._due[port.name] = time + port.period.microseconds
                return self.read(Reading(time, frozenset({port.name})))
        return []

    def skip_idle(self, until: int) -> bool:
        """Skip firings of timer ports that change nothing; returns whether there were any.

        Until `until` the instance reads no event.
        """
        horizons = {port.name: self.idle_until(port) for port in self._timers}
        idle = [port for port in self._timers if horizons[port.name] is not None]
        others = [due for name, due in self._due.items() if horizons[name] is None]
        others += self.other_due()
        skipped = False
        for port in idle:
            horizon = horizons[port.name]
            assert horizon is not None
            # At the moment of another timer that one may come first, and change something.
            end = min(until, horizon, *(due - 1 for due in others))
            due, period = self._due[port.name], port.period.microseconds
            if due <= end:
                self._due[port.name] = due + ((end - due) // period + 1) * period
                skipped = True
        return skipped

    def idle_until(self, port: TimerPort) -> int | None:  # noqa: ARG002
        """The time up to which no firing of a timer port changes anything, if no event is read.

        None if the next firing may change something.
        """
        return None

    def other_due(self) -> Sequence[int]:
        """The due times of timers that are no ports."""
        return ()

    def triggered(self, time: int) -> None:
        for port in self._timers:
            if port.kind == "deadline":
                self._due[port.name] = time + port.period.microseconds
