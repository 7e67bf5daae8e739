"""The messages of linked channels: routes with wants, and events in transit.

Links between brokers (`ensue.brokers.network`) carry the same messages for events, and statements
in place of routes.

Messages are plain values, equal for every kind of link. Their bounds are checked when they are
decoded. A want travels as a `RemoteWant`: its type stands for that type alone, since the other
channel may not know the subtypes, and its predicate is text.
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
"""The most predicates for one type and source; with more, all events of that kind are asked for."""
LONGEST_NAME = 512
LONGEST_PREDICATE = 4_096
LONGEST_CACHED = 1_024
PREDICATES_A_ROUTE = 16 * 1024
PREDICATES_AN_ADVERT = 64 * 1024
"""The most characters of predicates that are parsed, since parsing delays the thread of all links.
Wants beyond that lose their predicates, so that the channel is sent more events than it wants."""
LONGEST_PATH = 64
"""The most channels that an event may pass; longer routes are not used."""
WANTS_A_CHANNEL = 4_096
CHANNELS = 1_024
"""The most channels that a channel knows at a time, itself included."""

LONGEST_RULE = 8_192
"""The longest text of a library that another channel is asked to run, in characters."""
RULES_A_CHANNEL = 8
WANTS_A_RULE = 64
NEIGHBOURS_ASKED = 8
RULES_OFFERED = CHANNELS * RULES_A_CHANNEL

LONGEST_FILTER = 16_384
SPOKEN_A_STATEMENT = 128
"""The most filters in one statement. If all have the longest text, in characters of four bytes, the
statement takes half of the largest frame."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class RemoteWant(msgspec.Struct, frozen=True, array_like=True):
    """A want of a consumer as it travels over a link; None stands for any."""

    type: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] | None
    source: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] | None
    where: Annotated[str, msgspec.Meta(max_length=LONGEST_PREDICATE)] | None


class RemoteRule(msgspec.Struct, frozen=True, array_like=True):
    """A rule that one of the channels `at`, neighbours, is asked to run for a consumer, by a `key`.

    `library` is the text of all that runs, `name` one correlation of it. Times are in microseconds.
    `wants` is what its ports want, until the asking channel has agreed that the rule `runs` there.
    """

    at: Annotated[tuple[Name, ...], msgspec.Meta(max_length=NEIGHBOURS_ASKED)]
    key: Name
    library: Annotated[str, msgspec.Meta(max_length=LONGEST_RULE)]
    name: Name | None
    lateness: Count
    max_jump: Count | None
    wants: Annotated[tuple[RemoteWant, ...], msgspec.Meta(max_length=WANTS_A_RULE)]
    runs: bool = False


class Route(msgspec.Struct, frozen=True, array_like=True):
    """The path from the sender to a channel, and the wants of that channel.

    `version` is the sender's counter of changes. The path begins with the sender and ends with the
    channel. An empty path withdraws the route. In the route to the sender itself, `rules` are those
    that it asks neighbours to run, and `offers` has the keys of those that it runs, or would.
    """

    channel: Name
    version: Count
    path: Annotated[tuple[Name, ...], msgspec.Meta(max_length=LONGEST_PATH + 1)]
    wants: Annotated[tuple[RemoteWant, ...], msgspec.Meta(max_length=WANTS_A_CHANNEL)]
    rules: Annotated[tuple[RemoteRule, ...], msgspec.Meta(max_length=RULES_A_CHANNEL)] = ()
    offers: Annotated[tuple[Name, ...], msgspec.Meta(max_length=RULES_OFFERED)] = ()

    @property
    def all_wants(self) -> tuple[RemoteWant, ...]:
        """What the channel wants, also for rules that it asks neighbours to run."""
        found = dict.fromkeys(self.wants)
        found.update(dict.fromkeys(want for rule in self.rules for want in rule.wants))
        return tuple(found)[:WANTS_A_CHANNEL]


class Advert(msgspec.Struct, frozen=True, tag="advert", array_like=True):
    """Routes of the sender: all of them if the advert is complete, else those that have changed."""

    version: Count
    is_complete: bool
    routes: Annotated[tuple[Route, ...], msgspec.Meta(max_length=CHANNELS)]


class Spoken(msgspec.Struct, frozen=True, array_like=True):
    """One item of a statement: the filter of a subscription or advertisement, or a broker's id."""

    topic: Literal["subscription", "advertisement", "broker"]
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_FILTER)]


class FilterStatement(msgspec.Struct, frozen=True, tag="statement", array_like=True):
    """Filters that a broker sends over a link: all of them if it is complete, else the changes.

    A complete set of filters may need several statements; `goes_on` is true for all but the last.
    `advertised` says whether the broker uses advertisements.
    """

    advertised: bool
    is_complete: bool
    goes_on: bool
    said: Annotated[tuple[Spoken, ...], msgspec.Meta(max_length=SPOKEN_A_STATEMENT)]
    taken_back: Annotated[tuple[Spoken, ...], msgspec.Meta(max_length=SPOKEN_A_STATEMENT)]


News = Advert | FilterStatement
"""Messages about wants: sent in full when a connection begins, and then with every change."""


class Carried(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """An event in transit: the channel that published it, and the channels it has yet to reach.

    `identity` is a random number that distinguishes the events of all channels. `in_doubt` is true
    if a link has sent the event and then ended without an acknowledgement: it may have arrived.
    `rules` are the keys of rules that read it in the channel that runs them, and nowhere else. With
    a `rule`, it is for this one alone: an event, or with `is_output` what the rule has put out.
    """

    origin: Name
    identity: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    hops: Count
    destinations: Annotated[tuple[Name, ...], msgspec.Meta(max_length=CHANNELS)]
    event: Event
    in_doubt: bool = False
    rules: Annotated[tuple[Name, ...], msgspec.Meta(max_length=RULES_OFFERED)] = ()
    rule: Name | None = None
    is_output: bool = False

    def onwards(self, destinations: tuple[str, ...], in_doubt: bool = False) -> Carried:
        """The same event for some of the destinations, one hop further."""
        return msgspec.structs.replace(
            self,
            hops=self.hops + 1,
            destinations=destinations,
            in_doubt=self.in_doubt or in_doubt,
        )


def compacted(wanted: Iterable[EventWant], types: TypeSystem) -> tuple[RemoteWant, ...]:
    """The wants of a channel's consumers as `RemoteWant`s, without repetitions and bounded."""
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
    """A want without the names and the predicate that are too long for a message.

    The channel is then sent more events than it wants, and filters them itself.
    """
    return RemoteWant(
        None if type_ is not None and len(type_) > LONGEST_NAME else type_,
        None if source is not None and len(source) > LONGEST_NAME else source,
        None if text is not None and len(text) > LONGEST_PREDICATE else text,
    )


def as_want(each: RemoteWant) -> EventWant:
    """The want of a look-up. Raises `LibraryError` if its predicate cannot be parsed."""
    if each.where is None:
        return EventWant(each.type, each.source)
    # A syntax tree takes fifty times the memory of its text, so long predicates are not cached.
    parse = _parsed if len(each.where) <= LONGEST_CACHED else _parse
    return EventWant(each.type, each.source, parse(each.where))


def _parse(text: str) -> Expression:
    from ensue.lang.expressions.text.parsing import parse_expression

    return parse_expression(text)


_parsed = lru_cache(maxsize=1_024)(_parse)


def within_parsing_bounds(advert: Advert) -> Advert:
    """An advert of a neighbour, without the predicates that exceed the bounds of parsing."""
    if sum(_characters(route) for route in advert.routes) <= PREDICATES_A_ROUTE:
        return advert
    routes: list[Route] = []
    left = PREDICATES_AN_ADVERT
    for route in advert.routes:
        size = _characters(route)
        if size > min(left, PREDICATES_A_ROUTE):
            wants = (RemoteWant(each.type, each.source, None) for each in route.all_wants)
            kinds = tuple(dict.fromkeys(wants))
            # A rule whose wants are plain ones is not run here, as its key is not known.
            routes.append(msgspec.structs.replace(route, wants=kinds, rules=()))
        else:
            routes.append(route)
            left -= size
    return msgspec.structs.replace(advert, routes=tuple(routes))


def _characters(route: Route) -> int:
    wants = [*route.wants, *(each for rule in route.rules for each in rule.wants)]
    return sum(len(each.where) for each in wants if each.where is not None)


def _text(predicate: Expression) -> str:
    from ensue.lang.expressions.text.printing import print_expression

    return print_expression(predicate)
