"""The events that one end of a link has to send, bounded in number and in bytes.

An event goes through three stages. While the link is full, the event is *blocked*: it is beyond the
bounds, and its supplier waits. When there is room it is *queued*. Once it has been handed to the
connection it is *sent*, and kept until the other side acknowledges it; a reliable link sends it
again after a disconnection. A sent event may have arrived, so it is never dropped to make room.
Queued and sent events together stay within the bounds; one event is always allowed, however large.

Every method is called with the session's lock held; nothing is transmitted here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ensue.channel.delivery.waiters import Wake
from ensue.channel.links.messages import Carried
from ensue.channel.policies import Block, Disconnect, DropOldest, Overflow

BLOCKED, QUEUED, SENT, GONE = range(4)
"""The stages of an event. A `GONE` event was acknowledged, dropped, or handed to another link."""


class OutgoingFrame(msgspec.Struct, eq=False):
    """An event in an outbox: its number on the link, and its frame once it is encoded.

    One is created for each event and link, hence a struct that is allocated in C.
    """

    number: int
    message: Carried
    stage: int = GONE
    frame: bytes | None = None
    is_in_doubt: bool = False
    wakes: list[Wake] | None = None

    @property
    def size(self) -> int:
        return len(self.frame) if self.frame is not None else 0

    def unblock(self, stage: int) -> None:
        """Change the stage of a blocked event, and wake its supplier."""
        self.stage = stage
        for wake in self.wakes or ():
            wake()
        self.wakes = None


class Bounds(NamedTuple):
    """The most events and bytes that a link keeps, and the policy for events beyond that."""

    events: int
    bytes: int
    overflow: Overflow


class Outbox:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._number = 0
        self._blocked: deque[OutgoingFrame] = deque()
        self._queued: deque[OutgoingFrame] = deque()
        self._again: deque[OutgoingFrame] = deque()
        self._sent: deque[OutgoingFrame] = deque()
        self._admitted = 0
        self._bytes = 0
        self.last_sent = 0

    def __len__(self) -> int:
        return len(self._blocked) + self._admitted

    @property
    def _has_room(self) -> bool:
        return self._admitted < self._bounds.events and self._bytes < self._bounds.bytes

    @property
    def in_transit(self) -> int:
        """Destinations of all kept events, summed over the events."""
        kept = (self._blocked, self._queued, self._again, self._sent)
        return sum(len(each.message.destinations) for part in kept for each in part)

    @property
    def in_doubt(self) -> int:
        """Destinations of the events that have to be sent again, summed over the events."""
        return sum(len(each.message.destinations) for each in self._again)

    def place(self, message: Carried) -> tuple[OutgoingFrame, Sequence[OutgoingFrame]]:
        """Give an event its position. Returns it, and the dropped events, perhaps itself."""
        self._number += 1
        outgoing = OutgoingFrame(self._number, message)
        if self._has_room and not self._blocked:
            self._put(outgoing)
            return outgoing, ()
        overflow = self._bounds.overflow
        if isinstance(overflow, Block):
            outgoing.stage = BLOCKED
            self._blocked.append(outgoing)
            return outgoing, ()
        dropped = []
        if isinstance(overflow, DropOldest):
            while self._queued and not self._has_room:
                dropped.append(self._queued.popleft())
                self._remove(dropped[-1])
        if not self._has_room:
            return outgoing, (*dropped, outgoing)
        self._put(outgoing)
        return outgoing, dropped

    @property
    def disconnects(self) -> bool:
        """Whether the overflow policy ends a link that is full."""
        return isinstance(self._bounds.overflow, Disconnect)

    def set_frame(self, outgoing: OutgoingFrame, frame: bytes) -> None:
        outgoing.frame = frame
        if outgoing.stage is QUEUED:
            self._bytes += len(frame)

    def withdraw(self, outgoing: OutgoingFrame) -> bool:
        """Remove an event that has not been sent yet. False if it has been sent."""
        if outgoing.stage is BLOCKED:
            self._blocked.remove(outgoing)
        elif outgoing.stage is QUEUED:
            self._queued.remove(outgoing)
            self._admitted -= 1
            self._bytes -= outgoing.size
        else:
            return False
        outgoing.unblock(GONE)
        self._admit()
        return True

    def take_frames(self, size: int) -> list[bytes]:
        """The next frames to transmit, of together about `size` bytes."""
        frames = []
        for waiting in (self._again, self._queued):
            while waiting and size > 0 and (frame := waiting[0].frame) is not None:
                outgoing = waiting.popleft()
                outgoing.stage = SENT
                outgoing.is_in_doubt = True
                self._sent.append(outgoing)
                self.last_sent = max(self.last_sent, outgoing.number)
                frames.append(frame)
                size -= len(frame)
            if waiting:
                break
        return frames

    @property
    def has_frames(self) -> bool:
        first = self._again or self._queued
        return bool(first) and first[0].frame is not None

    def acknowledge(self, up_to: int) -> None:
        """Delete the frames up to a number, which the other side has received."""
        for part in (self._sent, self._again):
            while part and part[0].number <= up_to:
                self._remove(part.popleft())
        if self._blocked:
            self._admit()

    def rewind(self) -> None:
        """Mark all sent events to be sent again, after a connection was lost."""
        self._again = self._sent + self._again
        self._sent = deque()

    def take_sent(self) -> list[OutgoingFrame]:
        """Remove all sent events, for an unreliable link, which never sends them again."""
        return self._clear((self._again, self._sent))

    def take_all(self) -> list[OutgoingFrame]:
        """Remove everything, in order."""
        return self._clear((self._sent, self._again, self._queued, self._blocked))

    def _clear(self, parts: Iterable[deque[OutgoingFrame]]) -> list[OutgoingFrame]:
        taken = [each for part in parts for each in part]
        for part in parts:
            part.clear()
        for each in taken:
            if each.stage is BLOCKED:
                each.unblock(GONE)
            else:
                self._remove(each)
        self._admit()
        return taken

    def _put(self, outgoing: OutgoingFrame) -> None:
        self._queued.append(outgoing)
        self._admitted += 1
        if outgoing.stage is BLOCKED:
            self._bytes += outgoing.size
            outgoing.unblock(QUEUED)
        else:
            outgoing.stage = QUEUED

    def _remove(self, outgoing: OutgoingFrame) -> None:
        self._admitted -= 1
        self._bytes -= outgoing.size
        outgoing.stage = GONE

    def _admit(self) -> None:
        """Let blocked events in, in order, as long as there is room."""
        while self._blocked and self._has_room:
            self._put(self._blocked.popleft())
