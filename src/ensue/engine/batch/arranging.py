"""How the correlations of a library run in batches: which in a group, and which on their own.

In comes a library; out go its correlations, each as what it runs as. Those that are alike run
together, of the others those that share a key abreast, and those with windows or with timers side
by side: in groups of a few at least, but for timers. Whoever feeds others or is fed runs alone, and
so does what groups do not read. A group can be left, or one of its members can leave it; what a
correlation was in it goes on from there.
"""

from __future__ import annotations

from ensue.engine.batch.abreast import AbreastGroup, company_of
from ensue.engine.batch.alarmed import (
    AlarmedGroup,
    AlarmedShape,
    alarmed_company,
    shape_of_alarmed,
)
from ensue.engine.batch.by_event import EventCorrelation
from ensue.engine.batch.correlations import ColumnCorrelation, Path, path_of
from ensue.engine.batch.groups import Company, Group, LooseGroup, Member, is_on_table
from ensue.engine.batch.snapshots import decode_correlation, encode_correlation
from ensue.engine.batch.timed import TimedCorrelation
from ensue.engine.batch.together import RuleGroup, likeness
from ensue.engine.batch.windowed import WindowedGroup, shape_of_windowed, windowed_company
from ensue.engine.counts import Counts
from ensue.engine.outputs import carries_key
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.prepared import brought_plan

Running = ColumnCorrelation | EventCorrelation | Member

FEWEST_ALIKE = 8
"""Fewer that are alike run abreast with others, if there are others."""
FEWEST_WINDOWED = 3
"""Fewer with windows run alone."""
MOST_BESIDE_WINDOWS = 256
"""So many that are alike, and have no windows, are better off together than beside those."""


class Arrangement:
    """`running` has the correlations in the order of the library."""

    def __init__(self, library: CheckedLibrary, depth: int, counts: Counts) -> None:
        self._library = library
        # A library goes through all of its definitions for these.
        self._correlations = library.correlations
        self._depth = depth
        self._counts = counts
        self._paths: dict[int, tuple[Path, Machine | None]] = {}
        self.groups: list[Group] = []
        grouped: dict[str, Running] = {}
        for group in self._groups():
            self.groups.append(group)
            grouped.update(group.members)
        self.running: dict[str, Running] = {
            correlation.name: grouped.get(correlation.name) or self._alone(number)
            for number, correlation in enumerate(self._correlations)
        }

    def _path(self, number: int) -> tuple[Path, Machine | None]:
        if number not in self._paths:
            correlation = self._correlations[number]
            if carries_key(correlation, self._library.types):
                self._paths[number] = Path("events", "its outputs carry their key"), None
            else:
                brought = brought_plan(self._library, correlation)
                self._paths[number] = path_of(correlation, brought)
        return self._paths[number]

    def _groups(self) -> list[Group]:
        alike = self._alike()
        abreast: dict[Company, list[int]] = {}
        for numbers in alike.values():
            if len(numbers) < FEWEST_ALIKE:
                company = company_of(self._correlations[numbers[0]], *self._path(numbers[0]))
                if company is not None:
                    abreast.setdefault(company, []).extend(numbers)
        kinds = {numbers[0]: len(numbers) for numbers in alike.values()}
        mixed = [
            sorted(numbers)
            for numbers in abreast.values()
            # One kind alone runs together, or alone.
            if len(numbers) > kinds[numbers[0]]
        ]
        groups: list[Group] = [self._mixed(numbers) for numbers in mixed]
        groups += self._windowed(alike)
        groups += self._alarmed()
        gone = {number for group in groups for number in group.numbers.tolist()}
        for numbers in alike.values():
            path, machine = self._path(numbers[0])
            if len(numbers) > 1 and numbers[0] not in gone and is_on_table(path, machine):
                assert machine is not None
                chosen = [self._correlations[number] for number in numbers]
                types = self._library.types
                groups.append(RuleGroup(chosen, numbers, path, machine, types, self._counts))
        return groups

    def _windowed(self, alike: dict[Correlation, list[int]]) -> list[Group]:
        shapes: dict[tuple[bool, Correlation], list[int]] = {}
        for common, numbers in alike.items():
            shapes.setdefault(shape_of_windowed(common), []).extend(numbers)
        companies: dict[Company, list[list[int]]] = {}
        others: dict[Company, list[list[int]]] = {}
        for (has_window, _), numbers in shapes.items():
            first = self._correlations[numbers[0]], *self._path(numbers[0])
            company = windowed_company(*first) if has_window else company_of(*first)
            if company is None:
                continue
            if has_window:
                companies.setdefault(company, []).append(numbers)
            elif FEWEST_ALIKE <= len(numbers) < MOST_BESIDE_WINDOWS:
                others.setdefault(company, []).append(numbers)
        return [
            self._side_by_side([*windowed, *others.get(company, [])])
            for company, windowed in companies.items()
            if sum(len(numbers) for numbers in windowed) >= FEWEST_WINDOWED
        ]

    def _side_by_side(self, shapes: list[list[int]]) -> WindowedGroup:
        return WindowedGroup(*self._by_shape(shapes), self._library.types, self._counts)

    def _by_shape(
        self, shapes: list[list[int]]
    ) -> tuple[list[Correlation], list[int], list[int], list[Machine]]:
        """Correlations, their numbers, which shape each is of, and a machine of each shape."""
        numbers = sorted(number for each in shapes for number in each)
        place = {number: shape for shape, each in enumerate(shapes) for number in each}
        # Of a shape only one machine is needed: those of the others differ in names.
        firsts = [min(each) for each in shapes]
        _, _, machines = self._chosen(firsts)
        chosen = [self._correlations[number] for number in numbers]
        return chosen, numbers, [place[number] for number in numbers], machines

    def _alarmed(self) -> list[Group]:
        """Those with timers, side by side with others of the same key, if there are others.

        One by itself gains by it, too: its alarms wait until something visits it.
        """
        shapes: dict[AlarmedShape, list[int]] = {}
        linked = self._linked()
        for number, correlation in enumerate(self._correlations):
            shape = None if correlation.name in linked else shape_of_alarmed(correlation)
            if shape is not None:
                shapes.setdefault(shape, []).append(number)
        companies: dict[Company, list[list[int]]] = {}
        for numbers in shapes.values():
            company = alarmed_company(self._correlations[numbers[0]], *self._path(numbers[0]))
            if company is not None:
                companies.setdefault(company, []).append(numbers)
        types = self._library.types
        return [
            AlarmedGroup(*self._by_shape(chosen), types, self._counts)
            for chosen in companies.values()
        ]

    def _linked(self) -> set[str]:
        """Who feeds others, or is fed."""
        feeds = self._library.feeds
        return {name for name, fed in feeds.items() if fed}.union(*feeds.values())

    def _alike(self) -> dict[Correlation, list[int]]:
        """The correlations that neither feed others nor are fed: those that are alike together."""
        linked = self._linked()
        alike: dict[Correlation, list[int]] = {}
        for number, correlation in enumerate(self._correlations):
            common = None if correlation.name in linked else likeness(correlation)
            if common is not None:
                alike.setdefault(common, []).append(number)
        return alike

    def _mixed(self, numbers: list[int]) -> AbreastGroup:
        return AbreastGroup(*self._chosen(numbers), self._library.types, self._counts)

    def _chosen(self, numbers: list[int]) -> tuple[list[Correlation], list[int], list[Machine]]:
        machines = []
        for number in numbers:
            _, machine = self._path(number)
            assert machine is not None, "what is in a group is in columns"
            machines.append(machine)
        return [self._correlations[number] for number in numbers], numbers, machines

    def _alone(self, number: int) -> Running:
        correlation, types = self._correlations[number], self._library.types
        path, machine = self._path(number)
        if machine is None:
            return EventCorrelation(correlation, path, number, self._depth, types, self._counts)
        if path.name == "timed":
            return TimedCorrelation(
                correlation, path, machine, number, self._depth, types, self._counts
            )
        return ColumnCorrelation(correlation, path, machine, types, self._counts)

    def leave(self, group: Group) -> None:
        """Let the members of a group run on their own from now on."""
        self.groups.remove(group)
        for member in group.members.values():
            self._go_on_alone(member)

    def let_go(self, group: LooseGroup, name: str) -> None:
        """Let one member of a group run on its own from now on."""
        self._go_on_alone(group.members[name])
        group.let_go(name)
        if not group.members:
            self.groups.remove(group)

    def _go_on_alone(self, member: Member) -> None:
        state = encode_correlation(member)
        alone = self._alone(int(member.group.numbers[member.number]))
        decode_correlation(alone, state)
        self.running[member.name] = alone
