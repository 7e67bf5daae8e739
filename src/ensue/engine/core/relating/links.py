"""The latest match of a chain of groups, event by event, with its events.

In come events of one key by the mask of their ports; out goes the match that an event completes. A
chain of single ports, `a ; b ; c`, holds the latest match up to each place as a tuple, which the
next place goes on from. In a chain of groups, `(a + b) ; c`, each place has its last event and the
latest match of the groups before it; the latest match of a group has the last event of each of its
places, and of what came before it that of its earliest event. An event is first put behind what was
there before it, from the last group to the first, so that it never follows itself.

What a match is good for (the window, `having`, what is forgotten) is asked by `instances.linked`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ensue.engine.core.relating.form import Groups
from ensue.events.event import Event

Linked = tuple[int, Event]
"""An event of a match: when it was read and, in the lowest bits of that, the mask of its ports."""

Match = tuple[Linked, ...]


@dataclass(frozen=True)
class Chain:
    """`bits` are those of the ports of places, `groups` the places of each group."""

    bits: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    masks: tuple[int, ...]

    @property
    def inner(self) -> tuple[int, ...]:
        """The places that have others on both sides, from the last to the first."""
        return tuple(range(len(self.bits) - 2, 0, -1))

    def begun(self, match: Match) -> int:
        """The time of the first event of a match, or of its part up to some place."""
        first = self.groups[0]
        if len(first) == 1:
            return match[0][1].time
        return min(event.time for _, event in match[: len(first)])

    def links(self) -> Links:
        """What a key holds that has read nothing."""
        if all(len(group) == 1 for group in self.groups):
            return PortLinks(self)
        return GroupLinks(self)


def chain_of(groups: Groups, bit_of: Mapping[str, int]) -> Chain:
    places, numbers = [port for group in groups for port in group], iter(range(1 << 16))
    return Chain(
        tuple(bit_of[port] for port in places),
        tuple(tuple(next(numbers) for _ in group) for group in groups),
        tuple(sum({bit_of[port] for port in group}) for group in groups),
    )


class Links:
    """The latest matches of one key."""

    __slots__ = ()

    def read(self, mask: int, linked: Linked) -> Match | None:
        """Take in an event; the latest match of the chain in which it takes part, if it does."""
        raise NotImplementedError

    def forget(self) -> None:
        raise NotImplementedError

    def keep_only(self, mask: int, linked: Linked) -> None:
        """Forget all but an event that was read."""
        self.forget()
        self.read(mask, linked)

    def all(self) -> Iterator[Match]:
        """The latest match up to each place."""
        raise NotImplementedError


class PortLinks(Links):
    """Of a chain of single ports: the latest match up to each place but the last."""

    __slots__ = ("_bits", "_inner", "_matches")

    def __init__(self, chain: Chain) -> None:
        self._bits, self._inner = chain.bits, chain.inner
        self._matches: list[Match | None] = [None] * (len(chain.bits) - 1)

    def read(self, mask: int, linked: Linked) -> Match | None:
        bits, matches = self._bits, self._matches
        found: Match | None = None
        if mask & bits[-1]:
            if not matches:
                return (linked,)
            before = matches[-1]
            if before is not None:
                found = (*before, linked)
        for place in self._inner:
            if mask & bits[place]:
                before = matches[place - 1]
                if before is not None:
                    matches[place] = (*before, linked)
        if matches and mask & bits[0]:
            matches[0] = (linked,)
        return found

    def forget(self) -> None:
        self._matches = [None] * len(self._matches)

    def all(self) -> Iterator[Match]:
        return (each for each in self._matches if each is not None)


class GroupLinks(Links):
    """Of a chain of groups: each place with its last event and the latest match before it."""

    __slots__ = ("_chain", "_held")

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.forget()

    def forget(self) -> None:
        self._held: list[tuple[Match, Linked] | None] = [None] * len(self._chain.bits)

    def read(self, mask: int, linked: Linked) -> Match | None:
        chain, held = self._chain, self._held
        found: Match | None = None
        last = len(chain.groups) - 1
        for number in range(last, -1, -1):
            if not mask & chain.masks[number]:
                continue
            before = self._latest(chain.groups[number - 1]) if number else ()
            if before is None:
                continue
            for place in chain.groups[number]:
                if mask & chain.bits[place]:
                    held[place] = (before, linked)
            if number == last:
                found = self._latest(chain.groups[number])
        return found

    def _latest(self, group: tuple[int, ...]) -> Match | None:
        """The latest match up to a group, if there is one."""
        places = [each for place in group if (each := self._held[place]) is not None]
        if len(places) < len(group):
            return None
        before, _ = min(places, key=_when)
        return (*before, *(linked for _, linked in places))

    def all(self) -> Iterator[Match]:
        return ((*held[0], held[1]) for held in self._held if held is not None)


def _when(held: tuple[Match, Linked]) -> int:
    return held[1][0]
