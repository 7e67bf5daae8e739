"""Where a live view gets its events from, when the notebook does not push them itself.

In comes a channel, a subscription or the address of a server; out come a title, the deliveries as
they arrive, and a function that ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ensue.channel.asyncio_api import Subscription
from ensue.channel.channel import Channel
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.remote import Server

CHOICES = ("filter", "kinds", "library", "correlation", "after")


class ShownEvent(NamedTuple):
    event: Event
    is_output: bool


def deliveries_of(
    source: object, wants: Any, filters: Mapping[str, str]
) -> tuple[str, Iterator[ShownEvent], Callable[[], None]]:
    if isinstance(source, str):
        if wants is not None:
            raise UsageError("a server is asked by `filter`, `kinds`, `library` or `correlation`")
        return _of_server(source, filters)
    if filters:
        given = ", ".join(f"`{each}`" for each in filters)
        raise UsageError(f"{given} are for a server: a channel is asked by `wants`")
    if isinstance(source, Channel):
        subscription = source.subscribe(wants)
        return f"channel {source.name}", _of_subscription(subscription), subscription.close
    if isinstance(source, Subscription):
        return "a subscription", _of_subscription(source), source.close
    raise UsageError(
        f"a view of `{type(source).__name__}` was asked for: give a run, a channel, a subscription"
        " or the address of a server"
    )


def _of_subscription(subscription: Subscription) -> Iterator[ShownEvent]:
    """Events until the subscription is closed."""
    for event in subscription:
        yield ShownEvent(event, "correlation" in event.extensions)


def _of_server(
    url: str, filters: Mapping[str, str]
) -> tuple[str, Iterator[ShownEvent], Callable[[], None]]:
    if unknown := sorted(filters.keys() - set(CHOICES)):
        known = ", ".join(f"`{each}`" for each in CHOICES)
        raise UsageError(f"`{unknown[0]}` is no choice of a stream: there is {known}")
    server = Server(url)

    def deliveries() -> Iterator[ShownEvent]:
        for kind, _, body in server.stream(filters, _let_pass):
            try:
                yield ShownEvent(decode(body), kind == "output")
            except EventError:
                continue

    return url, deliveries(), server.client.close


def _let_pass(_: str) -> None:
    """A connection that breaks is made again; if it cannot be, the view says so."""
