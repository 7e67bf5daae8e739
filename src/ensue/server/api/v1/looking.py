"""Looking through events and outputs, a page at a time, within the limits of the server.

In come what is wanted and where to go on; out goes a page, with the place from which the next one
goes on, `next`, or nothing where there is no more. A search that finds little ends by the limit of
seconds, and then goes on from the place it has come to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.events.times import parse_time
from ensue.history.asking.bounding import bounded_by
from ensue.history.asking.newest import Place, SoughtText
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import ProblemError
from ensue.server.station.entries import JournalEntry
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

LARGEST_ANSWER: Final = 32 * 1024 * 1024
"""Bytes of events behind which an answer says that there is more."""
PAGE: Final = 2_000


@dataclass(frozen=True)
class EventSpan:
    """From `since` on and before `until`, and with a text somewhere in it, whatever its case."""

    since: int | None = None
    until: int | None = None
    text: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether everything lies in it."""
        return self.since is None and self.until is None and self.text is None


class HistoryQuery:
    """One question to the history."""

    def __init__(self, station: Station, principal: Principal, limit: int) -> None:
        self._station = station
        self._principal = principal
        self._limit = limit
        self._found: list[msgspec.Raw] = []
        self._size = 0

    def in_order(self, filter_: Filter | None, span: EventSpan, _: Place | None) -> dict[str, Any]:
        """The first events that match, in the order of their times."""
        with bounded_by(self._look(times=1)):
            for event in self._station.history.scan(filter_, span.since, span.until):
                if self._principal.may_read(event):
                    if self._is_full:
                        return self._answer(is_more=True)
                    self._take(event)
        return self._answer()

    def latest(
        self, filter_: Filter | None, span: EventSpan, after: Place | None
    ) -> dict[str, Any]:
        """The latest events that match, from the latest on."""
        deadline = time.monotonic() + self._station.limits.query_seconds
        last = after
        found = self._station.history.latest(filter_, span.since, span.until, span.text, after)
        with bounded_by(self._look(times=2)):
            for place, event in found:
                is_wanted = event is not None and self._principal.may_read(event)
                if last is not None and (
                    (is_wanted and self._is_full) or time.monotonic() > deadline
                ):
                    return self._answer(is_more=True, place=last)
                if event is not None and is_wanted:
                    self._take(event)
                last = place
        return self._answer()

    def _look(self, times: int) -> Callable[[], None]:
        """What ends a search inside of a filter, where there is no place to go on from."""
        seconds = self._station.limits.query_seconds
        deadline = time.monotonic() + times * seconds

        def look() -> None:
            if time.monotonic() > deadline:
                raise ProblemError(
                    503,
                    "query",
                    f"limit `query_seconds` ({seconds:g}) has ended the query: narrow the span with"
                    " `since` and `until`, or the filter with a value that few events have",
                    limit="query_seconds",
                )

        return look

    @property
    def _is_full(self) -> bool:
        return len(self._found) == self._limit or self._size > LARGEST_ANSWER

    def _take(self, event: Event) -> None:
        self._found.append(msgspec.Raw(encode(event)))
        self._size += len(bytes(self._found[-1]))

    def _answer(self, is_more: bool = False, place: Place | None = None) -> dict[str, Any]:
        following = None if place is None else f"{place.time}-{place.seq}"
        return {"events": self._found, "more": is_more, "next": following}


@dataclass(frozen=True)
class OutputsOf:
    """Whose outputs are wanted."""

    library: str | None = None
    correlation: str | None = None
    key: str | None = None


class _When(msgspec.Struct):
    time: str


class OutputQuery:
    """One question to the outputs of the journal, the latest first."""

    def __init__(self, station: Station, principal: Principal, limit: int) -> None:
        self._station = station
        self._principal = principal
        self._limit = limit
        self._when = msgspec.json.Decoder(_When)

    def answer(self, wanted: OutputsOf, span: EventSpan, before: int) -> dict[str, Any]:
        deadline = time.monotonic() + self._station.limits.query_seconds
        text = None if span.text is None else SoughtText(span.text)
        page = self._limit if span.is_open else max(self._limit, PAGE)
        shown: list[JournalEntry] = []
        last: int | None = before
        while last is not None and len(shown) < self._limit:
            entries = self._page(wanted, last, page)
            last = entries[-1].seq if _goes_on(entries, page) else None
            for entry in entries:
                if self._is_wanted(entry, span, text):
                    shown.append(entry)
                    if len(shown) == self._limit and entry is not entries[-1]:
                        last = entry.seq
                        break
            if span.is_open or time.monotonic() > deadline:
                break
        return {
            "outputs": [_shown(each) for each in shown],
            "more": last is not None,
            "next": last,
        }

    def _page(self, wanted: OutputsOf, before: int, limit: int) -> list[JournalEntry]:
        return self._station.journal.outputs(
            wanted.library, wanted.correlation, before, limit, wanted.key, LARGEST_ANSWER
        )

    def _is_wanted(self, entry: JournalEntry, span: EventSpan, text: SoughtText | None) -> bool:
        if span.since is not None and self._time(entry) < span.since:
            return False
        if span.until is not None and self._time(entry) >= span.until:
            return False
        if text is not None and not text.is_in(entry.body):
            return False
        return not self._principal.is_limited or self._principal.may_read(decode(entry.body))

    def _time(self, entry: JournalEntry) -> int:
        return parse_time(self._when.decode(entry.body).time)


def _shown(entry: JournalEntry) -> dict[str, Any]:
    return {
        "position": entry.seq,
        "library": entry.library,
        "correlation": entry.correlation,
        "key": entry.key,
        "event": msgspec.Raw(entry.body),
    }


def _goes_on(entries: list[JournalEntry], page: int) -> bool:
    """Whether there may be more behind a page."""
    is_cut = sum(len(each.body) for each in entries) >= LARGEST_ANSWER
    return len(entries) == page or is_cut
