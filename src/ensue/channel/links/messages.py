"""What linked channels tell each other: routes with wants, and events on their way.

Links between brokers (`ensue.brokers.network`) carry events alike, and statements instead of
routes.

These are values, the same over every kind of link, with bounds that are checked when they are
decoded. A want travels in a plain form: a type's name stands for itself only, since the other
channel may not know its subtypes, and a predicate is text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event
from ensue.lang.expressions import Expression

if TYPE_CHECKING:
    from ensue.events.types import TypeSystem

PREDICATES_A_KIND = 32
"""A channel that wants one kind of event by more predicates than this wants all of that kind."""
LONGEST_NAME = 512
LONGEST_PREDICATE = 4_096
LONGEST_REMEMBERED = 1_024
PREDICATES_A_ROUTE = 16 * 1024
PREDICATES_AN_ADVERT = 64 * 1024
"""Characters of predicates that are read: reading holds up the thread of all links. A want beyond
is taken without its predicate, so that the channel is sent more than it wants."""
LONGEST_PATH = 64
"""The most channels that an event may pass on its way; a longer route is none."""
WANTS_A_CHANNEL = 4_096
CHANNELS = 1_024
"""The most channels that a channel knows of at a time, itself included."""

LONGEST_FILTER = 16_384
SPOKEN_A_STATEMENT = 128
"""The most filters in one statement: with the longest ones, in letters of four bytes, it takes half
of the largest frame."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class RemoteWant(msgspec.Struct, frozen=True, array_like=True):
    """A want of a consumer in the form that goes over a link."""

    type: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] | None
    source: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] | None
    where: Annotated[str, msgspec.Meta(max_length=LONGEST_PREDICATE)] | None


class Route(msgspec.Struct, frozen=True, array_like=True):
    """How the sender reaches a channel, and what that channel wants, as of the sender's version.

    The path begins with the sender and ends with the channel. An empty path says that there is no
    way to the channel any more.
    """

    channel: Name
    version: Count
    path: Annotated[tuple[Name, ...], msgspec.Meta(max_length=LONGEST_PATH + 1)]
    wants: Annotated[tuple[RemoteWant, ...], msgspec.Meta(max_length=WANTS_A_CHANNEL)]


class Advert(msgspec.Struct, frozen=True, tag="advert", array_like=True):
    """Routes of the sender: the changed ones, or all of them if it is complete."""

    version: Count
    is_complete: bool
    routes: Annotated[tuple[Route, ...], msgspec.Meta(max_length=CHANNELS)]


class Spoken(msgspec.Struct, frozen=True, array_like=True):
    """A subscription or an advertisement by its text, or a broker by its id."""

    topic: Literal["subscription", "advertisement", "broker"]
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_FILTER)]


class FilterStatement(msgspec.Struct, frozen=True, tag="statement", array_like=True):
    """The filters that a broker sends over a link: the changes or, where complete, all of them.

    All filters may take several statements, of which each but the last `goes_on`. `advertised` says
    whether the broker uses advertisements.
    """

    advertised: bool
    is_complete: bool
    goes_on: bool
    said: Annotated[tuple[Spoken, ...], msgspec.Meta(max_length=SPOKEN_A_STATEMENT)]
    taken_back: Annotated[tuple[Spoken, ...], msgspec.Meta(max_length=SPOKEN_A_STATEMENT)]


News = Advert | FilterStatement
"""What is told at once when a connection stands, and from then on whenever it changes."""


class Carried(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """An event on its way: by which channel it was published, and which it has yet to reach.

    `identity` is a random number that tells events of all channels apart. `in_doubt` says that a
    link has sent the event before and ended without an acknowledgement: it may have arrived.
    """

    origin: Name
    identity: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    hops: Count
    destinations: Annotated[tuple[Name, ...], msgspec.Meta(max_length=CHANNELS)]
    event: Event
    in_doubt: bool = False

    def onwards(self, destinations: tuple[str, ...], in_doubt: bool = False) -> Carried:
        """The message for some of its destinations, one hop further."""
        return Carried(
            self.origin,
            self.identity,
            self.hops + 1,
            destinations,
            self.event,
            self.in_doubt or in_doubt,
        )


def compacted(wanted: Iterable[EventWant], types: TypeSystem) -> tuple[RemoteWant, ...]:
    """The wants of a channel's consumers as they travel, each once and in a bounded number."""
    by_kind: dict[tuple[str | None, str | None], set[Expression | None]] = {}
    for each in wanted:
        kinds = (None,) if each.type is None else (each.type, *types.subtypes(each.type))
        for type_ in kinds:
            by_kind.setdefault((type_, each.source), set()).add(each.where)
    wants: set[RemoteWant] = set()
    for (type_, source), predicates in by_kind.items():
        texts = {None if p is None else _text(p) for p in predicates}
        if None in texts or len(texts) > PREDICATES_A_KIND:
            texts = {None}
        wants.update(_within_bounds(type_, source, text) for text in texts)
    if len(wants) > WANTS_A_CHANNEL:
        wants = {RemoteWant(None, None, None)}
    return tuple(sorted(wants, key=lambda w: (w.type or "", w.source or "", w.where or "")))


def _within_bounds(type_: str | None, source: str | None, text: str | None) -> RemoteWant:
    """A want whose names and predicate may travel: one that is too long is left out, so that the
    channel is sent more than it wants, and filters itself."""
    return RemoteWant(
        None if type_ is not None and len(type_) > LONGEST_NAME else type_,
        None if source is not None and len(source) > LONGEST_NAME else source,
        None if text is not None and len(text) > LONGEST_PREDICATE else text,
    )


def as_want(each: RemoteWant) -> EventWant:
    """A want for a look-up. Raises `LibraryError` if its predicate cannot be read."""
    if each.where is None:
        return EventWant(each.type, each.source)
    # A tree takes fifty times as much as its text: long ones are not remembered.
    parse = _parsed if len(each.where) <= LONGEST_REMEMBERED else _parse
    return EventWant(each.type, each.source, parse(each.where))


def _parse(text: str) -> Expression:
    from ensue.lang.expressions.text.parsing import parse_expression

    return parse_expression(text)


_parsed = lru_cache(maxsize=1_024)(_parse)


def within_reading(advert: Advert) -> Advert:
    """An advert of a neighbour with no more predicates than may be read at once."""
    if sum(_characters(route) for route in advert.routes) <= PREDICATES_A_ROUTE:
        return advert
    routes: list[Route] = []
    left = PREDICATES_AN_ADVERT
    for route in advert.routes:
        size = _characters(route)
        if size > min(left, PREDICATES_A_ROUTE):
            kinds = dict.fromkeys(RemoteWant(each.type, each.source, None) for each in route.wants)
            routes.append(msgspec.structs.replace(route, wants=tuple(kinds)))
        else:
            routes.append(route)
            left -= size
    return msgspec.structs.replace(advert, routes=tuple(routes))


def _characters(route: Route) -> int:
    return sum(len(each.where) for each in route.wants if each.where is not None)


def _text(predicate: Expression) -> str:
    from ensue.lang.expressions.text.printing import print_expression

    return print_expression(predicate)
