"""The interface of look-ups (`index`, `unfiltered`), which find the targets that want an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event


class Ranked(Protocol):
    """A target of a look-up: a receiver, or another channel."""

    @property
    def rank(self) -> tuple[int, ...]:
        """Targets are found in ascending order of rank."""


Target = TypeVar("Target", bound=Ranked)


class Lookup(Protocol[Target]):
    """Finds the targets that want an event.

    `ready` caches the targets by type and source of an event; None stands where `find` has to
    evaluate predicates. Every change of wants replaces the mapping.
    """

    @property
    def ready(self) -> Mapping[str, Mapping[str, Sequence[Target] | None]]: ...

    def put(self, target: Target, wants: Iterable[EventWant]) -> None: ...

    def remove(self, target: Target) -> None: ...

    def find(self, event: Event) -> Sequence[Target]: ...

    def prepare(self, type_: str, source: str) -> None: ...

    def is_wanted(self, type_: str, source: str | None) -> bool: ...
