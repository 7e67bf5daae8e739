"""One site of a placement, running: its own events in, parcels in and out, outputs out.

In come the site's events in the order of their times, and parcels of other sites; out come outputs
with their places, and parcels for other sites. A rule at its home reads what has a place before
every mark that it waits for, so that it reads in the order of one machine however long parcels are
on their way. Sites need no clock in common but that of their events: `advance` says that a site has
come to a time without an event.

A jump of the clock may make more outputs than memory has room for. So whatever comes in may be
given a `StepBudget`; a site that has used it up `is_behind`, and `go_on` takes it further. Others
are told only of what is done.

Nothing is sent from here: the owner of the site takes `parcels()` and brings them over, in order.
`saved()` is the whole state as plain data, and `restored` a site that goes on from there.

The module is long because one class owns the order in which everything at a site is read.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter

from ensue.engine.core.saved_rules import damaged
from ensue.errors import EventError
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.federation.limits import limits
from ensue.federation.placement.fields import Fields, joined, projected
from ensue.federation.placement.parcels import CarriedReading, Hold, Load, Parcel, Reset
from ensue.federation.placement.places import FIRST, Numbers, Place, end_of, event_place
from ensue.federation.placement.planning.placement import PlacedRule, Placement
from ensue.federation.placement.running.asking import SitePredicates
from ensue.federation.placement.running.homes import (
    Arrived,
    Home,
    HomeWords,
    PlacedOutputs,
    StepBudget,
)
from ensue.federation.placement.running.outposts import Outpost
from ensue.federation.placement.running.traffic import LinkQueue, Received, RecentEvents
from ensue.federation.placement.snapshots.saved import SavedQueued, SavedSite
from ensue.lang.derived.wiring import reads_outside
from ensue.lang.syntax import EventPort

Queued = tuple[Place, int, Event, list[str]]
"""An event before an outpost: its place, a number in the order of arrival, the ports it matches."""


class SiteRun:
    """`name` is the site; `engine` is `step`, or `reference` to run by the definitions.

    `instance` tells parcels of this run from those of one before it, whose numbers began anew.
    """

    def __init__(
        self, placement: Placement, name: str, engine: str = "step", instance: str = ""
    ) -> None:
        self.placement = placement
        self.instance = instance
        self.site = placement.sites[name]
        self._types = placement.library.types
        self._mark: Place = FIRST
        self._time: int | None = None
        self._events = Numbers()
        self._outgoing: dict[str, LinkQueue] = defaultdict(LinkQueue)
        self._received: dict[str, Received] = {}
        self.sent: Counter[tuple[str, str]] = Counter()
        """How many events, resets and parcels have gone to each other site."""
        rules = placement.rules
        here = [rule for rule in placement.order if name in rules[rule].ports_at]
        self._asking = SitePredicates({rule: rules[rule].reading for rule in here}, self._types)
        self._outposts = {
            rule: Outpost(rules[rule], name, self._asking.ports(rule), self._types) for rule in here
        }
        self._homes = {
            rule: Home(rules[rule], self._types, self._words_of(rule), engine)
            for rule in placement.order
            if rules[rule].home == name
        }
        self._queued: dict[str, list[Queued]] = {rule: [] for rule in self._outposts}
        self._numbers = Numbers()
        self._readers = self._readers_of_types()
        self._marks: dict[str, tuple[Place, Mapping[str, Place]]] = {}
        """What each other site has marked, and for which rules another place."""
        self._done: dict[str, Place] = dict.fromkeys(self._homes, FIRST)
        """Up to where each rule at its home here has read, while readings or timers wait for it."""
        self._order = {rule: number for number, rule in enumerate(placement.order)}
        self._busy: set[int] = set()
        """Rules for which something waits here, by their order."""
        self.is_behind = False
        """Whether a rule could read on, or a timer fire, without anything else coming in."""
        self._local_feeders = {
            rule: [f for f in rules[rule].feeders if rules[f].home == name]
            for rule in self._outposts
        }
        told = {
            site
            for rule in rules.values()
            if rule.home == name
            for site in (*rule.split_sites, *rule.sleeps)
        }
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

    # --- snapshots ------------------------------------------------------------------------------

    def saved(self) -> SavedSite:
        """Everything that a site of this placement goes on from; what it shares is not changed
        before it is written."""
        queued = {
            rule: [SavedQueued(*each) for each in queue] for rule, queue in self._queued.items()
        }
        return SavedSite(
            instance=self.instance,
            mark=self._mark,
            time=self._time,
            events=self._events.following,
            numbers=self._numbers.following,
            outgoing={site: each.saved() for site, each in self._outgoing.items()},
            received={site: each.saved() for site, each in self._received.items()},
            outposts={rule: each.saved() for rule, each in self._outposts.items()},
            sleeping={rule: each.saved_sleeping() for rule, each in self._outposts.items()},
            homes={rule: each.saved() for rule, each in self._homes.items()},
            queued=queued,
            marks={site: (mark, dict(marks)) for site, (mark, marks) in self._marks.items()},
            done=self._done,
            busy=sorted(self._busy),
            sent=[(*what, number) for what, number in self.sent.items()],
        )

    @classmethod
    def restored(cls, placement: Placement, name: str, saved: SavedSite) -> SiteRun:
        """The site again, in another process. Raises `SnapshotError` if it is of other rules."""
        run = cls(placement, name, instance=saved.instance)
        if run._outposts.keys() != saved.outposts.keys() or run._homes.keys() != saved.homes.keys():
            raise damaged("the site has other rules")
        run._mark, run._time = saved.mark, saved.time
        run._events, run._numbers = Numbers(saved.events), Numbers(saved.numbers)
        run._outgoing.update((site, LinkQueue.restored(o)) for site, o in saved.outgoing.items())
        run._received.update((site, Received.restored(r)) for site, r in saved.received.items())
        for rule, outpost in run._outposts.items():
            outpost.restore(saved.outposts[rule], saved.sleeping.get(rule, ()))
        for rule, home in run._homes.items():
            home.restore(saved.homes[rule])
        for rule, queue in saved.queued.items():
            entries = [(each.place, each.number, each.event, each.ports) for each in queue]
            heapq.heapify(entries)
            run._queued[rule] = entries
        run._marks.update(saved.marks)
        run._done = dict(saved.done)
        run._busy = set(saved.busy)
        run.is_behind = True
        run.sent = Counter({(site, what): number for site, what, number in saved.sent})
        return run

    # --- in -------------------------------------------------------------------------------------

    def push(self, event: Event, steps: StepBudget | None = None) -> PlacedOutputs:
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
        self._queue(self._readers.get(ready.type, ()), place, ready)
        self._mark = event_place(ready.time, self.site.rank, number + 1)
        return self.go_on(steps)

    def advance(self, time: int, steps: StepBudget | None = None) -> PlacedOutputs:
        """The site has come to a time: none of its events before it is still to come."""
        if self._time is None or time > self._time:
            self._time = time
            self._mark = max(self._mark, event_place(time, self.site.rank, 0))
        return self.go_on(steps)

    def finish(self, time: int) -> PlacedOutputs:
        """The last event of all sites was at a time, and no other comes."""
        self._time = time
        self._mark = end_of(time)
        return self.go_on()

    def receive(self, parcel: Parcel, steps: StepBudget | None = None) -> PlacedOutputs:
        """Take a parcel of another site: in the order of their numbers, each once.

        Raises `EventError` if so many have come after one that it must be lost, and for a parcel
        that no site of this placement has made.
        """
        self._require_known(parcel)
        received = self._received.get(parcel.sender)
        if received is None or received.instance != parcel.instance:
            # One of the two sites has begun anew: what was before it is of no use to it.
            if received is not None:
                self._begun_anew(parcel.sender)
            received = Received(parcel.instance, parcel.number)
            self._received[parcel.sender] = received
        if parcel.number >= received.number:
            received.early[parcel.number] = parcel
        if len(received.early) > limits().early_parcels:
            raise EventError(
                [f"parcel {received.number} of site `{parcel.sender}` is lost: restart that site"]
            )
        outputs: PlacedOutputs = []
        while (following := received.early.pop(received.number, None)) is not None:
            received.number += 1
            outputs += self._open(following, steps)
        return outputs

    def _require_known(self, parcel: Parcel) -> None:
        strange = [parcel.sender] if parcel.sender not in self.placement.sites.names else []
        words: list[Reset | Hold] = [*parcel.resets, *parcel.holds]
        strange += [each.rule for each in words if each.rule not in self._outposts]
        rules = self.placement.rules
        strange += [
            each.rule
            for each in parcel.holds
            if each.rule in rules and not each.ports <= rules[each.rule].fields.keys()
        ]
        strange += [
            each.rule
            for load in parcel.loads
            for each in load.purposes
            if each.rule not in self._homes or not each.ports <= rules[each.rule].fields.keys()
        ]
        if strange:
            raise EventError(
                [f"a parcel of site `{parcel.sender}` is of another placement: `{strange[0]}`"]
            )

    def _begun_anew(self, other: str) -> None:
        """What another site and this one have told each other is known here alone."""
        for home in self._homes.values():
            home.begun_anew(other)
        for rule, outpost in self._outposts.items():
            if self.placement.rules[rule].home == other:
                outpost.wake()

    def _open(self, parcel: Parcel, steps: StepBudget | None) -> PlacedOutputs:
        for reset in parcel.resets:
            self._outposts[reset.rule].reset(reset.key, reset.since)
        for rule_name, done in parcel.done.items():
            if rule_name in self._outposts:
                self._outposts[rule_name].passed(done)
        for hold in parcel.holds:
            rule = self.placement.rules[hold.rule]
            found = self._outposts[hold.rule].hold(hold.key, hold.since, hold.ports)
            if found is None:
                continue
            woken, spared = found
            for at, reading in woken:
                assert reading.event is not None
                self._load(rule, at, reading.event, CarriedReading(rule.name, reading.ports, at))
            going = self._outgoing[parcel.sender]
            going.answers = parcel.number
            going.spared[rule.name] = going.spared.get(rule.name, 0) + spared
        if parcel.answers is not None:
            for name, home in self._homes.items():
                spared = parcel.spared.get(name, 0)
                home.sleepers.answered(parcel.sender, parcel.answers, spared)
        known = self._received[parcel.sender].known
        for load in parcel.loads:
            event = load.event
            if event is not None:
                known.note(load.place, event)
            elif (event := known.get(load.place)) is None:
                # It came before this site began anew, which has forgotten it.
                continue
            for each in load.purposes:
                arrived = Arrived(parcel.sender, load.place, each.releases, each.ports, event)
                self._homes[each.rule].arrive(arrived)
                self._busy.add(self._order[each.rule])
        self._marks[parcel.sender] = parcel.mark, parcel.marks
        return self.go_on(steps)

    def require_own(self, event: Event) -> None:
        """Raises `EventError` if an event is not of this site."""
        if not self.site.has(event):
            raise EventError(
                [f"`{event.id}` is no event of site `{self.site.name}`, as its table says"]
            )

    @property
    def homes(self) -> Collection[Home]:
        """The rules that run here."""
        return self._homes.values()

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
            said = self._said_to(receiver)
            # A site that has begun anew says so, and then what it holds itself to.
            is_told = is_home or bool(said[2]) or going.marks is None
            has_mark = marks and is_told and going.marks != said
            words = going.resets or going.holds or going.answers is not None
            if not (going.loads or words or has_mark):
                continue
            mark, behind, done = going.marks = said
            loads = tuple(
                Load(place, self._unknown(going.known, place, event, purposes), tuple(purposes))
                for place, (event, purposes) in sorted(going.loads.items(), key=itemgetter(0))
            )
            parcel = Parcel(
                self.site.name,
                receiver,
                self.instance,
                next(going.numbers),
                loads,
                tuple(going.resets),
                mark,
                behind,
                tuple(going.holds),
                done,
                going.answers,
                going.spared,
            )
            going.loads, going.resets, going.holds = {}, [], []
            going.answers, going.spared = None, {}
            self.sent[receiver, "events"] += parcel.events
            self.sent[receiver, "resets"] += len(parcel.resets)
            self.sent[receiver, "parcels"] += 1
            found.append(parcel)
        return found

    def _unknown(
        self,
        known: RecentEvents[Fields],
        place: Place,
        event: Event,
        purposes: Sequence[CarriedReading],
    ) -> Event | None:
        """The event with the fields that rules read at their home; None if it is there with all."""
        rules = self.placement.rules
        fields = joined(rules[each.rule].fields[port] for each in purposes for port in each.ports)
        if place in known:
            together = joined((known[place], fields))
            if together == known[place]:
                return None
            fields = together
        known.note(place, fields)
        return projected(event, fields)

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
        return any(self._asking.matched(ready, self._readers.get(event.type, ())))

    # --- between --------------------------------------------------------------------------------

    def _readers_of_types(self) -> dict[str, frozenset[str]]:
        readers: dict[str, list[str]] = defaultdict(list)
        for rule in self._outposts:
            placed = self.placement.rules[rule]
            types = {
                each
                for port in placed.reading.ports
                if isinstance(port, EventPort) and reads_outside(port)
                for each in self._types.subtypes(port.type)
            }
            for each in types:
                readers[each].append(rule)
        return {name: frozenset(found) for name, found in readers.items()}

    def _queue(
        self, rules: Collection[str], place: Place, event: Event, author: str | None = None
    ) -> None:
        """Queue an event at the outposts of the rules whose ports it matches."""
        for rule, matched in self._asking.matched(event, rules, author):
            heapq.heappush(self._queued[rule], (place, next(self._numbers), event, matched))
            self._busy.add(self._order[rule])

    def go_on(self, steps: StepBudget | None = None) -> PlacedOutputs:
        """Let every rule read what it can, feeding rules before the rules that they feed."""
        all_outputs: PlacedOutputs = []
        steps = steps or StepBudget()
        self.is_behind = False
        waiting = sorted(self._busy)
        while waiting:
            number = heapq.heappop(waiting)
            rule = self.placement.order[number]
            if self._queued.get(rule):
                self._serve(self.placement.rules[rule])
            home = self._homes.get(rule)
            if home is not None and home.is_waiting:
                mark = self._mark_of_home(rule)
                # Outposts are served all the same: others may rely on the mark of this site.
                outputs, self._done[rule] = home.advance(mark, steps)
                self.is_behind |= self._done[rule] < mark
                if self.placement.rules[rule].correlation.role != "internal":
                    all_outputs += outputs
                for reader in self._feed(rule, outputs) if outputs else ():
                    if reader not in waiting:
                        heapq.heappush(waiting, reader)
            if not self._queued.get(rule) and not (home is not None and home.is_waiting):
                self._busy.discard(number)
        return all_outputs

    def _serve(self, rule: PlacedRule) -> None:
        """Let the outpost of a rule read what lies before its mark, and send what it lets go."""
        queue, outpost = self._queued[rule.name], self._outposts[rule.name]
        mark = self._mark_of_outpost(rule.name)
        while queue and queue[0][0] < mark:
            place, _, event, matched = heapq.heappop(queue)
            for releases, released in outpost.take(place, event, matched):
                for at, reading in released:
                    assert reading.event is not None
                    if rule.home == self.site.name:
                        self._homes[rule.name].arrive(
                            Arrived(rule.home, at, releases, reading.ports, reading.event)
                        )
                    else:
                        purpose = CarriedReading(rule.name, reading.ports, releases)
                        self._load(rule, at, reading.event, purpose)

    def _load(self, rule: PlacedRule, place: Place, event: Event, purpose: CarriedReading) -> None:
        loads = self._outgoing[rule.home].loads
        loads.setdefault(place, (event, []))[1].append(purpose)

    def _feed(self, rule: str, outputs: PlacedOutputs) -> set[int]:
        """Queue what a rule put out for the outposts here of the rules that it feeds, and say
        which those are, by their order."""
        readers = [r for r in self.placement.feeds.get(rule, ()) if r in self._outposts]
        author = self.placement.rules[rule].correlation.name
        for place, output in outputs:
            self._queue(readers, place, output, author)
        return {self._order[reader] for reader in readers}

    def _words_of(self, rule: str) -> HomeWords:
        def reset(site: str, key: str, since: tuple[Place, int]) -> None:
            self._outgoing[site].resets.append(Reset(rule, key, since))

        def hold(site: str, key: str, since: Place, ports: frozenset[str]) -> int:
            going = self._outgoing[site]
            going.holds.append(Hold(rule, key, since, ports))
            return going.numbers.following

        return HomeWords(reset, hold)

    # --- marks ----------------------------------------------------------------------------------

    def _mark_of_outpost(self, rule: str) -> Place:
        """Before which place no more events come to an outpost here."""
        return min([self._mark, *map(self._mark_of_outputs, self._local_feeders[rule])])

    def _mark_of_outputs(self, rule: str) -> Place:
        """Before which place no more outputs come of a rule at its home here."""
        is_waiting = self._homes[rule].is_waiting or bool(self._queued.get(rule))
        return self._done[rule] if is_waiting else self._mark_of_home(rule)

    def _mark_of_home(self, rule: str) -> Place:
        """Before which place no more readings come to a rule at its home here."""
        placed = self.placement.rules[rule]
        marks = []
        for site in placed.parts:
            mark, others = self._marks.get(site, (FIRST, {}))
            marks.append(others.get(rule, mark))
        if rule in self._outposts:
            marks.append(self._mark_of_outpost(rule))
        return self._homes[rule].sleepers.limit(min(marks, default=self._mark))

    def _said_to(self, receiver: str) -> tuple[Place, dict[str, Place], dict[str, Place]]:
        """The mark of the site, those of outposts that are behind it, as rules feed them, and how
        far the rules have read for which the receiver holds events back."""
        behind = {
            rule: mark
            for rule in self._fed[receiver]
            if (mark := self._mark_of_outpost(rule)) != self._mark
        }
        done = {
            rule: self._mark_of_outputs(rule)
            for rule, home in self._homes.items()
            if home.sleepers.keys_asleep[receiver]
        }
        return self._mark, behind, done
