"""Links between channels of one process: a method call, without recursion.

A message that is sent while another one is being received waits until that one is done, so that a
long chain of channels needs no deep stack and every channel sees causes before effects. Consumers
of the other channel are served in the thread that published the event.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.link import Router
from ensue.channel.links.messages import Advert, Carried
from ensue.errors import UsageError


class Crossing(threading.local):
    """The messages that a thread still has to deliver."""

    def __init__(self) -> None:
        self.is_busy = False
        self.waiting: deque[tuple[InProcessLink, Carried | Advert]] = deque()


_crossing = Crossing()


class InProcessLink:
    """One direction of a link: from the channel `here` to the channel `there`."""

    in_transit = 0
    back: InProcessLink

    def __init__(self, here: Router, there: Router) -> None:
        self._here = here
        self._there = there

    def send(self, message: Carried) -> Sequence[Blocked]:
        self._cross(message)
        return ()

    def advertise(self, advert: Advert) -> None:
        self._cross(advert)

    def _cross(self, message: Carried | Advert) -> None:
        _crossing.waiting.append((self, message))
        if _crossing.is_busy:
            return
        _crossing.is_busy = True
        failure: BaseException | None = None
        while _crossing.waiting:
            link, next_message = _crossing.waiting.popleft()
            try:
                link.deliver(next_message)
            except BaseException as error:
                # A consumer exits or the thread is interrupted: other channels are served first.
                failure = failure or error
        _crossing.is_busy = False
        if failure is not None:
            raise failure

    def set_off(self) -> None:
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
