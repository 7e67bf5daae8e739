"""A placement in one process: all sites, links between them, and a count of what crosses those.

In come a placement and events of all sites; out come the outputs in the order of one machine, and
how many messages crossed. Links deliver in order, at once or late: how long each parcel takes is
drawn by a seed, so that a run can be repeated. With `wire`, parcels go through JSON as between
processes.

For comparison, the same events are counted as they would cross without a placement: each event that
some rule at another site could read by its type goes to the site of every such rule once.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from ensue.events.cloudevents import decode, encode
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.federation.placement.homes import Made
from ensue.federation.placement.parcels import Parcel, from_event, to_event
from ensue.federation.placement.planning import Placement
from ensue.federation.placement.running import SiteRun
from ensue.lang.syntax import EventPort


@dataclass
class Crossed:
    """What crossed the links between sites.

    `subscribed` are events that would go to where the library runs if every rule ran whole at its
    home and events went by their types; `matched` those of them that match a port. `events` and
    `resets` went with the placement. `marks` are parcels that say nothing but a time.
    """

    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    resets: Counter[tuple[str, str]] = field(default_factory=Counter)
    marks: int = 0
    subscribed: int = 0
    matched: int = 0

    @property
    def messages(self) -> int:
        """Everything that went because of an event."""
        return self.events.total() + self.resets.total()


class Simulation:
    """`delay` is how many steps a parcel takes at most, `beat` how many events lie between marks."""

    def __init__(
        self,
        placement: Placement,
        *,
        engine: str = "step",
        delay: int = 0,
        beat: int = 1,
        wire: bool = False,
        seed: int = 0,
    ) -> None:
        self.placement = placement
        self.sites = {name: SiteRun(placement, name, engine) for name in placement.sites.names}
        self.crossed = Crossed()
        self._made: Made = []
        self._links: dict[tuple[str, str], deque[tuple[int, Parcel]]] = defaultdict(deque)
        self._delay, self._beat, self._wire = delay, beat, wire
        self._random = Random(seed)
        self._now = 0

    def run(self, events: Iterable[tuple[str, Event]]) -> list[Event]:
        """Outputs that follow from events, each with its site, in the order of their times."""
        last: int | None = None
        for number, (site, event) in enumerate(events, 1):
            self._count_without(site, event)
            self._made += self.sites[site].push(event)
            last = event.time if last is None else max(last, event.time)
            self._send(marks=number % self._beat == 0)
            self._now += 1
            self._deliver()
        if last is not None:
            for run in self.sites.values():
                self._made += run.finish(last)
            self._settle()
        return self.outputs

    @property
    def outputs(self) -> list[Event]:
        """What rules have put out so far, in the order of one machine."""
        return [event for _, event in sorted(self._made, key=lambda each: each[0])]

    def _send(self, marks: bool) -> None:
        for name, run in self.sites.items():
            for parcel in run.parcels(marks):
                link = (name, parcel.receiver)
                self.crossed.events[link] += len(parcel.loads)
                self.crossed.resets[link] += len(parcel.resets)
                self.crossed.marks += not parcel.messages
                queue = self._links[link]
                due = self._now + self._random.randint(0, self._delay)
                queue.append((max(due, queue[-1][0] if queue else due), parcel))

    def _deliver(self, everything: bool = False) -> bool:
        """Bring over what is due; whether there was anything."""
        is_any = False
        for (_, receiver), queue in list(self._links.items()):
            while queue and (everything or queue[0][0] <= self._now):
                is_any = True
                parcel = queue.popleft()[1]
                if self._wire:
                    read = decode(encode(to_event(parcel)))
                    parcel = from_event(read, self.placement.library.types)
                self._made += self.sites[receiver].receive(parcel)
        return is_any

    def _settle(self) -> None:
        """Bring everything over, and what follows from it, until nothing moves."""
        self._send(marks=True)
        while self._deliver(everything=True):
            self._send(marks=True)

    def _count_without(self, site: str, event: Event) -> None:
        types = self.placement.library.types
        subscribed, matched = set(), set()
        for name, rule in self.placement.rules.items():
            if rule.home == site or rule.home in matched:
                continue
            ports = [p for p in rule.correlation.ports if isinstance(p, EventPort)]
            if any(types.is_subtype(event.type, port.type) for port in ports):
                subscribed.add(rule.home)
                outpost = self.sites[site]._outposts.get(name)
                if outpost is not None and outpost.ports.matched(conform(event, types)):
                    matched.add(rule.home)
        self.crossed.subscribed += len(subscribed)
        self.crossed.matched += len(matched)


def in_order(placement: Placement, events: Iterable[Event]) -> tuple[list[tuple[str, Event]], int]:
    """Events with their sites, as one machine reads them, and how many are of no site."""
    found: list[tuple[int, int, Event]] = []
    nowhere = 0
    for event in events:
        site = placement.sites.of_event(event)
        if site is None:
            nowhere += 1
        else:
            found.append((event.time, site.rank, event))
    found.sort(key=lambda each: each[:2])
    return [(placement.sites.sites[rank].name, event) for _, rank, event in found], nowhere


def with_sites(placement: Placement, events: Sequence[tuple[str, Event]]) -> list[Event]:
    """The events of all sites in the order of one machine."""
    ranks = {site.name: site.rank for site in placement.sites.sites}
    return [event for _, event in sorted(events, key=lambda each: (each[1].time, ranks[each[0]]))]
