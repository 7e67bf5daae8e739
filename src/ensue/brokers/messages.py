"""What brokers say to each other over a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from ensue.events.event import Event
from ensue.subscriptions import Filter

Topic = Literal["subscription", "advertisement"]


@dataclass(frozen=True, slots=True)
class Said:
    """The sender's side wants these events (a subscription), or has them (an advertisement)."""

    topic: Topic
    filter: Filter


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Takes back a subscription or an advertisement that the sender has `Said` before."""

    topic: Topic
    filter: Filter


@dataclass(frozen=True, slots=True)
class Published:
    event: Event


@dataclass(frozen=True, slots=True)
class Parted:
    """The link is gone, and with it every subscription and advertisement that came over it."""


Message = Said | TakenBack | Published | Parted


class BrokerLink(Protocol):
    """The near end of a connection to one other broker. It keeps the order of messages."""

    @property
    def far(self) -> str:
        """The name of the broker at the other end."""

    def send(self, message: Message) -> None: ...
