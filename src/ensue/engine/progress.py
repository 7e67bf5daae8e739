"""How far a rule has come: which parts are complete and by what, and what is missing.

In comes an instance of the reference engine, which remembers its events; out goes a `Progress`, in
the rule's own words. For a filter it is the branch of which most is complete; for ECL the pushed
expression of which most is. Nothing is changed by asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensue.engine.ports import Reading
from ensue.engine.reference.ecl import RUNNING, EclInstance, Part
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.reference.memory import NEVER, BranchMemory, Place
from ensue.events.times import format_time
from ensue.lang.printer import print_ecl, print_filter, print_port
from ensue.lang.syntax import (
    Both,
    Correlation,
    Either,
    EventPort,
    Filter,
    FilterCorrelation,
    Group,
    Holds,
    Labelled,
    Modes,
    PortRef,
    Push,
    Then,
    Timeout,
    Times,
    Unless,
)

CLOCK = "the clock"


@dataclass(frozen=True)
class Done:
    """A part that is complete, and what completed it: an event, or the clock."""

    part: str
    reading: Reading

    @property
    def event(self) -> object:
        return self.reading.event

    @property
    def time(self) -> int:
        return self.reading.time

    def __str__(self) -> str:
        when = format_time(self.reading.time)
        if self.part == CLOCK:
            return f"{self.part}, at {when}"
        if self.reading.event is None:
            return f"{self.part} by the clock, at {when}"
        return f"{self.part} by `{self.reading.event.id}`, at {when}"


@dataclass(frozen=True)
class Waits:
    """What is missing: `words` with a `{port}` for each of `ports`, which the rule describes."""

    words: str
    ports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    done: tuple[Done, ...]
    waits: Waits
    before: int | None = None
    left: tuple[Done, ...] = ()
    left_before: int | None = None


def in_words(waits: Waits, correlation: Correlation) -> str:
    """With each port that is waited for as the rule declares it."""
    declared = {port.name: port for port in correlation.ports}
    conditions = [
        f"`{name}` is `{print_port(port)}`"
        for name in dict.fromkeys(waits.ports)
        if (port := declared.get(name)) is not None
        and not (isinstance(port, EventPort) and port.source is None and port.where is None)
    ]
    return f"{waits.words} ({', '.join(conditions)})" if conditions else waits.words


# --- filters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """A subexpression from some place on: where it is complete, by what, and what it waits for."""

    place: Place
    done: tuple[Done, ...]
    waits: Waits


def filter_progress(
    correlation: FilterCorrelation, instance: FilterInstance, now: int
) -> Progress | None:
    """The branch of which most is complete; None if all of them are aborted."""
    found = [
        _branch_progress(correlation, branch, now)
        for branch in instance.branches
        if not branch.is_left_out(branch.expression)
    ]
    return max(found, key=lambda each: len(each.done), default=None)


def _branch_progress(correlation: FilterCorrelation, branch: BranchMemory, now: int) -> Progress:
    within = correlation.clauses.within
    if within is None:
        look = _look(branch, branch.expression, 0)
        return Progress(look.done, look.waits)
    start = branch.first_since(now - within.microseconds)
    look = _look(branch, branch.expression, start)
    before = None
    if look.done:
        # The latest beginning that leaves as much complete has the most time left.
        size = len(look.done)
        place = len(branch.readings) - 1
        while place > start:
            later = _look(branch, branch.expression, place)
            if len(later.done) == size:
                look = later
                break
            place -= 1
        before = min(each.time for each in look.done) + within.microseconds
    ever = _look(branch, branch.expression, 0)
    if len(ever.done) <= len(look.done):
        return Progress(look.done, look.waits, before)
    first = min(each.time for each in ever.done)
    return Progress(look.done, look.waits, before, ever.done, first + within.microseconds)


def _look(branch: BranchMemory, x: Filter, start: Place) -> _Look:
    match x:
        case PortRef(name):
            place = branch.complete(x, start)
            if place == NEVER:
                return _Look(NEVER, (), Waits(f"`{name}`", (name,)))
            reading = branch.readings[int(place) - 1]
            return _Look(place, (Done(f"`{name}`", reading),), Waits(""))
        case Labelled(label, body):
            return _look(branch, body, branch.start_of(label, start))
        case Both(parts):
            looks = [_look(branch, part, start) for part in branch.alive(parts)]
            return _joined(max(each.place for each in looks), looks, " and ")
        case Either(parts):
            looks = [_look(branch, part, start) for part in branch.alive(parts)]
            return _joined(min(each.place for each in looks), looks, " or ")
        case Then(parts):
            return _in_turn(branch, branch.alive(parts), start)
        case Times(body, count):
            return _in_turn(branch, [body] * count, start)


def _in_turn(branch: BranchMemory, parts: Sequence[Filter], start: Place) -> _Look:
    done: list[Done] = []
    for number, part in enumerate(parts):
        look = _look(branch, part, start)
        done += look.done
        start = look.place
        if start == NEVER:
            coming = parts[number + 1 :]
            if not coming:
                return _Look(NEVER, tuple(done), look.waits)
            same = all(each == coming[0] for each in coming)
            then = (
                f"{len(coming)} times `{print_filter(coming[0])}`"
                if same and len(coming) > 2
                else f"`{' ; '.join(print_filter(each) for each in coming[:4])}`"
            )
            return _Look(
                NEVER, tuple(done), Waits(f"{look.waits.words}, then {then}", look.waits.ports)
            )
    return _Look(start, tuple(done), Waits(""))


def _joined(place: Place, looks: Sequence[_Look], word: str) -> _Look:
    done = tuple(each for look in looks for each in look.done)
    waiting = [look.waits for look in looks if look.place == NEVER]
    words = word.join(each.words for each in waiting)
    if len(waiting) > 1:
        words = f"({words})"
    return _Look(place, done, Waits(words, tuple(p for each in waiting for p in each.ports)))


# --- ECL ----------------------------------------------------------------------------------------


def ecl_progress(instance: EclInstance) -> Progress | None:
    """The pushed expression under way of which most is complete; None if there is none."""
    pushing = [part for part in _under_way(instance.top) if isinstance(part.expression, Push)]
    if not pushing:
        return None
    nearest = max(pushing, key=lambda part: len(part.completed_by))
    done = tuple(
        Done(", ".join(f"`{port}`" for port in sorted(each.ports)) or CLOCK, each)
        for each in nearest.completed_by
    )
    return Progress(done, _missing(nearest))


def _under_way(part: Part) -> Iterator[Part]:
    if part.status is RUNNING:
        yield part
        for each in part.under_way.parts():
            yield from _under_way(each)


def _missing(part: Part) -> Waits:
    x = part.expression
    parts = [each for each in part.under_way.parts() if each.status is RUNNING]
    match x:
        case PortRef(name):
            return Waits(f"`{name}`", (name,))
        case Holds():
            return Waits(f"an event with `{print_ecl(x)}`")
        case Timeout():
            due = part.next_due()
            return Waits("the clock" if due is None else f"the clock to reach {format_time(due)}")
        case Unless():
            body, stop = part.under_way.parts()
            wanted, refused = _missing(body), _missing(stop)
            return Waits(
                f"{wanted.words}, unless {refused.words} comes first",
                (*wanted.ports, *refused.ports),
            )
        case Group("sequential", all_parts):
            (current,) = part.under_way.parts()
            inner = _missing(current)
            place = next((n for n, each in enumerate(all_parts) if each is current.expression), 0)
            coming = ", ".join(print_ecl(each) for each in all_parts[place + 1 :])
            return Waits(f"{inner.words}, then `{coming}`", inner.ports) if coming else inner
        case Group(kind):
            return _any_of(parts, " and " if kind == "accumulate" else " or ")
        case Modes():
            body, *guards = part.under_way.parts()
            return _any_of([each for each in (body, *guards) if each.status is RUNNING], " or ")
        case _ if parts:
            return _any_of(parts, " or ")
    return Waits(f"`{print_ecl(x)}`")


def _any_of(parts: Sequence[Part], word: str) -> Waits:
    waiting = [_missing(part) for part in parts]
    words = word.join(each.words for each in waiting)
    return Waits(
        f"({words})" if len(waiting) > 1 else words,
        tuple(port for each in waiting for port in each.ports),
    )
