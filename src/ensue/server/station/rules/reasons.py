"""Why an output came, and why a rule has not fired for a key: asked of the journal afterwards.

In come a library that runs and a rule of it; out goes what the rule still waits for, in its own
words. The rules that run live keep no reasons, so the events of the journal are read once more, by
the definitions, by the rule and by those that feed it; the clock moves as it did live. Read are the
latest events, as many as are asked for, and no longer than a limit of seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from ensue.engine.changing import without
from ensue.engine.explain.explainer import WhyNot
from ensue.engine.explain.progress import Done
from ensue.errors import EventError
from ensue.events.cloudevents import decode, encode
from ensue.events.times import format_time
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import did_you_mean
from ensue.library import Library
from ensue.server.station.entries import EVENT, OUTPUT, Entry
from ensue.server.station.record.journal import Journal
from ensue.server.station.rules.libraries import UnknownError

NEAREST: Final = 10
CANDIDATES: Final = 20


class DonePart(msgspec.Struct, frozen=True):
    part: str
    time: str
    event: str | None


class Reason(msgspec.Struct, frozen=True):
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
    reasons: list[Reason]
    read: int
    since: str | None
    whole: bool


def why_not(
    journal: Journal, library: Library, rule: str, key: str | None, events: int, seconds: float
) -> Reasons:
    """What a rule waits for, for a key; without one, for the keys that came nearest."""
    run = Library(_with_feeders(library, rule)).start(explain=True)
    last = journal.last
    first = journal.first_of_latest_events(events, last)
    limit = time.monotonic() + seconds
    read, since, whole = 0, None, True
    for entry in journal.all_inputs(first - 1, last):
        if entry.kind != EVENT:
            if entry.library is None:
                run.advance(int(entry.body))
            continue
        event = decode(entry.body)
        since = format_time(event.time) if since is None else since
        read += 1
        try:
            for _ in run.push_iter(event):
                pass
        except EventError:
            continue
        run.late.clear()
        if read % 100 == 0 and time.monotonic() > limit:
            whole = False
            break
    found = [run.why(rule, key)] if key is not None else run.nearest(rule, NEAREST)
    if not found:
        found = [run.why(rule)]
    return Reasons(rule, [_reason(each) for each in found], read, since, whole)


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


def _reason(found: WhyNot) -> Reason:
    before = None if found.before is None else format_time(found.before)
    return Reason(
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


class Cause(msgspec.Struct, frozen=True):
    """An event that brought an output about; `event` is None if the journal holds it no longer."""

    id: str
    kind: str
    seq: int | None
    event: msgspec.Raw | None


class Opened(msgspec.Struct, frozen=True):
    """An output and what caused it, in the order of time."""

    seq: int
    library: str | None
    event: msgspec.Raw
    trigger: str
    causes: list[Cause]


def opened(journal: Journal, entry: Entry) -> Opened:
    """An output with the events that its `causes` and `trigger` name."""
    output = decode(entry.body)
    said: Mapping[str, object] = output.extensions
    trigger = str(said.get("trigger", ""))
    named = [each for each in str(said.get("causes", "")).split(",") if each]
    if trigger and trigger != "timer" and trigger not in named:
        named.append(trigger)
    causes = [_cause(journal, each, entry) for each in named]
    return Opened(entry.seq, entry.library, msgspec.Raw(encode(output)), trigger, causes)


def _cause(journal: Journal, identity: str, output: Entry) -> Cause:
    quoted = msgspec.json.encode(identity)
    for each in journal.events_containing(quoted, output.seq, CANDIDATES):
        if decode(each.body).id == identity:
            return Cause(identity, "event", each.seq, msgspec.Raw(each.body))
    of_rule = journal.output_by_id(identity)
    if of_rule is not None and of_rule.kind == OUTPUT:
        return Cause(identity, "output", of_rule.seq, msgspec.Raw(of_rule.body))
    return Cause(identity, "event", None, None)
