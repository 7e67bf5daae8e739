"""Atoms as tests of one name against constants, with the casts of CESQL.

In comes an atom; out goes a `Test`: the name, the view of its value, a sign of comparison and a
constant; or None for an atom without such a form (arithmetic, functions, a comparison of two
names), which is evaluated. A view is a value after the cast that an operator applies: its number,
its text, its truth, its time. An atom that is in error for every event is `NEVER`.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple

from ensue.events.times import microseconds_of
from ensue.lang.expressions.tree import Comparison, Exists, Has, In, IsA, Like, Name
from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    FaultError,
    to_number,
    to_timestamp,
)
from ensue.lang.matching.outcomes import Signed, constant_outcome

Parts = tuple[str, ...]


class View(Enum):
    """The part or cast of a value that a test compares."""

    NUMBER = "its number: of numbers, booleans and text that holds a number"
    TEXT = "its text: of all but timestamps"
    TRUTH = "its truth: of booleans, and of the text true and false"
    TIME = "its time: of timestamps, and of RFC 3339 text"
    OWN_TIME = "its time, if it is a timestamp itself"
    LISTED = "the value in its own kind, to which the constants are cast"
    PATTERN = "its text, timestamps included, against a pattern of LIKE"
    PRESENCE = "whether there is a value"
    BAG = "the values of a sequence"
    CONCEPT = "the concept that its text names"


class Test(NamedTuple):
    """A test. `sign` is one of `=`, `<`, `<=`, `>`, `>=`; `!=` is an `=` that must be false."""

    name: Parts
    view: View
    sign: str
    constant: Any
    positive: bool


NEVER: Final = "never"
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def test_of(signed: Signed) -> Test | str | None:
    """The test that an atom is; `NEVER` if it holds for no event."""
    atom, positive = signed
    match atom:
        case Name(parts):
            return Test(parts, View.TRUTH, "=", True, positive)
        case Exists(name):
            return Test(name.parts, View.PRESENCE, "=", None, positive)
        case Like(Name(parts), pattern, negated):
            return Test(parts, View.PATTERN, "=", pattern, positive is not negated)
        case In(Name(parts), options, negated):
            outcomes = [constant_outcome(each) for each in options]
            if any(each is None for each in outcomes):
                return None
            if any(each.errors for each in outcomes if each is not None):
                return NEVER
            values = tuple(each.value for each in outcomes if each is not None)
            return Test(parts, View.LISTED, "=", values, positive is not negated)
        case Comparison(Name(parts), ((sign, right),)):
            constant = constant_outcome(right)
            if constant is None:
                return None
            return NEVER if constant.errors else _compared(parts, sign, constant.value, positive)
        case Comparison(left, ((sign, Name(parts)),)):
            constant = constant_outcome(left)
            if constant is None:
                return None
            return NEVER if constant.errors else _reversed(parts, sign, constant.value, positive)
        case Has(name, quantifier, options):
            asked = (quantifier, tuple(each.value for each in options))
            return Test(name.parts, View.BAG, "=", asked, positive)
        case IsA(name, concept):
            return Test(name.parts, View.CONCEPT, "=", concept, positive)
        case _:
            return None


def _compared(parts: Parts, sign: str, constant: Any, positive: bool) -> Test | str | None:
    if sign == "!=":
        sign, positive = "=", not positive
    if isinstance(constant, datetime):
        return Test(parts, View.TIME, sign, microseconds_of(constant), positive)
    if sign != "=":
        return _ordered(parts, sign, constant, positive)
    if isinstance(constant, bool):
        return Test(parts, View.TRUTH, sign, constant, positive)
    if isinstance(constant, str):
        return Test(parts, View.TEXT, sign, constant, positive)
    return _number(parts, sign, constant, positive)


def _ordered(parts: Parts, sign: str, constant: Any, positive: bool) -> Test | str | None:
    if isinstance(constant, str):
        try:
            return _number(parts, sign, to_number(constant), positive)
        except FaultError:
            pass
        try:
            instant = microseconds_of(to_timestamp(constant))
        except FaultError:
            return NEVER
        return Test(parts, View.OWN_TIME, sign, instant, positive)
    return _number(parts, sign, int(constant) if isinstance(constant, bool) else constant, positive)


def _reversed(parts: Parts, sign: str, constant: Any, positive: bool) -> Test | str | None:
    if sign not in ("=", "!="):
        return _compared(parts, _FLIPPED[sign], constant, positive)
    if isinstance(constant, datetime):
        return _compared(parts, sign, constant, positive)
    # The kind of the right side decides, which is that of the name.
    return Test(parts, View.LISTED, "=", (constant,), positive is (sign == "="))


def _number(parts: Parts, sign: str, constant: int | float, positive: bool) -> Test | None:
    if isinstance(constant, int) and not SMALLEST_INTEGER <= constant <= LARGEST_INTEGER:
        return None
    return Test(parts, View.NUMBER, sign, constant, positive)
