"""Links between channels of one process: a call, made flat.

A message that is sent while another is being received waits until that one is done, so that a long
chain of channels costs no stack and everybody hears of causes before effects. The events of a
neighbour are spread in the thread that published them.
"""

from __future__ import annotations

import threading
from collections import deque

from ensue.channel.links.link import Router
from ensue.channel.links.messages import Advert, Carried
from ensue.errors import UsageError


class Crossing(threading.local):
    """What one thread still has to carry over."""

    def __init__(self) -> None:
        self.is_busy = False
        self.waiting: deque[tuple[InProcessLink, Carried | Advert]] = deque()


_crossing = Crossing()


class InProcessLink:
    """One direction of a link: from the channel `here` to the channel `there`."""

    def __init__(self, here: Router, there: Router) -> None:
        self._here = here
        self._there = there

    def send(self, message: Carried | Advert) -> None:
        _crossing.waiting.append((self, message))
        if _crossing.is_busy:
            return
        _crossing.is_busy = True
        try:
            while _crossing.waiting:
                link, next_message = _crossing.waiting.popleft()
                link.deliver(next_message)
        finally:
            _crossing.is_busy = False

    def set_off(self) -> None:
        """What is sent has arrived already: a neighbour's consumers hear of an event first, so that
        none of this channel's can tell them what follows from it before."""

    def deliver(self, message: Carried | Advert) -> None:
        if isinstance(message, Advert):
            self._there.receive_advert(message, self._here.id)
        elif full := self._there.receive(message):
            self._there.wait_for_room(message.event, full)

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
    one.add_link(other.id, there)
    other.add_link(one.id, back)


def part(one: Router, other: Router) -> None:
    for here, there in ((one, other), (other, one)):
        for link in here.links_to(there.id):
            if isinstance(link, InProcessLink):
                here.remove_link(there.id, link)
