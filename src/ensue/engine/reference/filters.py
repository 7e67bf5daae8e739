"""The two-phase correlation: branches that trigger, then a transformer.

For each reading:

1. Every branch reads it. Branches that now match trigger, and forget what they remembered.
2. The transformer runs once for each triggered branch, from left to right.
3. What the cases aborted may have completed other branches: these trigger at once, by the same
   event, and the transformer runs for each of them; and so on until no branch triggers.

A rule that relates events aborts nothing. A branch of it triggers at a reading that takes part in a
match, if `having` holds; then `keep` says what it forgets. After that `unless` does. Its timeouts
are readings, too: those of the clock, which match no port.

`bind latest` binds the events of the latest match of an expression (`latest`):

    port       its last event
    x + y      the latest match of each
    x | y      the one that starts later; then the one whose last event is later; then the left
    x ; y      the latest match of y, with the latest match of x that lies before it
    x ; timeout(D)   of the matches of x whose time is up, the one that starts later

At a trigger it is the latest match in which the event just read takes part: of `x | y` among the
sides in which it does, of `x ; timeout(D)` among the matches whose time is up at just this firing.

Whether there is a match at all is asked of `memory`; what a transformer does stands in
`ensue.engine.outputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs, Transformer, Trigger, port_scope
from ensue.engine.ports import Reading
from ensue.engine.reference.memory import NEVER, BranchMemory, Place
from ensue.events.event import Event
from ensue.lang.derived.relating import aggregates_of, relates_events
from ensue.lang.expressions.evaluation import holds
from ensue.lang.syntax import (
    Both,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    TimerPort,
    Times,
)


@dataclass(frozen=True, slots=True)
class Match:
    """A match: the places of its first and last reading, and the places of each port's events."""

    first: int
    last: int
    places: tuple[tuple[str, int], ...]

    @property
    def bound(self) -> dict[str, int]:
        """The event that each port stands for: the last of its events."""
        found: dict[str, int] = {}
        for port, place in self.places:
            found[port] = max(place, found.get(port, place))
        return found


def latest(
    memory: BranchMemory, x: Filter, start: Place, end: int, *, with_last: bool = False
) -> Match | None:
    """The latest match among the readings from `start` to `end`.

    `with_last` asks for the latest in which the last of them takes part, and it does.
    """
    match x:
        case PortRef(name):
            return _last_event(memory, name, start, end)
        case Timeout():
            raise AssertionError("`;` asks for its timeouts itself, with what is left of them")
        case Labelled(_, body):
            return latest(memory, body, start, end, with_last=with_last)
        case Both(parts):
            return _joined(
                latest(
                    memory,
                    part,
                    start,
                    end,
                    with_last=with_last and memory.takes_part(part, start, end),
                )
                for part in parts
            )
        case Either(parts):
            taking = [p for p in parts if not with_last or memory.takes_part(p, start, end)]
            return _later(latest(memory, p, start, end, with_last=with_last) for p in taking)
        case Then(parts):
            return _latest_chain(memory, parts, start, end, with_last)
        case Times(body, count):
            return _latest_chain(memory, (body,) * count, start, end, with_last)


def _last_event(memory: BranchMemory, port: str, start: Place, end: int) -> Match | None:
    for at in range(end - 1, -1, -1):
        if at < start:
            return None
        if port in memory.readings[at].ports:
            return Match(at, at, ((port, at),))
    return None


def _joined(matches: Iterable[Match | None]) -> Match | None:
    """The matches of several parts as one match; None if a part has none."""
    found = []
    for each in matches:
        if each is None:
            return None
        found.append(each)
    places = tuple(place for each in found for place in each.places)
    return Match(min(each.first for each in found), max(each.last for each in found), places)


def _later(matches: Iterable[Match | None]) -> Match | None:
    """The match that starts later, then the one whose last event is later, then the first."""
    best: Match | None = None
    for each in matches:
        if each is not None and (best is None or (each.first, each.last) > (best.first, best.last)):
            best = each
    return best


def _latest_chain(
    memory: BranchMemory, parts: Sequence[Filter], start: Place, end: int, with_last: bool
) -> Match | None:
    """`x ; y ; ...`, from the right: each part as late as the one behind it allows."""
    begins = list(memory.begins(parts, start))
    found: list[Match | None] = []
    for number in range(len(parts) - 1, -1, -1):
        part, is_last = parts[number], number == len(parts) - 1
        if begins[number] == NEVER:
            return None
        if isinstance(part, Timeout):
            # It counts from all that is left of it, so that is found together with it.
            by = end - 1 if with_last and is_last else None
            found.append(_latest_timed(memory, parts[:number], part, start, end, by))
            break
        one = latest(memory, part, begins[number], end, with_last=with_last and is_last)
        if one is None:
            return None
        found.append(one)
        end = one.first
    return _joined(reversed(found))


def _latest_timed(
    memory: BranchMemory,
    left: Sequence[Filter],
    timeout: Timeout,
    start: Place,
    end: int,
    by: int | None,
) -> Match | None:
    """The latest match of `left` whose time was up before `end`, or just at the firing `by`."""
    best: Match | None = None
    for firing, at in memory.timed(left, start, end, timeout.after.microseconds):
        if by is not None and firing != by:
            continue
        if best is not None and at < best.first:
            # What ends here starts before it, and so earlier than what was found.
            break
        one = _latest_chain(memory, left, start, at + 1, with_last=True)
        if one is not None and (best is None or one.first > best.first):
            best = Match(one.first, firing, one.places)
    return best


class FilterInstance(Instance):
    """A two-phase correlation under one key."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(timers, outputs, started)
        self.clauses = correlation.clauses
        self._relates = relates_events(correlation)
        self._aggregates = bool(aggregates_of(correlation))
        self._voids = frozenset(port.name for port in correlation.clauses.unless)
        self.branches = [BranchMemory(each, self._relates) for each in correlation.branches]
        self._home = {label: b for b in self.branches for label in b.labels}
        self._transformer = Transformer(correlation, outputs, self)

    def start(self, first: Reading) -> list[Event]:
        return self._transformer.begin(Trigger(first.time, first.event_id))

    def read(self, reading: Reading) -> list[Event]:
        for branch in self.branches:
            if self.clauses.within:
                edge = reading.time - self.clauses.within.microseconds
                branch.forget_before(branch.first_since(edge))
            # A firing of the clock is nothing to a branch that does not wait for it.
            if reading.ports or branch.waits_for_clock:
                branch.remember(reading)
        made: list[Event] = []
        while triggers := self._triggers(reading):
            self.triggered(reading.time)
            for trigger in triggers:
                made += self._transformer.transform(trigger)
            if self._relates:
                break
        if reading.ports & self._voids:
            for branch in self.branches:
                branch.forget_before_last(reading)
        return made

    def _triggers(self, reading: Reading) -> list[Trigger]:
        triggers = []
        for branch in self.branches:
            trigger = self._trigger(branch, self._window_start(branch, reading.time), reading)
            if trigger is not None:
                triggers.append(trigger)
                match self.clauses.keep:
                    case None | "none":
                        branch.forget()
                    case "last":
                        branch.forget_before_last(reading)
                    case "all":
                        pass
        return triggers

    def _window_start(self, branch: BranchMemory, now: int) -> Place:
        within = self.clauses.within
        return branch.first_since(now - within.microseconds) if within else 0

    def _trigger(self, branch: BranchMemory, start: Place, reading: Reading) -> Trigger | None:
        """The trigger of a branch at a reading that it has remembered; None if it does not."""
        if not self._is_complete(branch, start, reading):
            return None
        trigger = Trigger(
            reading.time,
            reading.event_id,
            branch.active_labels(start),
            self._bound(branch, start, with_last=True),
            branch.stretches(start) if self._aggregates else {},
        )
        return trigger if self.having_holds(trigger) else None

    def looked_at(self, branch: BranchMemory, now: int) -> Trigger | None:
        """What a trigger would know if the branch had one now; None if it does not match."""
        start = self._window_start(branch, now)
        if not branch.matches(start):
            return None
        bound = self._bound(branch, start, with_last=False)
        stretches = branch.stretches(start) if self._aggregates else {}
        return Trigger(now, None, branch.active_labels(start), bound, stretches)

    def _is_complete(self, branch: BranchMemory, start: Place, reading: Reading) -> bool:
        if not self._relates:
            return branch.matches(start)
        readings = branch.readings
        if not readings or readings[-1] is not reading:
            return False
        return branch.takes_part(branch.expression, start, len(readings))

    def _bound(self, branch: BranchMemory, start: Place, with_last: bool) -> dict[str, Reading]:
        if self.clauses.bind != "latest":
            return branch.bound(start, first=self.clauses.bind == "first")
        end = len(branch.readings)
        match = latest(branch, branch.expression, start, end, with_last=with_last)
        assert match is not None, "there is a match"
        return branch.in_order(match.bound)

    def having_holds(self, trigger: Trigger) -> bool:
        having = self.clauses.having
        return having is None or holds(having, port_scope(trigger.bound, trigger.stretches))

    # --- the clock ----------------------------------------------------------------------------

    def next_due(self) -> int | None:
        moments = [branch.next_moment() for branch in self.branches if branch.waits_for_clock]
        due = [each for each in (super().next_due(), *moments) if each is not None]
        return min(due, default=None)

    def fire(self, time: int) -> list[Event]:
        """Timer ports go first; then all timeouts that are due, as one reading."""
        if super().next_due() == time:
            return super().fire(time)
        return self.read(Reading(time, frozenset()))

    # --- letting go ---------------------------------------------------------------------------

    @property
    def made_outputs(self) -> Outputs:
        return self.outputs

    def is_idle(self, now: int) -> bool:
        """Whether it stands as at its start, with nothing remembered that could still count."""
        return all(
            not branch.aborted
            and not branch.revived
            and self._window_start(branch, now) == len(branch.readings)
            for branch in self.branches
        )

    # --- labels -------------------------------------------------------------------------------

    def is_aborted(self, label: str) -> bool:
        return label in self._home[label].aborted

    def abort(self, label: str) -> None:
        self._home[label].abort(label)

    def revive(self, label: str) -> None:
        self._home[label].revive(label)
