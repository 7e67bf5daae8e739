"""The look-up of a channel without filtering: everybody wants everything.

It stands where `index` stands in other configurations, so that neither predicates nor plans are
loaded for a plain multiplexer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ensue.channel.wants import Want
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.index import Ranked

Target = TypeVar("Target", bound="Ranked")


class Everyone(Generic[Target]):
    def __init__(self) -> None:
        self._targets: tuple[Target, ...] = ()

    def put(self, target: Target, wants: Iterable[Want]) -> None:
        if tuple(wants) != (Want(),):
            raise UsageError(
                "this channel was built without filtering, so a consumer gets every event:"
                " leave out what it wants, or build the channel with filtering"
            )
        targets = [each for each in self._targets if each is not target]
        insort(targets, target, key=lambda each: each.rank)
        self._targets = tuple(targets)

    def remove(self, target: Target) -> None:
        self._targets = tuple(each for each in self._targets if each is not target)

    def find(self, event: Event) -> Sequence[Target]:  # noqa: ARG002 - the same for every event
        return self._targets

    def prepare(self, type_: str, source: str) -> None:
        """There is nothing to be made ready."""

    def is_wanted(self, type_: str, source: str | None) -> bool:  # noqa: ARG002
        return bool(self._targets)
