"""The events that one end of a link has to send, bounded in number and in bytes.

An event goes through three stages. While the link is full it is *blocked*: beyond the bounds, and
its supplier waits. With room it is *queued*. Once it was handed to the connection it is *sent*, and
kept until the other side acknowledges it; a reliable link sends it again after a disconnection.
What was sent is in doubt until then, so it is never dropped to make room. Queued and sent events
together stay within the bounds; one event is always allowed, however large.

Every method is called with the session's lock held; nothing is transmitted here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from ensue.channel.delivery.waiters import Wake
from ensue.channel.links.messages import Carried
from ensue.channel.policies import Block, Disconnect, DropOldest, Overflow


class Stage(Enum):
    BLOCKED = 1
    QUEUED = 2
    SENT = 3
    GONE = 4


class Outgoing:
    """An event on its way over a link: its number there, and its frame once it is encoded."""

    __slots__ = ("frame", "is_in_doubt", "message", "number", "stage", "wakes")

    def __init__(self, number: int, message: Carried) -> None:
        self.number = number
        self.message = message
        self.frame: bytes | None = None
        self.stage = Stage.GONE
        self.is_in_doubt = False
        self.wakes: list[Wake] = []

    @property
    def size(self) -> int:
        return len(self.frame) if self.frame is not None else 0

    def move_to(self, stage: Stage) -> None:
        """Change the stage; a supplier that waits is woken."""
        was_blocked, self.stage = self.stage is Stage.BLOCKED, stage
        if was_blocked:
            for wake in self.wakes:
                wake()
            self.wakes.clear()


class Bounds(NamedTuple):
    """How much a link keeps, and what happens to an event beyond that."""

    events: int
    bytes: int
    overflow: Overflow


class Outbox:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._number = 0
        self._blocked: deque[Outgoing] = deque()
        self._queued: deque[Outgoing] = deque()
        self._again: deque[Outgoing] = deque()
        self._sent: deque[Outgoing] = deque()
        self._bytes = 0
        self.last_sent = 0

    def __len__(self) -> int:
        return len(self._blocked) + self._admitted

    @property
    def _admitted(self) -> int:
        return len(self._queued) + len(self._again) + len(self._sent)

    @property
    def is_full(self) -> bool:
        if self._blocked:
            return True
        admitted = self._admitted
        return admitted > 0 and (
            admitted >= self._bounds.events or self._bytes >= self._bounds.bytes
        )

    @property
    def in_transit(self) -> int:
        """The destinations of all events that are kept."""
        kept = (self._blocked, self._queued, self._again, self._sent)
        return sum(len(each.message.destinations) for part in kept for each in part)

    @property
    def in_doubt(self) -> int:
        """The destinations of events that have to be sent again."""
        return sum(len(each.message.destinations) for each in self._again)

    def place(self, message: Carried) -> tuple[Outgoing, Sequence[Outgoing]]:
        """Give an event its position. Returns it, and what had to be dropped: perhaps itself."""
        self._number += 1
        outgoing = Outgoing(self._number, message)
        if not self.is_full:
            self._put(outgoing)
            return outgoing, ()
        overflow = self._bounds.overflow
        if isinstance(overflow, Block):
            outgoing.stage = Stage.BLOCKED
            self._blocked.append(outgoing)
            return outgoing, ()
        dropped = []
        if isinstance(overflow, DropOldest):
            while self._queued and self.is_full:
                dropped.append(self._queued.popleft())
                self._remove(dropped[-1])
        if self.is_full:
            return outgoing, (*dropped, outgoing)
        self._put(outgoing)
        return outgoing, dropped

    @property
    def disconnects(self) -> bool:
        """Whether a link that is full is to be ended."""
        return isinstance(self._bounds.overflow, Disconnect)

    def set_frame(self, outgoing: Outgoing, frame: bytes) -> None:
        outgoing.frame = frame
        if outgoing.stage is Stage.QUEUED:
            self._bytes += len(frame)

    def withdraw(self, outgoing: Outgoing) -> bool:
        """Take an event out that was not sent yet. False if it was."""
        if outgoing.stage is Stage.BLOCKED:
            self._blocked.remove(outgoing)
        elif outgoing.stage is Stage.QUEUED:
            self._queued.remove(outgoing)
            self._bytes -= outgoing.size
        else:
            return False
        outgoing.move_to(Stage.GONE)
        self._admit()
        return True

    def take_frames(self, size: int) -> list[bytes]:
        """The next frames to transmit, of about that size together."""
        frames = []
        for waiting in (self._again, self._queued):
            while waiting and size > 0 and (frame := waiting[0].frame) is not None:
                outgoing = waiting.popleft()
                outgoing.move_to(Stage.SENT)
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
        """Forget what has arrived."""
        for part in (self._sent, self._again):
            while part and part[0].number <= up_to:
                self._remove(part.popleft())
        self._admit()

    def rewind(self) -> None:
        """The connection is lost: what it has not delivered is to be sent again."""
        self._again = self._sent + self._again
        self._sent = deque()

    def take_sent(self) -> list[Outgoing]:
        """Remove what was sent and not acknowledged: an unreliable link does not send it again."""
        return self._clear((self._again, self._sent))

    def take_all(self) -> list[Outgoing]:
        """Remove everything, in order."""
        return self._clear((self._sent, self._again, self._queued, self._blocked))

    def _clear(self, parts: Iterable[deque[Outgoing]]) -> list[Outgoing]:
        taken = [each for part in parts for each in part]
        for part in parts:
            part.clear()
        for each in taken:
            if each.stage is not Stage.BLOCKED:
                self._bytes -= each.size
            each.move_to(Stage.GONE)
        self._admit()
        return taken

    def _put(self, outgoing: Outgoing) -> None:
        self._queued.append(outgoing)
        outgoing.move_to(Stage.QUEUED)
        self._bytes += outgoing.size

    def _remove(self, outgoing: Outgoing) -> None:
        self._bytes -= outgoing.size
        outgoing.move_to(Stage.GONE)

    def _admit(self) -> None:
        """Let blocked events in, in order, as long as there is room."""
        while self._blocked and (
            not self._admitted
            or (self._admitted < self._bounds.events and self._bytes < self._bounds.bytes)
        ):
            self._put(self._blocked.popleft())
