"""What is tried: a library, its stream, how it ends, and what a judge says of any part of it.

A trial stands between generators and engines. It knows its events in the order of their arrival,
what is expected of a run over all of them, and what follows from some of them, for streams in which
events come too late and for sites that see only a part. Trials whose types and rules end with
different suffixes are also put *together*, as one library over one stream: they share nothing but
the clock, and each is judged by itself. So one job of Spark, which takes about as long for many
rules as for one, tries many libraries.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import ensue
from ensue.events.cloudevents import decode, encode
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import datetime_of
from tests.oracle import generator, oracle
from tests.oracle.filters import TooManyError
from tests.oracle.values import model as values_model
from tests.oracle.values.reading import judge
from tests.oracle.values.smaller import candidates

from .observed import Observed

Members = dict[str, Any]
T = TypeVar("T")


class Judged(NamedTuple):
    """What a judge says of the rules of a trial, and the trial as text."""

    text: str
    rules: frozenset[str]
    outputs: list[Members]


class Trial(ABC):
    """One library over one stream.

    Events are named by their places in it. With a `lateness` (in microseconds) they are read in the
    order of their arrival; without, in the order of their times. `changes` are texts that may
    replace rules, or add some, while the library runs.
    """

    lateness: int | None = None
    changes: Sequence[str] = ()

    def __init__(self, seed: int, text: str, until: int | None) -> None:
        self.seed = seed
        self.text = text
        self.until = until

    @cached_property
    def library(self) -> ensue.Library:
        return ensue.parse(self.text)

    @property
    @abstractmethod
    def events(self) -> Sequence[Event]:
        """The events in the order of their arrival."""

    @abstractmethod
    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        """The outputs over some of the events as CloudEvents; raises `TooManyError`."""

    @cached_property
    def expected(self) -> Observed | None:
        """What the judge says of a run; None where it would have to try too much."""
        try:
            found = self.outputs(self.by_time, self.until)
        except TooManyError:
            return None
        return Observed([json.dumps(each, sort_keys=True) for each in found])

    def judged(self, places: Sequence[int], until: int | None) -> list[Judged]:
        """The outputs over some of the events, by parts that are judged by themselves.

        A part of which its judge cannot tell is left out.
        """
        try:
            return [Judged(str(self), self.rules, self.outputs(places, until))]
        except TooManyError:
            return []

    def smaller(self) -> Iterator[Trial]:
        """The trial with less in it, the least first."""
        return iter(())

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(each.name for each in self.library.checked.correlations)

    @property
    def end(self) -> int | None:
        """Where the clock stands at the end, if that is behind the last event."""
        return self.until

    @property
    def by_time(self) -> list[int]:
        """The places of the events in the order of their times."""
        return sorted(range(len(self.events)), key=lambda place: self.events[place].time)

    @property
    def in_order(self) -> list[Event]:
        """The events as a run is to be given them."""
        places = self.by_time if self.lateness is None else range(len(self.events))
        return [self.events[place] for place in places]


class PlainTrial(Trial):
    """Filters and expressions, judged by the first reading of the definitions."""

    def __init__(self, drawn: generator.Scenario, changes: Sequence[str] = ()) -> None:
        super().__init__(drawn.seed, drawn.library, drawn.until)
        self._drawn = drawn
        self.lateness = drawn.lateness
        self.changes = changes

    @cached_property
    def events(self) -> Sequence[Event]:
        types = self.library.checked.types
        return [conform(decode(json.dumps(each)), types) for each in self._drawn.events]

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        return [members_of(each) for each in self._run(places, None, until).outputs]

    @cached_property
    def expected(self) -> Observed | None:
        try:
            made = self._run(range(len(self.events)), self.lateness, self.until)
        except TooManyError:
            return None
        return Observed.of(made.outputs, made.late)

    def _run(self, places: Sequence[int], lateness: int | None, until: int | None) -> oracle.Result:
        events = [self.events[place] for place in places]
        checked = self.library.checked
        return oracle.run(checked.tree, checked.types, events, lateness=lateness, until=until)

    def smaller(self) -> Iterator[Trial]:
        drawn = self._drawn
        less = [replace(drawn, until=None)] if drawn.until is not None else []
        less += [replace(drawn, lateness=None)] if drawn.lateness is not None else []
        less += [replace(drawn, events=list(each)) for each in shorter(drawn.events)]
        for each in less:
            yield PlainTrial(each, self.changes)

    def __str__(self) -> str:
        return str(self._drawn)


class RelatedTrial(Trial):
    """Rules over several events, judged by the reading of their definitions."""

    def __init__(self, drawn: values_model.Scenario, changes: Sequence[str] = ()) -> None:
        super().__init__(drawn.seed, str(drawn.model), drawn.until)
        self._drawn = drawn
        self.changes = changes

    @cached_property
    def events(self) -> Sequence[Event]:
        return [
            conform(decode(json.dumps(members)), self.library.checked.types)
            for members in map(_members_of_moment, self._drawn.events)
        ]

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        events = tuple(self._drawn.events[place] for place in places)
        judged = judge(replace(self._drawn, events=events, until=until))
        return [members_of(event_of(each)) for each in judged]

    def smaller(self) -> Iterator[Trial]:
        for each in candidates(self._drawn):
            yield RelatedTrial(each, self.changes)

    def __str__(self) -> str:
        return str(self._drawn)


class ReferenceTrial(Trial):
    """A text and events of any origin, judged by the reference engine."""

    def __init__(
        self,
        seed: int,
        text: str,
        events: Sequence[Event],
        until: int | None,
        changes: Sequence[str] = (),
    ) -> None:
        super().__init__(seed, text, until)
        self._events = events
        self.changes = changes

    @property
    def events(self) -> Sequence[Event]:
        return self._events

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        run = self.library.start("reference")
        made = run.push_all(self._events[place] for place in places)
        return [members_of(each) for each in [*made, *run.finish(until)]]

    def smaller(self) -> Iterator[Trial]:
        for events in shorter(self._events):
            yield self.over(events)

    def over(self, events: Sequence[Event]) -> Self:
        return type(self)(self.seed, self.text, events, self.until, self.changes)

    def __str__(self) -> str:
        return "\n".join([self.text, *map(str, self._events), f"// until {self.until}"])


class MergedTrial(Trial):
    """Several trials over one stream, whose types and rules have different names."""

    def __init__(self, parts: Sequence[Trial]) -> None:
        super().__init__(parts[0].seed, "\n".join(each.text for each in parts), None)
        self.parts = parts

    @cached_property
    def events(self) -> Sequence[Event]:
        return [event for each in self.parts for event in each.events]

    @property
    def end(self) -> int | None:
        ends = [each.until for each in self.parts if each.until is not None]
        return max([*ends, *(event.time for event in self.events)], default=None)

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        return [output for each in self.judged(places, until) for output in each.outputs]

    def judged(self, places: Sequence[int], until: int | None) -> list[Judged]:
        found: list[Judged] = []
        first = 0
        for part in self.parts:
            end = first + len(part.events)
            found += part.judged([each - first for each in places if first <= each < end], until)
            first = end
        return found

    def __str__(self) -> str:
        return f"// {len(self.parts)} libraries together"


def members_of(event: Event) -> Members:
    found: Members = json.loads(encode(event))
    return found


def shorter(events: Sequence[T]) -> Iterator[Sequence[T]]:
    """The events without half of them, without a quarter, ... without one."""
    size = len(events) // 2
    while size:
        for start in range(0, len(events), size):
            yield [*events[:start], *events[start + size :]]
        size //= 2


def _members_of_moment(moment: values_model.Moment) -> Members:
    return {
        "id": moment.id,
        "source": moment.source,
        "type": moment.type,
        "time": datetime_of(moment.time).isoformat().replace("+00:00", "Z"),
        "data": moment.data,
    }


def event_of(output: Mapping[str, Any]) -> Event:
    names = ("id", "source", "type", "time", "data")
    extensions = {name: value for name, value in output.items() if name not in names}
    return Event(**{name: output[name] for name in names}, extensions=extensions)
