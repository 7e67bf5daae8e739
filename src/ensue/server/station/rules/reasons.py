"""Why an output came, and why a rule has not fired for a key: asked of the journal afterwards.

In come a library that runs and a rule of it; out goes what the rule still waits for, in its own
words. The rules that run live keep no reasons, so the events of the journal are read once more, by
the definitions, by the rule and by the rules that feed it; the clock moves as it did live. Read are
the latest events, as many as are asked for, and no longer than a limit of seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from ensue.engine.changing import without
from ensue.engine.explain.explainer import WhyNot
from ensue.engine.explain.progress import Done
from ensue.errors import EventError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import did_you_mean
from ensue.library import Library
from ensue.server.station.entries import EVENT, OUTPUT, JournalEntry
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.rules.libraries import UnknownError

NEAREST: Final = 10
CANDIDATES: Final = 20


class DonePart(msgspec.Struct, frozen=True):
    part: str
    time: str
    event: str | None


class RuleProgress(msgspec.Struct, frozen=True):
    """How near a rule is to its next output under a key. `text` tells all of it in words."""

    key: str | None
    started: bool
    done: list[DonePart]
    waits_for: str | None
    before: str | None
    left: list[DonePart]
    text: str


class Reasons(msgspec.Struct, frozen=True):
    """`read` is how many events were read again, the first of them at `since`."""

    rule: str
    reasons: list[RuleProgress]
    read: int
    since: str | None
    whole: bool


class Completed(msgspec.Struct, frozen=True):
    """A part of a rule, and what completed it: an event, an output that it reads, or the clock."""

    part: str
    kind: str
    time: str
    id: str | None = None
    seq: int | None = None
    event: msgspec.Raw | None = None


class OutputReason(msgspec.Struct, frozen=True):
    """Why an output came, in words, and what completed the parts of its rule, in that order.

    `why` is None, and there are no causes, if the events that were read again do not lead to the
    output: it has begun before them, or the rule was another one then.
    """

    why: str | None
    causes: list[Completed]
    read: int
    since: str | None
    whole: bool


class _Again:
    """A rule that reads the latest events of the journal once more, and keeps its reasons."""

    def __init__(self, journal: ServerJournal, library: Library, rule: str) -> None:
        self._journal = journal
        self.run = Library(_with_feeders(library, rule)).start(explain=True)
        self.read = 0
        self.since: str | None = None
        self.is_whole = True

    def outputs(self, last: int, events: int, seconds: float) -> Iterator[Event]:
        """What follows from so many events up to a number, no longer than some seconds."""
        first = self._journal.first_of_latest_events(events, last)
        limit = time.monotonic() + seconds
        for entry in self._journal.all_inputs(first - 1, last):
            if entry.kind != EVENT:
                if entry.library is None:
                    yield from self.run.advance(int(entry.body))
                continue
            event = decode(entry.body)
            self.since = format_time(event.time) if self.since is None else self.since
            self.read += 1
            with suppress(EventError):
                yield from self.run.push_iter(event)
            self.run.late.clear()
            if self.read % 100 == 0 and time.monotonic() > limit:
                self.is_whole = False
                return


def why_not(
    journal: ServerJournal,
    library: Library,
    rule: str,
    key: str | None,
    events: int,
    seconds: float,
) -> Reasons:
    """What a rule waits for, for a key; without one, for the keys that came nearest."""
    again = _Again(journal, library, rule)
    for _ in again.outputs(journal.last, events, seconds):
        pass
    run = again.run
    found = [run.why(rule, key)] if key is not None else run.nearest(rule, NEAREST)
    if not found:
        found = [run.why(rule)]
    reasons = [_reason(each) for each in found]
    return Reasons(rule, reasons, again.read, again.since, again.is_whole)


def why_output(
    journal: ServerJournal, library: Library, entry: JournalEntry, events: int, seconds: float
) -> OutputReason:
    """Which events completed which parts of the rule that has put an output out."""
    wanted, rule = decode(entry.body), entry.correlation or ""
    if rule not in library.correlations.names:
        return OutputReason(None, [], 0, None, whole=True)
    again = _Again(journal, library, rule)
    why, causes = None, list[Completed]()
    for each in again.outputs(entry.seq, events, seconds):
        if each.id == wanted.id and each.extensions == wanted.extensions:
            reason = again.run.why(each)
            parts = (*reason.causes, *reason.bound)
            why, causes = str(reason), [_completed(journal, part) for part in parts]
    return OutputReason(why, causes, again.read, again.since, again.is_whole)


def _completed(journal: ServerJournal, done: Done) -> Completed:
    event = done.reading.event
    when = format_time(done.time)
    if event is None:
        return Completed(done.part, "clock", when)
    text = msgspec.Raw(encode(event))
    if "correlation" not in event.extensions:
        return Completed(done.part, "event", when, event.id, None, text)
    output = journal.output_by_id(event.id)
    return Completed(done.part, "output", when, event.id, output.seq if output else None, text)


def _with_feeders(library: Library, rule: str) -> CheckedLibrary:
    """The library without the rules that cannot bring anything to this one."""
    names = library.correlations.names
    if rule not in names:
        raise UnknownError(f"the library has no rule `{rule}`; {did_you_mean(rule, names)}")
    feeds = library.checked.feeds
    needed = {rule}
    while more := {
        name for name in names if name not in needed and needed & set(feeds.get(name, ()))
    }:
        needed |= more
    gone = [name for name in names if name not in needed]
    return without(library.checked, gone) if gone else library.checked


def _reason(found: WhyNot) -> RuleProgress:
    before = None if found.before is None else format_time(found.before)
    return RuleProgress(
        found.key,
        found.started,
        [_done(each) for each in found.done],
        found.waits_for,
        before,
        [_done(each) for each in found.left],
        str(found),
    )


def _done(done: Done) -> DonePart:
    event = done.reading.event
    return DonePart(done.part, format_time(done.time), None if event is None else event.id)


class OutputCause(msgspec.Struct, frozen=True):
    """An event that brought an output about; `event` is None if the journal holds it no longer."""

    id: str
    kind: str
    seq: int | None
    event: msgspec.Raw | None


class ExplainedOutput(msgspec.Struct, frozen=True):
    """An output and what caused it, in the order of time."""

    seq: int
    library: str | None
    event: msgspec.Raw
    trigger: str
    causes: list[OutputCause]


def opened(journal: ServerJournal, entry: JournalEntry) -> ExplainedOutput:
    """An output with the events that its `causes` and `trigger` name."""
    output = decode(entry.body)
    said: Mapping[str, object] = output.extensions
    trigger = str(said.get("trigger", ""))
    named = [each for each in str(said.get("causes", "")).split(",") if each]
    if trigger and trigger != "timer" and trigger not in named:
        named.append(trigger)
    causes = [_cause(journal, each, entry) for each in named]
    return ExplainedOutput(entry.seq, entry.library, msgspec.Raw(encode(output)), trigger, causes)


def _cause(journal: ServerJournal, identity: str, output: JournalEntry) -> OutputCause:
    quoted = msgspec.json.encode(identity)
    for each in journal.events_containing(quoted, output.seq, CANDIDATES):
        if decode(each.body).id == identity:
            return OutputCause(identity, "event", each.seq, msgspec.Raw(each.body))
    of_rule = journal.output_by_id(identity)
    if of_rule is not None and of_rule.kind == OUTPUT:
        return OutputCause(identity, "output", of_rule.seq, msgspec.Raw(of_rule.body))
    return OutputCause(identity, "event", None, None)
