"""Links between channels of one process: a method call, without recursion.

A message that is sent while the same thread delivers another message is queued until that delivery
ends. So a long chain of channels needs no deep stack, and every channel sees causes before effects.
Consumers of the other channel are served in the thread that published the event.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.link import Router
from ensue.channel.links.messages import Advert, Carried
from ensue.errors import UsageError


class UndeliveredMessages(threading.local):
    """The messages that a thread still has to deliver."""

    def __init__(self) -> None:
        self.is_busy = False
        self.waiting: deque[tuple[InProcessLink, Carried | Advert]] = deque()


_undelivered = UndeliveredMessages()


class InProcessLink:
    """One direction of a link: from the channel `here` to the channel `there`."""

    in_transit = 0
    queues_news = False
    back: InProcessLink

    def __init__(self, here: Router, there: Router) -> None:
        self._here = here
        self._there = there

    def send(self, message: Carried) -> Sequence[Blocked]:
        self._deliver_in_order(message)
        return ()

    def advertise(self, advert: Advert) -> None:
        self._deliver_in_order(advert)

    def _deliver_in_order(self, message: Carried | Advert) -> None:
        _undelivered.waiting.append((self, message))
        if _undelivered.is_busy:
            return
        _undelivered.is_busy = True
        failure: BaseException | None = None
        while _undelivered.waiting:
            link, next_message = _undelivered.waiting.popleft()
            try:
                link.deliver(next_message)
            except BaseException as error:
                # `SystemExit` or an interrupt: raised after all other channels have been served.
                failure = failure or error
        _undelivered.is_busy = False
        if failure is not None:
            raise failure

    def transmit(self) -> None:
        """Nothing is left to do: a message is delivered when it is sent."""

    def deliver(self, message: Carried | Advert) -> None:
        if isinstance(message, Advert):
            self._there.receive_news(message, self._here.id, self.back)
        else:
            self._there.wait_for_room(self._there.receive(message, self._here.id))

    def close(self, seconds: float) -> bool:  # noqa: ARG002 - there is nothing to wait for
        part(self._here, self._there)
        return True


def join(one: Router, other: Router) -> None:
    """Link two channels of this process, in both directions."""
    if one is other:
        raise UsageError("a channel cannot be linked to itself")
    if other.id in one.neighbours:
        return
    there, back = InProcessLink(one, other), InProcessLink(other, one)
    there.back, back.back = back, there
    one.add_link(other.id, there)
    other.add_link(one.id, back)
    one.introduce(there)
    other.introduce(back)


def part(one: Router, other: Router) -> None:
    """Remove the links between two channels of this process."""
    for here, there in ((one, other), (other, one)):
        for link in here.links_to(there.id):
            if isinstance(link, InProcessLink):
                here.remove_link(there.id, link)
