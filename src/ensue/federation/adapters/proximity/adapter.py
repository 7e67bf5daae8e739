"""Events to and from a proximity service.

Events are carried by another service (its kind by the scheme of `url`), and each is valid in an
area: its attribute `proximity`, `latitude,longitude,metres`. The gateway has a position there,
which may change while it runs (`position_file` is read again, as a receiver of satellites would
write it). It receives the events whose area it is in at the time, and publishes events with an
area around itself where they have none. Without a position, or an area, everywhere is near.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    Service,
)
from ensue.federation.adapters.proximity.places import Area, GeoPosition
from ensue.federation.messages.attributes import PROXIMITY
from ensue.subscriptions import Filter

_SECONDS_BETWEEN_LOOKS = 0.2


class ProximityOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`radius` is how far events are valid that say nothing of it, in metres."""

    position: str | None = None
    position_file: str | None = None
    radius: Annotated[float, msgspec.Meta(ge=0)] | None = None
    carrier: str | None = None


class ProximityAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="proximity",
        driver="that of the carrier",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=False,
        pushes_down="the place of the gateway",
        encodings=("structured",),
        applies=(PROXIMITY,),
        protection=("that of the carrier",),
        is_carried=True,
    )
    options_type = ProximityOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: ProximityOptions = service.options or ProximityOptions()
        self._carrier = _carrier_of(service, self._options)
        self._position: GeoPosition | None = None
        self._looked = float("-inf")
        if self._options.position is not None:
            try:
                self._position = GeoPosition.parse(self._options.position)
            except ValueError as error:
                raise UsageError(f"service `{service.name}`: `position`: {error}") from None

    @property
    def position(self) -> GeoPosition | None:
        """Where the gateway is now."""
        path, now = self._options.position_file, time.monotonic()
        if path is not None and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            # Half a line, as it may be just being written, is not a place: the last one stays.
            try:
                self._position = GeoPosition.parse(Path(path).read_text("utf-8").strip())
            except (OSError, ValueError):
                return self._position
        return self._position

    def move(self, position: GeoPosition) -> None:
        self._position = position

    async def connect(self) -> None:
        await self._carrier.connect()

    async def listen(self, wanted: Sequence[Filter]) -> None:
        await self._carrier.listen(wanted)

    async def unlisten(self) -> None:
        await self._carrier.unlisten()

    async def receive(self) -> list[Incoming]:
        incoming = await self._carrier.receive()
        # Acknowledgements go in order, so a far event is acknowledged in its turn too.
        return [
            each if each.in_transit or self._is_near(each.event) else _far(each)
            for each in incoming
        ]

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        await self._carrier.acknowledge(tokens)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        await self._carrier.publish(
            [each if each.in_transit else Outgoing(self._placed(each.event)) for each in outgoing]
        )

    async def tell(self, message: bytes) -> None:
        await self._carrier.tell(message)

    async def hear(self) -> list[bytes]:
        return await self._carrier.hear()

    async def close(self) -> None:
        await self._carrier.close()

    async def lag(self) -> int | None:
        return await self._carrier.lag()

    def _is_near(self, event: Event | None) -> bool:
        position = self.position
        area = None if event is None else event.extensions.get(PROXIMITY)
        if position is None or not isinstance(area, str):
            return True
        try:
            return position in Area.parse(area)
        except ValueError:
            # An area that cannot be read withholds an event from no one.
            return True

    def _placed(self, event: Event) -> Event:
        radius, position = self._options.radius, self.position
        if PROXIMITY in event.extensions or radius is None or position is None:
            return event
        area = str(Area(position, radius))
        return msgspec.structs.replace(event, extensions={**event.extensions, PROXIMITY: area})


def _far(incoming: Incoming) -> Incoming:
    return Incoming(None, incoming.token, reason="far away")


def _carrier_of(service: Service, options: ProximityOptions) -> Adapter:
    from ensue.federation.adapters import adapter_class
    from ensue.federation.requesting import kind_of

    is_memory = service.url.startswith("memory:")
    kind = "memory" if is_memory else kind_of(service.url, options.carrier)
    adapter = adapter_class(kind)
    shared = {name: getattr(options, name) for name in ProtectedOptions.__struct_fields__}
    known = {
        key: value for key, value in shared.items() if key in adapter.options_type.__struct_fields__
    }
    return adapter(replace(service, kind=kind, options=adapter.options_type(**known)))
