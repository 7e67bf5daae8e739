"""Events to and from a content-based broker of the process (`url = "broker:NAME"`).

The broker gets the content of the gateway's filters as a subscription, which travels through its
tree as any other does. Announcements become its advertisements, where it goes by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import ClassVar

from ensue.brokers import Broker
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Capabilities, RefusedError, Service
from ensue.federation.adapters.local import LocalAdapter, provided
from ensue.federation.routing.pushdown import content_of
from ensue.subscriptions import Filter


class BrokerAdapter(LocalAdapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="broker",
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
        self._broker: Broker | None = None
        self._subscription = f"ensue-{service.gateway}-{service.name}-{id(self)}"
        self._subscribed: list[Filter] = []
        self._names: list[str] = []
        self._numbers = count(1)

    async def connect(self) -> None:
        self._broker = provided(self._name, Broker, Broker)
        await super().connect()

    def subscribe(self, wanted: list[Filter]) -> None:
        broker = self._broker
        if broker is None or wanted == self._subscribed:
            return
        old, self._subscribed = self._names, wanted
        self._names = [f"{self._subscription}-{next(self._numbers)}" for _ in wanted]
        # The new ones first, so that no event falls between.
        for place, (name, each) in enumerate(zip(self._names, wanted, strict=True)):
            broker.subscribe(name, each, partial(self._take, tuple(wanted[:place])))
        for name in old:
            broker.unsubscribe(name)

    def unsubscribe(self) -> None:
        if self._broker is not None:
            for name in self._names:
                self._broker.unsubscribe(name)
        self._names, self._subscribed = [], []

    def _take(self, earlier: tuple[Filter, ...], event: Event) -> None:
        """An event that an earlier filter matches has come by that one."""
        if not any(each.matches(event) for each in earlier):
            self.deliver(event)

    def push(self, event: Event) -> None:
        assert self._broker is not None
        try:
            self._broker.publish(event)
        except UsageError as error:
            raise RefusedError(f"service `{self.service.name}`: {error}") from None

    async def announce(self, offered: Filter) -> bool:
        if self._broker is None or not self._broker.advertised:
            return False
        self._broker.advertise(self._advertisement(offered), offered)
        return True

    async def unannounce(self, offered: Filter) -> None:
        if self._broker is not None and self._broker.advertised:
            self._broker.unadvertise(self._advertisement(offered))

    def pushed_down(self, wanted: Sequence[Filter]) -> list[Filter]:
        return content_of(wanted)

    def _advertisement(self, offered: Filter) -> str:
        return f"ensue-{self.service.gateway} {offered}"
