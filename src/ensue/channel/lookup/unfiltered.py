"""The look-up of a channel without filtering: every target gets every event.

It is used in place of `index`, so that a plain multiplexer loads neither predicates nor plans. The
channel refuses wants other than for every event before they come here.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Generic

from ensue.channel.lookup.lookup import Target
from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event

SOURCES_KEPT = 100_000
"""How many pairs of type and source are kept in `ready`."""


class Unfiltered(Generic[Target]):
    """A `Lookup` whose targets want every event."""

    def __init__(self, sources_kept: int = SOURCES_KEPT) -> None:
        self._sources_kept = sources_kept
        self._replace(())

    def put(self, target: Target, wants: Iterable[EventWant]) -> None:  # noqa: ARG002
        targets = [each for each in self._targets if each is not target]
        insort(targets, target, key=lambda each: each.rank)
        self._replace(tuple(targets))

    def remove(self, target: Target) -> None:
        self._replace(tuple(each for each in self._targets if each is not target))

    def _replace(self, targets: tuple[Target, ...]) -> None:
        self._targets = targets
        self.ready: dict[str, dict[str, Sequence[Target] | None]] = {}
        self._cached = 0

    def find(self, event: Event) -> Sequence[Target]:
        # Read both before writing: an old tuple of targets must not enter a new mapping.
        ready, targets = self.ready, self._targets
        if self._cached < self._sources_kept:
            ready.setdefault(event.type, {})[event.source] = targets
            self._cached += 1
        return targets

    def prepare(self, type_: str, source: str) -> None:
        """Nothing has to be computed beforehand."""

    def is_wanted(self, type_: str, source: str | None) -> bool:  # noqa: ARG002
        return bool(self._targets)
