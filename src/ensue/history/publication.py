"""A publication: one event with its interval of time, as a history keeps it.

In comes an event as it arrives; out goes a `Publication` whose start and end are known as instants,
as ranges (`timeuntil`, `endtimeuntil`) or, for an interval that is still open, not at all. `joined`
puts the two halves of an interval together, in whichever order and however often they come. What
contradicts itself (an end before its start) is refused here as `EventError`. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.events.times import format_time, parse_time

PHASE: Final = "phase"
END: Final = "endtime"
START_UNTIL: Final = "timeuntil"
END_UNTIL: Final = "endtimeuntil"
PHASES: Final = ("start", "end", "instant")
_TIMING: Final = frozenset({PHASE, END, START_UNTIL, END_UNTIL})


class Interval(NamedTuple):
    """The interval of a publication, in microseconds since 1970; no end while it is open.

    The start lies somewhere in `start` to `start_until`, the end in `end` to `end_until`; where
    nothing is uncertain the two of a pair are equal.
    """

    start: int
    start_until: int
    end: int | None
    end_until: int | None

    @property
    def is_certain(self) -> bool:
        return self.start == self.start_until and self.end == self.end_until

    @classmethod
    def of(cls, start: int, end: int | None) -> Interval:
        return cls(start, start, end, end)


class Publication(NamedTuple):
    """An event and its interval. `key` stands for the source and the id, which identify it.

    `opening` and `closing` are the two halves of an interval as they came, for a replay. An end
    without its start has no `opening`, and lasts no time until the start comes.
    """

    event: Event
    times: Interval
    key: bytes
    opening: Event | None = None
    closing: Event | None = None
    text: bytes = b""
    """The event as a store writes it, where that is made already (`bodies`)."""

    @property
    def arrived(self) -> tuple[Event, ...]:
        """The events as they came: one, or the two halves of an interval."""
        halves = tuple(each for each in (self.opening, self.closing) if each is not None)
        return halves or (self.event,)


class InstantColumns(NamedTuple):
    """Publications without an interval, in columns; each stands for an event of its own."""

    events: Sequence[Event]
    keys: Sequence[bytes]
    times: Sequence[int]
    texts: Sequence[bytes]


def key_of(event: Event) -> bytes:
    """Sixteen bytes that stand for the source and the id of an event."""
    digest = _digest_of_source(event.source).copy()
    digest.update(event.id.encode("utf-8", "surrogatepass"))
    return digest.digest()


@lru_cache(maxsize=1024)
def _digest_of_source(source: str) -> blake2b:
    """The digest of a source, to which an id is added."""
    name = f"{len(source)}:{source}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16)


def is_instant(event: Event) -> bool:
    """Whether nothing about an event speaks of an interval."""
    return not event.extensions or _TIMING.isdisjoint(event.extensions)


def publication_of(event: Event, text: bytes = b"") -> Publication:
    """The publication that one event makes by itself. Raises `EventError`."""
    extensions = event.extensions
    if is_instant(event):
        time = event.time
        return Publication(event, Interval(time, time, time, time), key_of(event), text=text)
    problems: list[str] = []
    phase = _phase(extensions, problems)
    end = _instant(extensions, END, problems)
    start_until = _instant(extensions, START_UNTIL, problems)
    end_until = _instant(extensions, END_UNTIL, problems)
    if problems:
        raise EventError([f"`{event.id}`: {each}" for each in problems])
    if phase == "start":
        times = _opened(event, end, end_until, start_until)
        return Publication(event, times, key_of(event), opening=event, text=text)
    if phase == "end":
        return _closed(event, end, start_until)
    times = _times(event, start_until, end, end_until)
    return Publication(event, times, key_of(event), text=text)


def joined(old: Publication, new: Publication) -> Publication:
    """What is kept when a publication of the same source and id comes once more.

    The halves of an interval make one publication, in which what the end says replaces what the
    start has said. Anything else takes the place of what was there.
    """
    if new.opening is not None and old.closing is not None:
        return _whole(new.opening, old.closing)
    if new.closing is not None and old.opening is not None:
        return _whole(old.opening, new.closing)
    if new.opening is not None and old.opening is not None:
        # The start is told again: an update of what is still open.
        return publication_of(_merged(old.opening, new.opening))
    return new


def _whole(opening: Event, closing: Event) -> Publication:
    merged = _merged(opening, closing)
    extensions = {name: value for name, value in merged.extensions.items() if name != PHASE}
    extensions[END] = format_time(closing.time)
    # In the half that ends, `timeuntil` says until when the end may have come.
    if START_UNTIL in closing.extensions:
        extensions[END_UNTIL] = closing.extensions[START_UNTIL]
        extensions.pop(START_UNTIL)
        if START_UNTIL in opening.extensions:
            extensions[START_UNTIL] = opening.extensions[START_UNTIL]
    event = Event(merged.id, merged.source, merged.type, opening.time, merged.data, extensions)
    return publication_of(event)._replace(opening=opening, closing=closing)


def _merged(old: Event, new: Event) -> Event:
    """The newer event, with what only the older one has said."""
    data = new.data
    if data is None:
        data = old.data
    elif isinstance(data, Mapping) and isinstance(old.data, Mapping):
        data = {**old.data, **data}
    extensions = {**old.extensions, **new.extensions}
    return Event(new.id, new.source, new.type, new.time, data, extensions)


def _opened(event: Event, end: int | None, end_until: int | None, until: int | None) -> Interval:
    if end is not None or end_until is not None:
        raise EventError(
            [
                f"`{event.id}`: `{PHASE}` is `start`, so it has no end yet, and `{END}` or"
                f" `{END_UNTIL}` is given: leave one of the two out"
            ]
        )
    times = Interval(event.time, event.time if until is None else until, None, None)
    _refuse_disorder(event, times)
    return times


def _closed(event: Event, end: int | None, until: int | None) -> Publication:
    """An end whose start is not known (yet)."""
    if end is not None and end != event.time:
        raise EventError(
            [
                f"`{event.id}`: `{PHASE}` is `end`, so `time` is the end, and `{END}` says"
                " another: leave it out"
            ]
        )
    last = event.time if until is None else until
    times = Interval(event.time, last, event.time, last)
    _refuse_disorder(event, times)
    return Publication(event, times, key_of(event), closing=event)


def _times(
    event: Event, start_until: int | None, end: int | None, end_until: int | None
) -> Interval:
    if end is not None and start_until is None and end_until is None and end >= event.time:
        return Interval(event.time, event.time, end, end)
    last_start = event.time if start_until is None else start_until
    if end is None:
        # An instant ends when it starts, also where it is not known when.
        if end_until is not None:
            raise EventError(
                [f"`{event.id}`: `{END_UNTIL}` is given without `{END}`: give both, or none"]
            )
        times = Interval(event.time, last_start, event.time, last_start)
    else:
        times = Interval(event.time, last_start, end, end if end_until is None else end_until)
    _refuse_disorder(event, times)
    return times


def _refuse_disorder(event: Event, times: Interval) -> None:
    problem = None
    if times.start_until < times.start:
        problem = f"`{START_UNTIL}` lies before `time`"
    elif times.end is not None and times.end_until is not None:
        if times.end_until < times.end:
            problem = f"`{END_UNTIL}` lies before `{END}`"
        elif times.end < times.start:
            problem = f"it ends ({format_time(times.end)}) before it starts"
        elif times.end_until < times.start_until:
            problem = f"`{START_UNTIL}` lies behind its latest end"
    if problem is not None:
        raise EventError(
            [f"`{event.id}`: {problem}; it starts at {format_time(event.time)}: correct one"]
        )


def _phase(extensions: Mapping[str, Any], problems: list[str]) -> str | None:
    given = extensions.get(PHASE)
    if given is None:
        return None
    if isinstance(given, str) and given.lower() in PHASES:
        return given.lower()
    problems.append(f"`{PHASE}` must be `start`, `end` or `instant`; given is `{given}`")
    return None


def _instant(extensions: Mapping[str, Any], name: str, problems: list[str]) -> int | None:
    given = extensions.get(name)
    if given is None:
        return None
    try:
        if not isinstance(given, str):
            raise ValueError(f"an RFC 3339 time is needed, and `{given}` is given")
        return parse_time(given)
    except ValueError as error:
        problems.append(f"`{name}`: {error}")
        return None
