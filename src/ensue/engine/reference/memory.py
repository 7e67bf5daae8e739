"""What a branch of a filter remembers, and the definition of a match over it.

A branch remembers the readings since its last trigger. Whether they match an expression is asked
as: *where is it complete at the earliest, if it may use only what lies at or after `start`?* That
is the definition of a match, read from the left:

    port      just behind the first event that matches it
    x + y     where the later of the two is complete       (both match)
    x | y     where the earlier of the two is complete     (one matches)
    x ; y     where y is complete, started where x is      (the sequence splits there)
    x{n}      x ; x ; ... ; x

For `;` the earliest split is the best one: whatever matches `y` from later on matches it from there
too. An aborted subexpression is left out, and a revived one starts no earlier than it was revived.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from ensue.engine.ports import Reading
from ensue.lang.syntax import Both, Either, Filter, Labelled, PortRef, Then, Times

Place = float
"""A place between readings: 0 is before the first; NEVER is where nothing is ever complete."""

NEVER: Place = float("inf")

LET_GO_AT_ONCE = 256
"""How many readings that left a window are dropped together."""


class BranchMemory:
    """The readings of one branch since its last trigger, and the state of its labels."""

    def __init__(self, expression: Filter) -> None:
        self.expression = expression
        self.labels = frozenset(node.label for node in _labelled(expression))
        self.aborted: set[str] = set()
        self._readings: list[Reading] = []
        self._times: list[int] = []
        self._places: dict[str, list[int]] = {}
        self._revived: dict[str, int] = {}

    def remember(self, reading: Reading) -> None:
        for port in reading.ports:
            self._places.setdefault(port, []).append(len(self._readings))
        self._readings.append(reading)
        self._times.append(reading.time)

    def forget(self) -> None:
        self._readings, self._times, self._places, self._revived = [], [], {}, {}

    def let_go(self, start: int) -> None:
        """Drop what lies before `start` and can never count again, once that is worth the work."""
        if start < LET_GO_AT_ONCE or 2 * start < len(self._readings):
            return
        self._readings, self._times = self._readings[start:], self._times[start:]
        self._places = {
            port: [place - start for place in places[bisect_left(places, start) :]]
            for port, places in self._places.items()
        }
        self._revived = {label: max(0, at - start) for label, at in self._revived.items()}

    def abort(self, label: str) -> None:
        self.aborted.add(label)

    def revive(self, label: str) -> None:
        """Reviving what is alive changes nothing; else it starts afresh with the next event."""
        if label in self.aborted:
            self.aborted.discard(label)
            self._revived[label] = len(self._readings)

    @property
    def readings(self) -> Sequence[Reading]:
        """What is remembered, in the order in which it was read."""
        return self._readings

    @property
    def revived(self) -> Mapping[str, int]:
        """For labels that were revived: how much had been read when they were."""
        return self._revived

    def restore(
        self, readings: Sequence[Reading], aborted: set[str], revived: dict[str, int]
    ) -> None:
        """Put back what was remembered, as a snapshot has kept it."""
        self.forget()
        for reading in readings:
            self.remember(reading)
        self.aborted, self._revived = aborted, revived

    # --- the definitions ----------------------------------------------------------------------

    def first_since(self, time: int) -> int:
        """The place from which on readings count, if only those at or after a time do."""
        return bisect_left(self._times, time)

    def matches(self, start: Place) -> bool:
        """Do the readings at or after `start` match the branch, less what is aborted?"""
        if self.is_left_out(self.expression):
            return False
        return self.complete(self.expression, start) < NEVER

    def complete(self, x: Filter, start: Place) -> Place:
        match x:
            case PortRef(name):
                places = self._places.get(name, [])
                nearest = bisect_left(places, start)
                return places[nearest] + 1 if nearest < len(places) else NEVER
            case Labelled(label, body):
                return self.complete(body, self.start_of(label, start))
            case Both(parts):
                return max(self.complete(part, start) for part in self.alive(parts))
            case Either(parts):
                return min(self.complete(part, start) for part in self.alive(parts))
            case Then(parts):
                for part in self.alive(parts):
                    start = self.complete(part, start)
                return start
            case Times(body, count):
                for _ in range(count):
                    start = self.complete(body, start)
                return start

    def active_labels(self, start: Place) -> frozenset[str]:
        """A label is active if the remembered events match its subexpression."""

        def walk(x: Filter, start: Place) -> Iterator[str]:
            match x:
                case Labelled(label, body) if not self.is_left_out(x):
                    start = self.start_of(label, start)
                    if self.complete(body, start) < NEVER:
                        yield label
                    yield from walk(body, start)
                case Both(parts) | Either(parts) | Then(parts):
                    for part in self.alive(parts):
                        yield from walk(part, start)

        return frozenset(walk(self.expression, start))

    def bound(self, start: Place, first: bool) -> dict[str, Reading]:
        """What each port stands for: the last (or first) of its events in its stretch.

        All stretches of a port end at the trigger, so together they reach from the earliest start.
        """
        stretches: dict[str, Place] = {}
        for port, begin in self._stretches(self.expression, start):
            stretches[port] = min(begin, stretches.get(port, NEVER))
        bound: dict[int, list[str]] = {}
        for port, begin in stretches.items():
            places = self._places.get(port, [])
            candidates = places[bisect_left(places, begin) :]
            if candidates:
                bound.setdefault(candidates[0 if first else -1], []).append(port)
        return {port: self._readings[at] for at in sorted(bound) for port in bound[at]}

    def _stretches(self, x: Filter, start: Place) -> Iterator[tuple[str, Place]]:
        match x:
            case PortRef(name):
                yield name, start
            case Labelled(label, body) if not self.is_left_out(x):
                yield from self._stretches(body, self.start_of(label, start))
            case Both(parts) | Either(parts):
                for part in self.alive(parts):
                    yield from self._stretches(part, start)
            case Then(parts):
                for part in self.alive(parts):
                    yield from self._stretches(part, start)
                    start = self.complete(part, start)
            case Times(body, _):
                # The stretches of the later rounds lie inside those of the first.
                yield from self._stretches(body, start)

    # --- what is left out ---------------------------------------------------------------------

    def is_left_out(self, x: Filter) -> bool:
        match x:
            case PortRef():
                return False
            case Labelled(label, body):
                return label in self.aborted or self.is_left_out(body)
            case Both(parts) | Either(parts) | Then(parts):
                return all(self.is_left_out(part) for part in parts)
            case Times(body, _):
                return self.is_left_out(body)

    def alive(self, parts: tuple[Filter, ...]) -> list[Filter]:
        return [part for part in parts if not self.is_left_out(part)]

    def start_of(self, label: str, start: Place) -> Place:
        return max(start, self._revived.get(label, 0))


def _labelled(x: Filter) -> Iterator[Labelled]:
    match x:
        case Labelled(_, body):
            yield x
            yield from _labelled(body)
        case Both(parts) | Either(parts) | Then(parts):
            for part in parts:
                yield from _labelled(part)
