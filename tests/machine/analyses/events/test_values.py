"""A few numbers stand for all of an attribute, at the ends of its range and beyond 2^53 too."""

from __future__ import annotations

import math
from random import Random

import pytest

import ensue
from ensue.events.conformance import fits
from ensue.events.event import Event
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.machine.analyses.events.mentions import mentions_in
from ensue.machine.analyses.events.values import values_of
from ensue.machine.analyses.properties import properties
from tests.machine.analyses import rules

HALVES = [0, *(2**power for power in range(11))]
STEPS = [sign * half + step for half in HALVES for sign in (-1, 1) for step in (-1, 0, 1)]
"""To where numbers of 64 bits are rounded up and down as doubles, and beside that."""

SIGNS = ["=", "!=", "<", "<=", ">", ">="]


def truths(predicates: list[Expression], value: float) -> tuple[bool, ...]:
    event = Event("e", "s", "T", 0, {"v": value})
    return tuple(holds(each, event) for each in predicates)


def asked(constants: list[int | float]) -> list[Expression]:
    return [parse_expression(f"v {sign} {each!r}") for each in constants for sign in SIGNS]


def check_that_values_stand_for(
    type_: str, constants: list[int | float], all_: list[float]
) -> None:
    predicates = asked(constants)
    values, exact = values_of(ValueType(type_), mentions_in(predicates)["v",])

    assert exact
    assert all(fits(each, ValueType(type_)) for each in values)
    shown = {truths(predicates, each) for each in values}
    for value in all_:
        if fits(value, ValueType(type_)):
            assert truths(predicates, value) in shown, (type_, constants, value)


def test_the_values_of_a_small_type_stand_for_every_number_of_it() -> None:
    random = Random(5)
    for _ in range(40):
        pool = [
            random.randint(-3, 260),
            random.uniform(-3, 260),
            random.choice([0, 255, 1e9, -0.5]),
        ]
        constants = random.sample(pool, random.randint(1, 3))

        check_that_values_stand_for("octet", constants, list(range(256)))


@pytest.mark.parametrize("type_", ["long long", "unsigned long long", "double", "float"])
def test_the_values_of_a_large_type_stand_for_the_numbers_around_its_constants(type_: str) -> None:
    random = Random(6)
    for _ in range(20):
        power = 2 ** random.randrange(52, 63)
        whole = random.choice([power, power + random.randint(-3, 3), -power, 2**63 - 1])
        real = random.choice([float(whole), math.nextafter(float(whole), math.inf), 1e300, 3.5])
        constants = random.sample([whole, real, whole + 1], random.randint(1, 3))
        around: list[float] = [0, *INTEGER_RANGES["long long"], 2**64 - 1]
        for each in constants:
            if abs(each) < 2**65:
                around += [int(each) + step for step in STEPS]
        if type_ in ("double", "float"):
            around = [float(each) for each in around]
            around += [
                math.nextafter(each, way) for each in around for way in (-math.inf, math.inf)
            ]

        check_that_values_stand_for(type_, constants, around)


RULES = """
eventtype S { attribute short v; }
eventtype L { attribute long long v; }
eventtype D { attribute double v; }
eventtype O {}
"""


@pytest.mark.parametrize(
    ("type_", "first", "second", "relation"),
    [
        ("S", "v < 100000", "EXISTS v", "equivalent"),
        ("S", "v > 100000", "false", "equivalent"),
        ("S", "v >= -32768", "v <= 32767", "equivalent"),
        ("L", "v > 9007199254740992", "v > 9007199254740993", "contains"),
        ("L", "v > 9007199254740993", "v >= 9007199254740994", "equivalent"),
        ("L", "v > 9007199254740992.0", "v > 9007199254740992", "contained"),
        ("L", "v > 9007199254740992.0", "v > 9007199254740993", "equivalent"),
        ("L", "v > 9223372036854775807", "false", "equivalent"),
        ("D", "v > 9007199254740992", "v > 9007199254740993", "equivalent"),
        ("D", "v > 1e300", "v >= 1e300", "contained"),
        ("L", "v > 1.7976931348623157e308", "false", "equivalent"),
        ("L", "v > -1.7976931348623157e308", "EXISTS v", "equivalent"),
    ],
)
def test_rules_that_ask_for_very_large_numbers_are_compared_exactly(
    type_: str, first: str, second: str, relation: str
) -> None:
    rule = "O correlation {} ({} a where {}) a {{ case true: push new O {{}}; }}"
    pair = f"{rule.format('One', type_, first)} {rule.format('Two', type_, second)}"
    library = ensue.parse(RULES + pair)

    assert rules.compare_in(library).relation == relation


def test_a_port_that_asks_for_less_than_its_type_can_hold_is_not_told_to_be_dead() -> None:
    rule = "O correlation One (S a where v < 100000) a { case true: push new O {}; }"
    library = ensue.parse(RULES + rule)

    found = properties(library.correlations["One"], library.checked.types)

    assert found.can_put_out.holds
