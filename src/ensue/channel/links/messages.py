"""What linked channels tell each other: what each wants, and events on their way.

These are values, the same over every kind of link. A want travels in a plain form: the type stands
for itself only, since the other side may not know its subtypes, and a predicate is text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ensue.channel.lookup.wants import Want
from ensue.events.event import Event
from ensue.lang.expressions import Expression

if TYPE_CHECKING:
    from ensue.events.types import TypeSystem

PREDICATES_A_KIND = 32
"""A channel that wants one kind of event by more predicates than this wants all of that kind."""


class RemoteWant(msgspec.Struct, frozen=True, array_like=True):
    """A want as it travels: a type's name stands for itself only, a predicate is text."""

    type: str | None
    source: str | None
    where: str | None


class Advert(msgspec.Struct, frozen=True, tag="advert", array_like=True):
    """What a channel tells everybody: its links and its wants, as of a version."""

    channel: str
    version: int
    neighbours: tuple[str, ...]
    wants: tuple[RemoteWant, ...]


class Carried(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """An event on its way: who published it, as its how-manieth, and whom it still has to reach."""

    origin: str
    sequence: int
    hops: int
    destinations: tuple[str, ...]
    event: Event


def compacted(wanted: Iterable[Want], types: TypeSystem) -> tuple[RemoteWant, ...]:
    """The wants of a channel's consumers, each once, and in a bounded number."""
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
        wants.update(RemoteWant(type_, source, text) for text in texts)
    return tuple(sorted(wants, key=lambda w: (w.type or "", w.source or "", w.where or "")))


def as_want(each: RemoteWant) -> Want:
    """A want as it stands in a look-up."""
    if each.where is None:
        return Want(each.type, each.source)
    from ensue.lang.expressions.parsing import parse_expression

    return Want(each.type, each.source, parse_expression(each.where))


def _text(predicate: Expression) -> str:
    from ensue.lang.expressions.printing import print_expression

    return print_expression(predicate)
