"""One site of a placement, running: its own events in, parcels in and out, outputs out.

In come the site's events in the order of their times, and parcels of other sites; out come outputs
with their places, and parcels for other sites. A rule at its home reads what has a place before
every mark that it waits for, so that it reads in the order of one machine however long parcels are
on their way. Sites need no clock in common but that of their events: `advance` says that a site has
come to a time without an event.

Nothing is sent from here: whoever owns the site takes `parcels()` and brings them over, in order.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from ensue.errors import EventError
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.federation.placement.fields import joined, projected
from ensue.federation.placement.homes import Arrived, Home, Made, SendReset
from ensue.federation.placement.outposts import Outpost
from ensue.federation.placement.parcels import Carried, Load, Parcel, Reset
from ensue.federation.placement.places import FIRST, Place, end_of, event_place
from ensue.federation.placement.planning import PlacedRule, Placement
from ensue.lang.syntax import EventPort


@dataclass
class Outgoing:
    """What waits for one other site. An event that several rules let go at once goes once."""

    loads: dict[Place, tuple[Event, list[Carried]]] = field(default_factory=dict)
    resets: list[Reset] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)
    marks: tuple[Place, dict[str, Place]] | None = None


MOST_EARLY = 10_000
"""How many parcels may come before one that is still on its way."""


@dataclass
class Received:
    """The parcels of one other site: the number of the next, and those that came before it."""

    instance: str
    number: int
    early: dict[int, Parcel] = field(default_factory=dict)


class SiteRun:
    """`name` is the site; `engine` is `step`, or `reference` to run by the definitions.

    `instance` tells parcels of this run from those of one before it, whose numbers began anew.
    """

    def __init__(
        self, placement: Placement, name: str, engine: str = "step", instance: str = ""
    ) -> None:
        self.placement = placement
        self._instance = instance
        self.site = placement.sites[name]
        self._types = placement.library.types
        self._mark: Place = FIRST
        self._time: int | None = None
        self._events = count()
        self._outgoing: dict[str, Outgoing] = defaultdict(Outgoing)
        self._received: dict[str, Received] = {}
        self.sent: Counter[tuple[str, str]] = Counter()
        """How many events, resets and parcels have gone to each other site."""
        rules = placement.rules
        self._outposts = {
            rule: Outpost(rules[rule], name, self._types)
            for rule in placement.order
            if name in rules[rule].ports_at
        }
        self._homes = {
            rule: Home(rules[rule], self._types, self._reset_for(rule), engine)
            for rule in placement.order
            if rules[rule].home == name
        }
        self._queued: dict[str, list[tuple[Place, int, Event]]] = {r: [] for r in self._outposts}
        self._numbers = count()
        self._readers = self._readers_of_types()
        self._marks: dict[tuple[str, str], Place] = {}
        """What each other site has marked for each rule at its home here."""
        self._done: dict[str, Place] = dict.fromkeys(self._homes, FIRST)
        """Up to where each rule at its home here has read."""
        self._local_feeders = {
            rule: [f for f in rules[rule].feeders if rules[f].home == name]
            for rule in self._outposts
        }
        told = {site for rule in rules.values() if rule.home == name for site in rule.split_sites}
        homes = {rules[rule].home for rule in self._outposts}
        self._receivers = {
            each: each in homes
            for each in placement.sites.names
            if each in homes | told and each != name
        }
        """The sites that hear of this one, and whether rules that read its events run there."""
        self._fed = {
            each: [r for r, fed in self._local_feeders.items() if fed and rules[r].home == each]
            for each in placement.sites.names
        }

    # --- in -------------------------------------------------------------------------------------

    def push(self, event: Event) -> Made:
        """Read an event that has arisen here.

        Raises `EventError` if it does not fit its type, is not of this site, or comes too late.
        """
        ready = conform(event, self._types)
        self.require_own(ready)
        if self._time is not None and ready.time < self._time:
            raise EventError(
                [
                    f"`{event.id}` comes too late: its time is {format_time(ready.time)}, and"
                    f" `{self.site.name}` has come to {format_time(self._time)}"
                ]
            )
        self._time = ready.time
        number = next(self._events)
        place = event_place(ready.time, self.site.rank, number)
        for rule in self._readers.get(ready.type, ()):
            self._queue(rule, place, ready)
        self._mark = event_place(ready.time, self.site.rank, number + 1)
        return self._go_on()

    def advance(self, time: int) -> Made:
        """The site has come to a time: none of its events before it is still to come."""
        if self._time is None or time > self._time:
            self._time = time
            self._mark = max(self._mark, event_place(time, self.site.rank, 0))
        return self._go_on()

    def finish(self, time: int) -> Made:
        """The last event of all sites was at a time, and no other comes."""
        self._time = time
        self._mark = end_of(time)
        return self._go_on()

    def receive(self, parcel: Parcel) -> Made:
        """Take a parcel of another site: in the order of their numbers, each once.

        Raises `EventError` if so many have come after one that it must be lost.
        """
        received = self._received.get(parcel.sender)
        if received is None or received.instance != parcel.instance:
            # One of the two sites has begun anew: what was before it is of no use to it.
            received = Received(parcel.instance, parcel.number)
            self._received[parcel.sender] = received
        if parcel.number >= received.number:
            received.early[parcel.number] = parcel
        if len(received.early) > MOST_EARLY:
            raise EventError(
                [f"parcel {received.number} of site `{parcel.sender}` is lost: restart that site"]
            )
        made: Made = []
        while (following := received.early.pop(received.number, None)) is not None:
            received.number += 1
            made += self._open(following)
        return made

    def _open(self, parcel: Parcel) -> Made:
        for reset in parcel.resets:
            self._outposts[reset.rule].reset(reset.key, reset.since)
        for load in parcel.loads:
            for each in load.purposes:
                arrived = Arrived(parcel.sender, load.place, each.releases, each.ports, load.event)
                self._homes[each.rule].arrive(arrived)
        for rule in self._homes:
            mark = parcel.marks.get(rule, parcel.mark)
            self._marks[parcel.sender, rule] = mark
        return self._go_on()

    def require_own(self, event: Event) -> None:
        """Raises `EventError` if an event is not of this site."""
        if not self.site.has(event):
            raise EventError(
                [f"`{event.id}` is no event of site `{self.site.name}`, as its table says"]
            )

    @property
    def types_read(self) -> set[str]:
        """The types of events of this site that some rule reads."""
        own = self.site.types
        if not self.site.has_events:
            return set()
        return {name for name in self._readers if own is None or name in own}

    # --- out ------------------------------------------------------------------------------------

    def parcels(self, marks: bool = False) -> list[Parcel]:
        """What waits for other sites; with `marks` also where there is only a new mark to say."""
        found = []
        for receiver, is_home in self._receivers.items():
            going = self._outgoing[receiver]
            has_mark = marks and is_home and going.marks != self._said_to(receiver)
            if not (going.loads or going.resets or has_mark):
                continue
            mark, behind = going.marks = self._said_to(receiver)
            loads = tuple(
                Load(place, self._projected(event, purposes), tuple(purposes))
                for place, (event, purposes) in sorted(going.loads.items(), key=itemgetter(0))
            )
            parcel = Parcel(
                self.site.name,
                receiver,
                self._instance,
                next(going.numbers),
                loads,
                tuple(going.resets),
                mark,
                behind,
            )
            going.loads, going.resets = {}, []
            self.sent[receiver, "events"] += len(parcel.loads)
            self.sent[receiver, "resets"] += len(parcel.resets)
            self.sent[receiver, "parcels"] += 1
            found.append(parcel)
        return found

    def _projected(self, event: Event, purposes: Sequence[Carried]) -> Event:
        """The event with the fields that one of the rules reads at its home."""
        rules = self.placement.rules
        fields = (rules[each.rule].fields[port] for each in purposes for port in each.ports)
        return projected(event, joined(fields))

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many events wait here: held back for each rule, and behind the gates of rules."""
        held = {rule: outpost.waiting for rule, outpost in self._outposts.items()}
        for rule, home in self._homes.items():
            held[rule] = held.get(rule, 0) + home.behind_gates
        return {rule: number for rule, number in held.items() if number}

    def is_read(self, event: Event) -> bool:
        """Whether an event of this site matches a port of some rule."""
        ready = conform(event, self._types)
        return any(
            self._outposts[rule].ports.matched(ready) for rule in self._readers.get(event.type, ())
        )

    # --- between --------------------------------------------------------------------------------

    def _readers_of_types(self) -> dict[str, list[str]]:
        readers: dict[str, list[str]] = defaultdict(list)
        for rule in self._outposts:
            placed = self.placement.rules[rule]
            types = {
                each
                for port in placed.correlation.ports
                if isinstance(port, EventPort)
                for each in self._types.subtypes(port.type)
            }
            for each in types:
                readers[each].append(rule)
        return dict(readers)

    def _queue(self, rule: str, place: Place, event: Event) -> None:
        heapq.heappush(self._queued[rule], (place, next(self._numbers), event))

    def _go_on(self) -> Made:
        """Let every rule read what it can, feeding rules before those that they feed."""
        made: Made = []
        for rule in self.placement.order:
            if rule in self._outposts and self._queued[rule]:
                self._serve(self.placement.rules[rule])
            home = self._homes.get(rule)
            if home is None:
                continue
            mark = self._mark_of_home(rule)
            if home.is_waiting:
                outputs = home.advance(mark)
                made += outputs
                self._feed(rule, outputs)
            self._done[rule] = mark
        return made

    def _serve(self, rule: PlacedRule) -> None:
        """Let the outpost of a rule read what lies before its mark, and send what it lets go."""
        queue, outpost = self._queued[rule.name], self._outposts[rule.name]
        mark = self._mark_of_outpost(rule.name)
        while queue and queue[0][0] < mark:
            place, _, event = heapq.heappop(queue)
            for releases, let_go in outpost.take(place, event):
                for at, reading in let_go:
                    assert reading.event is not None
                    if rule.home == self.site.name:
                        self._homes[rule.name].arrive(
                            Arrived(rule.home, at, releases, reading.ports, reading.event)
                        )
                    else:
                        purpose = Carried(rule.name, reading.ports, releases)
                        self._load(rule, at, reading.event, purpose)

    def _load(self, rule: PlacedRule, place: Place, event: Event, purpose: Carried) -> None:
        loads = self._outgoing[rule.home].loads
        loads.setdefault(place, (event, []))[1].append(purpose)

    def _feed(self, rule: str, outputs: Made) -> None:
        """Queue what a rule put out for the outposts here of the rules that it feeds."""
        for reader in self.placement.library.feeds.get(rule, ()):
            if reader in self._outposts:
                for place, output in outputs:
                    self._queue(reader, place, output)

    def _reset_for(self, rule: str) -> SendReset:
        def send(site: str, key: str, since: tuple[Place, int]) -> None:
            self._outgoing[site].resets.append(Reset(rule, key, since))

        return send

    # --- marks ----------------------------------------------------------------------------------

    def _mark_of_outpost(self, rule: str) -> Place:
        """Before which place no more events come to an outpost here."""
        return min([self._mark, *(self._done[each] for each in self._local_feeders[rule])])

    def _mark_of_home(self, rule: str) -> Place:
        """Before which place no more readings come to a rule at its home here."""
        placed = self.placement.rules[rule]
        marks = [self._marks.get((site, rule), FIRST) for site in placed.parts]
        if rule in self._outposts:
            marks.append(self._mark_of_outpost(rule))
        return min(marks, default=self._mark)

    def _said_to(self, receiver: str) -> tuple[Place, dict[str, Place]]:
        """The mark of the site, and those of outposts that are behind it, as rules feed them."""
        behind = {
            rule: mark
            for rule in self._fed[receiver]
            if (mark := self._mark_of_outpost(rule)) != self._mark
        }
        return self._mark, behind
