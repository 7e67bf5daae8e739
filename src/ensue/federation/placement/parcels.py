"""Parcels: what one site tells another, and its form on the wire.

A parcel goes from one site to another. It brings events, each with its place and with the rules and
ports for which it comes; *marks*, before which nothing more comes for a rule; *resets*, by which
the home of a rule says from where on matches count; and *holds*, by which it says which ports of
the other site are of no use to it. A site that is to send again what it has held back answers with
the number of the parcel that says so. Parcels between two sites are numbered,
so that a repeated one is dropped and a lost one is noticed. On the wire a parcel is one CloudEvent.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ensue.errors import EventError
from ensue.events.cloudevents import encode, event_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.federation.placement.fields import restored
from ensue.federation.placement.places import Place, Since

PARCEL = "ensue.placement.parcel"
"""The type of parcels."""

DESTINATION = "ensuesite"
"""The attribute that names the site a parcel is for."""


class CarriedReading(msgspec.Struct, frozen=True):
    """An event for one rule: it matches these ports, under one key of the rule.

    `releases` is the place of the event that let it go; its own, if it did not wait.
    """

    rule: str
    ports: frozenset[str]
    releases: Place


class Load(msgspec.Struct, frozen=True):
    """An event, and what it comes for. None stands for an event that has come before."""

    place: Place
    event: Event | None
    purposes: tuple[CarriedReading, ...]


class Reset(msgspec.Struct, frozen=True):
    """Matches of a rule, under one key (as `outposts.key_name` says it), count from a place on."""

    rule: str
    key: str
    since: Since


class Hold(msgspec.Struct, frozen=True):
    """Events of these ports of a rule, and no others, are of no use from a place on, under one key
    (as `outposts.key_name` says it), until another hold for it comes."""

    rule: str
    key: str
    since: Place
    ports: frozenset[str]


class Parcel(msgspec.Struct, frozen=True):
    """What goes from one site to another at once. `mark` is for all rules but those in `marks`.

    `done` says of rules for which the other site holds events back before which place they have
    read everything. `answers` is the number of a parcel of the other site, if it asked for events,
    and `spared` says by rule how many were held back until then.
    """

    sender: str
    receiver: str
    instance: str
    number: int
    loads: tuple[Load, ...]
    resets: tuple[Reset, ...]
    mark: Place
    marks: dict[str, Place]
    holds: tuple[Hold, ...] = ()
    done: dict[str, Place] = {}
    answers: int | None = None
    spared: dict[str, int] = {}

    @property
    def messages(self) -> int:
        """How many messages it stands for: one for each event, and one for all words of a home.

        What has come before rides along with an event that has not, or is one message.
        """
        return max(self.events, bool(self.loads)) + self.words

    @property
    def words(self) -> int:
        """One if a home says something in it, or a site answers without an event."""
        is_answer = self.answers is not None and not self.loads
        return int(bool(self.resets or self.holds) or is_answer)

    @property
    def events(self) -> int:
        """How many events it brings that have not come before."""
        return sum(load.event is not None for load in self.loads)


def to_event(parcel: Parcel) -> Event:
    """A parcel as a CloudEvent."""
    data = {
        "sender": parcel.sender,
        "instance": parcel.instance,
        "number": parcel.number,
        "loads": [
            {
                "place": load.place,
                "event": load.event and msgspec.json.decode(encode(load.event)),
                "for": [[each.rule, sorted(each.ports), each.releases] for each in load.purposes],
            }
            for load in parcel.loads
        ],
        "resets": [[each.rule, each.key, each.since] for each in parcel.resets],
        "mark": parcel.mark,
        "marks": parcel.marks,
        "holds": [[each.rule, each.key, each.since, sorted(each.ports)] for each in parcel.holds],
        "done": parcel.done,
        "answers": parcel.answers,
        "spared": parcel.spared,
    }
    identity = f"{parcel.sender}:{parcel.receiver}:{parcel.instance}:{parcel.number}"
    return Event(
        identity,
        f"ensue/site/{parcel.sender}",
        PARCEL,
        max(parcel.mark[0], 0),
        data,
        {DESTINATION: parcel.receiver},
    )


def from_event(event: Event, types: TypeSystem) -> Parcel:
    """The parcel that a CloudEvent carries. Raises `EventError` if it carries none."""
    try:
        data = msgspec.convert(event.data, _Written)
        return Parcel(
            data.sender,
            str(event.extensions[DESTINATION]),
            data.instance,
            data.number,
            tuple(_load(each, types) for each in data.loads),
            tuple(Reset(*each) for each in data.resets),
            data.mark,
            data.marks,
            tuple(Hold(rule, key, at, frozenset(of)) for rule, key, at, of in data.holds),
            data.done,
            data.answers,
            data.spared,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EventError([f"`{event.id}` is no parcel of a site: {error!r}"]) from None


class _WrittenLoad(msgspec.Struct):
    place: Place
    event: dict[str, Any] | None
    purposes: list[tuple[str, list[str], Place]] = msgspec.field(name="for")


class _Written(msgspec.Struct):
    """A parcel as it stands in an event. Anybody can send one, so every value has its type."""

    sender: str
    instance: str
    number: Annotated[int, msgspec.Meta(ge=0)]
    loads: list[_WrittenLoad]
    resets: list[tuple[str, str, Since]]
    mark: Place
    marks: dict[str, Place]
    holds: list[tuple[str, str, Place, list[str]]] = []
    done: dict[str, Place] = {}
    answers: int | None = None
    spared: dict[str, int] = {}


def _load(given: _WrittenLoad, types: TypeSystem) -> Load:
    event = given.event and restored(event_of(given.event), types)
    purposes = (CarriedReading(rule, frozenset(ports), at) for rule, ports, at in given.purposes)
    return Load(given.place, event or None, tuple(purposes))
