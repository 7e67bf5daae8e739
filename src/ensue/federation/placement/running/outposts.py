"""An outpost: what one site does for one rule, wherever that runs.

In come events of the site in the order of their places, raw ones and what rules at the site put
out; out go the events that the rule reads, for its home. Where the rule needs something of this
site (`planning.Part.needed`), the events of a key wait until that is matched, from the last reset
on and inside the window; then all that wait go together, and each next one goes at once, for as
long as it is matched. An event that cannot count any more is dropped: the window has left it
behind, an `unless` has forgotten it, no match can stand on it, or no state of the part of an `ecl`
that runs here waits for it (`parts`).

Where the home has said which ports sleep, the events of these alone wait until it says otherwise,
or has read on without them.

To send more than is needed is always right, to hold back what is needed never is. So a reset may
come late, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ensue.engine.core.saved_rules import damaged
from ensue.engine.ports import Key, Ports, Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.federation.placement.places import ALWAYS, FIRST, Place, Since
from ensue.federation.placement.planning.placement import PlacedRule, SitePart
from ensue.federation.placement.running.parts import PartMachine, PartRun
from ensue.federation.placement.running.starts import Starts
from ensue.federation.placement.snapshots.saved import (
    SavedFollowing,
    SavedHeld,
    SavedReading,
    SavedSleeping,
)

FEWEST_TO_SWEEP = 1024


@dataclass
class Following:
    """How far one site has come with what a rule needs of it, under one key.

    Kept at the site and, over the events that have arrived, at the home: the home's is never ahead.
    """

    starts: Starts
    window: int | None
    since: Since = ALWAYS

    @classmethod
    def of(cls, part: SitePart, rule: PlacedRule) -> Following:
        assert part.needed is not None
        within = rule.correlation.clauses.within
        return cls(Starts(part.needed), within.microseconds if within else None)

    def is_matched(self, now: int) -> bool:
        """Whether what is needed is matched at a time, since the last reset."""
        latest = self.starts.latest
        if latest is None or (latest, 0) < self.since:
            return False
        return self.window is None or latest[0] >= now - self.window

    def until(self) -> int | None:
        """Up to which time it stays matched, if nothing comes; None for ever."""
        latest = self.starts.latest
        return None if self.window is None or latest is None else latest[0] + self.window

    def reset(self, since: Since) -> None:
        self.since = max(self.since, since)

    def saved(self) -> SavedFollowing:
        return SavedFollowing(self.starts.saved(), self.since)

    def restore(self, saved: SavedFollowing) -> None:
        self.starts.restore(saved.starts)
        self.since = saved.since


def key_name(key: Key) -> str:
    """A key as text that tells it from all others, at every site; equal numbers are one key."""
    return "\n".join(f"{kind} {_plain(value)!r}" for kind, value in key)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Waiting = tuple[Place, Reading]


def saved_readings(waiting: Iterable[Waiting]) -> list[SavedReading]:
    return [
        SavedReading(place, each.ports, each.event)
        for place, each in waiting
        if each.event is not None
    ]


def restored_readings(saved: Iterable[SavedReading]) -> list[Waiting]:
    return [(each.place, Reading(each.event.time, each.ports, each.event)) for each in saved]


@dataclass
class HeldKey:
    """The events of one key that wait."""

    following: Following
    part: PartRun | None
    waiting: list[Waiting] = field(default_factory=list)
    last_void: Place | None = None


@dataclass
class Sleeping:
    """The ports of one key that sleep, the events of them that wait, and how many there were."""

    ports: frozenset[str]
    waiting: list[Waiting] = field(default_factory=list)
    spared: int = 0


class Outpost:
    """One rule at one site."""

    def __init__(self, rule: PlacedRule, site: str, ports: Ports, types: TypeSystem) -> None:
        self.rule = rule
        self._ports = ports
        self._part = rule.parts.get(site)
        self._is_held = self._part is not None and self._part.needed is not None
        running = None if self._part is None else self._part.running
        self._machine = None if running is None else PartMachine(running, types)
        self._sleeping: dict[str, Sleeping] = {}
        self._keys: dict[str, HeldKey] = {}
        self._sweep_at = FEWEST_TO_SWEEP
        clauses = rule.correlation.clauses
        self._window = clauses.within.microseconds if clauses.within else None
        self._voids = frozenset(port.name for port in clauses.unless)

    @property
    def waiting(self) -> int:
        """How many events wait."""
        held: list[HeldKey | Sleeping] = [*self._keys.values(), *self._sleeping.values()]
        return sum(len(each.waiting) for each in held)

    def take(
        self, place: Place, event: Event, matched: list[str]
    ) -> Iterator[tuple[Place, list[Waiting]]]:
        """What goes to the home, now that an event of the site is read, which matches some ports.

        For each key that has something to send, the place of this event and all that goes with
        it, in order.
        """
        for key, reading in self._ports.readings(event, matched).items():
            if self._is_held:
                released = self._read(key_name(key), place, reading)
            elif self._sleeping and self._sleeps(key_name(key), place, reading):
                released = []
            else:
                released = [(place, reading)]
            if released:
                yield place, released

    def _sleeps(self, key: str, place: Place, reading: Reading) -> bool:
        """Whether an event waits, since all ports that it matches sleep."""
        sleeping = self._sleeping.get(key)
        if sleeping is None or not reading.ports <= sleeping.ports:
            return False
        sleeping.waiting.append((place, reading))
        sleeping.spared += 1
        return True

    def hold(
        self, key: str, since: Place, ports: frozenset[str]
    ) -> tuple[list[Waiting], int] | None:
        """Let these ports sleep under a key, and no others. Returns what has waited since a place
        and does not any more, and how many never had to go; None if all that slept still does."""
        before = self._sleeping.pop(key, Sleeping(frozenset()))
        waiting = [each for each in before.waiting if each[0] > since]
        still = [each for each in waiting if each[1].ports <= ports]
        if ports:
            self._sleeping[key] = Sleeping(ports, still)
        if before.ports <= ports:
            return None
        woken = [each for each in waiting if not each[1].ports <= ports]
        return woken, before.spared - len(woken)

    def passed(self, done: Place) -> None:
        """The home has read everything before a place, and had no use for what sleeps."""
        for each in self._sleeping.values():
            each.waiting = [waiting for waiting in each.waiting if waiting[0] >= done]

    def wake(self) -> None:
        """The home has begun anew, and knows of nothing that sleeps."""
        self._sleeping.clear()

    def reset(self, key: str, since: Since) -> None:
        """Matches under a key, given by `key_name`, count from a place on."""
        held = self._keys.get(key)
        if held is not None:
            held.following.reset(since)
            if held.part is not None:
                held.part.reset(held.following.since)

    def saved(self) -> list[SavedHeld]:
        return [
            SavedHeld(
                key,
                held.following.saved(),
                saved_readings(held.waiting),
                held.last_void,
                FIRST if held.part is None else held.part.floor,
                [] if held.part is None else held.part.read,
            )
            for key, held in self._keys.items()
        ]

    def saved_sleeping(self) -> list[SavedSleeping]:
        return [
            SavedSleeping(key, each.ports, saved_readings(each.waiting), each.spared)
            for key, each in self._sleeping.items()
        ]

    def restore(self, saved: Iterable[SavedHeld], sleeping: Iterable[SavedSleeping]) -> None:
        """Raises `SnapshotError` if it is of another rule."""
        for one in sleeping:
            waiting = restored_readings(one.waiting)
            self._sleeping[one.key] = Sleeping(one.ports, waiting, one.spared)
        for each in saved:
            if not self._is_held:
                raise damaged(f"events of `{self.rule.name}` wait that do not wait any more")
            held = self._begin(each.key)
            held.following.restore(each.following)
            held.waiting = restored_readings(each.waiting)
            held.last_void = each.last_void
            if held.part is not None:
                held.part.restore(each.floor, each.read, held.following.since)

    def _begin(self, key: str) -> HeldKey:
        assert self._part is not None
        part = None if self._machine is None else PartRun(self._machine)
        held = self._keys[key] = HeldKey(Following.of(self._part, self.rule), part)
        return held

    def _read(self, key: str, place: Place, reading: Reading) -> list[Waiting]:
        held = self._keys.get(key)
        if held is None:
            self._sweep(reading.time)
            held = self._begin(key)
        starts = held.following.starts
        starts.take(place, reading.ports)
        is_of_use = held.part is None or held.part.takes(place, reading.ports)
        if is_of_use or held.following.is_matched(reading.time):
            held.waiting.append((place, reading))
        released: list[Waiting] = []
        if held.following.is_matched(reading.time):
            released, held.waiting = held.waiting, []
        if reading.ports & self._voids:
            starts.forget_before(place)
            held.waiting = [each for each in held.waiting if each[0] >= place]
            held.last_void = place
        if held.waiting:
            self._drop_what_cannot_count(held, reading.time)
        return released

    def _drop_what_cannot_count(self, held: HeldKey, now: int) -> None:
        if self._window is not None:
            oldest = now - self._window
            held.waiting = [each for each in held.waiting if each[1].time >= oldest]
        assert self._part is not None
        if self._part.keeps_witnesses:
            witnesses = held.following.starts.witnesses()
            held.waiting = [
                each for each in held.waiting if each[0] in witnesses or each[0] == held.last_void
            ]

    def _sweep(self, now: int) -> None:
        """Drop the keys that the window has emptied."""
        if self._window is None or len(self._keys) < self._sweep_at:
            return
        oldest = now - self._window
        self._keys = {
            key: held
            for key, held in self._keys.items()
            if not held.following.starts.is_blank(oldest)
            or any(each[1].time >= oldest for each in held.waiting)
        }
        self._sweep_at = max(FEWEST_TO_SWEEP, 2 * len(self._keys))
