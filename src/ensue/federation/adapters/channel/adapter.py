"""Events to and from an event channel of the process (`url = "channel:NAME"`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ensue.channel import Channel, build
from ensue.errors import LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Capabilities, Service
from ensue.federation.adapters.local import LocalAdapter, provided
from ensue.federation.routing.pushdown import content_of
from ensue.subscriptions import Filter


class ChannelAdapter(LocalAdapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="channel",
        driver="none",
        incoming="at most once",
        outgoing="at least once",
        survives_restart=False,
        recalls=False,
        pushes_down="the content of filters",
        encodings=("structured",),
    )

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._channel: Channel | None = None
        self._consumer: Any = None
        self._wanted: list[Filter] = []

    async def connect(self) -> None:
        self._channel = provided(self._name, Channel, lambda name: build("full", name).done())
        await super().connect()

    def subscribe(self, wanted: list[Filter]) -> None:
        self._wanted = wanted
        if self._consumer is None and self._channel is not None:
            name = f"ensue-{self.service.gateway}-{self.service.name}-{id(self)}"
            try:
                self._consumer = self._channel.consumers.connect(name, self._take)
            except UsageError as error:
                raise LinkError(f"service `{self.service.name}`: {error}") from None

    def unsubscribe(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.disconnect()

    def push(self, event: Event) -> None:
        assert self._channel is not None
        try:
            self._channel.push(event)
        except UsageError as error:
            raise LinkError(f"service `{self.service.name}`: {error}") from None

    def pushed_down(self, wanted: Sequence[Filter]) -> list[Filter]:
        return content_of(wanted)

    def _take(self, event: Event) -> None:
        # In the channel's own thread: what is not wanted does not burden the gateway's.
        if any(each.matches(event) for each in self._wanted):
            self.deliver(event)
