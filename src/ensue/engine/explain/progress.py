"""How far a rule has come: which parts are complete and by what, and what is missing.

In comes an instance of the reference engine, which remembers its events; out goes a `Progress`, in
the rule's own words. For a filter it is the branch of which most is complete; for ECL the pushed
expression of which most is. Nothing is changed by asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ensue.engine.explain.conditions import why_false, why_true
from ensue.engine.outputs import port_scope
from ensue.engine.ports import Reading
from ensue.engine.reference.ecl import RUNNING, EclInstance, Part
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.reference.memory import NEVER, BranchMemory, Place
from ensue.events.times import format_time
from ensue.lang.expressions.text.printing import print_expression
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
    Round,
    Then,
    Timeout,
    Times,
    Unless,
)

CLOCK = "the clock"
THEN = ", then "


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
            return f"{self.part} reached {when}"
        if self.reading.event is None:
            return f"{self.part} was due at {when}"
        return f"{self.part} was matched by event `{self.reading.event.id}`, at {when}"


@dataclass(frozen=True)
class Waits:
    """What is missing: `words` with a `{port}` for each of `ports`, which the rule describes."""

    words: str
    ports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far a rule has come under one key: its complete parts, and what it waits for.

    `before` is the last moment at which that can still come, where a window sets one. `left` has
    parts that have left the window, and `left_before` the moment by which the rest had to come.
    """

    done: tuple[Done, ...]
    waits: Waits
    before: int | None = None
    left: tuple[Done, ...] = ()
    left_before: int | None = None
    aborted: tuple[str, ...] = ()
    having: str | None = None


def in_words(waits: Waits, correlation: Correlation) -> str:
    """What is missing, in words, with each port as the rule declares it."""
    declared = {port.name: port for port in correlation.ports}
    conditions = [
        f"`{name}` is `{print_port(port)}`"
        for name in dict.fromkeys(waits.ports)
        if (port := declared.get(name)) is not None
        and not (isinstance(port, EventPort) and not port.sources and port.where is None)
    ]
    return f"{waits.words} ({', '.join(conditions)})" if conditions else waits.words


# --- filters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """How far a subexpression has come, looked at from a place in the remembered events."""

    place: Place
    done: tuple[Done, ...]
    waits: Waits


def filter_progress(
    correlation: FilterCorrelation, instance: FilterInstance, now: int
) -> Progress | None:
    """The most complete branch; None if all branches are aborted."""
    found = [
        _with_clauses(instance, branch, _branch_progress(correlation, branch, now), now)
        for branch in instance.branches
        if not branch.is_left_out(branch.expression)
    ]
    nearest = max(found, key=lambda each: len(each.done), default=None)
    aborted = sorted({label for branch in instance.branches for label in branch.aborted})
    return nearest and replace(nearest, aborted=tuple(aborted))


def _with_clauses(
    instance: FilterInstance, branch: BranchMemory, progress: Progress, now: int
) -> Progress:
    """What a branch waits for that is complete already, or that an event can make void."""
    clauses = instance.clauses
    waits = progress.waits
    if not waits.words:
        # Complete, and still there: `having` was false, or `keep` has kept it.
        waits = Waits(f"another event that completes `{print_filter(branch.expression)}`")
    told = None
    if clauses.having is not None:
        found = instance.looked_at(branch, now)
        if found is None:
            shown = f"`having {print_expression(clauses.having)}`"
            waits = replace(waits, words=f"{waits.words}, with {shown}")
        else:
            scope = port_scope(found.bound, found.stretches)
            is_true = instance.having_holds(found)
            values = (why_true if is_true else why_false)(clauses.having, scope)
            told = f"`having` {'holds' if is_true else 'was false'}: {values}"
    if clauses.unless and progress.done:
        void = " or ".join(f"`{each.name}`" for each in clauses.unless)
        waits = Waits(f"{waits.words}, unless {void} comes first", waits.ports)
    return replace(progress, waits=waits, having=told)


def _branch_progress(correlation: FilterCorrelation, branch: BranchMemory, now: int) -> Progress:
    within = correlation.clauses.within
    if within is None:
        look = _look(branch, branch.expression, 0)
        return Progress(look.done, look.waits)
    start = branch.first_since(now - within.microseconds)
    look = _latest_look(branch, start)
    before = None
    if look.done:
        before = min(each.time for each in look.done) + within.microseconds
    ever = _latest_look(branch, 0)
    if len(ever.done) <= len(look.done):
        return Progress(look.done, look.waits, before)
    oldest = now - within.microseconds
    left = tuple(each for each in ever.done if each.time < oldest)
    if not left:
        return Progress(look.done, look.waits, before)
    first = min(each.time for each in left)
    return Progress(look.done, look.waits, before, left, first + within.microseconds)


def _latest_look(branch: BranchMemory, start: int) -> _Look:
    """The look from the latest beginning that leaves as much complete: it has the most time."""
    look = _look(branch, branch.expression, start)
    if look.done:
        for place in range(len(branch.readings) - 1, start, -1):
            later = _look(branch, branch.expression, place)
            if len(later.done) == len(look.done):
                return later
    return look


def matched_by(branch: BranchMemory, start: Place, first: bool) -> list[tuple[str, Reading]]:
    """What completes a branch that matches: ports and their readings, in the order of reading.

    Several choices of events may match. Chosen are the events that ports are bound to: with `first`
    the earliest, else the events after the latest beginning from which the branch still matches.
    """
    begin = int(start)
    if not first:
        end = len(branch.readings)
        while begin + 1 < end:
            middle = (begin + end) // 2
            if branch.complete(branch.expression, middle) < NEVER:
                begin = middle
            else:
                end = middle
    found = dict.fromkeys(_matched(branch, branch.expression, begin))
    return [(port, branch.readings[at]) for at, port in sorted(found)]


def _matched(branch: BranchMemory, x: Filter, start: Place) -> Iterator[tuple[int, str]]:
    match x:
        case PortRef(name):
            place = branch.complete(x, start)
            if place < NEVER:
                yield int(place) - 1, name
        case Labelled(label, body):
            yield from _matched(branch, body, branch.start_of(label, start))
        case Both(parts) | Either(parts):
            for part in branch.alive(parts):
                if branch.complete(part, start) < NEVER:
                    yield from _matched(branch, part, start)
        case Then(parts):
            yield from _matched_in_turn(branch, branch.alive(parts), start)
        case Times(body, count):
            yield from _matched_in_turn(branch, [body] * count, start)
        case Timeout():
            raise AssertionError("`;` asks for its timeouts itself")


def _matched_in_turn(
    branch: BranchMemory, parts: Sequence[Filter], start: Place
) -> Iterator[tuple[int, str]]:
    begins = [*branch.begins(parts, start), branch.complete_chain(parts, start)]
    for part, begin, end in zip(parts, begins, begins[1:], strict=False):
        if not isinstance(part, Timeout):
            yield from _matched(branch, part, begin)
        elif end < NEVER:
            yield int(end) - 1, print_filter(part)


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
        case Timeout():
            raise AssertionError("`;` looks for its timeouts itself")


def _look_at_clock(
    branch: BranchMemory, left: Sequence[Filter], part: Timeout, start: Place
) -> _Look:
    place = branch.complete_chain([*left, part], start)
    shown = f"`{print_filter(part)}`"
    if place < NEVER:
        return _Look(place, (Done(shown, branch.readings[int(place) - 1]),), Waits(""))
    due = branch.next_firing(left, start, part.after.microseconds)
    words = shown if due is None else f"the clock to reach {format_time(due)}"
    return _Look(NEVER, (), Waits(words))


def _in_turn(branch: BranchMemory, parts: Sequence[Filter], start: Place) -> _Look:
    done: list[Done] = []
    begin = start
    for number, part in enumerate(parts):
        if isinstance(part, Timeout):
            look = _look_at_clock(branch, parts[:number], part, begin)
        else:
            look = _look(branch, part, start)
        done += look.done
        start = look.place
        if start == NEVER:
            coming = parts[number + 1 :]
            if not coming:
                return _Look(NEVER, tuple(done), look.waits)
            then = f"`{' ; '.join(print_filter(each) for each in coming[:4])}`"
            if all(each == coming[0] for each in coming):
                if part == coming[0] and not look.done:
                    # Nothing of this round has come: it is among the rounds still to come.
                    words = f"{len(coming) + 1} times `{print_filter(part)}`"
                    return _Look(NEVER, tuple(done), Waits(words, look.waits.ports))
                if len(coming) > 2:
                    then = f"{len(coming)} times `{print_filter(coming[0])}`"
            return _Look(
                NEVER, tuple(done), Waits(f"{look.waits.words}{THEN}{then}", look.waits.ports)
            )
    return _Look(start, tuple(done), Waits(""))


def _joined(place: Place, looks: Sequence[_Look], word: str) -> _Look:
    # One event may complete the same port in several places.
    every = [each for look in looks for each in look.done]
    done = tuple({(each.part, id(each.reading)): each for each in every}.values())
    waiting = [look.waits for look in looks if look.place == NEVER]
    apart = [f"({w.words})" if THEN in w.words and w.words[0] != "(" else w.words for w in waiting]
    words = word.join(apart if len(waiting) > 1 else [each.words for each in waiting])
    if len(waiting) > 1:
        words = f"({words})"
    return _Look(place, done, Waits(words, tuple(p for each in waiting for p in each.ports)))


# --- ECL ----------------------------------------------------------------------------------------


def ecl_progress(instance: EclInstance) -> Progress | None:
    """The most complete pushed expression that has begun, or all that comes before it.

    None if the whole is finished.
    """
    under_way = list(_under_way(instance.top))
    if not under_way:
        return None
    pushing = [each for each in under_way if isinstance(each[0].expression, Push)]
    if not pushing:
        # Rounds that are over say nothing of the next output: only the one under way counts.
        rounds_left_out = [each for each in under_way if not isinstance(each[0].expression, Round)]
        pushing = rounds_left_out[:1] or under_way[:1]
    nearest, led_by = max(pushing, key=lambda each: len(each[0].completed_by) + len(each[1]))
    done = tuple(
        Done(", ".join(f"`{port}`" for port in sorted(each.ports)) or CLOCK, each)
        for each in (*led_by, *nearest.completed_by)
    )
    return Progress(done, _missing(nearest))


def _under_way(
    part: Part, led_by: tuple[Reading, ...] = ()
) -> Iterator[tuple[Part, tuple[Reading, ...]]]:
    """The parts under way, each with what had to be complete before it was started."""
    if part.status is RUNNING:
        led_by += part.led_by
        yield part, led_by
        for each in part.under_way.parts():
            yield from _under_way(each, led_by)


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
