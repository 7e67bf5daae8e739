"""How what waits for a service gets there: links that open, own turns, rests in those of others.

In comes what neighbours say of turns; out go the events that wait (`passing`), each once. A link
that is to carry events from now on first learns what others have brought to its service
(`ServiceLink.catch_up`). Old events, which others may have too, go in a turn of this gateway
(`routing.turns`), and in the turn of another nothing goes: after it, the link learns what has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping

from ensue.federation.configuration import GatewaySettings
from ensue.federation.links.link import ServiceLink
from ensue.federation.passing import Passing
from ensue.federation.routing.tree import Tree
from ensue.federation.routing.turns import StatementTurns

_SECONDS_OF_A_MOMENT = 0.01


class Bringing:
    """`clock` is that of the gateway; `changed` is called when something else may be possible."""

    def __init__(
        self,
        settings: GatewaySettings,
        tree: Tree,
        passing: Passing,
        turns: StatementTurns,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._tree = tree
        self._passing = passing
        self._turns = turns
        self._clock = clock
        self._changed = changed
        self._at_work: dict[tuple[str, str], asyncio.Task[None]] = {}
        passing.has_held = changed

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._at_work.values())

    def update(self, links: Mapping[str, ServiceLink]) -> None:
        """Bring what can be brought now."""
        self._passing.wake()
        for link in links.values():
            self._rest_or_resume(link)
            self._bring_kept(link)

    # --- links that open ----------------------------------------------------------------------

    def open(self, link: ServiceLink, may_open: Callable[[ServiceLink], bool]) -> None:
        """Let a link carry events, if the other gateways at its service agree."""
        if self._is_at_work("opening", link) or not may_open(link):
            return
        if self._tree.has_company(link.name):
            self._begin("opening", link, self._catch_up(link, may_open))
        else:
            self._carry(link)

    async def _catch_up(self, link: ServiceLink, may_open: Callable[[ServiceLink], bool]) -> None:
        if await link.catch_up(self._settings.settling) and may_open(link):
            self._carry(link)

    def _carry(self, link: ServiceLink) -> None:
        self._tree.carry(link.name)
        self._passing.wake()
        self._bring_kept(link)

    # --- the turns of others ------------------------------------------------------------------

    def _rest_or_resume(self, link: ServiceLink) -> None:
        """Send nothing to a service while another gateway has its turn there."""
        if self._must_rest(link):
            link.outbox.is_resting = True
            return
        is_free = not self._is_at_work("resuming", link) and not self._is_at_work("turn", link)
        if link.outbox.is_resting and link.is_connected.is_set() and is_free:
            self._begin("resuming", link, self._resume(link))

    def _must_rest(self, link: ServiceLink) -> bool:
        there = self._tree.neighbours(link.name, self._clock())
        return self._turns.must_rest(link.name, there)

    async def _resume(self, link: ServiceLink) -> None:
        """After the turn of another: learn what it has brought, and go on."""
        if not await link.catch_up(self._settings.settling):
            await asyncio.sleep(self._settings.beat)
        elif not self._must_rest(link):
            link.outbox.is_resting = False
            if not self._passing.has_old(link):
                self._passing.send_kept(link)

    # --- turns of this gateway ----------------------------------------------------------------

    def _bring_kept(self, link: ServiceLink) -> None:
        """Send what was kept for a service, where others may have kept it too in a turn."""
        if self._is_at_work("turn", link):
            return
        has_company = self._tree.has_company(link.name)
        if has_company and self._passing.has_old(link):
            self._turns.want(link.name)
            there = self._tree.neighbours(link.name, self._clock())
            if link.is_connected.is_set() and self._turns.may_begin(link.name, there):
                self._turns.begin(link.name)
                self._begin("turn", link, self._bring(link))
            return
        self._turns.end(link.name)
        if not has_company:
            link.outbox.is_resting = False
        if self._passing.has_kept(link) and not link.outbox.is_resting:
            self._passing.send_kept(link)

    async def _bring(self, link: ServiceLink) -> None:
        try:
            if await link.catch_up(self._settings.settling):
                link.outbox.is_resting = False
                self._passing.send_kept(link)
                mark = link.outbox.mark()
                while link.is_connected.is_set() and not link.outbox.has_passed(mark):
                    await asyncio.sleep(_SECONDS_OF_A_MOMENT)
        finally:
            self._turns.end(link.name)

    # --- tasks --------------------------------------------------------------------------------

    def _is_at_work(self, what: str, link: ServiceLink) -> bool:
        return (what, link.name) in self._at_work

    def _begin(self, what: str, link: ServiceLink, work: Coroutine[None, None, None]) -> None:
        async def done() -> None:
            try:
                await work
            finally:
                del self._at_work[what, link.name]
                self._changed()

        self._at_work[what, link.name] = asyncio.create_task(done())
