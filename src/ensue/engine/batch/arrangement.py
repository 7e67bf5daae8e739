"""How the correlations of a library run in batches: which in a group, and which alone.

In comes a library; out goes, for each correlation, the object that runs it. Rules of equal traits
go through a batch together (`many.group`); a rule with timers is a group even by itself. A rule
that has no traits, feeds another rule, is fed by one or is internal runs alone, in columns
(`single.correlation`) or event by event (`single.by_event`). A member can leave its group, and goes
on alone from the state it had there.
"""

from __future__ import annotations

from ensue.engine.batch.many.group import BatchGroup
from ensue.engine.batch.paths import Path, path_alone
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.engine.batch.snapshots import RunningRule, decode_correlation, encode_correlation
from ensue.engine.core.relating.form import ChainForm, form_of
from ensue.engine.core.shapes import GroupTraits, group_traits, shape_of
from ensue.engine.counts import Counts
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import FilterCorrelation
from ensue.machine.model import Machine
from ensue.machine.prepared import brought_plan


class Arrangement:
    """How the correlations of one library run: groups of rules, and rules alone.

    `running` has the object that runs each correlation, by name, in the order of the library.
    """

    def __init__(self, library: CheckedLibrary, depth: int, counts: Counts) -> None:
        self._library = library
        # A library goes through all of its definitions for these.
        self._correlations = library.correlations
        self._depth = depth
        self._counts = counts
        self._paths: dict[int, tuple[Path, Machine | None]] = {}
        self.groups = [self._group(traits, numbers) for traits, numbers in self._groups_by_traits()]
        grouped = {name: each for group in self.groups for name, each in group.members.items()}
        self.running: dict[str, RunningRule] = {
            correlation.name: grouped.get(correlation.name) or self._alone(number)
            for number, correlation in enumerate(self._correlations)
        }

    def _path(self, number: int) -> tuple[Path, Machine | None]:
        if number not in self._paths:
            correlation = self._correlations[number]
            brought = brought_plan(self._library, correlation)
            self._paths[number] = path_alone(correlation, brought, self._library.types)
        return self._paths[number]

    def _groups_by_traits(self) -> list[tuple[GroupTraits, list[int]]]:
        """The rules that go through a batch together."""
        feeds = self._library.feeds
        apart = {name for name, fed in feeds.items() if fed}.union(*feeds.values())
        apart |= {each.name for each in self._correlations if each.role == "internal"}
        shapes: dict[object, list[int]] = {}
        for number, correlation in enumerate(self._correlations):
            if correlation.name not in apart:
                shapes.setdefault(shape_of(correlation), []).append(number)
        by_traits: dict[GroupTraits, list[int]] = {}
        for numbers in shapes.values():
            # Of a shape only one machine is needed: those of the others differ in names.
            first = numbers[0]
            traits = group_traits(self._correlations[first], self._path(first)[1])
            if traits is not None:
                by_traits.setdefault(traits, []).extend(numbers)
        # A rule without timers whose traits no other rule has is quicker alone.
        return [
            (traits, sorted(numbers))
            for traits, numbers in by_traits.items()
            if len(numbers) > 1 or traits.has_timers
        ]

    def _group(self, traits: GroupTraits, numbers: list[int]) -> BatchGroup:
        machines = {
            number: machine
            for number in numbers
            if number in self._paths and (machine := self._path(number)[1]) is not None
        }
        chosen = [self._correlations[number] for number in numbers]
        return BatchGroup(traits, chosen, numbers, machines, self._library.types, self._counts)

    def _alone(self, number: int) -> ColumnCorrelation | RelatedCorrelation | EventCorrelation:
        correlation, types = self._correlations[number], self._library.types
        path, machine = self._path(number)
        if path.name == "related":
            form = form_of(correlation, types)
            assert isinstance(form, ChainForm)
            assert isinstance(correlation, FilterCorrelation)
            if form.after is None or self._depth == 1:
                return RelatedCorrelation(correlation, form, types, self._counts, number)
            return self._by_event(number, "it waits for the clock beside rules that feed others")
        if machine is None or path.name == "timed":
            reason = path.reason or "its timers run in a cell only while no other rule feeds it"
            return self._by_event(number, reason)
        return ColumnCorrelation(correlation, path, machine, types, self._counts)

    def _by_event(self, number: int, why: str) -> EventCorrelation:
        correlation, types = self._correlations[number], self._library.types
        path = Path("events", why)
        return EventCorrelation(correlation, path, number, self._depth, types, self._counts)

    def leave_columns(self, name: str, why: str) -> EventCorrelation:
        """Let a rule alone go on event by event, from the state that it has."""
        state = encode_correlation(self.running[name])
        by_event = self.begin_by_event(name, why)
        decode_correlation(by_event, state)
        return by_event

    def begin_by_event(self, name: str, why: str) -> EventCorrelation:
        """Let a rule alone run event by event, from its start."""
        number = next(n for n, each in enumerate(self._correlations) if each.name == name)
        by_event = self.running[name] = self._by_event(number, why)
        return by_event

    def dissolve(self, group: BatchGroup) -> None:
        """Let all members of a group run alone from now on."""
        for name in list(group.members):
            self.release(group, name)

    def release(self, group: BatchGroup, name: str, why: str | None = None) -> None:
        """Let one member of a group run alone from now on; if there is a reason, by events."""
        member = group.members[name]
        state = encode_correlation(member)
        number = int(group.numbers[member.number])
        alone = self._alone(number) if why is None else self._by_event(number, why)
        decode_correlation(alone, state)
        self.running[name] = alone
        group.release(name)
        if not group.members:
            self.groups.remove(group)
