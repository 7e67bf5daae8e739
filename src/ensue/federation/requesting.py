"""A request from outside: one control event over a service, and the answers of gateways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from ensue.errors import EventError, LinkError, UsageError
from ensue.federation.adapters import adapter_class, kind_of_scheme, kinds
from ensue.federation.adapters.base import Service
from ensue.federation.routing import control

SCHEMES = {
    "amqp": "amqp",
    "amqps": "amqp",
    "http": "http",
    "https": "http",
    "kafka": "kafka",
    "mqtt": "mqtt",
    "mqtts": "mqtt",
    "nats": "nats",
    "redis": "redis",
    "rediss": "redis",
    "tls": "nats",
    "zenoh": "zenoh",
}
_SECONDS_FOR_MORE = 0.3
"""How long after the first answer others are waited for."""


def kind_of(url: str, given: str | None) -> str:
    """The kind of a service by its address. Raises `UsageError` if that does not tell."""
    scheme = urlsplit(url).scheme
    kind = given or SCHEMES.get(scheme) or kind_of_scheme(scheme)
    if kind is None or kind not in kinds():
        known = ", ".join(f"`{each}`" for each in sorted(SCHEMES))
        raise UsageError(
            f"`{given or scheme}` tells no kind of service: give an address that begins with one of"
            f" {known}, or `--kind`"
        )
    return kind


async def send_request(
    service: Service, request: control.Request, patience: float
) -> list[control.RequestDone]:
    """Send a request over a service; out go the answers that came in time, each once, although
    several gateways may bring one back."""
    adapter = adapter_class(service.kind)(service)
    answers: dict[str, control.RequestDone] = {}
    try:
        await adapter.connect()
        await adapter.tell(control.write(request))
        with suppress(TimeoutError):
            async with asyncio.timeout(patience) as limit:
                while True:
                    for message in await adapter.hear():
                        found = _answer(message, request)
                        if found is not None:
                            answers[found.id] = found
                            soon = asyncio.get_running_loop().time() + _SECONDS_FOR_MORE
                            limit.reschedule(soon)
    finally:
        with suppress(LinkError):
            await adapter.close()
    return list(answers.values())


def _answer(message: bytes, request: control.Request) -> control.RequestDone | None:
    try:
        said = control.read(message)
    except EventError:
        return None
    return said if isinstance(said, control.RequestDone) and said.request == request.id else None


def run_request(
    service: Service, request: control.Request, patience: float, say: Callable[[str], None]
) -> bool:
    """Send a request and say what became of it; tell whether it was applied anywhere."""
    answers = asyncio.run(send_request(service, request, patience))
    for each in answers:
        if each.problem:
            say(f"`{each.gateway}` cannot: {each.problem}")
        elif request.verb == "announced":
            _say_announced(each, say)
        elif request.verb == "announce":
            say(f"done by `{each.gateway}`: {_remembered(each)}")
        else:
            places = ", ".join(f"`{name}`" for name in each.services)
            say(f"done by `{each.gateway}` at {places}")
    if not answers:
        say(
            f"no gateway has answered within {patience:g} s: look whether one runs that has a"
            f" service named `{service.name}`, and for `--at` one with a service of that name"
        )
    return any(not each.problem for each in answers)


def _remembered(answer: control.RequestDone) -> str:
    """What became of an announcement, service by service."""
    carried = ", ".join(f"`{name}`" for name in answer.carried)
    others = ", ".join(f"`{name}`" for name in answer.services if name not in answer.carried)
    said = [f"carried by {carried}"] if carried else []
    said += [f"remembered for {others}, which cannot carry it"] if others else []
    return "; ".join(said)


def _say_announced(answer: control.RequestDone, say: Callable[[str], None]) -> None:
    for each in answer.announced:
        carried = ", carried by the service" if each.carried else ""
        say(f"`{each.service}` by `{answer.gateway}`: {each.where}{carried}")
