"""How publications come into a store, and how they leave it again.

`keep` stores a batch inside of one transaction, each joined with what is there of the same source
and id. `Retention` gives up what is too old, measured from the latest end in the store and not by a
clock, so that a replay keeps what the live run has kept; or what is too much, by arrival. Open
intervals are never too old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ensue.errors import EventError
from ensue.history.publication import Publication, joined
from ensue.history.store import Store, Stored, Window

PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: publications not older than `max_age` microseconds, at most `max_count`."""

    max_age: int | None = None
    max_count: int | None = None

    def apply(self, store: Store) -> None:
        """Give up what need not be kept. Inside of `writing`."""
        if self.max_count is not None:
            _remove_surplus(store, store.state().count - self.max_count)
        if self.max_age is not None:
            latest = store.page(Window("ended"), None, 1)
            if latest and (end := latest[0].times.end) is not None:
                _remove_before(store, end - self.max_age)


def keep(
    store: Store, batch: Sequence[Publication], goes_on: bool = True
) -> list[tuple[Publication, EventError]]:
    """Store publications in their order; refuse any in conflict with its other half or the store.

    Inside of `writing`. Out go the refused publications, each with the reason; the first only, and
    nothing behind it is stored, unless it `goes_on`.
    """
    known = store.by_keys([each.key for each in batch])
    new: dict[bytes, Publication] = {}
    changed: dict[bytes, Publication] = {}
    refused: list[tuple[Publication, EventError]] = []
    for each in batch:
        key = each.key
        place = changed if key in known else new
        old = place.get(key) or (known[key].publication if key in known else None)
        try:
            publication = each if old is None else joined(old, each)
            store.note(each.event)
        except EventError as error:
            refused.append((each, error))
            if goes_on:
                continue
            break
        place[key] = publication
    store.insert(list(new.values()))
    store.replace([(known[key], each) for key, each in changed.items()])
    return refused


def _remove_surplus(store: Store, surplus: int) -> None:
    while surplus > 0:
        rows = store.oldest(min(surplus, PAGE))
        store.remove(rows, floor=rows[-1].seq)
        surplus -= len(rows)


def _remove_before(store: Store, time: int) -> None:
    """Give up what has ended before a time."""
    while rows := store.page(Window("ended", high=time - 1), None, PAGE):
        oldest = store.oldest(len(rows))
        is_prefix = {each.seq for each in rows} == {each.seq for each in oldest}
        store.remove(rows, floor=oldest[-1].seq if is_prefix else None)
    after: Stored | None = None
    while rows := store.page(Window("uncertain"), after, PAGE):
        after = rows[-1]
        store.remove(
            [each for each in rows if (end := each.times.end_until) is not None and end < time]
        )
