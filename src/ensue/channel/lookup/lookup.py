"""What a channel needs of its look-up: `index` is one, `unfiltered` another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from ensue.channel.lookup.wants import Want
from ensue.events.event import Event


class Ranked(Protocol):
    @property
    def rank(self) -> tuple[int, ...]:
        """Where a target stands among others: the smaller first."""


Target = TypeVar("Target", bound=Ranked)


class LookUp(Protocol[Target]):
    """Who wants what.

    `ready` has those who get an event by its type and source, where that is known beforehand, and
    None where `find` has to look closer. It is another mapping after every change.
    """

    @property
    def ready(self) -> Mapping[str, Mapping[str, Sequence[Target] | None]]: ...

    def put(self, target: Target, wants: Iterable[Want]) -> None: ...

    def remove(self, target: Target) -> None: ...

    def find(self, event: Event) -> Sequence[Target]: ...

    def prepare(self, type_: str, source: str) -> None: ...

    def is_wanted(self, type_: str, source: str | None) -> bool: ...
