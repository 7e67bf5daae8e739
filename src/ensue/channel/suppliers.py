"""Suppliers: what they publish, and whether any consumer wants it.

`SupplierAdmin` connects suppliers. A supplier declares the types that it publishes (subtypes
included) and perhaps its source. If no consumer wants any of these types, the supplier is quenched:
events that it pushes are counted and go no further. The channel tells the supplier when it is
quenched and when it is wanted again. `lookup` finds the consumers of an event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from ensue.channel.callbacks import logging_errors
from ensue.channel.figures.values import AtomicCounter
from ensue.channel.timing.clock import Clock
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads

Demand = Callable[[bool], None]


class SupplierHost(Protocol):
    """What suppliers need of their channel."""

    clock: Clock
    real_time: RealTimeThreads | None

    def push(self, event: Event) -> None: ...

    async def publish(self, event: Event) -> None: ...

    def with_subtypes(self, types: Iterable[str]) -> frozenset[str]: ...

    def is_wanted(self, types: Iterable[str], source: str | None) -> bool: ...

    def prepare(self, type_: str, source: str) -> None: ...


class Supplier:
    """A connected supplier. `is_wanted` is false while it is quenched."""

    def __init__(
        self,
        admin: SupplierAdmin,
        channel: SupplierHost,
        name: str,
        publishes: tuple[str, ...],
        source: str | None,
        on_demand: Demand | None,
    ) -> None:
        self.name = name
        self.publishes = publishes
        self.source = source
        self._unwanted = AtomicCounter()
        self._pushed = AtomicCounter()
        self._admin = admin
        self._channel = channel
        self._on_demand = on_demand and logging_errors(on_demand, f"on_demand of {name}")
        self._types = channel.with_subtypes(publishes)
        self._is_connected = True
        self.is_wanted = channel.is_wanted(self._types, source)
        self._is_open = self.is_wanted

    def may_publish(self, types: frozenset[str]) -> bool:
        """Whether it has declared any of these types, or none at all."""
        return not self._types or not self._types.isdisjoint(types)

    @property
    def pushed(self) -> int:
        """How many events it has published."""
        return self._pushed.read()

    @property
    def unwanted(self) -> int:
        """How many events were not published, because no consumer wanted them."""
        return self._unwanted.read()

    def push(self, event: Event) -> None:
        """Publish an event."""
        if (
            not self._is_open
            or event.type not in self._types
            or (self.source is not None and event.source != self.source)
        ) and self._is_withheld(event):
            return
        try:
            self._channel.push(event)
        finally:
            next(self._pushed.steps)

    async def publish(self, event: Event) -> None:
        """Publish an event from a coroutine; waiting for room does not block the loop."""
        if self._is_withheld(event):
            return
        next(self._pushed.steps)
        await self._channel.publish(event)

    def make(self, type: str, data: Any = None, **extensions: str | bool | int | None) -> Event:  # noqa: A002
        """Create an event of this supplier with the present time."""
        return Event.of(
            type,
            time=self._channel.clock.now(),
            id=str(uuid4()),
            source=self.source or self.name,
            data=data,
            **extensions,
        )

    def send(self, type: str, data: Any = None, **extensions: str | bool | int | None) -> None:  # noqa: A002
        """Create an event and push it. While the supplier is quenched, none is created."""
        if self._types and type not in self._types:
            # Refused whoever listens: otherwise it would be seen only when one wants the type.
            raise self._undeclared(type)
        if self.is_wanted or not self._is_connected:
            self.push(self.make(type, data, **extensions))
        else:
            next(self._unwanted.steps)

    def disconnect(self) -> None:
        self._is_connected = self._is_open = False
        self._admin.remove(self)

    def _is_withheld(self, event: Event) -> bool:
        if not self._is_connected:
            raise UsageError(f"the supplier `{self.name}` is not connected any more")
        if self._types and event.type not in self._types:
            raise self._undeclared(event.type)
        if self.source is not None and event.source != self.source:
            raise UsageError(
                f"the supplier `{self.name}` declared the source `{self.source}`; given is an event"
                f" from `{event.source}`"
            )
        if not self.is_wanted:
            next(self._unwanted.steps)
            return True
        return False

    def _undeclared(self, type_: str) -> UsageError:
        declared = ", ".join(f"`{each}`" for each in self.publishes)
        return UsageError(
            f"the supplier `{self.name}` declared {declared}; given is an event of type"
            f" `{type_}`: declare it too when the supplier connects"
        )

    def report_if_unwanted(self) -> None:
        if self._on_demand is not None and not self.is_wanted:
            self._on_demand(False)

    def prepare(self) -> None:
        """Compute look-ups for this supplier's events before the first one comes."""
        for type_ in self._types:
            self._channel.prepare(type_, self.source or self.name)

    def update_demand(self) -> None:
        """Check whether its events are wanted, and report a change to `on_demand`."""
        wanted = self._channel.is_wanted(self._types, self.source)
        if wanted != self.is_wanted:
            self.is_wanted = wanted
            self._is_open = wanted and self._is_connected
            if self._on_demand is not None:
                self._on_demand(wanted)
        if self._channel.real_time is not None:
            self.prepare()


class SupplierAdmin:
    """Connects suppliers, and finds them by name."""

    def __init__(self, channel: SupplierHost) -> None:
        self._channel = channel
        self._suppliers: dict[str, Supplier] = {}
        self._lock = threading.Lock()
        self._updating = threading.RLock()
        self._unwanted_of_disconnected = 0

    def connect(
        self,
        name: str,
        publishes: Iterable[str] | str = (),
        *,
        source: str | None = None,
        on_demand: Demand | None = None,
    ) -> Supplier:
        """Connect a supplier of certain types, or of any type if none are declared.

        `on_demand` is called with False when no consumer wants these types any more (at once, if
        none wants them now), and with True when one does again.
        """
        types = (publishes,) if isinstance(publishes, str) else tuple(publishes)
        supplier = Supplier(self, self._channel, name, types, source, on_demand)
        with self._lock:
            if name in self._suppliers:
                raise UsageError(f"a supplier `{name}` is connected already: choose another name")
            self._suppliers[name] = supplier
        supplier.report_if_unwanted()
        # Wants may have changed since the supplier was created.
        supplier.update_demand()
        supplier.prepare()
        return supplier

    def remove(self, supplier: Supplier) -> None:
        with self._lock:
            if self._suppliers.get(supplier.name) is supplier:
                del self._suppliers[supplier.name]
                self._unwanted_of_disconnected += supplier.unwanted

    @property
    def unwanted(self) -> int:
        """Events that suppliers did not publish, disconnected suppliers included."""
        with self._lock:
            connected = sum(each.unwanted for each in self._suppliers.values())
            return self._unwanted_of_disconnected + connected

    def update_demand(self) -> None:
        """Check the demand for every supplier, after wants have changed."""
        if not self._suppliers:
            return
        # One thread at a time, so that a supplier is told of changes in their order.
        with self._updating:
            for supplier in list(self._suppliers.values()):
                supplier.update_demand()

    def __getitem__(self, name: str) -> Supplier:
        return self._suppliers[name]

    def __iter__(self) -> Iterator[Supplier]:
        return iter(list(self._suppliers.values()))

    def __len__(self) -> int:
        return len(self._suppliers)
