"""What Spark is tried on: a library, its events, and what an oracle says of any part of them.

In comes a number; out goes a `Trial`. There are four kinds: what the usual and the rare generator
draw, rules that relate events, and many such rules in one library, of which the last reads what the
others put out. Both oracles judge bounded streams, in the order of their times.

Spark takes about as long for one library as for many rules, so that trials of a kind are also put
`together`: one library and one stream, in which each trial has types of its own. They share nothing
but the clock, and each is judged by itself.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.engine.batch.output.schema import CONTEXT, PROVENANCE
from ensue.events.arrow import table_of
from ensue.events.arrow_types import arrow_type
from ensue.events.cloudevents import encode
from ensue.events.columns import is_attribute_column
from ensue.events.event import Event
from ensue.spark.outputs import output_columns
from ensue.spark.plan import plan_of
from tests.oracle import generator, rare
from tests.oracle.agreement import observe_oracle, read_events
from tests.oracle.filters import TooManyError
from tests.oracle.values import generator as values_generator
from tests.oracle.values import model as values_model
from tests.oracle.values.agreement import events_of
from tests.oracle.values.reading import judge

Members = dict[str, Any]
RULES_TOGETHER = (6, 10)
MOST_EVENTS_TOGETHER = 40


class Trial(ABC):
    """One library over one stream. Events are named by their places in the stream."""

    def __init__(self, seed: int, text: str, until: int | None) -> None:
        self.seed = seed
        self.until = until
        self.text = text

    @cached_property
    def library(self) -> ensue.Library:
        return ensue.parse(self.text)

    @property
    @abstractmethod
    def events(self) -> list[Event]:
        """The events in the order in which they were drawn."""

    @abstractmethod
    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        """The outputs over some of the events as CloudEvents; raises `TooManyError`."""

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(each.name for each in self.library.checked.correlations)

    @property
    def end(self) -> int | None:
        """Where the clock stands at the end, if that is behind the last event."""
        return self.until

    def judged(self, places: Sequence[int], until: int | None) -> list[Judged]:
        """What is judged by itself, and the outputs of each over some of the events.

        What a trial cannot be told by its oracle, which goes through all that is remembered, is
        left out.
        """
        try:
            return [Judged(str(self), self.rules, self.outputs(places, until))]
        except TooManyError:
            return []

    def as_rows(self, outputs: Sequence[Members]) -> list[Members]:
        """Outputs as rows of a DataFrame."""
        attributes = output_columns(plan_of(self.library.checked)).attributes
        found = []
        for output in outputs:
            data = output.get("data") or {}
            row = {name: output.get(name) for name in (*CONTEXT, *PROVENANCE)}
            found.append(row | {name: data.get(name) for name in attributes})
        return found

    @property
    def by_time(self) -> list[int]:
        """The places of the events in the order of their times."""
        return sorted(range(len(self.events)), key=lambda place: self.events[place].time)


class Judged(NamedTuple):
    """What an oracle says of the rules of a trial, and the trial as text."""

    text: str
    rules: frozenset[str]
    outputs: list[Members]


class PlainTrial(Trial):
    """A scenario of the usual or the rare generator, without its lateness."""

    def __init__(self, drawn: generator.Scenario) -> None:
        super().__init__(drawn.seed, drawn.library, drawn.until)
        self._drawn = replace(drawn, lateness=None)

    @cached_property
    def events(self) -> list[Event]:
        return read_events(self._drawn, self.library)

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        events = [self._drawn.events[place] for place in places]
        asked = replace(self._drawn, events=events, until=until)
        return [json.loads(text) for text in observe_oracle(asked, self.library).outputs]

    def __str__(self) -> str:
        return str(self._drawn)


class RelatedTrial(Trial):
    """A scenario of rules that relate events."""

    def __init__(self, drawn: values_model.Scenario) -> None:
        super().__init__(drawn.seed, str(drawn.model), drawn.until)
        self._drawn = drawn

    @cached_property
    def events(self) -> list[Event]:
        return list(events_of(self._drawn, self.library))

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        events = tuple(self._drawn.events[place] for place in places)
        judged = judge(replace(self._drawn, events=events, until=until))
        return [json.loads(encode(_as_event(each))) for each in judged]

    def __str__(self) -> str:
        return str(self._drawn)


class MergedTrial(Trial):
    """Several trials over one stream, whose types have different names."""

    def __init__(self, parts: Sequence[Trial]) -> None:
        super().__init__(parts[0].seed, "\n".join(each.text for each in parts), None)
        self._parts = parts

    @cached_property
    def events(self) -> list[Event]:
        return [event for each in self._parts for event in each.events]

    @property
    def end(self) -> int | None:
        ends = [each.until for each in self._parts if each.until is not None]
        return max([*ends, *(event.time for event in self.events)], default=None)

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        return [output for each in self.judged(places, until) for output in each.outputs]

    def judged(self, places: Sequence[int], until: int | None) -> list[Judged]:
        found: list[Judged] = []
        first = 0
        for part in self._parts:
            end = first + len(part.events)
            found += part.judged([each - first for each in places if first <= each < end], until)
            first = end
        return found

    def __str__(self) -> str:
        return f"// seeds {[each.seed for each in self._parts]} together"


def _renamed(drawn: values_model.Scenario, suffix: str) -> values_model.Scenario:
    """The scenario with types and rules that end with a suffix."""
    types = tuple(
        replace(each, name=each.name + suffix, parent=each.parent and each.parent + suffix)
        for each in drawn.model.types
    )
    rules = tuple(
        replace(
            rule,
            output=rule.output + suffix,
            name=rule.name + suffix,
            ports=tuple(
                replace(port, type=port.type + suffix)
                if isinstance(port, values_model.Port)
                else port
                for port in rule.ports
            ),
            cases=tuple(
                replace(case, push=replace(case.push, type=case.push.type + suffix))
                if isinstance(case.push, values_model.New)
                else case
                for case in rule.cases
            ),
        )
        for rule in drawn.model.rules
    )
    events = tuple(replace(each, type=each.type + suffix) for each in drawn.events)
    return replace(drawn, model=values_model.Model(types, rules), events=events)


def _as_event(output: Mapping[str, Any]) -> Event:
    names = ("id", "source", "type", "time", "data")
    extensions = {name: value for name, value in output.items() if name not in names}
    return Event(**{name: output[name] for name in names}, extensions=extensions)


class TogetherDrawing(values_generator.Drawing):
    """Many rules over one stream; each leans its own way."""

    def scenario(self) -> values_model.Scenario:
        count = self.random.randint(*RULES_TOGETHER)
        drawings = [values_generator.Drawing(self.random.randrange(10**9)) for _ in range(count)]
        rules = [each.rule(f"Rule{number}", 2) for number, each in enumerate(drawings, 1)]
        self.types = (*self.types, "Out", "Out", "Out2")
        rules.append(self.rule("Last", 2))
        # More events than one rule is given, since most of them are for some of the rules only.
        events: list[values_model.Moment] = []
        while len(events) < MOST_EVENTS_TOGETHER:
            begin = events[-1].time if events else 0
            events += [
                replace(each, id=f"e{number}", time=begin + each.time)
                for number, each in enumerate(self.stream(rules), len(events) + 1)
            ]
        until = events[-1].time + self.random.choice([0, 3]) * values_model.SECOND
        model = values_model.Model(values_generator.TYPES, tuple(rules))
        return values_model.Scenario(self.seed, model, tuple(events), until)


DRAWN: Mapping[str, Callable[[int, str], Trial]] = {
    "usual": lambda seed, suffix: PlainTrial(generator.Drawing(seed, suffix).scenario()),
    "rare": lambda seed, suffix: PlainTrial(rare.RareDrawing(seed, suffix).scenario()),
    "related": lambda seed, suffix: RelatedTrial(_renamed(values_generator.scenario(seed), suffix)),
    "together": lambda seed, suffix: RelatedTrial(
        _renamed(TogetherDrawing(seed).scenario(), suffix)
    ),
}
"""For each kind, the trial of a seed, all of whose types and rules end with a text."""


def trial(kind: str, seed: int) -> Trial:
    return DRAWN[kind](seed, "")


def together(kind: str, seeds: Sequence[int]) -> Trial:
    """The trials of some seeds in one library and one stream."""
    return MergedTrial([DRAWN[kind](seed, f"x{seed}") for seed in seeds])


# --- events and rows ----------------------------------------------------------------------------


def table_of_events(events: Sequence[Event], library: ensue.Library) -> pa.Table:
    """The events in columns, with one for every attribute, whether it occurs or not."""
    types = library.checked.types
    table = table_of(events, types)
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in table.column_names and is_attribute_column(name):
                table = table.append_column(name, pa.nulls(len(table), arrow_type(type_)))
    return table


def frame_of(spark: SparkSession, events: Sequence[Event], library: ensue.Library) -> DataFrame:
    return spark.createDataFrame(table_of_events(events, library))


def as_text(members: Mapping[str, Any]) -> str:
    """An output or a row as text with instants as numbers, so that two of them can be compared."""
    return json.dumps(_plain(members), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, datetime):
        # Rows that are collected have the times of this machine.
        return Event.of("x", time=value.astimezone(UTC)).time
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        try:
            return Event.of("x", time=value).time
        except ValueError:
            return value
    return value
