"""How far the clock may jump at one event, and which timers fire again without any event.

The time of an event is taken on trust, and a clock that is wrong can lie thousands of years ahead:
timers would fire all the way there, and every later event of a stream would come too late. So there
is a bound to a jump: the time from the latest event so far to the next one. An event beyond it is
refused, and the clock stays where it is.

The bound depends on the rules and on nothing else, so that every engine refuses the same events: no
timer fires more often than `FIRINGS_IN_A_JUMP` times for a key in one jump. What becomes of a
stream whose events disagree for good is in `agreeing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from itertools import accumulate

from ensue.errors import EventError, UsageError
from ensue.events.times import format_time
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.durations import MICROSECONDS, parse_duration, print_duration
from ensue.lang.syntax import (
    Correlation,
    Duration,
    Ecl,
    EclCorrelation,
    Fail,
    Group,
    Modes,
    Push,
    Round,
    Timeout,
    TimerPort,
    Unless,
)

FIRINGS_IN_A_JUMP = 1_000_000
"""How often a timer may fire for one key in one jump of the clock, unless a bound is given."""

LONGEST_JUMP = 36_525 * 86_400 * 1_000_000
"""A hundred years, in microseconds: further no clock is believed, unless a bound is given."""

LIVE_JUMP = 86_400 * 1_000_000
"""A day, in microseconds: so far ahead of the time of day no live event is believed to be."""

UNBOUNDED = math.inf

AUTO, NONE = "auto", "none"

_ALLOW_MORE = "allow more by `max_jump` (`--max-jump` of the command), or `none`"

JumpLike = str | timedelta | None
"""`auto`, `none`, a duration as in the language, or a `timedelta`; None stands for `auto`."""


def max_jump(library: CheckedLibrary, given: JumpLike, *, bounded: bool = False) -> float:
    """The largest jump in microseconds; `UNBOUNDED` where there is no bound.

    A `bounded` input is read in the order of its times. A date far in the future makes nothing late
    there, so that without a timer that fires again and again there is nothing to guard against.
    """
    if given is None or given == AUTO:
        shortest = shortest_period(library)
        if shortest is None:
            return UNBOUNDED if bounded else LONGEST_JUMP
        return min(LONGEST_JUMP, FIRINGS_IN_A_JUMP * shortest)
    if given == NONE:
        return UNBOUNDED
    if isinstance(given, timedelta):
        length = given // timedelta(microseconds=1)
    elif isinstance(given, str):
        try:
            length = parse_duration(given).microseconds
        except ValueError as error:
            raise UsageError(
                f"{error}; the largest jump of the clock is a duration, `auto` or `none`"
            ) from None
    else:
        raise UsageError(
            f"the largest jump of the clock is a duration, `auto` or `none`; given is `{given!r}`"
        )
    if length <= 0:
        raise UsageError(f"the largest jump of the clock is more than 0; given is `{given}`")
    return length


def jump_problem(time: int, latest: int, allowed: float) -> str:
    """Why an event is refused whose time lies too far ahead of the stream."""
    return (
        f"its time, {format_time(time)}, is too far ahead: the stream has come to"
        f" {format_time(latest)}, and its clock may jump by {_shown(allowed)} at most; if the time"
        f" is right, {_ALLOW_MORE}"
    )


def behind_problem(time: int, begins: int, allowed: float) -> str:
    """Why an event is refused that most events of a bounded input are too far ahead of."""
    return (
        f"its time, {format_time(time)}, is too far behind: most events begin at"
        f" {format_time(begins)}, and the clock may jump by {_shown(allowed)} at most; if the time"
        f" is right, {_ALLOW_MORE}"
    )


def far_problem(time: int, begins: int, ends: int, allowed: float) -> str:
    """Why an event of a bounded input is refused that is read from one time to another."""
    if time < begins:
        return behind_problem(time, begins, allowed)
    return jump_problem(time, ends, allowed)


def check_advance(time: int, latest: float, allowed: float) -> None:
    """Raises `UsageError` if a caller moves the clock further than it may jump.

    Where no timer fires again and again, the clock may move as far as it likes: nothing is late.
    """
    if LONGEST_JUMP > allowed < time - latest < math.inf:
        raise UsageError(
            f"the clock is told to go on from {format_time(int(latest))} to {format_time(time)},"
            f" and it may jump by {_shown(allowed)} at most: go there in steps, or {_ALLOW_MORE}"
        )


def check_ahead_of_now(time: int, now: int, allowed: float) -> None:
    """Raises `EventError` for an event that lies too far ahead of the time of day."""
    if time - now > reach_of_now(allowed):
        raise EventError([now_problem(time, now, allowed)])


def reach_of_now(allowed: float) -> float:
    """How far an event may lie ahead of the time of day."""
    return min(allowed, LIVE_JUMP)


def now_problem(time: int, now: int, allowed: float) -> str:
    """Why an event is refused that lies too far ahead of the time of day."""
    return (
        f"its time, {format_time(time)}, is more than {_shown(reach_of_now(allowed))} ahead of the"
        f" time of day, {format_time(now)}; if it is right, leave out `--live`"
    )


def _shown(allowed: float) -> str:
    days = allowed / MICROSECONDS["d"]
    return f"{days:,.1f} d" if days >= 2 else print_duration(Duration(int(allowed)))


# --- timers that fire again ---------------------------------------------------------------------


def shortest_period(library: CheckedLibrary) -> int | None:
    """The shortest time after which a timer of any rule fires again, though no event has come."""
    return min((p for each in library.correlations for p in periods_of(each)), default=None)


def periods_of(correlation: Correlation) -> Iterator[int]:
    """The times after which timers of a rule fire again by themselves.

    Timer ports do. A `timeout` of a filter waits for an event. One of ECL does not if the clock
    alone can bring its expression round.
    """
    for port in correlation.ports:
        if isinstance(port, TimerPort):
            yield port.period.microseconds
    if isinstance(correlation, EclCorrelation):
        for part in expressions_in(correlation.body):
            again = _again_by_clock(part)
            if again < math.inf:
                yield int(again)


def _again_by_clock(x: Ecl) -> float:
    """The shortest time in which the clock alone starts a part of an expression again."""
    match x:
        case Round(kind, body, bound) if bound is None or bound > FIRINGS_IN_A_JUMP:
            success, failure = _by_clock(body)
            return {"repeat": min(success, failure), "persist": failure, "loop": success}[kind]
        case Modes(modes):
            return min(_by_clock(mode.guard)[0] for mode in modes)
        case _:
            return math.inf


def _by_clock(x: Ecl) -> tuple[float, float]:
    """The shortest times in which the clock alone can let an expression succeed, and fail."""
    match x:
        case Timeout(after):
            return after.microseconds, math.inf
        case Group(kind, parts):
            found = [_by_clock(part) for part in parts]
            successes, failures = [s for s, _ in found], [f for _, f in found]
            if kind == "sequential":
                before = accumulate(successes, initial=0.0)
                fails = [b + f for b, f in zip(before, failures, strict=False)]
                return sum(successes), min(fails)
            if kind == "accumulate":
                return max(successes), min(failures)
            if kind == "parallel":
                return math.inf, math.inf
            return min(successes), max(failures) if kind == "select" else min(failures)
        case Unless(body, stop):
            success, failure = _by_clock(body)
            return success, min(failure, _by_clock(stop)[0])
        case Fail(body):
            success, failure = _by_clock(body)
            return failure, success
        case Push(_, body):
            return _by_clock(body)
        case Round(kind, body, bound):
            success, failure = _by_clock(body)
            rounds = math.inf if bound is None else bound
            if kind == "repeat":
                return rounds * min(success, failure), math.inf
            if kind == "persist":
                return success, rounds * failure
            return rounds * success, failure
        case _:
            return math.inf, math.inf
