"""The latest events by source, id and time, so that one that is sent again is not read again.

An event that came without a time has that of its arrival, which is another each time that it is
sent: such an event is known by source and id alone, as CloudEvents tells events apart.

They are kept in two generations: when the younger is full, it becomes the older one, and what was
the older is forgotten. So at least `count` are remembered, at most twice as many, and to remember
one is to add it to a set. Senders choose ids and sources: what is long is kept as a digest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final

from ensue.events.event import Event

Identity = tuple[str | bytes, str | bytes, int | None, object]

LONGEST_KEPT: Final = 128
"""Characters of an id or a source; a longer one is remembered by a digest."""


class KnownIdentities:
    def __init__(self, count: int) -> None:
        self._count = count
        self._sources: dict[str, str] = {}
        self._younger: set[Identity] = set()
        self._older: set[Identity] = set()

    def is_new(self, event: Event, is_stamped: bool = False) -> bool:
        """Whether an event has not come before; remembers it. A time of ours does not count."""
        time = None if is_stamped else event.time
        extensions = event.extensions
        # The halves of an interval have one source and id, and are told apart by phase and time.
        phase = extensions.get("phase") if extensions else None
        source, id_ = event.source, event.id
        identity: Identity
        if len(source) <= LONGEST_KEPT and len(id_) <= LONGEST_KEPT and not isinstance(phase, str):
            # One text for each source: decoders make a new one for every event.
            identity = (self._sources.setdefault(source, source), id_, time, phase)
        else:
            identity = (_short(source), _short(id_), time, _short(phase))
        younger = self._younger
        if identity in younger or identity in self._older:
            return False
        younger.add(identity)
        self._turn_if_full()
        return True

    def are_new(self, events: Sequence[Event], stamped: Collection[int] = ()) -> list[bool]:
        """As `is_new` of each in turn; most batches are new as a whole, which is quicker seen.

        `stamped` has the places of events that came without a time.
        """
        if stamped:
            return [self.is_new(each, place in stamped) for place, each in enumerate(events)]
        identities = self._plain_identities(events)
        added = set(identities)
        younger, older = self._younger, self._older
        fits = len(added) == len(events) and len(younger) + len(added) <= self._count
        if fits and younger.isdisjoint(added) and older.isdisjoint(added):
            younger |= added
            self._turn_if_full()
            return [True] * len(events)
        return [self.is_new(each) for each in events]

    def _plain_identities(self, events: Sequence[Event]) -> list[Identity]:
        """Identities of events without extensions whose ids and sources are short; else none."""
        given = {each.source for each in events}
        if max(map(len, given), default=0) > LONGEST_KEPT:
            return []
        sources = self._sources
        found: list[Identity] = [
            (sources.setdefault(each.source, each.source), each.id, each.time, None)
            for each in events
            if not each.extensions and len(each.id) <= LONGEST_KEPT
        ]
        return found

    def _turn_if_full(self) -> None:
        """Begin a new generation once the younger one is full."""
        if len(self._younger) >= self._count:
            self._older, self._younger = self._younger, set()
            self._sources.clear()

    def clear(self) -> None:
        self._sources.clear()
        self._younger, self._older = set(), set()


def _short(value: object) -> str | bytes:
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= LONGEST_KEPT:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
