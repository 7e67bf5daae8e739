"""The look-up of a channel without filtering: everybody wants everything.

It stands where `index` stands in other configurations, so that neither predicates nor plans are
loaded for a plain multiplexer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Generic

from ensue.channel.lookup.lookup import Target
from ensue.channel.lookup.wants import Want
from ensue.errors import UsageError
from ensue.events.event import Event

SOURCES_KEPT = 100_000
"""For so many the answer is ready; for more it is given again and again."""


class Everyone(Generic[Target]):
    def __init__(self) -> None:
        self._become(())

    def put(self, target: Target, wants: Iterable[Want]) -> None:
        if tuple(wants) != (Want(),):
            raise UsageError(
                "this channel was built without filtering, so a consumer gets every event:"
                " leave out what it wants, or build the channel with filtering"
            )
        targets = [each for each in self._targets if each is not target]
        insort(targets, target, key=lambda each: each.rank)
        self._become(tuple(targets))

    def remove(self, target: Target) -> None:
        self._become(tuple(each for each in self._targets if each is not target))

    def _become(self, targets: tuple[Target, ...]) -> None:
        self._targets = targets
        self.ready: dict[str, dict[str, Sequence[Target] | None]] = {}
        self._sources = 0

    def find(self, event: Event) -> Sequence[Target]:
        # In this order: what is known of earlier targets must not get into what is new.
        ready, targets = self.ready, self._targets
        if self._sources < SOURCES_KEPT:
            ready.setdefault(event.type, {})[event.source] = targets
            self._sources += 1
        return targets

    def prepare(self, type_: str, source: str) -> None:
        """There is nothing to be made ready."""

    def is_wanted(self, type_: str, source: str | None) -> bool:  # noqa: ARG002
        return bool(self._targets)
