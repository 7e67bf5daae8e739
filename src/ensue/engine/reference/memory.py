"""What a branch of a filter remembers, and the definition of a match over it.

A branch remembers the readings since its last trigger. Whether they match an expression is asked
as: *where is it complete at the earliest, if it may use only what lies at or after `start`?* That
is the definition of a match, read from the left:

    port      just behind the first event that matches it
    x + y     where the later of the two is complete       (both match)
    x | y     where the earlier of the two is complete     (one matches)
    x ; y     where y is complete, started where x is      (the sequence splits there)
    x{n}      x ; x ; ... ; x
    x ; timeout(D)   just behind the first firing of the clock D after an event that took part in x

For `;` the earliest split is the best one: whatever matches `y` from later on matches it from there
too. An aborted subexpression is left out, and a revived one starts no earlier than it was revived.

Rules that relate events also ask whether one event *takes part* in a match (`takes_part`), when a
`timeout` is due (`next_moment`), and which events are the *latest* match together (`filters`).

All these questions stand in one module: each is a recursion over the same
expressions and the same readings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from ensue.engine.ports import Reading
from ensue.lang.derived.parts import labels_in, parts_of
from ensue.lang.syntax import Both, Either, Filter, Labelled, PortRef, Then, Timeout, Times

Place = float
"""A place between readings: 0 is before the first; NEVER is where nothing is ever complete."""

NEVER: Place = float("inf")

FEWEST_DROPPED = 256
"""The fewest readings outside of a window for which it pays to drop them."""


class BranchMemory:
    """The readings of one branch since its last trigger, and the state of its labels.

    `is_fixed`: nothing of the expression is ever aborted. Then readings before the first one that
    can begin a match, of the branch or of a label, are never asked for, and are not remembered.
    """

    def __init__(self, expression: Filter, is_fixed: bool = False) -> None:
        self.expression = expression
        self._beginnings = frozenset(_beginnings(expression)) if is_fixed else None
        self._timeouts = list(_timeouts(expression))
        self.waits_for_clock = bool(self._timeouts)
        self.labels = frozenset(node.label for node in labels_in([expression]))
        self.aborted: set[str] = set()
        self._readings: list[Reading] = []
        self._times: list[int] = []
        self._places: dict[str, list[int]] = {}
        self._revived: dict[str, int] = {}

    def remember(self, reading: Reading) -> None:
        if (
            self._beginnings is not None
            and not self._readings
            and self._beginnings.isdisjoint(reading.ports)
        ):
            return
        for port in reading.ports:
            self._places.setdefault(port, []).append(len(self._readings))
        self._readings.append(reading)
        self._times.append(reading.time)

    def forget(self) -> None:
        self._readings, self._times, self._places, self._revived = [], [], {}, {}

    def forget_before_last(self, reading: Reading) -> None:
        """Forget all that came before a reading that was just read, if that is remembered."""
        if self._readings and self._readings[-1] is reading:
            self.restore([reading], self.aborted, {})

    def forget_before(self, start: int) -> None:
        """Drop what lies before `start` and can never count again, once that is worth the work."""
        if start < FEWEST_DROPPED or 2 * start < len(self._readings):
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
        """The place of the first reading at or after a time."""
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
            case Timeout():
                raise AssertionError("`;` asks for its timeouts itself, with what is left of them")
            case Labelled(label, body):
                return self.complete(body, self.start_of(label, start))
            case Both(parts):
                return max(self.complete(part, start) for part in self.alive(parts))
            case Either(parts):
                return min(self.complete(part, start) for part in self.alive(parts))
            case Then(parts):
                return self.complete_chain(self.alive(parts), start)
            case Times(body, count):
                for _ in range(count):
                    start = self.complete(body, start)
                return start

    def complete_chain(self, parts: Sequence[Filter], start: Place) -> Place:
        """Where `x ; y ; ...` is complete."""
        *others, last = parts
        if isinstance(last, Timeout):
            return self._first_firing(others, start, last.after.microseconds)
        *_, begin = self.begins(parts, start)
        return self.complete(last, begin)

    def begins(self, parts: Sequence[Filter], start: Place) -> Iterator[Place]:
        """Where each part of `x ; y ; ...` begins: where the parts before it are complete."""
        place = start
        for number, part in enumerate(parts):
            yield place
            if isinstance(part, Timeout):
                place = self._first_firing(parts[:number], start, part.after.microseconds)
            else:
                place = self.complete(part, place)

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
        bound = {
            port: places[0 if first else -1]
            for port, places in self._places_in_stretches(start).items()
            if places
        }
        return self.in_order(bound)

    def in_order(self, bound: Mapping[str, int]) -> dict[str, Reading]:
        """What ports stand for, given by places, in the order in which it was read."""
        return {port: self._readings[at] for port, at in sorted(bound.items(), key=itemgetter(1))}

    def stretches(self, start: Place) -> dict[str, list[Reading]]:
        """All readings of each port in its stretch, for aggregates."""
        return {
            port: [self._readings[at] for at in places]
            for port, places in self._places_in_stretches(start).items()
        }

    def _places_in_stretches(self, start: Place) -> dict[str, list[int]]:
        begins: dict[str, Place] = {}
        for port, begin in self._stretches(self.expression, start):
            begins[port] = min(begin, begins.get(port, NEVER))
        found = {}
        for port, begin in begins.items():
            places = self._places.get(port, [])
            found[port] = places[bisect_left(places, begin) :]
        return found

    def _stretches(self, x: Filter, start: Place) -> Iterator[tuple[str, Place]]:
        match x:
            case PortRef(name):
                yield name, start
            case Timeout():
                return
            case Labelled(label, body) if not self.is_left_out(x):
                yield from self._stretches(body, self.start_of(label, start))
            case Both(parts) | Either(parts):
                for part in self.alive(parts):
                    yield from self._stretches(part, start)
            case Then(parts):
                alive = self.alive(parts)
                for part, begin in zip(alive, self.begins(alive, start), strict=True):
                    yield from self._stretches(part, begin)
            case Times(body, _):
                # The stretches of the later rounds lie inside those of the first.
                yield from self._stretches(body, start)

    # --- an event that takes part -------------------------------------------------------------

    def takes_part(self, x: Filter, start: Place, end: int) -> bool:
        """Does the last of the readings from `start` to `end` take part in a match of them?"""
        last = end - 1
        match x:
            case PortRef(name):
                return last >= start and name in self._readings[last].ports
            case Timeout():
                raise AssertionError("`;` asks for its timeouts itself, with what is left of them")
            case Labelled(_, body):
                return self.takes_part(body, start, end)
            case Both(parts):
                return all(self.complete(part, start) <= end for part in parts) and any(
                    self.takes_part(part, start, end) for part in parts
                )
            case Either(parts):
                return any(self.takes_part(part, start, end) for part in parts)
            case Then(parts):
                return self._takes_part_in_chain(parts, start, end)
            case Times(body, count):
                for _ in range(count - 1):
                    start = self.complete(body, start)
                return start <= last and self.takes_part(body, start, end)

    def _takes_part_in_chain(self, parts: Sequence[Filter], start: Place, end: int) -> bool:
        *left, right = parts
        if isinstance(right, Timeout):
            return self._is_due(left, start, end - 1, right.after.microseconds)
        if not left:
            return self.takes_part(right, start, end)
        middle = self.complete_chain(left, start)
        return middle < end and self.takes_part(right, middle, end)

    # --- the clock ----------------------------------------------------------------------------

    def _is_due(self, left: Sequence[Filter], start: Place, place: int, after: int) -> bool:
        """Is the reading at a place the firing for `left ; timeout(after)`?

        It is if some event took part in a match of the left side exactly so long before it.
        """
        reading = self._readings[place]
        if reading.ports or place < start:
            return False
        return any(
            self._takes_part_in_chain(left, start, at + 1)
            for at in self._read_at(reading.time - after, start)
        )

    def _read_at(self, time: int, start: Place) -> Iterator[int]:
        """The places, from `start` on, of what was read at just that time."""
        at = int(max(start, bisect_left(self._times, time)))
        while at < len(self._times) and self._times[at] == time:
            yield at
            at += 1

    def _first_firing(self, left: Sequence[Filter], start: Place, after: int) -> Place:
        """Just behind the first firing for `left ; timeout(after)`."""
        if start == NEVER:
            return NEVER
        for place in range(int(start), len(self._readings)):
            if self._is_due(left, start, place, after):
                return place + 1
        return NEVER

    def timed(
        self, left: Sequence[Filter], start: Place, end: int, after: int
    ) -> Iterator[tuple[int, int]]:
        """The events after which the time of `left ; timeout(after)` is up, the latest first.

        Each with the place of the firing, before `end`, at which it was.
        """
        for at in range(end - 1, -1, -1):
            if at < start:
                return
            moment = self._times[at] + after
            firing = next(
                (f for f in self._read_at(moment, at) if not self._readings[f].ports), end
            )
            if firing < end and self._takes_part_in_chain(left, start, at + 1):
                yield firing, at

    def next_moment(self) -> int | None:
        """When the clock has to fire for a `timeout` of this branch next.

        A `timeout` counts from what is remembered, wherever it stands: a label around it asks for
        just that. What it completes is judged when its firing is read, and may be nothing.
        """
        if not self.waits_for_clock or not self._readings:
            return None
        moments = (
            self.next_firing(left, 0, timeout.after.microseconds)
            for left, timeout in self._timeouts
        )
        return min((each for each in moments if each is not None), default=None)

    def next_firing(self, left: Sequence[Filter], start: Place, after: int) -> int | None:
        """The first moment of `left ; timeout(after)` that has not come yet.

        All moments before the last reading have come. The moment of the last reading has, if the
        clock has fired at it: timer ports that are due together with a timeout come before it.
        """
        now = self._times[-1]
        fired = any(not self._readings[at].ports for at in self._read_at(now, 0))
        for at in range(int(max(start, bisect_left(self._times, now - after))), len(self._times)):
            moment = self._times[at] + after
            if fired and moment == now:
                continue
            if self._takes_part_in_chain(left, start, at + 1):
                return moment
        return None

    # --- what is left out ---------------------------------------------------------------------

    def is_left_out(self, x: Filter) -> bool:
        match x:
            case PortRef() | Timeout():
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


def _timeouts(expression: Filter) -> Iterator[tuple[Sequence[Filter], Timeout]]:
    """Each `timeout` in an expression, with what stands left of it."""
    for chain in parts_of([expression]):
        if isinstance(chain, Then):
            for number, part in enumerate(chain.parts):
                if isinstance(part, Timeout):
                    yield chain.parts[:number], part


def _beginnings(expression: Filter) -> Iterator[str]:
    """The ports whose events can begin a match of an expression or of a part with a label."""
    for part in (expression, *(node.body for node in labels_in([expression]))):
        pending = [part]
        while pending:
            match pending.pop():
                case PortRef(name):
                    yield name
                case Labelled(_, body) | Times(body, _):
                    pending.append(body)
                case Both(parts) | Either(parts):
                    pending.extend(parts)
                case Then(parts):
                    pending.append(parts[0])
