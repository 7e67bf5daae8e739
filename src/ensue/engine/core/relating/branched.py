"""Filters that relate events in several branches: each branch as a filter of its own.

In come events by the mask of their ports; out come outputs, those of the first branch first. A
branch keeps and forgets on its own, and no branch can abort a part of another, so that each is a
chain (`linked`, `stretched`) with the clauses and cases of the rule. They share the outputs of
their key, as the number of an output goes on from branch to branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensue.engine.core.instances.firing import Noted
from ensue.engine.core.instances.keys import FastKey, KeyInstance
from ensue.engine.core.relating.linked import LinkedFacts, LinkedFilter, linked_facts
from ensue.engine.core.relating.stretched import stretched_facts
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation, TimerPort


class BranchedFacts(LinkedFacts):
    """What all instances of a filter with several branches share."""

    def __init__(
        self, correlation: FilterCorrelation, types: TypeSystem, parts: Sequence[LinkedFacts]
    ) -> None:
        self._correlation, self._types = correlation, types
        self._is_keyed = bool(correlation.clauses.by)
        self.ports = parts[0].ports
        self._bit_of = {port: 1 << number for number, port in enumerate(self.ports)}
        self.parts = parts

    def may_begin(self, mask: int) -> bool:
        return any(each.may_begin(mask) for each in self.parts)

    @property
    def most_events(self) -> int | None:
        each = [part.most_events for part in self.parts]
        return None if None in each else sum(count or 0 for count in each)

    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> LinkedFilter:
        return BranchedFilter(self, timers, outputs, started)


class BranchedFilter(LinkedFilter):
    """A filter with several branches under one key: an instance for each branch."""

    __slots__ = ("_parts",)

    def __init__(
        self,
        facts: BranchedFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        shared = outputs if isinstance(outputs, Outputs) else facts.outputs(outputs)
        KeyInstance.__init__(self, timers, shared, started)
        self.facts = facts
        self.row = facts.row
        self._parts = [each.instance(timers, shared, started) for each in facts.parts]

    def branches(self) -> Sequence[LinkedFilter]:
        return self._parts

    def read(self, reading: Reading) -> list[Event]:
        return [output for part in self._parts for output in part.read(reading)]

    def step(self, mask: int, time: int, noted: Noted) -> list[Event]:
        return [output for part in self._parts for output in part.step(mask, time, noted)]

    def is_idle(self, now: int) -> bool:
        return all(part.is_idle(now) for part in self._parts)


def chain_facts(correlation: FilterCorrelation, types: TypeSystem) -> LinkedFacts | None:
    """The facts of a rule whose branches are chains of groups; None if one is not."""
    if len(correlation.branches) == 1:
        return linked_facts(correlation, types) or stretched_facts(correlation, types)
    parts: list[LinkedFacts] = []
    for branch in correlation.branches:
        found = chain_facts(replace(correlation, branches=(branch,)), types)
        if found is None:
            return None
        parts.append(found)
    return BranchedFacts(correlation, types, parts)
