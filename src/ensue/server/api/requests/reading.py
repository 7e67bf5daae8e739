"""What routes read from requests: parameters, JSON bodies, and the caller.

Every value that does not fit is refused with what was given and what is allowed. Unknown parameters
are refused too: a misspelt one that is silently ignored gives a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from ensue.events.times import parse_time
from ensue.lang.diagnostics import did_you_mean
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.turns import in_turn
from ensue.server.channels.hosting import Channels, HostedChannel
from ensue.server.settings.tables import Role
from ensue.server.station.feed import asks_of_history
from ensue.server.station.rules.libraries import Libraries
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

T = TypeVar("T")

LONGEST_FILTER: Final = 16_384
SHORT_FILTER: Final = 1_000
"""Characters of a filter that is read at once."""


def channel_of(request: HTTPConnection) -> HostedChannel:
    """The channel that a request is for."""
    channels: Channels = request.app.state.channels
    return channels[request.state.channel]


def station_of(request: HTTPConnection) -> Station:
    return channel_of(request).station


def libraries_of(request: HTTPConnection) -> Libraries:
    return channel_of(request).libraries


def principal_of(request: HTTPConnection, role: Role | None = None) -> Principal:
    """The caller; refused without the role."""
    principal: Principal | None = request.state.principal
    if principal is None:
        raise ProblemError(401, "token", "send a known token as `Authorization: Bearer TOKEN`")
    if role is not None and not principal.has(role):
        raise ProblemError(
            403,
            "role",
            f"`{principal.name}` lacks the role `{role}`, which this needs; it has"
            f" {', '.join(sorted(principal.roles))}: use another token",
        )
    return principal


def require_subject(principal: Principal, subject: str, what: str) -> None:
    if not principal.may_have(subject):
        raise ProblemError(
            403,
            "subject",
            f"`{principal.name}` is not allowed {what} `{subject}`: its subjects leave it out",
        )


async def read_filter(
    request: HTTPConnection, principal: Principal, text: str | None
) -> Filter | None:
    """A filter that a caller gives. Raises `LibraryError`, or refuses what it must not ask."""
    if not text:
        return None
    if len(text) > LONGEST_FILTER:
        raise refused(
            f"the filter has {len(text):,} characters, and {LONGEST_FILTER:,} are allowed: put a"
            " rule on the server instead"
        )
    # Reading takes some microseconds a character, for which all other requests would wait.
    is_short = len(text) <= SHORT_FILTER
    filter_ = Filter.parse(text) if is_short else await in_turn(request, Filter.parse, text)
    if principal.is_limited and asks_of_history(filter_):
        raise ProblemError(
            403,
            "subject",
            f"a temporal filter asks about all events, and `{principal.name}` is limited to some"
            " subjects: leave the temporal terms out",
        )
    return filter_


class Parameters:
    """The query of a request, read name by name; `done` refuses names that were not read."""

    def __init__(self, request: HTTPConnection, known: Sequence[str]) -> None:
        self._given: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            self._given.setdefault(name, []).append(value)
        for name in self._given:
            if name not in known:
                hint = did_you_mean(name, known)
                raise refused(f"there is no parameter `{name[:100]}` here; {hint}")

    def text(self, name: str) -> str | None:
        values = self._given.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise refused(f"the parameter `{name}` is given {len(values)} times: give it once")
        return values[0]

    def texts(self, name: str) -> list[str]:
        """Values of a parameter that may be given several times, or once with commas."""
        return [part for value in self._given.get(name, []) for part in value.split(",") if part]

    def number(self, name: str, default: int, low: int, high: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        try:
            number = (
                int(text) if text.isascii() and "_" not in text and text == text.strip() else None
            )
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise refused(
                f"`{name}` must be a whole number from {low:,} to {high:,}; given is `{text[:60]}`"
            )
        return number

    def instant(self, name: str) -> int | None:
        text = self.text(name)
        try:
            return None if text is None else parse_time(text)
        except ValueError as error:
            raise refused(f"`{name}`: {error}") from None


async def body_of(request: Request, kind: type[T]) -> T:
    """A JSON body of a given form."""
    require_media_type(request, "application/json")
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.ValidationError as error:
        raise ProblemError(422, "body", f"the body does not fit: {_words(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused(f"the body is no JSON: {_words(error)}") from None


async def text_of(request: Request) -> str:
    """A body of text, as a library is."""
    require_media_type(request, "text/plain")
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise refused(f"the body is not UTF-8: byte {error.start + 1} is none") from None


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_media_type(request: Request, *allowed: str) -> None:
    given = media_type_of(request)
    if given not in allowed:
        listed = " or ".join(f"`{each}`" for each in allowed)
        raise ProblemError(
            415, "media-type", f"the `Content-Type` must be {listed}; given is `{given[:100]}`"
        )


def refused(detail: str) -> ProblemError:
    return ProblemError(400, "parameter", detail)


def _words(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].lower()}{text[1:]}"


def answered(value: Any, status: int = 200) -> Response:
    """A value as the JSON of an answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")
