"""The predicates of a type as lines of Python, which set a bit for each predicate that holds.

In come predicates, each with its bit; out go lines over variables that hold attributes. A single
predicate is an expression (`predicates`). Many predicates over one attribute are one look-up: of
the form `v = 1` in a table by value, of the form `v > 1` by a bisection of their sorted constants.
A predicate that can only hold where an attribute has a certain value is asked only there. Many
predicates of any other form are one look-up in the index of subscriptions (`ensue.lang.matching`),
which finds ranges, prefixes, lists and their combinations. Predicates that ask a history or an
ontology are not in that index: the run answers them. For values that are not of their declared
types, `holds` is asked, which knows all of CESQL.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ensue.engine.core.instances.compiling import function_from
from ensue.engine.step.dispatch.predicates import (
    PYTHON_TYPES,
    BoundTest,
    Constants,
    bound_of,
    equality_of,
    required_equality,
    translate,
    variable,
)
from ensue.events.event import Event
from ensue.events.types import ValueType
from ensue.lang.expressions import Expression, Like
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.tree import BoundTerm, ConceptTerm, TemporalTerm

MANY_EVALUATED = 3
MANY = {"evaluated": MANY_EVALUATED, "pattern": 25, "plain": 1_000}
"""The fewest predicates for which the index is quicker than a line each: a look-up takes some 9 us,
an evaluation 10 to 25, a pattern 0.5 to 1, and a comparison of Python less than a tenth."""
FEWEST_TOGETHER = 3
"""The fewest predicates over one attribute for which a look-up is quicker than asking each."""

TestBits = dict[Expression, int]
"""Predicates with their bits."""


class PredicateLines:
    """Writes the lines of one type; `reads` are the attributes whose variables the lines need.

    Of the variables of `trusted` attributes it is known already that they hold a value of the
    declared type, which is finite, or None: these are not asked for their types again.
    """

    def __init__(
        self,
        attributes: Mapping[str, ValueType],
        constants: Constants,
        trusted: AbstractSet[str] = frozenset(),
    ) -> None:
        self._attributes = attributes
        self._constants = constants
        self._trusted = trusted
        self._trusted_variables = {variable(name) for name in trusted}
        self.reads: dict[str, None] = {}

    def lines(self, predicates: Mapping[Expression, int]) -> list[str]:
        """Statements that set bits of `tests`."""
        equal: dict[str, dict[Any, TestBits]] = defaultdict(lambda: defaultdict(dict))
        where: dict[str, dict[Any, TestBits]] = defaultdict(lambda: defaultdict(dict))
        bounded: dict[str, list[tuple[BoundTest, Expression, int]]] = defaultdict(list)
        singly: TestBits = {}
        for predicate, bit in predicates.items():
            if (equality := equality_of(predicate, self._attributes)) is not None:
                equal[equality.name][equality.value][predicate] = bit
            elif (bound := bound_of(predicate, self._attributes)) is not None:
                bounded[bound.name].append((bound, predicate, bit))
            elif (condition := required_equality(predicate, self._attributes)) is not None:
                where[condition.name][condition.value][predicate] = bit
            else:
                singly[predicate] = bit
        for bounds in bounded.values():
            if len(bounds) < FEWEST_TOGETHER:
                singly |= {predicate: bit for _, predicate, bit in bounds}
        for by_value in where.values():
            if sum(map(len, by_value.values())) < FEWEST_TOGETHER:
                for asked in by_value.values():
                    singly |= asked
        lines = self._each(singly)
        for name, bounds in bounded.items():
            if len(bounds) >= FEWEST_TOGETHER:
                lines += self._bisected(name, bounds)
        for name, by_value in where.items():
            if sum(map(len, by_value.values())) >= FEWEST_TOGETHER:
                lines += self._only_where(name, by_value)
        for name, by_value in equal.items():
            lines += self._looked_up(name, by_value)
        return lines

    def _each(self, predicates: TestBits) -> list[str]:
        """Each predicate asked by itself, unless they are so many that an index is quicker."""
        lines = []
        many = self._many_of(predicates)
        if many:
            lines.append(f"tests |= {self._constants.name(indexed(many), 'f')}(event)")
        for predicate, bit in predicates.items():
            if predicate in many:
                continue
            translation = translate(predicate, self._attributes, self._constants)
            tree = self._constants.name(predicate, "p")
            if translation is None:
                lines += [f"if holds({tree}, event): tests |= {bit}"]
                continue
            self.reads |= dict.fromkeys(sorted(translation.reads))
            guard = " and ".join(
                f"{held} is not None"
                if held in self._trusted_variables
                else f"{held}.__class__ is {kind.__name__}"
                for held, kind in translation.guards.items()
            )
            if guard:
                lines += [
                    f"if {guard}:",
                    f"    if {translation.text}: tests |= {bit}",
                    f"elif holds({tree}, event): tests |= {bit}",
                ]
            else:
                lines += [f"if {translation.text}: tests |= {bit}"]
        return lines

    def _many_of(self, predicates: TestBits) -> TestBits:
        """The predicates that an index answers together quicker than lines of their own."""
        if len(predicates) < MANY_EVALUATED:
            return {}
        kinds: dict[str, TestBits] = {"evaluated": {}, "pattern": {}, "plain": {}}
        for predicate, bit in predicates.items():
            if is_indexable(predicate):
                translation = translate(predicate, self._attributes, Constants())
                kind = "pattern" if has_pattern(predicate) else "plain"
                kinds[kind if translation is not None else "evaluated"][predicate] = bit
        many: TestBits = {}
        for kind, least in MANY.items():
            if len(kinds[kind]) >= least:
                many |= kinds[kind]
        return many

    def _looked_up(self, name: str, by_value: Mapping[Any, TestBits]) -> list[str]:
        """Predicates of the form `name = value`."""
        table = {value: sum(asked.values()) for value, asked in by_value.items()}
        held = variable(name)
        if name not in self._trusted:
            found = self._constants.name(table, "t")
            return self._guarded(name, [f"tests |= {found}.get({held}, 0)"], by_value)
        # What is missing is in no table.
        self.reads[name] = None
        if PYTHON_TYPES[self._attributes[name].kind] is bool:
            no = f"{table.get(False, 0)} if {held} is False else 0"
            return [f"tests |= {table.get(True, 0)} if {held} is True else {no}"]
        return [f"tests |= {self._constants.name(table, 't')}.get({held}, 0)"]

    def _only_where(self, name: str, by_value: Mapping[Any, TestBits]) -> list[str]:
        """Predicates that hold only where `name` has a value, by that value."""
        inner = {
            value: PredicateLines(self._attributes, Constants({"holds": holds}), self._trusted)
            for value in by_value
        }
        texts = {value: inner[value]._each(asked) for value, asked in by_value.items()}
        for each in inner.values():
            self.reads |= each.reads
        variables = sorted({variable(read) for each in inner.values() for read in each.reads})
        arguments = ", ".join(["event", *variables])
        table = {}
        for value, lines in texts.items():
            body = ["tests = 0", *lines, "return tests"]
            text = "\n    ".join([f"def more({arguments}):", *body])
            table[value] = function_from(text, "more", inner[value]._constants.names)
        found = self._constants.name(table, "t")
        asked = [
            f"more = {found}.get({variable(name)})",
            f"if more is not None: tests |= more({arguments})",
        ]
        return self._guarded(name, asked, by_value)

    def _bisected(
        self, name: str, bounds: Sequence[tuple[BoundTest, Expression, int]]
    ) -> list[str]:
        """Predicates of the form `name > value`, or with `>=`, `<` or `<=`."""
        lines: list[str] = []
        # `v > 5` and its opposite count the constants below a value, `v >= 5` the value itself too.
        for steps_past, function in ((False, "bisect_left"), (True, "bisect_right")):
            chosen = [each for each in bounds if each[0].counts_itself is steps_past]
            if not chosen:
                continue
            values = sorted({bound.value for bound, _, _ in chosen})
            masks = [0] * (len(values) + 1)
            for bound, _, bit in chosen:
                at = bisect_left(values, bound.value)
                for place in range(at + 1, len(masks)) if bound.is_lower else range(at + 1):
                    masks[place] |= bit
            lines.append(
                f"tests |= {self._constants.name(masks, 'm')}"
                f"[{function}({self._constants.name(values, 'b')}, {variable(name)})]"
            )
        return self._guarded(name, lines, {None: {each: bit for _, each, bit in bounds}})

    def _guarded(
        self, name: str, lines: Sequence[str], by_value: Mapping[Any, TestBits]
    ) -> list[str]:
        """The lines where the attribute has its declared type; what is missing has no bit."""
        self.reads[name] = None
        held, kind = variable(name), PYTHON_TYPES[self._attributes[name].kind]
        if name in self._trusted:
            return [f"if {held} is not None:", *(f"    {line}" for line in lines)]
        all_asked = [each for asked in by_value.values() for each in asked.items()]
        in_full = self._constants.name(_tests_of(all_asked), "f")
        # What is no number is in no order.
        is_plain = f"{held}.__class__ is {kind.__name__}"
        is_plain += f" and {held} == {held}" if kind is float else ""
        return [
            f"if {is_plain}:",
            *(f"    {line}" for line in lines),
            f"elif {held} is not None: tests |= {in_full}(event)",
        ]


def _tests_of(predicates: Sequence[tuple[Expression, int]]) -> Callable[[Event], int]:
    def tests_of(event: Event) -> int:
        tests = 0
        for predicate, bit in predicates:
            if holds(predicate, event):
                tests |= bit
        return tests

    return tests_of


def is_indexable(predicate: Expression) -> bool:
    """Whether the predicate asks for nothing but the event."""
    waiting = [predicate]
    while waiting:
        current = waiting.pop()
        if isinstance(current, TemporalTerm | ConceptTerm | BoundTerm):
            return False
        waiting.extend(parts_of(current))
    return True


def has_pattern(predicate: Expression) -> bool:
    waiting = [predicate]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Like):
            return True
        waiting.extend(parts_of(current))
    return False


def indexed(predicates: Mapping[Expression, int]) -> Callable[[Event], int]:
    """The bits of the predicates that hold of an event."""
    from ensue.lang.matching.index import PredicateIndex

    index = PredicateIndex()
    bits = list(predicates.values())
    for number, predicate in enumerate(predicates):
        index.add(number, predicate)
    match = index.match

    def tests_of(event: Event) -> int:
        tests = 0
        for number in match(event):
            tests |= bits[number]
        return tests

    return tests_of
