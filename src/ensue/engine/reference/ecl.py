"""ECL: expressions under way, and what each operator does with a moment.

A moment is an event that is read, or a tick of the clock at which timeouts are due. An expression
under way takes a moment and goes on, succeeds or fails. What is inside takes the moment first, all
of it; then what is around it decides. Success goes before failure. An expression that has been
started takes its first moment at the next event; its timeouts count from when it was started.

Each operator is a class below; its `take` is its definition. The classes stand in one module,
although it is long, to be read side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs, Trigger
from ensue.engine.ports import Reading, predicate_holds
from ensue.events.event import Event
from ensue.lang.derived.keys import key_places
from ensue.lang.syntax import (
    Constant,
    Ecl,
    EclCorrelation,
    Fail,
    Group,
    Holds,
    Mode,
    Modes,
    PortRef,
    Push,
    Round,
    Timeout,
    TimerPort,
    Unless,
)


class Status(Enum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


RUNNING, SUCCEEDED, FAILED = Status.RUNNING, Status.SUCCEEDED, Status.FAILED


@dataclass(slots=True)
class Moment:
    """An event that is read or, without a reading, a tick of the clock. Pushes gather in it.

    For explanations, `taking` has the parts that are taking it, from the outside in, and `because`
    has, for each push, what completed the parts of its body.
    """

    time: int
    reading: Reading | None = None
    pushed: list[str | None] = field(default_factory=list)
    taking: list[Part] | None = None
    because: list[list[Reading]] = field(default_factory=list)

    def completes_an_event(self) -> None:
        for part in self.taking or ():
            part.completed_by.append(self.reading or Reading(self.time, frozenset()))


class EclInstance(Instance):
    """An ECL correlation under one key. Once its expression completes it is finished."""

    def __init__(
        self,
        correlation: EclCorrelation,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(timers, outputs, started)
        self._correlation = correlation
        self._key_places = key_places(correlation.clauses.by)
        self._top = Part(correlation.body, started)
        self.explains = False

    @property
    def top(self) -> Part:
        return self._top

    def read(self, reading: Reading) -> list[Event]:
        return self._take(Moment(reading.time, reading))

    def next_due(self) -> int | None:
        if self._top.status is not RUNNING:
            return None
        return _earliest([super().next_due(), self._top.next_due()])

    def fire(self, time: int) -> list[Event]:
        """Timer ports go first; then all timeouts that are due, together."""
        if super().next_due() == time:
            return super().fire(time)
        return self._take(Moment(time))

    def _take(self, moment: Moment) -> list[Event]:
        moment.taking = [] if self.explains else None
        self._top.take(moment)
        if moment.pushed:
            self.triggered(moment.time)
        event = moment.reading.event if moment.reading else None
        event_id = event.id if event else None
        made = []
        for pushed, because in zip(moment.pushed, moment.because, strict=True):
            type_name = pushed or self._correlation.output
            data = self.outputs.filled(type_name, self._key_places)
            trigger = Trigger(moment.time, event_id, because=because)
            made.append(self.outputs.create(trigger, type_name, data))
        return made


class UnderWay(ABC):
    """An expression that has been started and has not completed."""

    @abstractmethod
    def take(self, moment: Moment) -> Status: ...

    def next_due(self) -> int | None:
        """When its next timeout is due."""
        return None

    def parts(self) -> Sequence[Part]:
        """The parts of it that are under way or done, for explanations."""
        return ()


MOST_REASONS = 1000
"""How many of the last completions below a part are kept, where a run explains."""


class Part:
    """A place for an expression: it is under way, or it is done and stays done.

    `completed_by` has what completed the events and timeouts in it since it was started, where a
    run explains, and `led_by` what had to be complete before it was.
    """

    def __init__(self, expression: Ecl, time: int, led_by: Iterable[Reading] = ()) -> None:
        self.expression = expression
        self.led_by = tuple(led_by)[-MOST_REASONS:]
        self.start(time)

    def start(self, time: int) -> None:
        self.status = RUNNING
        self.started = time
        self.under_way = start(self.expression, time)
        self.completed_by: deque[Reading] = deque(maxlen=MOST_REASONS)

    def take(self, moment: Moment) -> Status:
        if self.status is RUNNING:
            if moment.taking is not None:
                moment.taking.append(self)
            self.status = self.under_way.take(moment)
            if moment.taking is not None:
                moment.taking.pop()
        return self.status

    def next_due(self) -> int | None:
        return self.under_way.next_due() if self.status is RUNNING else None


# --- what waits for an event, or for the clock -------------------------------------------------


class AwaitEvent(UnderWay):
    """`a`, `<predicate>`, `true`, `false`: succeeds at an event that is accepted; never fails."""

    def __init__(self, accepts: Callable[[Reading], bool]) -> None:
        self._accepts = accepts

    def take(self, moment: Moment) -> Status:
        if moment.reading is None or not self._accepts(moment.reading):
            return RUNNING
        moment.completes_an_event()
        return SUCCEEDED


class AwaitClock(UnderWay):
    """`timeout(D)`: succeeds when the clock reaches D after it was started."""

    def __init__(self, due: int) -> None:
        self._due = due

    def take(self, moment: Moment) -> Status:
        if moment.reading is not None or moment.time < self._due:
            return RUNNING
        moment.completes_an_event()
        return SUCCEEDED

    def next_due(self) -> int | None:
        return self._due


# --- several parts ------------------------------------------------------------------------------


class SideBySide(UnderWay):
    """All parts take every moment; how they stand decides. A part that is done stays done."""

    def __init__(self, parts: Sequence[Ecl], time: int) -> None:
        self._parts = [Part(part, time) for part in parts]

    def take(self, moment: Moment) -> Status:
        return self.decide([part.take(moment) for part in self._parts])

    def next_due(self) -> int | None:
        return _earliest([part.next_due() for part in self._parts])

    def parts(self) -> Sequence[Part]:
        return self._parts

    @abstractmethod
    def decide(self, statuses: list[Status]) -> Status: ...


class Accumulate(SideBySide):
    """Succeeds when all have; fails as soon as one does."""

    def decide(self, statuses: list[Status]) -> Status:
        if all(status is SUCCEEDED for status in statuses):
            return SUCCEEDED
        return FAILED if FAILED in statuses else RUNNING


class Select(SideBySide):
    """Succeeds as soon as one does; fails when all have."""

    def decide(self, statuses: list[Status]) -> Status:
        if SUCCEEDED in statuses:
            return SUCCEEDED
        return FAILED if all(status is FAILED for status in statuses) else RUNNING


class SelectStar(SideBySide):
    """Succeeds as soon as one does; fails as soon as one does."""

    def decide(self, statuses: list[Status]) -> Status:
        if SUCCEEDED in statuses:
            return SUCCEEDED
        return FAILED if FAILED in statuses else RUNNING


class Parallel(SideBySide):
    """Never completes."""

    def decide(self, statuses: list[Status]) -> Status:  # noqa: ARG002
        return RUNNING


class DoUnless(SideBySide):
    """Succeeds when its body does; fails when the body fails or the other succeeds."""

    def decide(self, statuses: list[Status]) -> Status:
        body, stop = statuses
        if body is SUCCEEDED:
            return SUCCEEDED
        return FAILED if body is FAILED or stop is SUCCEEDED else RUNNING


class Sequential(UnderWay):
    """One part after the other; succeeds after the last, fails when one does."""

    def __init__(self, parts: Sequence[Ecl], time: int) -> None:
        self._coming = list(parts)
        self._current = Part(self._coming.pop(0), time)

    def take(self, moment: Moment) -> Status:
        status = self._current.take(moment)
        if status is SUCCEEDED and self._coming:
            led_by = (*self._current.led_by, *self._current.completed_by)
            self._current = Part(self._coming.pop(0), moment.time, led_by)
            return RUNNING
        return status

    def next_due(self) -> int | None:
        return self._current.next_due()

    def parts(self) -> Sequence[Part]:
        return [self._current]


# --- one part -----------------------------------------------------------------------------------


class Around(UnderWay):
    """An operator with one part, which changes how the completion of the part shows outside."""

    def __init__(self, body: Ecl, time: int) -> None:
        self._body = Part(body, time)

    def take(self, moment: Moment) -> Status:
        status = self._body.take(moment)
        return status if status is RUNNING else self.completed(status, moment)

    def next_due(self) -> int | None:
        return self._body.next_due()

    def parts(self) -> Sequence[Part]:
        return [self._body]

    @abstractmethod
    def completed(self, status: Status, moment: Moment) -> Status: ...


class Inverted(Around):
    """`fail { x }`: succeeds when x fails and fails when it succeeds."""

    def completed(self, status: Status, moment: Moment) -> Status:  # noqa: ARG002
        return FAILED if status is SUCCEEDED else SUCCEEDED


class Pushing(Around):
    """`push(T) { x }` and `notify { x }`: puts out when x succeeds."""

    def __init__(self, type_name: str | None, body: Ecl, time: int) -> None:
        super().__init__(body, time)
        self._type_name = type_name

    def completed(self, status: Status, moment: Moment) -> Status:
        if status is SUCCEEDED:
            moment.pushed.append(self._type_name)
            led_by = [each for part in moment.taking or () for each in part.led_by]
            moment.because.append([*led_by, *self._body.completed_by])
        return status


class InRounds(Around):
    """`repeat`, `persist` and `loop`: start the body again, until they complete themselves."""

    def __init__(self, expression: Round, time: int) -> None:
        super().__init__(expression.body, time)
        self._kind = expression.kind
        self._left = expression.bound

    def completed(self, status: Status, moment: Moment) -> Status:
        # `persist` is over at a success, `loop` at a failure, `repeat` at neither.
        if (self._kind, status) in {("persist", SUCCEEDED), ("loop", FAILED)}:
            return status
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                return FAILED if self._kind == "persist" else SUCCEEDED
        self._body.start(moment.time)
        return RUNNING


class InModes(UnderWay):
    """`modes`: one body under way, and the guards of the other modes. Never completes."""

    def __init__(self, modes: Sequence[Mode], time: int) -> None:
        self._modes = modes
        self._enter(0, time)

    def _enter(self, entered: int, time: int, led_by: Iterable[Reading] = ()) -> None:
        self._body = Part(self._modes[entered].body, time, led_by)
        self._guards = {
            number: Part(mode.guard, time)
            for number, mode in enumerate(self._modes)
            if number != entered
        }

    def take(self, moment: Moment) -> Status:
        taken = [(number, guard.take(moment)) for number, guard in self._guards.items()]
        entered = [number for number, status in taken if status is SUCCEEDED]
        if entered:
            guard = self._guards[entered[0]]
            self._enter(entered[0], moment.time, guard.completed_by)
        else:
            self._body.take(moment)
        return RUNNING

    def next_due(self) -> int | None:
        return _earliest([part.next_due() for part in self.parts()])

    def parts(self) -> Sequence[Part]:
        return [self._body, *self._guards.values()]


# --- starting -----------------------------------------------------------------------------------


def start(x: Ecl, time: int) -> UnderWay:
    match x:
        case PortRef(name):
            return AwaitEvent(lambda reading: name in reading.ports)
        case Holds(predicate):
            return AwaitEvent(lambda reading: predicate_holds(predicate, reading))
        case Constant(value):
            return AwaitEvent(lambda _: value)
        case Timeout(after):
            return AwaitClock(time + after.microseconds)
        case Group("sequential", parts):
            return Sequential(parts, time)
        case Group(kind, parts):
            return _SIDE_BY_SIDE[kind](parts, time)
        case Unless(body, stop):
            return DoUnless((body, stop), time)
        case Fail(body):
            return Inverted(body, time)
        case Push(type_name, body):
            return Pushing(type_name, body, time)
        case Round():
            return InRounds(x, time)
        case Modes(modes):
            return InModes(modes, time)
        case _:
            assert_never(x)


_SIDE_BY_SIDE: dict[str, type[SideBySide]] = {
    "accumulate": Accumulate,
    "select": Select,
    "select*": SelectStar,
    "parallel": Parallel,
}


def _earliest(times: Sequence[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)
