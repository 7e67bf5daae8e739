"""Predicates of one event type as functions of an event, quick where its attributes are plain.

In come CESQL predicates, each with a bit, and the declared attributes of a type; out goes a
function that gives the bits of those that hold of an event. A predicate becomes a function over the
data of an event (`predicate_test`). It is exact where each attribute that it names has exactly its
declared type, for then nothing can be missing, in error or in need of a cast, and plain Python has
the meaning of CESQL. For any other event, and for what has no such function (casts, arithmetic,
functions, timestamps, names that no type declares), `holds` is asked, which knows all of CESQL.

Many predicates over one attribute are one look-up: of the form `v = 1` in a table by value, of the
form `v > 1` by a bisection of their sorted constants. A predicate that can only hold where an
attribute has a certain value is asked only there. Very many others are one look-up in the index of
subscriptions (`ensue.lang.matching`); predicates that ask a history or an ontology are not in it.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ensue.events.event import CONTEXT, Event
from ensue.events.types import ValueType
from ensue.lang.expressions import (
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.builtins.like import matches
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.tree import BoundTerm, ConceptTerm, TemporalTerm
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER

PYTHON_TYPES: Mapping[str, type] = {"integer": int, "real": float, "boolean": bool, "string": str}
"""How a value of each kind is held once its event conforms to its type."""
MANY = {"evaluated": 3, "pattern": 25, "plain": 100}
"""The fewest predicates for which the index is quicker than one by one: a look-up takes some 9 us,
an evaluation 10 to 25, a pattern 0.5 to 1, and a comparison less than a tenth."""
FEWEST_TOGETHER = 3
"""The fewest predicates over one attribute for which a look-up is quicker than asking each."""
DEEPEST = 100
"""How often `AND`, `OR` and `XOR` may take turns: each turn is a call inside of a call."""

OfData = Callable[[Any], Any]
"""A value as a function of the data of an event."""
EventTest = Callable[[Event], bool]
EventTests = Callable[[Event], int]
Attributes = Mapping[str, ValueType]
TestBits = Mapping[Expression, int]
"""Predicates with their bits."""

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBERS = (int, float)


class OutsideError(Exception):
    """The expression, or a part of it, has no function."""


def names_over(names: Iterable[str]) -> frozenset[str]:
    """The extensions that go before attributes: those of their names, also in lower case."""
    return frozenset(each for name in names for each in (name, name.lower()))


def is_plain(event: Event, names: frozenset[str]) -> bool:
    """Whether attributes are those of the data: no extension goes before them."""
    if event.data.__class__ is not dict:
        return False
    return not event.extensions or event.extensions.keys().isdisjoint(names)


# --- one predicate --------------------------------------------------------------------------------


def predicate_test(predicate: Expression, attributes: Attributes) -> EventTest:
    """Whether a predicate holds of an event of a type with these attributes, or of one below it."""
    return _quick_test(predicate, attributes) or partial(holds, predicate)


def _quick_test(predicate: Expression, attributes: Attributes) -> EventTest | None:
    """The function of a predicate; None where it has to be asked of `holds`."""
    compiler = ExpressionCompiler(attributes)
    try:
        function, kind = compiler.compile(predicate)
    except OutsideError:
        return None
    if kind is not bool:
        return None
    guards, names = tuple(compiler.guards.items()), names_over(compiler.reads)

    def test(event: Event) -> bool:
        if not is_plain(event, names):
            return holds(predicate, event)
        data = event.data
        for name, wanted in guards:
            if data.get(name).__class__ is not wanted:
                return holds(predicate, event)
        return bool(function(data))

    return test


class ExpressionCompiler:
    """Makes functions of expressions, each with the type of its values.

    `guards` are the types that attributes must have, `reads` the attributes that are named.
    """

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._turns = 0
        self.guards: dict[str, type] = {}
        self.reads: set[str] = set()

    def compile(self, x: Expression) -> tuple[OfData, type]:
        match x:
            case Literal(value) if _is_constant(value):
                return _constant(value), type(value)
            case Negate() if (number := _number(x)) is not None:
                return _constant(number), type(number)
            case Name((name,)):
                return self._attribute(name)
            case Exists(Name((name,))) if _is_own(name, self._attributes):
                self.reads.add(name)
                return lambda data: data.get(name) is not None, bool
            case Not(operand):
                inner = self._boolean(operand)
                return lambda data: not inner(data), bool
            case Comparison(first, ((sign, second),)):
                return self._comparison(self.compile(first), sign, self.compile(second)), bool
            case Logic(operands, operators):
                return self._logic(operands, operators), bool
            case In(operand, options, negated):
                return self._in(operand, options, negated), bool
            case Like(operand, pattern, negated):
                text = self._text(operand)
                return lambda data: matches(text(data), pattern) is not negated, bool
            case BoundTerm(term, test):
                text = self._text(term.name)
                return lambda data: test.holds(text(data)), bool
        raise OutsideError

    def _attribute(self, name: str) -> tuple[OfData, type]:
        if not _is_own(name, self._attributes):
            raise OutsideError
        kind = PYTHON_TYPES.get(self._attributes[name].kind)
        if kind is None:
            raise OutsideError
        self.guards[name] = kind
        self.reads.add(name)
        return operator.itemgetter(name), kind

    def _boolean(self, x: Expression) -> OfData:
        return self._of_kind(x, bool)

    def _text(self, x: Expression) -> OfData:
        return self._of_kind(x, str)

    def _of_kind(self, x: Expression, wanted: type) -> OfData:
        function, kind = self.compile(x)
        if kind is not wanted:
            raise OutsideError
        return function

    def _comparison(
        self, left: tuple[OfData, type], sign: str, right: tuple[OfData, type]
    ) -> OfData:
        (x, x_kind), (y, y_kind) = left, right
        compare = _COMPARISONS[sign]
        numbers = x_kind in _NUMBERS and y_kind in _NUMBERS
        if not numbers and (x_kind is not y_kind or sign not in ("=", "!=")):
            raise OutsideError
        if x_kind is not y_kind:
            # An integer meets a real as a real; Python would compare them exactly.
            return lambda data: compare(float(x(data)), float(y(data)))
        return lambda data: compare(x(data), y(data))

    def _logic(self, operands: Sequence[Expression], operators: Sequence[str]) -> OfData:
        """`a AND b OR c` is `a AND (b OR c)`: operators of one kind in a row are one."""
        *others, last = map(self._boolean, operands)
        joined, before = [last], operators[-1]
        for operand, sign in zip(reversed(others), reversed(operators), strict=True):
            if sign != before:
                self._turns += 1
                joined, before = [_joined(before, joined)], sign
            joined.append(operand)
        if self._turns > DEEPEST:
            raise OutsideError
        return _joined(before, joined)

    def _in(self, operand: Expression, options: Sequence[Expression], negated: bool) -> OfData:
        function, kind = self.compile(operand)
        values = [option.value for option in options if isinstance(option, Literal)]
        if len(values) < len(options) or any(type(value) is not kind for value in values):
            raise OutsideError
        if not all(map(_is_constant, values)):
            raise OutsideError
        known = frozenset(values)
        return lambda data: (function(data) in known) is not negated


def _constant(value: Any) -> OfData:
    return lambda data: value  # noqa: ARG005


def _joined(sign: str, operands: list[OfData]) -> OfData:
    """Operands, the last first, under one operator."""
    functions = operands[::-1]
    if sign == "XOR":
        return lambda data: sum([function(data) for function in functions]) % 2 == 1
    if sign == "AND":
        return lambda data: all(function(data) for function in functions)
    return lambda data: any(function(data) for function in functions)


def _is_own(name: str, attributes: Attributes) -> bool:
    """Whether a name is an attribute of the data; in lower case, an event answers some itself."""
    return name in attributes and "." not in name and name.lower() not in CONTEXT


def _number(constant: Expression) -> int | float | None:
    match constant:
        case Literal(int() | float() as value) if _is_constant(value):
            return value
        case Negate(Literal(int() | float() as value)) if _is_constant(value):
            return -value
    return None


def _is_constant(value: object) -> bool:
    """A constant without an error in it, of a kind that Python compares as CESQL does."""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return SMALLEST_INTEGER < value <= LARGEST_INTEGER
    return isinstance(value, float) and math.isfinite(value)


# --- many predicates ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ValueTest:
    """`name = constant`, or a bound: `name > constant` and its like.

    A bound `is_lower` for `>` and `>=`, and `counts_itself` where the constant counts as below
    itself: `>=` and its opposite, `<`.
    """

    name: str
    value: Any
    is_lower: bool = False
    counts_itself: bool = False


_BOUNDS = {">": (True, False), ">=": (True, True), "<": (False, True), "<=": (False, False)}


def _equality_of(predicate: Expression, attributes: Attributes) -> _ValueTest | None:
    match predicate:
        case Comparison(Name((name,)), (("=", Literal(value)),)) if _is_own(name, attributes):
            wanted = PYTHON_TYPES.get(attributes[name].kind)
            if wanted in (bool, int, str) and type(value) is wanted and _is_constant(value):
                return _ValueTest(name, value)
    return None


def _required_equality(predicate: Expression, attributes: Attributes) -> _ValueTest | None:
    """An equality without which the predicate does not hold: a part that is joined by `AND`."""
    if not isinstance(predicate, Logic):
        return None
    # Read from the right: what comes after an `OR` stands in a bracket with what is before it.
    for operand, sign in zip(predicate.operands, (*predicate.operators, "AND"), strict=True):
        if sign != "AND":
            return None
        equality = _equality_of(operand, attributes)
        if equality is not None:
            return equality
    return None


def _bound_of(predicate: Expression, attributes: Attributes) -> _ValueTest | None:
    match predicate:
        case Comparison(Name((name,)), ((sign, constant),)) if (
            _is_own(name, attributes) and sign in _BOUNDS
        ):
            wanted = PYTHON_TYPES.get(attributes[name].kind)
            value = _number(constant)
            if wanted in _NUMBERS and type(value) is wanted and value is not None:
                return _ValueTest(name, value, *_BOUNDS[sign])
    return None


def tests_of(predicates: TestBits, attributes: Attributes) -> EventTests:
    """The bits of the predicates that hold of an event."""
    singly = dict(predicates)
    parts: list[EventTests] = []

    def take_together(
        of: Callable[[Expression, Attributes], _ValueTest | None],
        make: Callable[[Attributes, list[tuple[_ValueTest, Expression, int]]], EventTests],
        fewest: int,
    ) -> None:
        """Take out the predicates of one form, where enough of them are over one attribute."""
        by_name: dict[str, list[tuple[_ValueTest, Expression, int]]] = defaultdict(list)
        for predicate, bit in singly.items():
            if (test := of(predicate, attributes)) is not None:
                by_name[test.name].append((test, predicate, bit))
        for chosen in by_name.values():
            if len(chosen) >= fewest:
                parts.append(make(attributes, chosen))
                for _, predicate, _ in chosen:
                    del singly[predicate]

    take_together(_equality_of, _looked_up, 1)
    take_together(_bound_of, _bisected, FEWEST_TOGETHER)
    take_together(_required_equality, _only_where, FEWEST_TOGETHER)
    parts += _each(singly, attributes)
    if len(parts) == 1:
        return parts[0]

    def tests(event: Event) -> int:
        bits = 0
        for part in parts:
            bits |= part(event)
        return bits

    return tests


def _each(predicates: TestBits, attributes: Attributes) -> list[EventTests]:
    """Each predicate asked by itself, unless they are so many that an index is quicker."""
    tests = {predicate: _quick_test(predicate, attributes) for predicate in predicates}
    kinds: dict[str, dict[Expression, int]] = {kind: {} for kind in MANY}
    for predicate, bit in predicates.items():
        if _is_indexable(predicate):
            kind = "pattern" if _has_pattern(predicate) else "plain"
            kinds[kind if tests[predicate] is not None else "evaluated"][predicate] = bit
    many = {p: bit for kind, of in kinds.items() if len(of) >= MANY[kind] for p, bit in of.items()}
    parts = [_indexed(many)] if many else []
    for predicate, bit in predicates.items():
        if predicate not in many:
            parts.append(_with_bit(tests[predicate] or partial(holds, predicate), bit))
    return parts


def _with_bit(test: EventTest, bit: int) -> EventTests:
    return lambda event: bit if test(event) else 0


_Chosen = list[tuple[_ValueTest, Expression, int]]


def _of_value(
    attributes: Attributes, chosen: _Chosen, bits_of: Callable[[Any, Event], int]
) -> EventTests:
    """The bits by the value of an attribute; what is missing has none."""
    name = chosen[0][0].name
    kind, names = PYTHON_TYPES[attributes[name].kind], names_over([name])

    def tests(event: Event) -> int:
        if is_plain(event, names):
            value = event.data.get(name)
            # What is no number is in no order.
            if value.__class__ is kind and value == value:
                return bits_of(value, event)
            if value is None:
                return 0
        return sum(bit for _, predicate, bit in chosen if holds(predicate, event))

    return tests


def _looked_up(attributes: Attributes, chosen: _Chosen) -> EventTests:
    """Predicates of the form `name = value`."""
    table: dict[Any, int] = defaultdict(int)
    for test, _, bit in chosen:
        table[test.value] |= bit
    known = dict(table)
    return _of_value(attributes, chosen, lambda value, event: known.get(value, 0))  # noqa: ARG005


def _only_where(attributes: Attributes, chosen: _Chosen) -> EventTests:
    """Predicates that hold only where an attribute has a value, by that value."""
    by_value: dict[Any, dict[Expression, int]] = defaultdict(dict)
    for test, predicate, bit in chosen:
        by_value[test.value][predicate] = bit
    table = {value: _each(asked, attributes) for value, asked in by_value.items()}
    return _of_value(
        attributes,
        chosen,
        lambda value, event: sum(part(event) for part in table.get(value, ())),
    )


def _bisected(attributes: Attributes, chosen: _Chosen) -> EventTests:
    """Predicates of the form `name > value`, or with `>=`, `<` or `<=`."""
    lookups = []
    # `v > 5` and its opposite count the constants below a value, `v >= 5` the value itself too.
    for counts_itself, bisect in ((False, bisect_left), (True, bisect_right)):
        bounds = [(test, bit) for test, _, bit in chosen if test.counts_itself is counts_itself]
        values = sorted({test.value for test, _ in bounds})
        masks = [0] * (len(values) + 1)
        for test, bit in bounds:
            at = bisect_left(values, test.value)
            for place in range(at + 1, len(masks)) if test.is_lower else range(at + 1):
                masks[place] |= bit
        lookups.append((bisect, values, masks))
    (left, left_values, left_masks), (right, right_values, right_masks) = lookups

    def bits_of(value: Any, event: Event) -> int:  # noqa: ARG001
        return left_masks[left(left_values, value)] | right_masks[right(right_values, value)]

    return _of_value(attributes, chosen, bits_of)


def _is_indexable(predicate: Expression) -> bool:
    """Whether the predicate asks for nothing but the event."""
    return not _has(predicate, TemporalTerm | ConceptTerm | BoundTerm)


def _has_pattern(predicate: Expression) -> bool:
    return _has(predicate, Like)


def _has(predicate: Expression, kinds: Any) -> bool:
    waiting: list[Any] = [predicate]
    while waiting:
        current = waiting.pop()
        if isinstance(current, kinds):
            return True
        waiting.extend(parts_of(current))
    return False


def _indexed(predicates: TestBits) -> EventTests:
    from ensue.lang.matching.index import PredicateIndex

    index = PredicateIndex()
    bits = list(predicates.values())
    for number, predicate in enumerate(predicates):
        index.add(number, predicate)
    return lambda event: sum(bits[number] for number in index.match(event))
