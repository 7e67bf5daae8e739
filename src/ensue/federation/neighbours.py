"""A gateway among its neighbours: what they say, and what it says to them.

Gateways at one service hear each other. Each says hello again and again, with its place in the tree
(`routing.tree`), and states at every service what is wanted on its other sides (`routing.interest`)
whenever that has changed. In comes what neighbours say; out go statements, and to the links of this
gateway which of them carry events and what is wanted from their services. How a link opens, and
when what was kept for a service goes there, is in `bringing`. Requests of clients are a matter of
`answering`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from ensue.errors import UsageError
from ensue.federation.adapters.base import ANYTHING
from ensue.federation.bringing import Bringing
from ensue.federation.configuration import GatewaySettings
from ensue.federation.ending import end
from ensue.federation.links.link import ServiceLink
from ensue.federation.passing import Passing
from ensue.federation.routing import control
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.tree import Tree, Vector
from ensue.federation.routing.turns import StatementTurns
from ensue.subscriptions import Filter

_SECONDS_OF_A_MOMENT = 0.01
"""Changes that come within it are dealt with at once."""
_PATIENCES_TO_KEEP = 6
"""How long a link at rest keeps events: until another gateway must have brought them on, also if it
had to wait for others first, or one took its place in the middle of it."""
_STEPS_TO_SETTLE = 20
"""A process that has no time to run its tasks does not hear its neighbours either. So the time of
listening is taken in steps, in each of which every task runs."""


class _Said(NamedTuple):
    """What neighbours at a service were last told, besides the beat."""

    digest: str
    vector: Vector
    follows: Vector | None
    turn: int
    grants: dict[str, int]
    carries: bool


class Neighbours:
    """`has_stated` is called when a neighbour wants something new, `has_come` with the link of a
    neighbour that was not there before. `wall` tells nanoseconds since 1970."""

    def __init__(
        self,
        settings: GatewaySettings,
        links: Mapping[str, ServiceLink],
        tree: Tree,
        interest: Interest,
        passing: Passing,
        wall: Callable[[], int],
    ) -> None:
        self._wall = wall
        self.instance = uuid4().hex[:8]
        self.has_stated: Callable[[], None] = lambda: None
        self.has_come: Callable[[ServiceLink], None] = lambda _: None
        self._settings = settings
        self._name = settings.name
        self._links = links
        self._tree = tree
        self._interest = interest
        self._passing = passing
        self._said: dict[str, _Said] = {}
        self._marks: dict[str, int] = {}
        """Where the queues ended when the tree last changed."""
        self._turns = StatementTurns(self._name, links, wall() // 1_000_000)
        self._known_alone: set[str] = set()
        """Services at which links have listened and heard nobody."""
        self._listens: dict[str, asyncio.Task[None]] = {}
        """Links that have been connected so lately that not all who are there have been heard."""
        self._carries: dict[str, dict[str, bool]] = {each: {} for each in links}
        """Which gateways at each service bring its events on."""
        self._carried: dict[str, list[int]] = {each: [] for each in links}
        """Identities of events that neighbours are to be told this gateway is done with."""
        self._told_known: dict[str, float] = {}
        self._owes_known: set[str] = set()
        self._changed = asyncio.Event()
        self._bringing = Bringing(
            settings, tree, passing, self._turns, self.clock, self._changed.set
        )
        self._has_settled = False
        self._began = 0.0
        self._last_moment = 0.0
        self._stalled = 0.0

    def begin(self) -> None:
        """Neighbours have been asked what they want (`connected`); only listen for now."""
        self._last_moment = asyncio.get_running_loop().time()
        self._began = self.clock()
        for link in self._links.values():
            link.want(self.wanted_from(link), False)

    async def settle(self) -> None:
        """Listen, and take the place in the tree that follows from what has been heard."""
        await self._settle_down()
        self._has_settled = True
        self.update()

    async def _settle_down(self) -> None:
        for _ in range(_STEPS_TO_SETTLE):
            await asyncio.sleep(self._settings.settling / _STEPS_TO_SETTLE)

    async def _listen(self, service: str) -> None:
        """Hear who is at a service that has just been connected, before its link opens."""
        await self._settle_down()
        self._listens.pop(service, None)
        if not self._tree.has_company(service):
            self._known_alone.add(service)
        self._changed.set()

    async def stop(self) -> None:
        await end(self.tasks)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [*self._listens.values(), *self._bringing.tasks]

    def clock(self) -> float:
        """Seconds in which the gateway could hear its neighbours.

        A process that was stopped, or busy, has not heard them meanwhile, and that tells nothing.
        """
        now = asyncio.get_running_loop().time()
        missed = now - self._last_moment
        if missed > 3 * self._settings.beat:
            self._stalled += missed
        self._last_moment = now
        return now - self._stalled

    def are_there(self) -> bool:
        now = self.clock()
        return any(self._tree.neighbours(each, now) for each in self._links)

    def wanted_from(self, link: ServiceLink) -> list[Filter]:
        wanted = self._interest.wanted_from(link.name, link.service.kind)
        # A service has events in its own words, and filters are in those behind the mapping.
        return [ANYTHING] if wanted and self._passing.maps_from(link) else wanted

    # --- what comes in ------------------------------------------------------------------------

    def connected(self, link: ServiceLink) -> None:
        """A link stands, perhaps again, and others may have its place in the tree by now."""
        stated = (each.gateway for each in self._interest.statements(link.name))
        self._tree.close(link.name, stated, self.clock())
        # Who has come meanwhile is not known yet.
        link.tell(control.write(control.HelloAsked(self._name, self.instance)))
        if earlier := self._listens.pop(link.name, None):
            earlier.cancel()
        if self._tree.has_company(link.name) or link.name not in self._known_alone:
            self._listens[link.name] = asyncio.create_task(self._listen(link.name))
        self._said.pop(link.name, None)
        self._say(link)
        self._changed.set()

    def hear(
        self,
        link: ServiceLink,
        said: control.Neighbourly,
    ) -> None:
        if said.instance == self.instance:
            return
        match said:
            case control.GatewayHello():
                self._greeted(link, said)
            case control.Stated():
                self._was_told(link, said)
            case control.KnownEvents():
                for each in said.identities:
                    link.outbox.note(each)
            case control.CarriedEvents():
                link.receipts.carried(said.gateway, said.identities)
            case control.HelloAsked():
                # Before the hello: a neighbour that has the hello has this too.
                self._tell_known(link)
                # It only listens yet, and will have its place in the tree.
                if said.gateway != self._name:
                    self._tree.expect(link.name, said.gateway, self.clock())
                self._said.pop(link.name, None)
                self._say(link)
                self._changed.set()

    def _tell_known(self, link: ServiceLink) -> None:
        """What others have brought to a service while a gateway was away, it cannot see there.

        It is a long message, and anybody can ask for it: once a beat is enough.
        """
        now = self.clock()
        if now - self._told_known.get(link.name, -self._settings.beat) < self._settings.beat:
            self._owes_known.add(link.name)
            return
        self._owes_known.discard(link.name)
        known = link.outbox.seen.latest(link.bounds.told)
        if known and not link.can_be_asked:
            self._told_known[link.name] = now
            digits = control.digits_of(known)
            link.tell(control.write(control.KnownEvents(self._name, self.instance, digits)))

    def carried(self, link: ServiceLink, identities: Sequence[int]) -> None:
        """Events of a service have been acknowledged: neighbours who keep them need not."""
        if self._tree.has_company(link.name):
            self._carried[link.name] += identities

    def _tell_carried(self, link: ServiceLink) -> None:
        carried = self._carried[link.name]
        while carried:
            digits = control.digits_of(carried[: control.MOST_KNOWN])
            del carried[: control.MOST_KNOWN]
            link.tell(control.write(control.CarriedEvents(self._name, self.instance, digits)))

    async def _forget_seen(self, link: ServiceLink) -> None:
        """Forget which events a service has that cannot come again: all that was anywhere when the
        first of them was noted has been acknowledged."""
        seen = link.outbox.seen
        if not seen.is_due:
            return
        others = [each for each in self._links.values() if each is not link]
        lags = [await each.lag() for each in others]
        may_forget = all(
            each.is_connected.is_set() and (lag or 0) <= each.bounds.in_flight
            for each, lag in zip(others, lags, strict=True)
        )
        seen.forget(may_forget)

    def _was_told(self, link: ServiceLink, said: control.Stated) -> None:
        if said.gateway == self._name:
            return
        try:
            is_new = self._interest.state(link.name, said, self.clock())
        except UsageError as error:
            link.counts.dropped["no room for control"] += 1
            link.counts.last_error = str(error)
            return
        if is_new:
            self._changed.set()
            self.has_stated()

    def _greeted(self, link: ServiceLink, said: control.GatewayHello) -> None:
        if said.gateway == self._name:
            link.counts.last_error = (
                f"service `{link.name}`: another gateway has the name `{self._name}`"
            )
            return
        now = self.clock()
        is_new = self._tree.hear(link.name, said, now)
        self._carries[link.name][said.gateway] = said.carries
        self._turns.hear(link.name, said.gateway, said.turn, said.grants)
        if not self._interest.hear(link.name, said.gateway, said.digest, now):
            link.tell(control.write(control.HelloAsked(self._name, self.instance)))
        if is_new:
            self._said.pop(link.name, None)
            self._say(link)
            self.has_come(link)
        self._changed.set()

    # --- what goes out ------------------------------------------------------------------------

    def _say(self, link: ServiceLink) -> None:
        """Hello, and what is wanted, where that has changed since it was last said.

        A gateway that has just come says nothing of its place in the tree before it knows it: its
        neighbours go by what it said before it went.
        """
        if not self._has_settled:
            return
        self._settle()
        stated = self._interest.statement(link.name, self._name, self.instance)
        said, saying = self._said.get(link.name), self._saying(link, stated.digest)
        self._said[link.name] = saying
        if said is None or said.digest != saying.digest:
            link.tell(control.write(stated))
        root, cost, name = saying.vector
        beat = self._tree.beat(self._wall() // 1_000_000)
        hello = control.GatewayHello(
            *(name, self.instance, root, cost, beat, saying.digest),
            *(saying.follows, saying.turn, saying.grants, saying.carries),
        )
        link.tell(control.write(hello))

    def _saying(self, link: ServiceLink, digest: str) -> _Said:
        tree = self._tree
        follows = tree.follows(link.name, self.clock()) if self._has_drained() else None
        turns = self._turns
        turn, grants = turns.wanted(link.name), turns.grants(link.name, not len(link.outbox))
        return _Said(digest, tree.vector, follows, turn, grants, link.name in tree.active)

    def _settle(self) -> None:
        if self._tree.settle(self.clock()):
            self._marks = {link.name: link.outbox.mark() for link in self._links.values()}

    def update(self) -> None:
        """Bring everything up to what is known now."""
        self._settle()
        now = self.clock()
        self._interest.activate(self._tree.active)
        for link in self._links.values():
            if link.name in self._tree.active - self._tree.open:
                self._bringing.open(link, self._may_open)
        self._release()
        for link in self._links.values():
            here = self._carries[link.name]
            carriers = [each for each in self._tree.neighbours(link.name, now) if here.get(each)]
            link.receipts.carry(() if link.name in self._tree.active else carriers)
        self._bringing.update(self._links)
        self._interest.forget(now - self._settings.memory)
        # A neighbour that wants something may have been away as this gateway was.
        may_forget = now - self._began > self._settings.patience
        for link in self._links.values():
            link.want(self.wanted_from(link), may_forget)
            digest = self._interest.statement(link.name, self._name, self.instance).digest
            if self._said.get(link.name) != self._saying(link, digest):
                self._say(link)

    def _release(self) -> None:
        """Let go of events that other gateways must have brought on by now."""
        before = asyncio.get_running_loop().time() - _PATIENCES_TO_KEEP * self._settings.patience
        at_rest = self._links.keys() - self._tree.active
        for link in self._links.values():
            if link.name in at_rest:
                link.receipts.release(before)
            link.outbox.release(before, self._links if link.name in at_rest else at_rest)

    def _has_drained(self) -> bool:
        """Whether all that was on its way when the tree last changed has arrived.

        What goes to a service that is away does not count: it is held when the service is back.
        """
        return all(
            link.outbox.has_passed(self._marks.get(link.name, 0))
            for link in self._links.values()
            if link.is_connected.is_set()
        )

    def _may_open(self, link: ServiceLink) -> bool:
        return (
            self._has_settled
            and link.is_connected.is_set()
            and link.name in self._tree.active
            and link.name not in self._listens
            and not self._tree.waits_for(link.name, self.clock())
        )

    async def maintain(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self.update()
            await asyncio.sleep(_SECONDS_OF_A_MOMENT)
            if not self._has_drained():
                self._changed.set()

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(self._settings.beat)
            for link in self._links.values():
                if link.is_connected.is_set():
                    if link.name in self._owes_known:
                        self._tell_known(link)
                    self._tell_carried(link)
                    self._say(link)
                await self._forget_seen(link)
            self._changed.set()
