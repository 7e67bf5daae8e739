"""How many keys the rules of a library may hold, so that senders cannot fill the memory.

In comes an event before its library reads it; out goes the rule that has no room for another key,
if the event would begin one there. Such an event is not read by the library. The decision depends
on what the engine has dropped by then, so the line writes it down in the journal, and a recovery
does not ask again. Keys that have passed are dropped by the engine, at the latest when the state of
the library is saved; then there is room again.

A rule that reads outputs of other rules has keys that cannot be told from an event. Once it is
full, no event is read that a rule before it has a port for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ensue.engine.run import Run
from ensue.engine.running.holding import Holder
from ensue.events.event import Event
from ensue.library import Library

UNASKED: Final = 64
"""Events of a library that are read without a look at its keys, where outputs begin keys too."""


class Fullness:
    def __init__(self, run: Run, library: Library) -> None:
        self._run = run
        self._feeds = library.checked.feeds
        self._is_fed = any(self._feeds.values())
        self._unasked = 0

    def full_rule(self, event: Event, most: int, no_more: bool = False) -> str | None:
        """The rule that holds `most` keys or more and would begin another at an event.

        With `no_more` no rule has room, whatever it holds: all together hold too many. An event
        adds a key for each port at most, so nothing is asked while there is room for that.
        """
        if self._unasked > 0 and not no_more:
            self._unasked -= 1
            return None
        holders = self._run.holders()
        most = 0 if no_more else most
        fullest = max((len(each.keys) for each in holders), default=0)
        if fullest < most:
            ports = max(len(each.ports.key_names) for each in holders)
            room = (most - fullest) // max(1, ports)
            self._unasked = min(room, UNASKED) if self._is_fed else room
            return None
        full = [each for each in holders if len(each.keys) >= most]
        for each in full:
            if each.lacks(event):
                return each.name
        fed = {each.name for each in full} & {name for to in self._feeds.values() for name in to}
        return self._feeder(holders, fed, event) if fed and not no_more else None

    def has_room_for(self, count: int, most: int) -> bool:
        """Whether so many events surely find room for their keys; if so, they count as read.

        Where outputs begin keys too, that is never sure.
        """
        if self._is_fed:
            return False
        if self._unasked < count:
            holders = self._run.holders()
            fullest = max((len(each.keys) for each in holders), default=0)
            ports = max((len(each.ports.key_names) for each in holders), default=1)
            self._unasked = max(0, most - fullest) // max(1, ports)
        if self._unasked < count:
            return False
        self._unasked -= count
        return True

    def _feeder(self, holders: Iterable[Holder], fed: set[str], event: Event) -> str | None:
        """A full rule, if an event may lead to an output that it reads."""
        feeders = _before(fed, self._feeds)
        for each in holders:
            if each.name in feeders and each.ports.matched(event):
                return min(fed)
        return None


def _before(names: set[str], feeds: Mapping[str, Iterable[str]]) -> set[str]:
    """The rules whose outputs lead to some rules, over others or not."""
    found: set[str] = set()
    wanted = set(names)
    while wanted:
        wanted = {name for name, to in feeds.items() if not wanted.isdisjoint(to)} - found
        found |= wanted
    return found


def held_in_all(runs: Iterable[Run]) -> int:
    """How many keys rules hold, those of rules that share their keys counted once."""
    held = {id(each.keys): len(each.keys) for run in runs for each in run.holders()}
    return sum(held.values())
