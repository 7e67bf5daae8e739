"""What a gateway does, line by line on its standard error: to see how a difference came about."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from ensue.federation.links.link import ServiceLink
from ensue.federation.links.outbox import Queued, ServiceOutbox
from ensue.federation.routing.tree import Tree


def trace() -> None:
    """Tell of every event that is published, kept or let go, and of links that open and close."""
    names: dict[int, str] = {}

    def say(outbox: ServiceOutbox, what: str) -> None:
        _say(f"{names.get(id(outbox), '?')}: {what}")

    def begin(link: ServiceLink, original: Callable[..., None], *given: Any) -> None:
        names[id(link.outbox)] = link.name
        queued = [each.event.id for each in link.outbox._queue]
        say(link.outbox, f"connected; queued {queued}")
        original(link, *given)

    def published(
        outbox: ServiceOutbox, original: Callable[..., None], batch: Sequence[Queued]
    ) -> None:
        say(outbox, f"published {[each.event.id for each in batch]}")
        original(outbox, batch)

    def send_held(outbox: ServiceOutbox, original: Callable[..., None], sources: Any) -> None:
        held = [each.event.id for each in outbox._held.values() if each.source in sources]
        say(outbox, f"sends what was kept: {held}")
        original(outbox, sources)

    def let_go(outbox: ServiceOutbox, original: Callable[..., None], identity: int) -> None:
        if identity in outbox._held:
            say(outbox, f"lets go of {outbox._held[identity].event.id}")
        original(outbox, identity)

    def carry(tree: Tree, original: Callable[..., None], service: str) -> None:
        _say(f"{service}: opens")
        original(tree, service)

    def settle(tree: Tree, original: Callable[..., bool], now: float) -> bool:
        before = tree.open
        changed = original(tree, now)
        if changed or before != tree.open:
            active, open_ = sorted(tree.active), sorted(tree.open)
            _say(f"tree: {tree.vector} active {active} open {open_}")
        return changed

    for kind, name, told in (
        (ServiceLink, "_begin_session", begin),
        (ServiceOutbox, "published", published),
        (ServiceOutbox, "send_held", send_held),
        (ServiceOutbox, "_let_go", let_go),
        (Tree, "carry", carry),
        (Tree, "settle", settle),
    ):
        _wrap(kind, name, told)


def _wrap(kind: type, name: str, told: Callable[..., Any]) -> None:
    original = getattr(kind, name)

    def wrapped(self: Any, *given: Any) -> Any:
        return told(self, original, *given)

    setattr(kind, name, wrapped)


def _say(what: str) -> None:
    print(f"  {time.time():.3f} {what}", file=sys.stderr, flush=True)
