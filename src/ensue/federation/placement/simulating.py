"""A placement in one process: all sites, links between them, and a count of what crosses those.

In come a placement and events of all sites; out come the outputs in the order of one machine, and
how many messages crossed. Links deliver in order, at once or late: how long each parcel takes is
drawn by a seed, so that a run can be repeated. With `wire`, parcels go through JSON as between
processes.

For comparison the same events are counted as they would cross without a placement: the library runs
whole at one site, the one with the most events that it reads, and those of all others travel there.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.federation.placement.parcels import Parcel, from_event, to_event
from ensue.federation.placement.planning.placement import Placement
from ensue.federation.placement.running.homes import PlacedOutputs
from ensue.federation.placement.running.site import SiteRun
from ensue.lang.derived.wiring import reads_outside
from ensue.lang.syntax import EventPort

Link = tuple[str, str]
"""From one site to another."""


@dataclass
class Crossed:
    """What crossed the links between sites: events, words of homes, and marks.

    All resets and holds that a home says at once count as one, and so does the answer of a site
    that has no event to send with it.

    `of_types` counts, for each site, the events whose type some rule reads, and `matched` those
    that match a port.
    """

    events: Counter[Link] = field(default_factory=Counter)
    resets: Counter[Link] = field(default_factory=Counter)
    marks: int = 0
    of_types: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        """Everything that went because of an event."""
        return self.events.total() + self.resets.total()

    @property
    def whole_by_types(self) -> int:
        """Events that would cross if the library ran whole at its best site and asked for types."""
        return self.of_types.total() - max(self.of_types.values(), default=0)

    @property
    def whole_by_ports(self) -> int:
        """Events that would cross if the library ran whole and asked by the tests of its ports."""
        return self.matched.total() - max(self.matched.values(), default=0)


class Simulation:
    """`delay`: how many steps a parcel takes at most; `beat`: after how many events every site
    knows the time, and tells it to the others."""

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
        self._outputs: PlacedOutputs = []
        self._links: dict[Link, deque[tuple[int, Parcel]]] = defaultdict(deque)
        self._delay, self._beat, self._wire = delay, beat, wire
        self._random = Random(seed)
        self._now = 0
        types = placement.library.types
        self._read_types = {
            name
            for rule in placement.library.correlations
            for port in rule.ports
            if isinstance(port, EventPort) and reads_outside(port)
            for name in types.subtypes(port.type)
        }

    def run(self, events: Iterable[tuple[str, Event]]) -> list[Event]:
        """Outputs that follow from events, each with its site, in the order of their times."""
        last: int | None = None
        for number, (site, event) in enumerate(events, 1):
            self._count_without(site, event)
            self._outputs += self.sites[site].push(event)
            last = event.time if last is None else max(last, event.time)
            is_beat = number % self._beat == 0
            if is_beat:
                for run in self.sites.values():
                    self._outputs += run.advance(last)
            self._send(marks=is_beat)
            self._now += 1
            self._deliver()
        if last is not None:
            for run in self.sites.values():
                self._outputs += run.finish(last)
            self._settle()
        return self.outputs

    @property
    def outputs(self) -> list[Event]:
        """What rules have put out so far, in the order of one machine."""
        return [event for _, event in sorted(self._outputs, key=lambda each: each[0])]

    def _send(self, marks: bool) -> None:
        for name, run in self.sites.items():
            for parcel in run.parcels(marks):
                link = (name, parcel.receiver)
                self.crossed.events[link] += parcel.messages - parcel.words
                self.crossed.resets[link] += parcel.words
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
                self._outputs += self.sites[receiver].receive(parcel)
        return is_any

    def _settle(self) -> None:
        """Bring everything over, and what follows from it, until nothing moves."""
        self._send(marks=True)
        while self._deliver(everything=True):
            self._send(marks=True)

    def _count_without(self, site: str, event: Event) -> None:
        if event.type in self._read_types:
            self.crossed.of_types[site] += 1
            self.crossed.matched[site] += self.sites[site].is_read(event)


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
