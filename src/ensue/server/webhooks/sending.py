"""Webhooks that run: each a subscriber whose deliveries are posted, from where it stands.

How far a webhook has come is written to the journal's file, so that after a restart it goes on
there. A delivery that fails is tried again, later each time, and never skipped: a target sees every
output at least once, and tells repeated ones by their ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Sequence
from typing import Final

import msgspec

from ensue.errors import EnsueError, UsageError
from ensue.server.settings.reading import NAME
from ensue.server.station.entries import KINDS, FeedDelivery
from ensue.server.station.feed import GoneError, SubscriberWish
from ensue.server.station.preconditions import ALWAYS, ChangedError, Precondition, digest
from ensue.server.station.record.registry import SavedWebhook
from ensue.server.station.rules.libraries import LimitedError, UnknownError
from ensue.server.station.station import Station
from ensue.server.webhooks.addresses import allowed_addresses, target_of
from ensue.server.webhooks.posting import post
from ensue.subscriptions import Filter

LONGEST_WAIT_SECONDS: Final = 60.0
MOST_POSTED: Final = 500
PATIENCE_SECONDS: Final = 5.0
"""How long nothing may come before the position is moved past what was not wanted."""


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent where. `secret` signs each body, by HMAC-SHA256 in `Ensue-Signature`."""

    url: str
    kinds: tuple[str, ...] = ("output",)
    filter: str | None = None
    library: str | None = None
    correlation: str | None = None
    secret: str | None = None


class WebhookStatus(msgspec.Struct):
    """What a webhook has delivered, how far it has read, and what is wrong with it."""

    delivered: int = 0
    failures: int = 0
    problem: str | None = None
    position: int = 0


class Webhooks:
    def __init__(self, station: Station, networks: Sequence[str]) -> None:
        self._station = station
        self._networks = [ipaddress.ip_network(each) for each in networks]
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._settings: dict[str, tuple[str, Webhook]] = {}
        self.standing: dict[str, WebhookStatus] = {}

    def start(self) -> None:
        for each in self._station.registry.webhooks():
            webhook = msgspec.json.decode(each.settings, type=Webhook)
            self._begin(each.name, each.author, webhook, each.seq)

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def listed(self) -> dict[str, tuple[str, Webhook, WebhookStatus]]:
        return {
            name: (author, webhook, self.standing[name])
            for name, (author, webhook) in sorted(self._settings.items())
        }

    def tag(self, name: str) -> str | None:
        """What tells the settings of a webhook from any others; None if there is none."""
        found = [each for each in self._station.registry.webhooks() if each.name == name]
        if not found:
            return None
        # Keyed, so that the tag gives no means to guess the secret.
        return digest(found[0].author, found[0].settings, key=self._station.journal.tag_key())

    async def put(
        self, name: str, webhook: Webhook, author: str, expected: Precondition = ALWAYS
    ) -> None:
        """Check a webhook, its address included, and let it run from now on."""
        await self._check(name, webhook)
        station = self._station
        seq = station.feed.head
        saved = SavedWebhook(name, author, msgspec.json.encode(webhook), seq)

        def write() -> None:
            self._check_unchanged(name, expected)
            with station.journal.write():
                station.registry.put_webhook(saved)

        await station.call(write)
        await station.audited(author, "put webhook", name, webhook.url)
        await self._end(name)
        self._begin(name, author, webhook, seq)

    async def remove(self, name: str, author: str, expected: Precondition = ALWAYS) -> None:
        if name not in self._settings:
            raise UnknownError(f"there is no webhook `{name}`")
        station = self._station

        def write() -> None:
            self._check_unchanged(name, expected)
            with station.journal.write():
                station.registry.remove_webhook(name)

        await station.call(write)
        await self._end(name)
        await station.audited(author, "delete webhook", name)
        del self._settings[name], self.standing[name]

    def _check_unchanged(self, name: str, expected: Precondition) -> None:
        if expected == ALWAYS or expected.holds(self.tag(name)):
            return
        if expected.is_new:
            raise ChangedError(
                f"there is a webhook `{name}` already: give another name, or put it with"
                " `If-Match` and the tag of what is replaced"
            )
        raise ChangedError(
            f"webhook `{name}` is no longer as you have seen it: read it again, and put it with"
            " the tag of that answer"
        )

    async def _check(self, name: str, webhook: Webhook) -> None:
        if not NAME.fullmatch(name):
            raise UsageError(f"`{name}` is no name of a webhook: letters, digits, `_`, `-` and `.`")
        limit = self._station.limits.webhooks
        if name not in self._settings and len(self._settings) >= limit:
            raise LimitedError(
                "webhooks", f"there are {limit} webhooks, and limit `webhooks` allows no more"
            )
        if unknown := [each for each in webhook.kinds if each not in KINDS]:
            allowed = ", ".join(f"`{each}`" for each in KINDS)
            raise UsageError(f"there is no kind `{unknown[0]}`; there are {allowed}")
        if webhook.filter:
            Filter.parse(webhook.filter)
        await allowed_addresses(target_of(webhook.url), self._networks)

    # --- one webhook ----------------------------------------------------------------------------

    def _begin(self, name: str, author: str, webhook: Webhook, seq: int) -> None:
        self._settings[name] = author, webhook
        self.standing[name] = WebhookStatus(position=seq)
        task = asyncio.create_task(self._run(name, webhook), name=f"webhook {name}")
        self._tasks[name] = task

    async def _end(self, name: str) -> None:
        self._station.troubles.forget(f"webhook `{name}`")
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, name: str, webhook: Webhook) -> None:
        standing = self.standing[name]
        while True:
            try:
                await self._deliver(name, webhook, standing)
            except GoneError as error:
                problem = f"{error.floor - error.asked:,} entries were lost: {error}"
                self._note(name, standing, problem)
                standing.position = error.floor
            except EnsueError as error:
                self._note(name, standing, str(error))
                await asyncio.sleep(1.0)

    async def _deliver(self, name: str, webhook: Webhook, standing: WebhookStatus) -> None:
        station = self._station
        wanted = SubscriberWish(
            frozenset(KINDS[each] for each in webhook.kinds),
            Filter.parse(webhook.filter) if webhook.filter else None,
            frozenset({webhook.library}) if webhook.library else None,
            frozenset({webhook.correlation}) if webhook.correlation else None,
        )
        subscriber = await station.subscribe(wanted, standing.position)
        try:
            async for found in subscriber.batches(PATIENCE_SECONDS):
                for begin in range(0, len(found), MOST_POSTED):
                    await self._send(name, webhook, standing, found[begin : begin + MOST_POSTED])
                if not found and subscriber.passed > standing.position:
                    # So that the journal may give up what this webhook did not want.
                    await self._advance(name, standing, subscriber.passed)
        finally:
            with contextlib.suppress(EnsueError):
                await station.unsubscribe(subscriber)

    async def _send(
        self, name: str, webhook: Webhook, standing: WebhookStatus, found: list[FeedDelivery]
    ) -> None:
        target = target_of(webhook.url)
        wait = 1.0
        # While a target does not answer, events may expire.
        due = found
        while due := self._station.feed.of_use(due):
            body = b"[" + b",".join(each.body for each in due) + b"]"
            try:
                await post(target, body, webhook.secret, self._networks)
                break
            except EnsueError as error:
                standing.failures += 1
                self._note(name, standing, str(error))
                await asyncio.sleep(wait)
                wait = min(LONGEST_WAIT_SECONDS, wait * 2)
        self._note(name, standing, None)
        standing.delivered += len(due)
        await self._advance(name, standing, int(found[-1].id))

    def _note(self, name: str, standing: WebhookStatus, problem: str | None) -> None:
        standing.problem = problem
        self._station.troubles.note(f"webhook `{name}`", problem)

    async def _advance(self, name: str, standing: WebhookStatus, position: int) -> None:
        standing.position = position
        station = self._station

        def write() -> None:
            with station.journal.write():
                station.registry.advance_webhooks({name: position})

        await station.call(write)
