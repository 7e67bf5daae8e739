"""What a federation and its links need of each other, whichever way a link carries its messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ensue.channel.delivery.receiver import Receiver
from ensue.channel.links.messages import Advert, Carried
from ensue.events.event import Event


class Link(Protocol):
    """One end of a link to a neighbour. Sending never waits; of what cannot be sent it tells.

    `send` gives a message its place on the link; `set_off` sees that all that has one is carried,
    and can wait until consumers of this channel have been served.
    """

    def send(self, message: Carried | Advert) -> None: ...

    def set_off(self) -> None: ...

    def close(self, seconds: float) -> bool:
        """Leave for good; whether all was sent before, in so many seconds."""


class Router(Protocol):
    """What a link needs of the federation that it is a link of."""

    id: str

    @property
    def neighbours(self) -> tuple[str, ...]: ...

    def links_to(self, neighbour: str) -> tuple[Link, ...]: ...

    def add_link(self, neighbour: str, link: Link) -> None: ...

    def remove_link(self, neighbour: str, link: Link) -> None: ...

    def receive(self, message: Carried) -> Sequence[Receiver]: ...

    def receive_advert(self, advert: Advert, neighbour: str) -> None: ...

    def forward(self, message: Carried) -> None: ...

    def wait_for_room(self, event: Event, full: Sequence[Receiver]) -> None: ...

    def note_unsent(self, count: int) -> None: ...
