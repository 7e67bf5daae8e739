"""A gateway among its neighbours: what they say, and what it says to them.

Gateways at one service hear each other. Each says hello again and again, with its place in the tree
(`routing.tree`), and states at every service what is wanted on its other sides (`routing.interest`)
whenever that has changed. In comes what neighbours say; out go statements, and to the links of this
gateway which of them carry events and what is wanted from their services. Requests of clients are
the matter of `answering`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from ensue.errors import UsageError
from ensue.federation.configuration import GatewaySettings
from ensue.federation.links.link import Link
from ensue.federation.passing import Passing
from ensue.federation.routing import control
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.tree import Tree
from ensue.subscriptions import Filter

_SECONDS_OF_A_MOMENT = 0.01
"""Changes that come within it are dealt with at once."""


class Neighbours:
    """`has_stated` is called when a neighbour wants something new, `has_come` with the link of a
    neighbour that was not there before."""

    def __init__(
        self,
        settings: GatewaySettings,
        links: Mapping[str, Link],
        tree: Tree,
        interest: Interest,
        passing: Passing,
    ) -> None:
        self.instance = uuid4().hex[:8]
        self.has_stated: Callable[[], None] = lambda: None
        self.has_come: Callable[[Link], None] = lambda _: None
        self._settings = settings
        self._name = settings.name
        self._links = links
        self._tree = tree
        self._interest = interest
        self._passing = passing
        self._digests: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._has_settled = False
        self._began = 0.0
        self._last_moment = time.monotonic()
        self._stalled = 0.0

    def begin(self) -> None:
        """Ask all neighbours what they want, and only listen for now."""
        self._began = self.clock()
        for link in self._links.values():
            link.want(self.wanted_from(link), False)
            link.tell(control.write(control.Asked(self._name, self.instance)))

    def settle(self) -> None:
        """Take the place in the tree that follows from what has been heard."""
        self._has_settled = True
        self.update()

    def clock(self) -> float:
        """Seconds in which the gateway could hear its neighbours.

        A process that was stopped, or busy, has not heard them meanwhile, and that tells nothing.
        """
        now = time.monotonic()
        missed = now - self._last_moment
        if missed > 3 * self._settings.beat:
            self._stalled += missed
        self._last_moment = now
        return now - self._stalled

    def are_there(self) -> bool:
        now = self.clock()
        return any(self._tree.neighbours(each, now) for each in self._links)

    def wanted_from(self, link: Link) -> list[Filter]:
        return self._interest.wanted_from(link.name, link.service.kind)

    # --- what comes in ------------------------------------------------------------------------

    def connected(self, link: Link) -> None:
        """A link stands, perhaps again."""
        self._digests.pop(link.name, None)
        self._say(link)
        self._changed.set()

    def hear(self, link: Link, said: control.Hello | control.Stated | control.Asked) -> None:
        if said.instance == self.instance:
            return
        match said:
            case control.Hello():
                self._greeted(link, said)
            case control.Stated():
                self._was_told(link, said)
            case control.Asked():
                self._digests.pop(link.name, None)
                self._say(link)
                self._changed.set()

    def _was_told(self, link: Link, said: control.Stated) -> None:
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

    def _greeted(self, link: Link, said: control.Hello) -> None:
        if said.gateway == self._name:
            link.counts.last_error = (
                f"service `{link.name}`: another gateway has the name `{self._name}`"
            )
            return
        now = self.clock()
        is_new = self._tree.hear(link.name, said, now)
        if not self._interest.hear(link.name, said.gateway, said.digest, now):
            link.tell(control.write(control.Asked(self._name, self.instance)))
        if is_new:
            self._digests.pop(link.name, None)
            self._say(link)
            self.has_come(link)
        self._changed.set()

    # --- what goes out ------------------------------------------------------------------------

    def _say(self, link: Link) -> None:
        """Hello, and what is wanted, where that has changed since it was last said.

        A gateway that has just come says nothing of its place in the tree before it knows it: its
        neighbours go by what it said before it went.
        """
        if not self._has_settled:
            return
        stated = self._interest.statement(link.name, self._name, self.instance)
        if self._digests.get(link.name) != stated.digest:
            self._digests[link.name] = stated.digest
            link.tell(control.write(stated))
        tree = self._tree
        tree.settle(self.clock())
        beat = tree.beat(time.time_ns() // 1_000_000)
        hello = control.Hello(self._name, self.instance, tree.root, tree.cost, beat, stated.digest)
        link.tell(control.write(hello))

    def update(self) -> None:
        """Bring everything up to what is known now."""
        now = self.clock()
        tree_changed = self._tree.settle(now)
        self._interest.activate(self._tree.active)
        for link in self._links.values():
            if link.name in self._tree.active:
                self._passing.wake(link)
            else:
                link.release(time.monotonic() - 2 * self._settings.patience)
        self._interest.forget(now - self._settings.memory)
        # Who wants something may have been away as this gateway was.
        may_forget = now - self._began > self._settings.patience
        for link in self._links.values():
            link.want(self.wanted_from(link), may_forget)
            digest = self._interest.statement(link.name, self._name, self.instance).digest
            if tree_changed or self._digests.get(link.name) != digest:
                self._say(link)

    async def maintain(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self.update()
            await asyncio.sleep(_SECONDS_OF_A_MOMENT)

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(self._settings.beat)
            for link in self._links.values():
                if link.is_connected.is_set():
                    self._say(link)
            self._changed.set()
