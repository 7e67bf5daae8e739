"""Filters that relate events in several branches: each branch as a filter of its own.

In come events by the mask of their ports; out come outputs, those of the first branch first. A
branch keeps and forgets on its own, and no branch can abort a part of another, so that each is a
chain (`linked`, `stretched`) with the clauses and cases of the rule. They share the outputs of
their key, as the number of an output goes on from branch to branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensue.engine.core.instances.firing import NumberedEvent
from ensue.engine.core.instances.keys import FastKey, KeyInstance
from ensue.engine.core.relating.form import form_of
from ensue.engine.core.relating.linked import (
    ChainFacts,
    ChainFilter,
    LinkedFacts,
    LinkedFilter,
)
from ensue.engine.core.relating.stretched import StretchedFacts
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation, TimerPort


class BranchedFacts(ChainFacts):
    """The facts that all instances of a filter with several branches share."""

    def __init__(
        self, correlation: FilterCorrelation, types: TypeSystem, parts: Sequence[LinkedFacts]
    ) -> None:
        super().__init__(correlation, types)
        self.parts = parts

    def may_begin(self, mask: int) -> bool:
        return any(each.may_begin(mask) for each in self.parts)

    @property
    def most_events(self) -> int | None:
        each = [part.most_events for part in self.parts]
        return None if None in each else sum(count or 0 for count in each)

    def instance(
        self, timers: Sequence[TimerPort], outputs: Outputs | FastKey, started: int
    ) -> BranchedFilter:
        return BranchedFilter(self, timers, outputs, started)


class BranchedFilter(ChainFilter):
    """A filter with several branches under one key: an instance for each branch."""

    __slots__ = ("_parts",)

    facts: BranchedFacts

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
        self._parts = [each.instance(timers, shared, started) for each in facts.parts]

    def branches(self) -> Sequence[LinkedFilter]:
        return self._parts

    def read(self, reading: Reading) -> list[Event]:
        return [output for part in self._parts for output in part.read(reading)]

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        return [output for part in self._parts for output in part.step(mask, time, numbered)]

    def is_idle(self, now: int) -> bool:
        return all(part.is_idle(now) for part in self._parts)


def chain_facts(correlation: FilterCorrelation, types: TypeSystem) -> ChainFacts | None:
    """The facts of a rule whose branches are chains of groups; None if one is not."""
    parts: list[LinkedFacts] = []
    for branch in correlation.branches:
        alone = replace(correlation, branches=(branch,))
        form = form_of(alone, types, in_columns=False)
        if isinstance(form, str):
            return None
        of_form = StretchedFacts if form.needs_stretches else LinkedFacts
        parts.append(of_form(alone, form, types))
    return parts[0] if len(parts) == 1 else BranchedFacts(correlation, types, parts)
