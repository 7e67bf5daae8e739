"""What an event is to groups of rules: who wants it, what it is to each, and which letters it is.

In come the ports of the rules, each with the tests that it needs; out goes, for the tests that hold
of an event, a `GroupReading` for each group and a `BoardReading` for groups of one board, which are
made once and kept with the plan of those tests. Evaluating tests is for the `routines` of a type,
and stepping for `boards`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ensue.lang.syntax import EventPort

if TYPE_CHECKING:
    from ensue.engine.step.boards import Board
    from ensue.engine.step.groups import Group
    from ensue.engine.step.rules import Rule
    from ensue.engine.step.visited_groups import VisitedGroup


class GroupReading:
    """What the events of a type with certain tests are to a group.

    `wanted` has the rules that match at all. `is_nothing` says that no rule leaves its start by
    such an event.
    """

    __slots__ = ("group", "is_nothing", "key", "letters", "wanted")

    def __init__(self, group: Group, key: int, wanted: int, letters: tuple[int, ...]) -> None:
        self.group = group
        self.key = key
        self.wanted = wanted
        self.letters = letters
        self.is_nothing = False


class CellReading(GroupReading):
    """`visits` has the rules that want it, each with what the event is to it."""

    __slots__ = ("visits",)

    group: VisitedGroup

    def __init__(
        self, group: VisitedGroup, key: int, wanted: int, letters: tuple[int, ...], visits: Any
    ) -> None:
        super().__init__(group, key, wanted, letters)
        self.visits = visits
        self.is_nothing = group.is_nothing(visits)


Visit = tuple["VisitedGroup", int, Any, bool]
"""A group, its place on the board, whom to visit, and whether a group at its start is not moved."""


class BoardReading:
    """What the events of a type with certain tests are to the groups of a board.

    `letters` are all that the event is.
    """

    __slots__ = ("board", "is_nothing", "key", "letters", "parts", "visits")

    def __init__(self, board: Board, parts: Sequence[GroupReading]) -> None:
        self.board = board
        self.parts = parts
        self.key = parts[0].key
        self.letters = tuple(sorted({letter for part in parts for letter in part.letters}))
        self.is_nothing = all(part.is_nothing for part in parts)
        self.visits: tuple[Visit, ...] = tuple(
            (part.group, part.group.at, part.visits, part.is_nothing)
            for part in parts
            if isinstance(part, CellReading)
        )


def board_readings(parts: Iterable[GroupReading]) -> tuple[BoardReading, ...]:
    """The readings of groups, put together by their boards."""
    by_board: dict[Board, list[GroupReading]] = {}
    for part in parts:
        by_board.setdefault(part.group.board, []).append(part)
    return tuple(BoardReading(board, found) for board, found in by_board.items())


class GroupWant(ABC):
    """What a group wants of a type: for each combination of tests that a port may need, who."""

    def __init__(self, group: Group, key: int) -> None:
        self._board_group = group
        self._key = key
        self._wanted: dict[int, int] = defaultdict(int)
        self._letters: dict[int, set[int]] = defaultdict(set)
        self._by_test: dict[int, list[int]] | None = None

    def add(self, needed: int, rule: Rule, port: EventPort, atom: int | None) -> None:
        """A port of a rule, with its atom if the machine has one."""
        group = self._board_group
        self._by_test = None
        self._wanted[needed] |= group.bit(rule)
        if atom is not None:
            self._letters[needed].add(group.letter(port))
        self._add(needed, rule, port, atom)

    @abstractmethod
    def _add(self, needed: int, rule: Rule, port: EventPort, atom: int | None) -> None:
        """Note what an event that meets the needs of a port is to a rule."""

    def reading(self, tests: int) -> GroupReading | None:
        """What an event of which exactly these tests hold is to the group."""
        wanted = 0
        letters: set[int] = set()
        met = self._met_by(tests)
        for needed in met:
            wanted |= self._wanted[needed]
            letters |= self._letters.get(needed, frozenset())
        return self._reading(met, wanted, tuple(sorted(letters))) if wanted else None

    @abstractmethod
    def _reading(self, met: Sequence[int], wanted: int, letters: tuple[int, ...]) -> GroupReading:
        """The reading of events that meet these needs."""

    def _met_by(self, tests: int) -> list[int]:
        """The combinations that hold, of those that are asked for: few of very many."""
        if self._by_test is None:
            self._by_test = defaultdict(list)
            for needed in self._wanted:
                self._by_test[needed.bit_length()].append(needed)
        found = list(self._by_test.get(0, ()))
        left = tests
        while left:
            bit = left.bit_length()
            left ^= 1 << (bit - 1)
            found += [each for each in self._by_test.get(bit, ()) if each & tests == each]
        return found


class CellWant(GroupWant):
    """It has, for each rule by its number, which of its ports match, as bits."""

    def __init__(self, group: VisitedGroup, key: int) -> None:
        super().__init__(group, key)
        self._group = group
        self._ports: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._parts: dict[int, Any] = {}

    def _add(self, needed: int, rule: Rule, port: EventPort, atom: int | None) -> None:  # noqa: ARG002
        self._parts.clear()
        ports = [each for each in rule.correlation.ports if isinstance(each, EventPort)]
        self._ports[needed][self._group.number(rule)] |= 1 << ports.index(port)

    def _reading(self, met: Sequence[int], wanted: int, letters: tuple[int, ...]) -> CellReading:
        if not self._parts:
            self._parts = {n: self._group.part_of(each) for n, each in self._ports.items()}
        visits = self._group.visits_of([self._parts[needed] for needed in met])
        return CellReading(self._group, self._key, wanted, letters, visits)
