"""Entries of the journal: inputs of the rules and their outputs, in one order.

`seq` numbers entries without gaps that matter; it is what subscribers name to go on from. `EVENT`
and `TIME` are inputs, which a recovery reads again, but what `UNREAD` excepts; `OUTPUT` and `LATE`
follow from them, and are kept so that nothing has to be worked out twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from ensue.events.event import Event

EVENT: Final = 0
OUTPUT: Final = 1
TIME: Final = 2
LATE: Final = 3
UNREAD: Final = 5
"""The event that follows is not read by the library of this entry: its rules hold too many keys."""
RUN: Final = 4
"""In the journal's file only: events whose numbers follow on each other, a line of JSON each."""

KIND_NAMES: Final = {EVENT: "event", OUTPUT: "output", LATE: "late"}
"""The kinds that subscribers can have, by the names that they use."""
KINDS: Final = {name: kind for kind, name in KIND_NAMES.items()}


# There are two of these objects for each event. They refer to nothing that refers back to them, so
# that the garbage collector need not look at them.


class JournalEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One row of the journal. `body` is the event as JSON; of a `TIME`, its microseconds as text.

    An output also has the library and the correlation that it comes from, its key and its id. A
    `TIME` with a library is for that library only: it is on its way to the event that follows. An
    event that `is_stamped` came without a time, and has that of its arrival.
    """

    seq: int
    kind: int
    body: bytes
    library: str | None = None
    correlation: str | None = None
    key: str | None = None
    id: str | None = None
    is_stamped: bool = False


class Live(msgspec.Struct, frozen=True, gc=False):
    """An entry that was just written, with its event, and the temporal subscriptions it matches.

    A `TIME` has no event.
    """

    entry: JournalEntry
    event: Event | None
    matched: tuple[int, ...] = ()


def weight_of(live: Sequence[Live]) -> int:
    """How much entries count where they wait: one each, and one more for each 4 KiB."""
    return len(live) + sum([len(each.entry.body) >> 12 for each in live])


class FeedDelivery(NamedTuple):
    """An entry for a subscriber. A subscriber that names `id` later goes on behind this entry."""

    id: str
    kind: str
    library: str | None
    body: bytes
