"""Where a filter on its table keeps what is bound: in attributes of its own.

A list for the places of each key would be two more pieces of memory, and with thousands of keys
each of them is far away when an event comes. So the first places are attributes of the instance,
and only the others, which few rules have, are in a list. In come numbers of places; out go the
function that binds an event in them, text that reads them, and a list of all places of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ensue.engine.core.instances.compiling import TEXTS_REMEMBERED, compiled
from ensue.engine.core.instances.firing import Access, Constant, Noted

ATTRIBUTES = ("place0", "place1", "place2", "place3")

Bind = Callable[[Any, Noted], None]


class HoldsPlaces(Protocol):
    """An instance with places; `more` holds places that the attributes have no room for."""

    place0: Noted | None
    place1: Noted | None
    place2: Noted | None
    place3: Noted | None
    more: list[Noted | None] | None


def place_text(place: int, constant: Constant) -> str:
    """A place of the variable `held`."""
    if place < len(ATTRIBUTES):
        return f"held.{ATTRIBUTES[place]}"
    return f"held.more[{constant(place - len(ATTRIBUTES))}]"


@lru_cache(maxsize=TEXTS_REMEMBERED)
def binding(places: tuple[int, ...]) -> Bind:
    """`bind(held, noted)`: puts an event into all of these places."""
    few = frozenset(place for place in places if place < len(ATTRIBUTES))
    others = [place - len(ATTRIBUTES) for place in places if place >= len(ATTRIBUTES)]
    return _in_list(_in_attributes(few) if few else None, others) if others else _in_attributes(few)


@lru_cache
def _in_attributes(places: frozenset[int]) -> Bind:
    targets = "".join(f"held.{ATTRIBUTES[place]} = " for place in sorted(places))
    bind: Bind = compiled(f"def bind(held, noted): {targets}noted", "bind", {})
    return bind


def _in_list(few: Bind | None, others: Sequence[int]) -> Bind:
    """For places of which some, or all, are in the list."""

    def bind(held: Any, noted: Noted) -> None:
        if few is not None:
            few(held, noted)
        more = held.more
        for place in others:
            more[place] = noted

    return bind


def all_places(held: HoldsPlaces) -> list[Noted | None]:
    """All places, as they are now."""
    few = [held.place0, held.place1, held.place2, held.place3]
    return few if held.more is None else few + held.more


IN_ATTRIBUTES = Access(place_text, all_places)


class Places(list["Noted | None"]):
    """The places of an instance as a list: what is set in it is set there, too."""

    __slots__ = ("_held",)

    def __init__(self, held: HoldsPlaces, count: int) -> None:
        list.__init__(self, all_places(held))
        del self[count:]
        self._held = held

    def __setitem__(self, place: Any, noted: Any) -> None:
        assert isinstance(place, int), "places are bound one by one"
        list.__setitem__(self, place, noted)
        if place < len(ATTRIBUTES):
            setattr(self._held, ATTRIBUTES[place], noted)
        elif self._held.more is not None:
            self._held.more[place - len(ATTRIBUTES)] = noted
