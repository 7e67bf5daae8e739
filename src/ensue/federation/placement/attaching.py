"""A site of a placement at a gateway: to the gateway it is one more service, named like the site.

In come, from the gateway, events of the site and parcels of other sites; out go outputs of the
rules that run here, and parcels for other sites, which find their way like any event. Events are
put in order by their times within the lateness of the site. With the wall clock, the site comes to
each moment by itself; with the clock of events, only with them. What is no event of the site, or
comes too late or lies too far ahead, is refused, and counted by the link.

What a jump of the clock makes timers put out is made in parts, as the gateway passes it on. Until
the site has caught up, the gateway waits with what it has for it.

Everything that a site does follows from what came in, so that `snapshots.journal` keeps it by its
inputs. A site that is back first gathers the events that waited for it, whatever their order.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from ensue.engine.running.snapshots import damaged_if_impossible, fingerprint
from ensue.engine.timing.jumps import check_ahead_of_now, jump_problem, max_jump
from ensue.engine.timing.ordering import Ordering
from ensue.errors import EventError, SnapshotError
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.federation.adapters.base import Incoming, Service
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.configuration import SiteSettings, StandingRequest
from ensue.federation.limits import limits
from ensue.federation.messages.attributes import KIND, ORIGIN, PATH
from ensue.federation.placement.parcels import DESTINATION, PARCEL, from_event, to_event
from ensue.federation.placement.planning.placement import place
from ensue.federation.placement.running.homes import PlacedOutputs, StepBudget
from ensue.federation.placement.running.site import SiteRun
from ensue.federation.placement.sites import Sites
from ensue.federation.placement.snapshots.journal import Header, JournalInput, SiteJournal
from ensue.federation.placement.snapshots.saved import Attached
from ensue.lang.checked import CheckedLibrary
from ensue.lang.expressions.tree import Comparison, In, Literal, Logic, Name
from ensue.library import load
from ensue.subscriptions import Filter

SITE = "site"
"""The kind of service that a site is to its gateway."""

_WRITTEN_ON_THE_WAY = frozenset({PATH, KIND, ORIGIN})
_RESUMED = "from what was saved"

MOST_GIVEN = 4096
"""Outputs that may wait for the gateway; with more, no timer fires and nothing is read."""


class AttachedSite:
    """The state of a site; adapters, of which each lives for one connection, share it.

    With `files`, the state outlives the process. Raises `UsageError` or `LibraryError` for a
    library or sites with mistakes.
    """

    def __init__(self, settings: SiteSettings, gateway: str, files: Path | None = None) -> None:
        library = load(*settings.libraries, parameters=settings.parameters).checked
        sites = Sites.read(settings.sites, library)
        sites.require(settings.name)
        self._placement = place(library, sites)
        self._digest = _digest(library, settings.sites)
        self.service = Service(settings.name, SITE, gateway=gateway)
        self.beat = settings.beat
        self.incoming: Inbox[Incoming] = Inbox(1 << 30)
        self._types = library.types
        self._run = SiteRun(self._placement, settings.name, instance=uuid4().hex[:8])
        self._order = Ordering(settings.lateness, max_jump(library, None))
        self._events_read = 0
        self._by_wall_clock = settings.clock == "wall"
        self._given: deque[Event] = deque()
        """What was put out and is still to be passed on; `_passed` counts what was before it."""
        self._passed = 0
        self._gathering: list[Event] | None = None
        """Events that waited for a site that is back, until they are all there."""
        self._gather_until = 0
        self._late = 0
        self.may_go_on = asyncio.Event()
        """Set while the site is behind, and there is room for what it puts out."""
        self._has_caught_up = asyncio.Event()
        self.begun = "anew"
        """How the site has begun, for its operators."""
        self._journal = None if files is None else self._resume(files)
        if self.begun == _RESUMED:
            self._take(JournalInput("back", _now()))
            self.keep()
        self.subscriptions = tuple(self._wishes(settings))
        self._note_progress()

    def _wishes(self, settings: SiteSettings) -> list[StandingRequest]:
        """What the site wants: its own events that rules read, and parcels for it."""
        is_parcel = Comparison(Name(("type",)), (("=", Literal(PARCEL)),))
        is_mine = Comparison(Name((DESTINATION,)), (("=", Literal(settings.name)),))
        found = [StandingRequest(settings.name, (), Filter(Logic((is_parcel, is_mine), ("AND",))))]
        types = tuple(Literal(name) for name in sorted(self._run.types_read))
        if types:
            read = Filter(In(Name(("type",)), types))
            found.append(StandingRequest(settings.name, settings.services, read))
        return found

    def status(self) -> dict[str, Any]:
        """How the site has begun, what it has sent to other sites, and what waits here, by rule.

        `late` are events that had waited for a site that was away, and were too old even so.
        """
        sent: dict[str, dict[str, int]] = {}
        for (receiver, what), number in sorted(self._run.sent.items()):
            sent.setdefault(receiver, {})[what] = number
        return {
            "site": self.service.name,
            "begun": self.begun,
            "late": self._late,
            "sent": sent,
            "waiting": dict(self._run.waiting),
        }

    # --- what comes in --------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """An event of the site, or a parcel. Raises `EventError` for what is neither."""
        self._take(JournalInput("event", _now(), event))

    def tick(self) -> None:
        """A moment has passed: tell other sites how far this one has come."""
        self._take(JournalInput("tick", _now()))
        self.keep()

    def passed_on(self, number: int) -> None:
        """The gateway has brought everything up to the output of a number where it is wanted."""
        self._take(JournalInput("passed", number))

    def go_on(self) -> None:
        """Let the site do a bounded part of the work that it is behind with."""
        self._take(JournalInput("on", _now()))
        self.keep()

    async def caught_up(self) -> None:
        """Wait until the site has done everything that follows from what came in, or for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits().seconds_for_a_site):
                await self._has_caught_up.wait()

    def keep(self) -> None:
        """Let everything that came in outlive the process."""
        journal = self._journal
        if journal is None:
            return
        journal.flush()
        if journal.is_long and self._gathering is None:
            journal.save(self._saved())

    def recalled(self) -> list[Event]:
        """The events that the site has taken lately, as far as they are kept."""
        return [] if self._journal is None else self._journal.recalled()

    def _take(self, given: JournalInput) -> None:
        if self._journal is not None:
            self._journal.add(given)
        try:
            self._apply(given)
        finally:
            self._note_progress()

    def _note_progress(self) -> None:
        is_behind, has_room = self._run.is_behind, self._room > 0
        for event, is_set in (
            (self.may_go_on, is_behind and has_room),
            (self._has_caught_up, not is_behind and has_room),
        ):
            if is_set:
                event.set()
            else:
                event.clear()

    @property
    def _room(self) -> int:
        return MOST_GIVEN - len(self._given)

    def _steps(self) -> StepBudget:
        return StepBudget(min(limits().steps_at_once, self._room))

    def _apply(self, given: JournalInput) -> None:
        """Do what an input asks for; all that happens follows from inputs alone."""
        match given.kind:
            case "event":
                assert given.event is not None
                self._read(given.event, given.moment)
            case "tick":
                self._tick(given.moment)
            case "passed":
                for _ in range(min(given.moment + 1 - self._passed, len(self._given))):
                    self._given.popleft()
                    self._passed += 1
            case "back":
                self._gathering = self._gathering or []
                self._gather_until = given.moment + limits().microseconds_to_gather
            case "on":
                self._put_out(self._run.go_on(self._steps()))

    def _read(self, event: Event, moment: int) -> None:
        if event.type == PARCEL:
            parcel = from_event(event, self._types)
            self._put_out(self._run.receive(parcel, self._steps()))
            return
        own = {k: v for k, v in event.extensions.items() if k not in _WRITTEN_ON_THE_WAY}
        ready = conform(msgspec.structs.replace(event, extensions=own), self._types)
        self._run.require_own(ready)
        if self._gathering is not None:
            self._gathering.append(ready)
            return
        if self._by_wall_clock:
            check_ahead_of_now(ready.time, moment, self._order.max_jump)
            self._come_to(moment)
        self._admit(ready)

    def _admit(self, ready: Event) -> None:
        """Put an event in order. Raises `EventError` if it is too late, or too far ahead."""
        if self._order.is_ahead(ready.time):
            if not self._order.is_believed(ready.time, self._events_read):
                problem = jump_problem(ready.time, int(self._order.latest), self._order.max_jump)
                raise EventError([f"`{ready.id}`: {problem}"])
            self._begin_anew()
        if self._order.is_late(ready.time):
            raise EventError([f"`{ready.id}` comes too late: {format_time(ready.time)}"])
        self._events_read += 1
        self._order.add(ready)
        self._go_on()

    def _come_to(self, now: int) -> None:
        """The time of day. After a pause with too many firings in it, a new beginning."""
        if self._order.is_ahead(now):
            self._begin_anew()
        self._order.observe(now)

    def _begin_anew(self) -> None:
        """Most events say that the clock was wrong: what rules remember was of another time."""
        self._order.begin_anew()
        first, _, number = self._run.instance.partition(".")
        instance = f"{first}.{int(number or 0) + 1}"
        self._run = SiteRun(self._placement, self.service.name, instance=instance)

    def _tick(self, moment: int) -> None:
        if self._gathering is not None:
            if moment < self._gather_until:
                return
            gathered, self._gathering = self._gathering, None
            for each in sorted(gathered, key=lambda event: event.time):
                try:
                    self._admit(each)
                except EventError:
                    self._late += 1
        if self._by_wall_clock:
            self._come_to(moment)
        self._go_on()
        if self._room > 0:
            self._send(marks=True)

    # --- what goes out --------------------------------------------------------------------------

    def _go_on(self) -> None:
        for each in self._order.ready():
            self._put_out(self._run.push(each, self._steps()))
        settled = self._order.settled
        if settled is not None:
            self._put_out(self._run.advance(settled, self._steps()))

    def _put_out(self, outputs: PlacedOutputs) -> None:
        for _, output in outputs:
            self._give(output)
        self._send(marks=False)

    def _send(self, marks: bool) -> None:
        for parcel in self._run.parcels(marks):
            self._give(to_event(parcel))

    def _give(self, event: Event) -> None:
        self.incoming.put(Incoming(event, self._passed + len(self._given)))
        self._given.append(event)

    # --- snapshots ------------------------------------------------------------------------------

    def _saved(self) -> Attached:
        latest = self._order.latest
        return Attached(
            placement=self._digest,
            site=self._run.saved(),
            latest=latest if isinstance(latest, int) else None,
            waiting=self._order.waiting,
            given=list(self._given),
            first_given=self._passed,
            events_read=self._events_read,
            dissent=self._order.dissent,
        )

    def _resume(self, files: Path) -> SiteJournal:
        """Go on from what is kept of the site, or begin anew and say why."""
        journal = SiteJournal(files)
        try:
            with damaged_if_impossible():
                instance = self._restore(journal)
        except SnapshotError as error:
            self.begun = f"anew, and what was half done is lost: {error}"
            self._given.clear()
            self._passed = 0
            self._order = Ordering(self._order.lateness, self._order.max_jump)
            instance = uuid4().hex[:8]
            self._run = SiteRun(self._placement, self.service.name, instance=instance)
            journal.begin_afresh(Header(self._digest, instance))
        else:
            journal.begin(Header(self._digest, instance))
        self.incoming = Inbox(1 << 30)
        for number, each in enumerate(self._given, self._passed):
            self.incoming.put(Incoming(each, number))
        journal.flush()
        return journal

    def _restore(self, journal: SiteJournal) -> str:
        """The instance of the site that goes on."""
        saved = journal.load()
        if saved is not None:
            if saved.placement != self._digest:
                raise SnapshotError("the library or the sites have changed since")
            self._run = SiteRun.restored(self._placement, self.service.name, saved.site)
            self._order.restore(saved.latest, saved.waiting)
            self._order.dissent = saved.dissent
            self._events_read = saved.events_read
            self._given, self._passed = deque(saved.given), saved.first_given
            instance = saved.site.instance
        elif (logged := journal.instance) is not None:
            self._run = SiteRun(self._placement, self.service.name, instance=logged)
            instance = logged
        else:
            return self._run.instance
        for each in journal.inputs(Header(self._digest, instance)):
            # What was refused then is refused again.
            with suppress(EventError):
                self._apply(each)
        self.begun = _RESUMED
        return instance


def _digest(library: CheckedLibrary, sites: Path) -> str:
    return hashlib.sha256(fingerprint(library).encode() + sites.read_bytes()).hexdigest()


def _now() -> int:
    return time.time_ns() // 1000
