"""What an event is to a group of rules in cells: the rules that want it, each with its letter.

In come the ports and predicates of the rules, each with the tests that it needs; out goes, for the
tests that hold of an event, a `GroupReading`, which is made once and kept with the plan of those
tests. Evaluating tests is for the `routines` of a type, and reading for the group.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ensue.engine.core.instances.rules import Rule
from ensue.machine.model import PortAtom, PredicateAtom

if TYPE_CHECKING:
    from ensue.engine.step.many.group import CellGroup, Letters


class GroupReading:
    """What the events of a type of which certain tests hold are to a group.

    `key` says which of the keys of the type the group reads by, `visits` has the rules with their
    letters, and `is_noop` says that no rule leaves its start by such an event.
    """

    __slots__ = ("group", "is_noop", "key", "visits")

    def __init__(self, group: CellGroup, key: int, visits: Any) -> None:
        self.group = group
        self.key = key
        self.visits = visits
        self.is_noop = group.is_noop(visits)


class GroupWant:
    """What a group wants of a type: for each set of tests, the rules and bits that need them."""

    def __init__(self, group: CellGroup, key: int) -> None:
        self._group = group
        self._key = key
        self._bits: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._letters: dict[int, Letters] = {}
        self._by_test: dict[int, list[int]] = {}

    def add(self, needed: int, rule: Rule, atom: PortAtom | PredicateAtom) -> None:
        """A port or predicate of a rule, which matches where these tests hold."""
        self._by_test.clear()
        self._letters.clear()
        bit = self._group.letter_bits(rule)[atom]
        self._bits[needed][self._group.number_of(rule)] |= bit

    def reading(self, tests: int) -> GroupReading | None:
        """What an event of which exactly these tests hold is to the group."""
        if not self._by_test:
            self._index()
        met = list(self._by_test.get(0, ()))
        left = tests
        while left:
            test = left.bit_length()
            left ^= 1 << (test - 1)
            met += [each for each in self._by_test.get(test, ()) if each & tests == each]
        visits = self._group.visits_of([self._letters[needed] for needed in met])
        return GroupReading(self._group, self._key, visits) if len(visits) else None

    def _index(self) -> None:
        """Find sets of tests by their highest test: few of very many are met by an event."""
        for needed, bits in self._bits.items():
            self._by_test.setdefault(needed.bit_length(), []).append(needed)
            self._letters[needed] = self._group.letters_of(bits)
