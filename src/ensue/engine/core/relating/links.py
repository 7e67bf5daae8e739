"""The latest match of a chain of groups, event by event, with its events.

In come events of one key by the mask of their ports; out goes the match that an event completes. A
chain of single ports, `a ; b ; c`, holds the latest match up to each place as a tuple, which the
next place goes on from. In a chain of groups, `(a + b) ; c`, each place has its last event and the
latest match of the groups before it; the latest match of a group has the last event of each of its
places, and of what came before it that of its earliest event. Of alternatives, `(a | b) ; c`, it
has the last event of any. An event is first put behind what was there before it, from the last
group to the first, so that it never follows itself.

What a match is good for (the window, `having`, what is forgotten) is asked by `linked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ensue.engine.core.relating.form import Groups
from ensue.events.event import Event

Linked = tuple[int, Event]
"""An event of a match: when it was read and, in the lowest bits of that, the mask of its ports."""

LinkedMatch = tuple[Linked | None, ...]
"""The events of places. An alternative that was not chosen has none."""
Read = Callable[[Any, Linked], LinkedMatch | None]
"""Takes an event into the links of a key; says which match of the whole chain it completes."""


@dataclass(frozen=True)
class Chain:
    """A chain of groups: the bit of each place's port, the places of each group and its mask.

    `either` are the groups of which one port is enough.
    """

    bits: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    masks: tuple[int, ...]
    either: frozenset[int] = frozenset()

    @cached_property
    def is_of_ports(self) -> bool:
        """Whether each group is a single port."""
        return all(len(group) == 1 for group in self.groups)

    @cached_property
    def no_matches(self) -> tuple[None, ...]:
        return (None,) * (len(self.bits) - 1)

    @cached_property
    def _readers(self) -> dict[int, Read]:
        return {}

    def reader(self, mask: int) -> Read:
        """What events of these ports do to the links of a key."""
        known = self._readers.get(mask)
        if known is None:
            if self.is_of_ports:
                places = tuple(n for n, bit in enumerate(self.bits) if mask & bit)
                known = _reader_of_ports(len(self.bits), places)
            else:
                known = partial(GroupLinks.read, mask=mask)
            self._readers[mask] = known
        return known

    def start_time(self, match: LinkedMatch) -> int:
        """The time of the first event of a match, or of its part up to some place."""
        first = self.groups[0]
        if len(first) == 1:
            begin = match[0]
            assert begin is not None, "a group of one port has its event"
            return begin[1].time
        return min(each[1].time for each in match[: len(first)] if each is not None)

    def links(self) -> MatchLinks:
        """What a key holds that has read nothing."""
        return PortLinks(self.no_matches) if self.is_of_ports else GroupLinks(self)


def chain_of(groups: Groups, bit_of: Mapping[str, int], either: Iterable[int] = ()) -> Chain:
    places, numbers = [port for group in groups for port in group], iter(range(1 << 16))
    return Chain(
        tuple(bit_of[port] for port in places),
        tuple(tuple(next(numbers) for _ in group) for group in groups),
        tuple(sum({bit_of[port] for port in group}) for group in groups),
        frozenset(either),
    )


def _reader_of_ports(count: int, places: tuple[int, ...]) -> Read:
    """The function for events of these places in a chain of so many single ports."""
    is_last = count - 1 in places
    # From the last to the first, so that an event never follows itself.
    held = sorted((place for place in places if place < count - 1), reverse=True)

    def read(matches: Any, linked: Linked) -> LinkedMatch | None:
        before: LinkedMatch | None = None
        if is_last:
            before = matches[count - 2] if count > 1 else ()
        for place in held:
            if place == 0:
                matches[0] = (linked,)
            elif (earlier := matches[place - 1]) is not None:
                matches[place] = (*earlier, linked)
        return None if before is None else (*before, linked)

    return read


class MatchLinks:
    """The latest matches of one key."""

    __slots__ = ()

    def forget(self) -> None:
        raise NotImplementedError

    def all(self) -> Iterator[LinkedMatch]:
        """The latest match up to each place."""
        raise NotImplementedError

    def latest_begin(self) -> int | None:
        """When the match begins that begins last, if there is one."""
        raise NotImplementedError


class PortLinks(MatchLinks, list["LinkedMatch | None"]):
    """The links of a chain of single ports: the latest match up to each place but the last.

    It is the list of them: there may be millions of these, and an object less for each is one less
    that is far away in memory when an event comes.
    """

    __slots__ = ()

    def forget(self) -> None:
        self[:] = [None] * len(self)

    def all(self) -> Iterator[LinkedMatch]:
        return (each for each in self if each is not None)

    def latest_begin(self) -> int | None:
        # What goes on from a first event has begun with this one or before it.
        first = self[0] if self else None
        begin = None if first is None else first[0]
        return None if begin is None else begin[1].time


class GroupLinks(MatchLinks):
    """The links of a chain of groups: for each place its last event, and the match before it."""

    __slots__ = ("_chain", "_held")

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.forget()

    def forget(self) -> None:
        self._held: list[tuple[LinkedMatch, Linked] | None] = [None] * len(self._chain.bits)

    def read(self, linked: Linked, mask: int) -> LinkedMatch | None:
        chain, held = self._chain, self._held
        found: LinkedMatch | None = None
        last = len(chain.groups) - 1
        for number in range(last, -1, -1):
            if not mask & chain.masks[number]:
                continue
            before = self._latest(number - 1) if number else ()
            if before is None:
                continue
            for place in chain.groups[number]:
                if mask & chain.bits[place]:
                    held[place] = (before, linked)
            if number == last:
                found = self._latest(number)
        return found

    def _latest(self, number: int) -> LinkedMatch | None:
        """The latest match up to a group, if there is one."""
        group = self._chain.groups[number]
        if number in self._chain.either:
            return self._latest_of(group)
        places = [each for place in group if (each := self._held[place]) is not None]
        if len(places) < len(group):
            return None
        before, _ = min(places, key=_when)
        return (*before, *(linked for _, linked in places))

    def _latest_of(self, group: tuple[int, ...]) -> LinkedMatch | None:
        """The latest match of alternatives: of the last event, and of the left one of its ports."""
        found, chosen = None, -1
        for place in group:
            held = self._held[place]
            if held is not None and (found is None or held[1][0] > found[1][0]):
                found, chosen = held, place
        if found is None:
            return None
        return (*found[0], *(found[1] if place == chosen else None for place in group))

    def alive(self, edge: float) -> list[Linked | None]:
        """The last event of each place whose match begins at a time or later."""
        start_time = self._chain.start_time
        return [
            held[1] if held is not None and start_time((*held[0], held[1])) >= edge else None
            for held in self._held
        ]

    def all(self) -> Iterator[LinkedMatch]:
        return ((*held[0], held[1]) for held in self._held if held is not None)

    def latest_begin(self) -> int | None:
        return max(map(self._chain.start_time, self.all()), default=None)


def _when(held: tuple[LinkedMatch, Linked]) -> int:
    return held[1][0]
