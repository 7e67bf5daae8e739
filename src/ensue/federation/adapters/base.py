"""What every adapter offers: the one seam between a gateway and an event service.

An adapter connects to one service and moves events both ways. It knows three addresses there: that
of the service's own events, one for events in transit to other services, which clients of the
service do not see, and one for control messages, which every gateway at the service hears. It keeps
no queue of its own beyond what its driver holds, tries nothing twice and decides nothing: that is
the link's part (`ensue.federation.links`). Trouble with a service is raised as `LinkError`.

To acknowledge means that the service may forget an event; the gateway does so once every
destination has confirmed it. A filter that is pushed down to a service may let more through, never
less.
"""

from __future__ import annotations

import importlib
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from ensue.errors import EnsueError, EventError, LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.messages.bindings import Message, Mode
from ensue.subscriptions import Filter

Guarantee = Literal["at most once", "at least once"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind of service can do. The table in the documentation is made of these."""

    kind: str
    driver: str
    incoming: Guarantee
    outgoing: Guarantee
    survives_restart: bool
    """Whether events that come while the gateway is down wait for it."""
    recalls: bool
    """Whether the gateway can look up which events the service has, and so publish none twice."""
    pushes_down: str
    """What of a filter the service applies itself."""
    sees_ahead: bool = False
    """Whether the gateway can look at all events that are to come to it, before they come."""
    encodings: tuple[Mode, ...] = ("structured", "binary")
    applies: tuple[str, ...] = ()
    """The hop-by-hop attributes that the service knows."""
    protection: tuple[str, ...] = ()
    is_carried: bool = False
    """Whether another service carries the events: the guarantees are then those of that service,
    and here stand the best that there are."""


Start = Annotated[str, msgspec.Meta(pattern="^(latest|earliest)$")]
"""Where a gateway begins that has never read a service which keeps events."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys that a `[[service]]` of a kind has besides those of every service."""


class ProtectedOptions(Options, frozen=True, kw_only=True):
    """Credentials, and the files of TLS, which the scheme of the address turns on."""

    user: str | None = None
    password: str | None = None
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True

    def tls_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.authority)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"the certificates cannot be used: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def server_context(self) -> ssl.SSLContext | None:
        """TLS for clients that connect to the gateway; None without a certificate of its own."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"the certificates cannot be used: {error}") from None
        return context


@dataclass(frozen=True)
class Service:
    """One `[[service]]` of a gateway, with every secret put in."""

    name: str
    kind: str
    url: str = field(default="", repr=False)
    address: str = "ensue.events"
    encoding: Mode = "structured"
    control: str = ""
    gateway: str = "gateway"
    options: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse an address in which a password ends too early: drivers would quote the rest."""
        rest = self.url.partition("://")[2]
        place = rest.partition("/")[0].partition("?")[0].partition("#")[0]
        last = place.rpartition(":")[2]
        if "@" in rest[len(place) :] and "@" not in place and ":" in place and not last.isdigit():
            raise UsageError(
                f"service `{self.name}`: its `url` cannot be read: write `/`, `?` and `#` in a"
                " password as `%2F`, `%3F` and `%23`, or give `user` and `password` apart"
            )

    @property
    def place(self) -> str:
        """The address without credentials and options, for messages."""
        found = urlsplit(self.url)
        host = found.netloc.rpartition("@")[2]
        return f"{found.scheme}://{host}{found.path}" if host else self.url.partition("?")[0]

    @property
    def control_address(self) -> str:
        return self.control or f"ensue.control.{self.name}"

    @property
    def transit_address(self) -> str:
        return f"{self.control_address}.transit"


class Incoming(msgspec.Struct, frozen=True):
    """A message of the service: an event, or why it is none. `token` acknowledges it."""

    event: Event | None
    token: Any = None
    in_transit: bool = False
    problems: tuple[str, ...] = ()
    reason: str = "unreadable"
    size: int = 0
    """Bytes of the message, as far as the adapter knows."""


def incoming_of(
    read: Callable[[Message], Event], message: Message, token: Any, in_transit: bool
) -> Incoming:
    """A message of the service as an event, or with the reason why it is none."""
    try:
        return Incoming(read(message), token, in_transit, size=len(message.body))
    except EventError as error:
        return Incoming(None, token, in_transit, error.problems)


def header_text(value: object) -> str:
    """What a header says; bytes that are no text have signs in their place that say so."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Outgoing(msgspec.Struct, frozen=True):
    """An event for the service: for its clients, or in transit to gateways alone."""

    event: Event
    in_transit: bool = False


class RefusedError(EnsueError):
    """An event that a service will never take, such as one that is too large for it.

    `confirmed` tells how many events before it, of the same batch, the service has taken.
    """

    confirmed: int = 0


class Adapter(ABC):
    """One connection to one service. After `LinkError` it is closed, and a new one is made."""

    capabilities: ClassVar[Capabilities]
    options_type: ClassVar[type[Options]] = Options
    schemes: ClassVar[tuple[str, ...]] = ()
    """The beginnings of addresses that tell this kind, for requests from the command line."""

    def __init__(self, service: Service) -> None:
        self.service = service

    @abstractmethod
    async def connect(self) -> None:
        """Connect, and begin to hear control messages."""

    @abstractmethod
    async def listen(self, wanted: Sequence[Filter]) -> None:
        """Begin to receive events, or change which. What one of the filters matches must come."""

    @abstractmethod
    async def unlisten(self) -> None:
        """End receiving events for good: the service keeps none for this gateway any more."""

    @abstractmethod
    async def receive(self) -> list[Incoming]:
        """The next events; waits for at least one."""

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        """Let the service forget events, in the order in which they came."""

    @abstractmethod
    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish events in order; on return the service has all of them.

        What it raises says how many it had taken by then (`confirmed`), where that is known.
        """

    @abstractmethod
    async def tell(self, message: bytes) -> None:
        """Send a control message to every gateway at this service."""

    @abstractmethod
    async def hear(self) -> list[bytes]:
        """The next control messages; waits for at least one. One's own may be among them."""

    @abstractmethod
    async def close(self) -> None:
        """End the connection. What has not been acknowledged comes again to the next one."""

    async def recall(self) -> list[Event]:
        """The latest events that the service has, where it can be asked (`recalls`)."""
        return []

    def ahead(self) -> AsyncIterator[Sequence[Event]]:
        """The events that stand at the service now and have not been handed out yet, in portions:
        all that others have brought there, as far as this adapter is to receive it (`sees_ahead`).
        They are handed out none the less."""
        raise NotImplementedError

    async def announce(self, offered: Filter) -> bool:
        """Tell the service's clients which events are to come, where it has a way to; whether it
        has. It is told again after every `connect`."""
        return False

    async def unannounce(self, offered: Filter) -> None:
        """Such events are not to come any more."""

    async def lag(self) -> int | None:
        """How many events wait at the service for this gateway, where it can tell."""
        return None

    def pushed_down(self, wanted: Sequence[Filter]) -> list[Filter]:
        """What the service applies of the filters: what one of them matches, one of these does."""
        return [ANYTHING] if wanted else []


ANYTHING = Filter.parse("TRUE")


def driver(module: str, kind: str, extra: str | None = None) -> Any:
    """The client library of a kind. Raises `UsageError` that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        name = extra or kind
        raise UsageError(
            f"services of kind `{kind}` need `{module.partition('.')[0]}`, which is not installed:"
            f" pip install 'ensue[{name}]'"
        ) from None


def broken(service: Service, doing: str, error: BaseException) -> LinkError:
    """The complaint of a driver as `LinkError`, with no secret in it."""
    said = str(error).strip() or type(error).__name__
    for secret in _secrets_of(service):
        said = said.replace(secret, "***")
    return LinkError(f"service `{service.name}`: {doing}: {said}")


def _secrets_of(service: Service) -> list[str]:
    """All that must not be shown, in the forms in which a driver might; the longest first."""
    place = urlsplit(service.url)
    given = {place.password, _unquoted(place.password)}
    if place.username and place.password is None:
        # NATS takes a token in this place.
        given |= {place.username, _unquoted(place.username)}
    given |= {value for name, value in parse_qsl(place.query) if _SECRET.search(name)}
    given |= {getattr(service.options, name, None) for name in ("password", "token", "admit")}
    settings = getattr(service.options, "settings", {})
    given |= {value for name, value in settings.items() if _SECRET.search(name)}
    return sorted((each for each in given if each), key=len, reverse=True)


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)


_SECRET = re.compile("password|secret|token|auth", re.IGNORECASE)
