"""Subscribing over HTTP: server-sent events and WebSocket, from now on or from an id on.

In come a filter, a library or a text of rules, and the id that was received last; out goes what
matches, each with its id. Both ways give the same: server-sent events carry the event as `data`,
its kind as `event` and its id as `id`; a WebSocket carries one JSON text for each. A client that
goes on from an id misses nothing and gets nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ensue.errors import EnsueError
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.gate import PROTOCOL
from ensue.server.api.requests.problems import ProblemError, as_problem, document
from ensue.server.api.requests.reading import (
    Parameters,
    libraries_of,
    principal_of,
    read_filter,
    refused,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.entries import KINDS, OUTPUT, FeedDelivery
from ensue.server.station.feed import GoneError, Subscriber, SubscriberWish
from ensue.server.station.line import BusyError
from ensue.server.station.station import Station

PARAMETERS: Final = ("filter", "kinds", "library", "correlation", "rules", "after")
HEARTBEAT_SECONDS: Final = 15.0
CLOUDEVENTS_PROTOCOL: Final = "cloudevents.json"
RETRY_MILLISECONDS: Final = 1_000
CLOSE_CODES: Final = {401: 4401, 403: 4403, 410: 4410, 422: 4422, 429: 4429}
"""How a WebSocket is closed for a problem; the reason is its detail."""


async def events(request: Request) -> Response:
    """A stream of server-sent events."""
    if request.method == "HEAD":
        principal_of(request, "subscribe")
        return Response(headers={"Content-Type": "text/event-stream"})
    subscriber = await _subscriber(request, request.headers.get("last-event-id"))
    return StreamingResponse(
        _sent(station_of(request), subscriber),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _sent(station: Station, subscriber: Subscriber) -> AsyncIterator[bytes]:
    try:
        # An id without data is remembered by clients: one that breaks off before anything came, or
        # long after, goes on from there all the same.
        yield f"retry: {RETRY_MILLISECONDS}\nid: {subscriber.first_id}\n\n".encode()
        async for found in subscriber.batches(HEARTBEAT_SECONDS):
            yield b"".join(map(_frame, found)) or _sign_of_life(subscriber)
    except EnsueError as error:
        problem = as_problem(error)
        detail = document(problem.status, problem.name, problem.detail)
        yield b"event: problem\ndata: " + detail + b"\n\n"
    finally:
        await station.unsubscribe(subscriber)


def _sign_of_life(subscriber: Subscriber) -> bytes:
    # Outputs of a private library are numbered from where it began.
    place = b"" if subscriber.private else f"id: {subscriber.passed}\n".encode()
    return b": still here\n" + place + b"\n"


def _frame(delivery: FeedDelivery) -> bytes:
    head = f"event: {delivery.kind}\nid: {delivery.id}\ndata: ".encode()
    return head + delivery.body + b"\n\n"


class Socket:
    """A subscription over a WebSocket; `written` makes the message of a delivery."""

    def __init__(self, written: Callable[[FeedDelivery], str]) -> None:
        self._written = written

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _served(WebSocket(scope, receive, send), send, self._written)


async def _served(websocket: WebSocket, send: Send, written: Callable[[FeedDelivery], str]) -> None:
    try:
        subscriber = await _subscriber(websocket, None)
    except (ProblemError, EnsueError) as error:
        problem = as_problem(error)
        await websocket.accept(subprotocol=_protocol(websocket))
        body = document(problem.status, problem.name, problem.detail, **problem.more)
        await websocket.send_text(body.decode())
        await websocket.close(CLOSE_CODES.get(problem.status, 4400), problem.detail[:120])
        return
    await websocket.accept(subprotocol=_protocol(websocket))
    sending = asyncio.create_task(_send(websocket, send, subscriber, written))
    receiving = asyncio.create_task(_until_closed(websocket))
    try:
        await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, receiving):
            task.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
        await station_of(websocket).unsubscribe(subscriber)


async def _send(
    websocket: WebSocket, send: Send, subscriber: Subscriber, written: Callable[[FeedDelivery], str]
) -> None:
    try:
        async for found in subscriber.batches():
            for each in found:
                # Past the checks of `websocket`, which take as long as the sending.
                await send({"type": "websocket.send", "text": written(each)})
        await websocket.close(1001, "the server stops: go on from the last id")
    except EnsueError as error:
        problem = as_problem(error)
        await websocket.send_text(document(problem.status, problem.name, problem.detail).decode())
        await websocket.close(CLOSE_CODES.get(problem.status, 4400), problem.detail[:120])


def _message(delivery: FeedDelivery) -> str:
    library = f',"library":"{delivery.library}"' if delivery.library else ""
    return (
        f'{{"id":"{delivery.id}","kind":"{delivery.kind}"{library},'
        f'"event":{delivery.body.decode()}}}'
    )


async def socket_wanted(request: Request) -> Response:
    """The address of the WebSocket, asked for without one."""
    principal_of(request, "subscribe")
    raise ProblemError(
        426,
        "websocket",
        "this is the address of a WebSocket: open one, or subscribe by server-sent events at"
        " `/v1/events`",
        {"Connection": "Upgrade", "Upgrade": "websocket"},
    )


socket: Final = Socket(_message)
"""One JSON text for each delivery, with its id and kind."""
bare_socket: Final = Socket(lambda delivery: delivery.body.decode())
"""As CloudEvents has it: each event by itself, for clients that know nothing of ids."""


async def _until_closed(websocket: WebSocket) -> None:
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            await websocket.receive_text()


def _protocol(websocket: WebSocket) -> str | None:
    offered = websocket.scope.get("subprotocols", ())
    return next((each for each in offered if each in (PROTOCOL, CLOUDEVENTS_PROTOCOL)), None)


# --- what is wanted -----------------------------------------------------------------------------


async def _subscriber(request: HTTPConnection, last_id: str | None) -> Subscriber:
    principal = principal_of(request, "subscribe")
    given = Parameters(request, PARAMETERS)
    station = station_of(request)
    rules, after = given.text("rules"), given.text("after") or last_id
    if rules is not None:
        return await _private(request, principal, given, rules, after)
    wanted = await _wanted(request, principal, given)
    return await station.subscribe(wanted, _position(after, station))


async def _wanted(
    request: HTTPConnection, principal: Principal, given: Parameters
) -> SubscriberWish:
    libraries = given.texts("library")
    for name in libraries:
        libraries_of(request).in_force(name)
    correlations = given.texts("correlation")
    kinds = _kinds(given, bool(libraries or correlations))
    return SubscriberWish(
        kinds,
        await read_filter(request, principal, given.text("filter")),
        frozenset(libraries) if libraries else None,
        frozenset(correlations) if correlations else None,
        allows=principal.may_read if principal.is_limited else None,
    )


def _kinds(given: Parameters, of_rules: bool) -> frozenset[int]:
    names = given.texts("kinds") or (["output"] if of_rules else ["event", "output"])
    for name in names:
        if name not in KINDS:
            allowed = ", ".join(f"`{each}`" for each in KINDS)
            raise refused(f"there is no kind `{name[:60]}`; there are {allowed}")
    return frozenset(KINDS[name] for name in names)


def _position(after: str | None, station: Station) -> int | None:
    if after is None:
        return None
    if not (after.isascii() and after.isdigit() and len(after) < 19):
        raise refused(f"`{after[:60]}` is no id of this subscription: give the last id received")
    position = int(after)
    if position < station.feed.floor:
        raise GoneError(position, station.feed.floor)
    if position > station.feed.head:
        raise ProblemError(
            409,
            "position",
            f"`{position}` lies behind the last entry ({station.feed.head}): the id is of another"
            " server, or of another journal; leave it out to go on from now",
        )
    return position


async def _private(
    request: HTTPConnection, principal: Principal, given: Parameters, rules: str, after: str | None
) -> Subscriber:
    """A library of the subscriber's own, which runs as long as it is connected."""
    station = station_of(request)
    if any(given.text(name) for name in ("filter", "kinds", "library", "correlation")):
        raise refused("`rules` gives the outputs of its own rules: leave out the other parameters")
    private = sum(each.private is not None for each in station.feed.subscribers.values())
    if private >= station.limits.private_libraries:
        raise BusyError(
            f"{private} private libraries run, and limit `private_libraries` allows no more: put"
            " the library on the server, and subscribe to its outputs",
            seconds=10,
        )
    if len(rules.encode()) > station.limits.library_bytes:
        raise refused("`rules` is larger than limit `library_bytes` allows")
    library = await in_turn(request, station.read_library, rules, "<rules>")
    parts = after.split(".") if after else []
    if not all(each.isascii() and each.isdigit() and len(each) < 19 for each in parts):
        raise refused(f"`{(after or '')[:60]}` is no id of this subscription: give the last one")
    begin = _position(parts[0], station) if parts else station.feed.head
    assert begin is not None
    if station.feed.head - begin > station.limits.replay_events:
        raise ProblemError(
            410,
            "replay",
            f"{station.feed.head - begin:,} entries would have to be read again, and limit"
            f" `replay_events` allows {station.limits.replay_events:,}: leave the id out",
        )
    allows = principal.may_read if principal.is_limited else None
    wanted = SubscriberWish(frozenset({OUTPUT}), private=library, allows=allows)
    subscriber = await station.subscribe(wanted, begin)
    assert subscriber.private is not None
    if len(parts) == 3:
        subscriber.private.given_until = int(parts[1]), int(parts[2])
    return subscriber
