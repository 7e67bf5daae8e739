"""What goes between one site and each other: what waits to go, what has come, and what is known.

Parcels of one direction are numbered. Both ends of a link keep the events that have lately gone
over it, so that an event which several rules need travels once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from ensue.events.event import Event
from ensue.federation.placement.fields import Fields
from ensue.federation.placement.parcels import CarriedReading, Hold, Parcel, Reset
from ensue.federation.placement.places import Numbers, Place
from ensue.federation.placement.snapshots.saved import SavedOutgoing, SavedReceived

T = TypeVar("T")

MOST_KNOWN = 10_000
"""How many events that have gone over a link are known at both of its ends."""


class RecentEvents(dict[Place, T]):
    """Events that have lately gone over a link, by their places, the oldest first.

    Both ends of a link see the same events in the same order, and so know and forget the same.
    """

    @classmethod
    def of(cls, pairs: Iterable[tuple[Place, T]]) -> RecentEvents[T]:
        recent: RecentEvents[T] = cls()
        recent.update(pairs)
        return recent

    def note(self, place: Place, value: T) -> None:
        self.pop(place, None)
        self[place] = value
        if len(self) > MOST_KNOWN:
            del self[next(iter(self))]


@dataclass
class LinkQueue:
    """What waits for one other site. An event that several rules let go at once goes once.

    `answers` is the number of its parcel that asked for events, until that is answered, and
    `spared` what goes with the answer.
    """

    loads: dict[Place, tuple[Event, list[CarriedReading]]] = field(default_factory=dict)
    resets: list[Reset] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    answers: int | None = None
    spared: dict[str, int] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)
    marks: tuple[Place, dict[str, Place], dict[str, Place]] | None = None
    known: RecentEvents[Fields] = field(default_factory=RecentEvents)

    def saved(self) -> SavedOutgoing:
        loads = [(place, *each) for place, each in self.loads.items()]
        known = list(self.known.items())
        return SavedOutgoing(
            loads,
            self.resets,
            self.holds,
            self.answers,
            self.spared,
            self.numbers.following,
            self.marks,
            known,
        )

    @classmethod
    def restored(cls, saved: SavedOutgoing) -> LinkQueue:
        loads = {place: (event, list(purposes)) for place, event, purposes in saved.loads}
        numbers, known = Numbers(saved.number), RecentEvents.of(saved.known)
        resets, holds = list(saved.resets), list(saved.holds)
        answers, spared = saved.answers, dict(saved.spared)
        return cls(loads, resets, holds, answers, spared, numbers, saved.marks, known)


@dataclass
class Received:
    """Parcels from one other site: the number of the next, and parcels that came too early."""

    instance: str
    number: int
    early: dict[int, Parcel] = field(default_factory=dict)
    known: RecentEvents[Event] = field(default_factory=RecentEvents)

    def saved(self) -> SavedReceived:
        early, known = list(self.early.values()), list(self.known.items())
        return SavedReceived(self.instance, self.number, early, known)

    @classmethod
    def restored(cls, saved: SavedReceived) -> Received:
        early = {each.number: each for each in saved.early}
        return cls(saved.instance, saved.number, early, RecentEvents.of(saved.known))
