"""Which rules read an event of a type, by the tests of their ports that hold of the event.

In come the running rules and the name of one event type; out goes `TypeRoutines`: every distinct
test of the type's ports with a bit, however many ports ask it (`TypeTests`), and, for a combination
of tests that hold, the plan: which rules read the event, by which mask of atoms and under which
key. Plans are made when their combination first comes. To a group of rules in cells an event is a
list of visits, made once for each plan. Making the tests on an event is for `routines`, reading it
for `stream` and the group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensue.engine.core.instances.keys import FastKey, FirstMove, fast_key
from ensue.engine.core.instances.rows import RowMove
from ensue.engine.core.instances.rules import Rule
from ensue.engine.ports import KeyNames
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.wiring import sources_asked, takes_author
from ensue.lang.expressions import Expression
from ensue.lang.syntax import EventPort
from ensue.machine.model import AnyAtom, PortAtom, PredicateAtom, Timer

if TYPE_CHECKING:
    # Loaded when a library has enough rules for cells.
    from ensue.engine.step.many.group import Letters, StepGroup


class TypeTests:
    """The distinct tests of the ports of one event type, each with a bit.

    They are for events from outside, or for those that an `author` has put out.
    """

    def __init__(self, name: str, types: TypeSystem, author: str | None = None) -> None:
        self.name = name
        self.author = author
        self.attributes = types.attributes(name)
        self.sources: dict[frozenset[str], int] = {}
        self.predicates: dict[Expression, int] = {}
        self._tests = 0

    def needed(self, port: EventPort) -> int:
        """The tests that must hold for a port, as a mask; of events of the author they are for."""
        needed = 0
        asked = sources_asked(port) if self.author is None else None
        if asked is not None:
            needed |= self._bit(self.sources, asked)
        if port.where is not None:
            needed |= self.holds(port.where)
        return needed

    def holds(self, predicate: Expression) -> int:
        """The bit of a predicate."""
        return self._bit(self.predicates, predicate)

    def _bit(self, known: dict[Any, int], what: Any) -> int:
        if what not in known:
            known[what] = 1 << self._tests
            self._tests += 1
        return known[what]


PLANS_REMEMBERED = 4096
"""The most combinations of tests for which a type remembers its plans."""

PlanEntry = tuple[
    Mapping[Any, Any],
    Mapping[int, RowMove | FirstMove],
    int,
    int,
    "Rule | SplitReading",
    frozenset[str],
]
"""The instances to look in, the row of keys without an instance, the mask, which key, the rule that
reads the event, and the ports that the event matches."""
Readers = tuple[PlanEntry, ...]


class GroupReading:
    """How a group reads the events of a type for which certain tests hold.

    `key` says which of the keys of the type the group reads by, `visits` has the rules with their
    letters, and `is_noop` says that no rule leaves its start by such an event.
    """

    __slots__ = ("group", "is_noop", "key", "visits")

    def __init__(self, group: StepGroup, key: int, visits: Any) -> None:
        self.group = group
        self.key = key
        self.visits = visits
        self.is_noop = group.is_noop(visits)


class GroupInterest:
    """The interest of a group in a type: for each set of tests, the rules and bits that need it."""

    def __init__(self, group: StepGroup, key: int) -> None:
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
        """How the group reads an event for which exactly these tests hold."""
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


@dataclass(frozen=True, slots=True)
class MixedReadPlan:
    """The readers of an event where groups of rules are among them."""

    readers: Readers
    groups: tuple[GroupReading, ...]


ReadPlan = Readers | MixedReadPlan

NO_INSTANCES: Mapping[Any, Any] = {}
"""The instances of a rule that is always read in full: none is found."""


@dataclass(frozen=True, slots=True)
class SplitReading:
    """A rule whose matched ports ask for different keys: each key reads its own ports."""

    rule: Rule
    matched: tuple[str, ...]
    others: int
    bits: Mapping[str, int]

    @property
    def author(self) -> Rule:
        return self.rule

    @property
    def is_fed_from(self) -> bool:
        return self.rule.is_fed_from

    @property
    def is_internal(self) -> bool:
        return self.rule.is_internal

    def readings(self, event: Event) -> Iterator[tuple[FastKey, int, frozenset[str]]]:
        for key, reading in self.rule.ports.readings(event, list(self.matched)).items():
            mask = self.others
            for port in reading.ports:
                mask |= self.bits.get(port, 0)
            yield fast_key(key), mask, reading.ports


@dataclass(frozen=True, slots=True)
class RuleInterest:
    """The interest of a rule in a type: ports and predicates, each by the tests that must hold."""

    rule: Rule
    ports: tuple[tuple[str, int, int], ...]
    """(port, its tests, its atom's bit)"""
    predicates: tuple[tuple[int, int], ...]
    always: int


class TypeRoutines(TypeTests):
    """The tests, plans and keys of one event type."""

    def __init__(
        self,
        name: str,
        types: TypeSystem,
        rules: Sequence[Rule],
        groups: Mapping[str, StepGroup] | None = None,
        author: str | None = None,
    ) -> None:
        """`groups` has the groups of rules that run in cells, by the names of these rules."""
        super().__init__(name, types, author)
        self.keys: dict[KeyNames, int] = {}
        self._group_interests: dict[StepGroup, GroupInterest] = {}
        self._interests: list[RuleInterest] = []
        self._everywhere: list[int] = []
        self._by_test: dict[int, list[int]] = defaultdict(list)
        self.plans: dict[int, ReadPlan] = {}
        for rule in rules:
            self._add(rule, types, groups.get(rule.name) if groups else None)

    @property
    def has_readers(self) -> bool:
        return bool(self._interests or self._group_interests)

    def _add(self, rule: Rule, types: TypeSystem, group: StepGroup | None) -> None:
        matching = [
            port
            for port in rule.correlation.ports
            if isinstance(port, EventPort)
            and types.is_subtype(self.name, port.type)
            and takes_author(port, self.author)
        ]
        if not matching:
            return
        if group is not None:
            self._add_to_group(rule, group, matching)
            return
        bits: dict[str, int] = {}
        predicates: list[tuple[int, int]] = []
        always = 0
        for number, atom in enumerate(rule.atoms):
            match atom:
                case PortAtom(port_name):
                    bits[port_name] = 1 << number
                case PredicateAtom(predicate):
                    predicates.append((self.holds(predicate), 1 << number))
                case AnyAtom():
                    always |= 1 << number
        ports = []
        place = len(self._interests)
        for port in matching:
            needed = self.needed(port)
            ports.append((port.name, needed, bits.get(port.name, 0)))
            self.keys.setdefault(rule.ports.key_names[port.name], len(self.keys))
            where = self._by_test[needed.bit_length()] if needed else self._everywhere
            if place not in where[-1:]:
                where.append(place)
        self._interests.append(RuleInterest(rule, tuple(ports), tuple(predicates), always))

    def _add_to_group(self, rule: Rule, group: StepGroup, matching: Sequence[EventPort]) -> None:
        interest = self._group_interests.get(group)
        if interest is None:
            key = self.keys.setdefault(group.key_names, len(self.keys))
            interest = self._group_interests[group] = GroupInterest(group, key)
        for port in matching:
            interest.add(self.needed(port), rule, PortAtom(port.name))
        for atom in rule.machine.atoms if rule.machine else ():
            if isinstance(atom, PredicateAtom):
                interest.add(self.holds(atom.predicate), rule, atom)

    def make_plan(self, tests: int) -> ReadPlan:
        """The readers of an event for which exactly these tests hold."""
        places = set(self._everywhere)
        left = tests
        while left:
            bit = left.bit_length()
            places.update(self._by_test.get(bit, ()))
            left ^= 1 << (bit - 1)
        entries = (self._entry(self._interests[place], tests) for place in sorted(places))
        readers = tuple(entry for entry in entries if entry is not None)
        readings = [interest.reading(tests) for interest in self._group_interests.values()]
        together = tuple(reading for reading in readings if reading is not None)
        plan: ReadPlan = MixedReadPlan(readers, together) if together else readers
        if len(self.plans) < PLANS_REMEMBERED:
            self.plans[tests] = plan
        return plan

    def _entry(self, interest: RuleInterest, tests: int) -> PlanEntry | None:
        matched = [port for port in interest.ports if port[1] & tests == port[1]]
        if not matched:
            return None
        mask = interest.always
        for needed, bit in interest.predicates:
            if needed & tests == needed:
                mask |= bit
        rule = interest.rule
        names = {rule.ports.key_names[port] for port, _, _ in matched}
        ports = frozenset(port for port, _, _ in matched)
        if len(names) > 1:
            bits = {port: bit for port, _, bit in matched}
            split = SplitReading(rule, tuple(bits), mask, bits)
            return NO_INSTANCES, NO_INSTANCES, 0, 0, split, ports
        for _, _, bit in matched:
            mask |= bit
        key = self.keys[names.pop()]
        if _sets_timers(rule) or rule.looks_back:
            return NO_INSTANCES, NO_INSTANCES, mask, key, rule, ports
        return rule.instances, rule.first_moves, mask, key, rule, ports


def _sets_timers(rule: Rule) -> bool:
    """Whether an event may set or stop a timer of the rule without an output.

    The timer ports of a filter are set by triggers and by their own firings alone.
    """
    if not rule.has_clock:
        return False
    if rule.facts is None or rule.machine is None:
        return True
    return any(isinstance(each.input, Timer) for each in rule.machine.transitions)
