"""Ports of a rule that are of no use for a while: its home lets sites hold their events back.

A home reads a rule event by event, and its machine says which ports any active state waits for
(`parts`). An event of other ports changes nothing. When a site has sent some of these, under
one key, the home tells it to hold such events back (they *sleep*). When a state comes to wait for
one of their ports again, the home tells the site so, and waits for its answer before it reads on:
the site sends what it has held back since, and from then on everything. So what is read, and in
which order, is that of one machine, and the price is a round trip.

Two events of no use cost what two messages do, one to hold back and one to send again. So a home
speaks after two of a site. Where that has spared less than it cost, it waits for twice as many
before it speaks to the site again, and for two again where it was worth it. So a stream in which a
rule loses and finds its use for ports all the time costs little more than silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ensue.engine.instance import Instance
from ensue.federation.placement.places import Place
from ensue.federation.placement.running.parts import WaitedFor
from ensue.federation.placement.snapshots.saved import SavedSleep
from ensue.machine.model import Machine

FEWEST_WASTED = 2
COST = 3
"""A word to hold back, one to send again, and the answer."""

SendHold = Callable[[str, str, Place, frozenset[str]], int]
"""Tells a site, under the name of a key, which ports sleep from a place on; returns the number of
the parcel that says it."""


@dataclass
class KeySleep:
    """Of one key at its home: which ports sleep at each site, and what came that was of no use."""

    asleep: dict[str, frozenset[str]] = field(default_factory=dict)
    wasted: dict[str, int] = field(default_factory=dict)

    @property
    def is_any(self) -> bool:
        return any(self.asleep.values())

    def saved(self) -> SavedSleep:
        return SavedSleep(self.asleep, self.wasted)

    @classmethod
    def restored(cls, saved: SavedSleep) -> KeySleep:
        return cls(dict(saved.asleep), dict(saved.wasted))


class Sleepers:
    """The ports of a rule that may sleep, by site, as its home knows of them.

    `unanswered` has, for each site that was told to send again, the number of the parcel that says
    it, and the place behind which nothing is read before the site has answered. `keys_asleep` says
    for how many keys a site holds something back, and `patience` how many events of no use it may
    send of a key before it is told so.
    """

    def __init__(
        self, ports: Mapping[str, frozenset[str]], machine: Machine | None, send: SendHold
    ) -> None:
        self._ports = ports
        self._waited_for = WaitedFor(machine if ports else None)
        self._send = send
        self.unanswered: dict[str, tuple[int, Place]] = {}
        self.patience: dict[str, int] = {}
        self.keys_asleep: Counter[str] = Counter()

    def limit(self, mark: Place) -> Place:
        """Before which place may be read, of all that lies before a mark."""
        return min([mark, *(place for _, place in self.unanswered.values())])

    def answered(self, site: str, number: int, spared: int) -> None:
        """A site has heard the parcels up to a number, and has been spared so many events."""
        if site in self.unanswered and number >= self.unanswered[site][0]:
            del self.unanswered[site]
            was_worth_it = spared >= COST
            before = self.patience.get(site, FEWEST_WASTED)
            self.patience[site] = FEWEST_WASTED if was_worth_it else min(2 * before, 1 << 20)

    def note(self, key: KeySleep, instance: Instance, site: str, ports: frozenset[str]) -> None:
        """A reading of a site comes to an instance next."""
        waited_for = self._waited_for.ports(instance) if site in self._ports else None
        if waited_for is not None and waited_for.isdisjoint(ports):
            key.wasted[site] = key.wasted.get(site, 0) + 1

    def tell(self, key: KeySleep, name: str, instance: Instance, place: Place) -> None:
        """An instance has read the event, or fired the timer, at a place."""
        if not key.wasted:
            return
        waited_for = self._waited_for.ports(instance)
        for site, wasted in list(key.wasted.items()):
            asleep = key.asleep.get(site, frozenset())
            awake = asleep if waited_for is None else asleep & waited_for
            if awake:
                left = asleep - awake
            elif wasted >= self.patience.get(site, FEWEST_WASTED) and waited_for is not None:
                left = self._ports[site] - waited_for
            else:
                continue
            number = self._send(site, name, place, left)
            if awake:
                self.unanswered[site] = (number, self.limit(place))
            self.keys_asleep[site] += bool(left) - bool(asleep)
            key.asleep[site], key.wasted[site] = left, 0

    def count(self, key: KeySleep) -> None:
        """A key is back from a snapshot."""
        self.keys_asleep.update(site for site, ports in key.asleep.items() if ports)

    def forget(self, site: str, keys: Collection[KeySleep]) -> None:
        """A site has begun anew, and holds nothing back."""
        self.unanswered.pop(site, None)
        self.keys_asleep.pop(site, None)
        for key in keys:
            key.asleep.pop(site, None)
