"""Every combination of outcomes that the atoms about one name can have.

In come the atoms that compare one name with constants; out come behaviours. A behaviour is the
outcomes of all these atoms for one value, and has that value as its example if one was found. The
behaviours are a superset: every value has one of them, so that outcomes in none of them cannot be.

A value is missing, a boolean, a number, a text, a timestamp, a sequence, or something that no
operator takes. What atoms see of a number or a time is between which constants it lies; of a text,
which patterns it matches (`texts`), and what it reads as, if it reads as anything. Where text and
number are asked together, the ways of both are combined, save for a text that is known letter by
letter. NaN and the infinities are values of their own: JSON cannot say them, events in columns can.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, combinations, pairwise, product
from typing import Any

from ensue.events.times import datetime_of, format_time, microseconds_of
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    CASTS,
    LARGEST_IN_DATA,
    SMALLEST_INTEGER,
    FaultError,
    to_number,
    to_string,
    to_timestamp,
    wholes_equal_to,
)
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.patterns import ANY, ONE, elements_of
from ensue.lang.matching.tests import Parts, Test, View, test_of
from ensue.subscriptions import texts
from ensue.subscriptions.questions import Atom

Behaviour = tuple[int, ...]
MOST_BEHAVIOURS = 3_000
MOST_ELEMENTS = 7
_IN_NUMBERS = frozenset("0123456789+-.eE")
_IN_TIMES = frozenset("0123456789TtZz:+-. ")
"""Letters of texts that read as a number, or as a time."""
_NOTHING = object()
"""Stands for a value that is not known, in behaviours that are only not ruled out."""


class TooManyBehavioursError(Exception):
    """There are too many behaviours to list."""


class One:
    """A scope with a single name."""

    def __init__(self, parts: Parts, value: Any) -> None:
        self._parts = parts
        self._value = value

    def lookup(self, parts: Parts) -> Any:
        return self._value if parts == self._parts else MISSING


def behaviours_of(parts: Parts, atoms: Sequence[Atom]) -> dict[Behaviour, Any]:
    """Behaviours, each with a value that has it, or `unknown` where none was found."""
    return _Name(parts, atoms).behaviours()


def is_unknown(value: Any) -> bool:
    return value is _NOTHING


class _Name:
    def __init__(self, parts: Parts, atoms: Sequence[Atom]) -> None:
        self._parts = parts
        self._atoms = atoms
        tests = [test_of(Signed(each.expression, True)) for each in atoms]
        self._tests = [each if isinstance(each, Test) else None for each in tests]
        # An atom that is always in error asks for no constants.
        assert None not in tests
        self._constants = list(chain.from_iterable(map(_constants_of, filter(None, self._tests))))
        self._found: dict[Behaviour, Any] = {}

    def behaviours(self) -> dict[Behaviour, Any]:
        for value in self._simple():
            self._show(value)
        patterns = self._patterns()
        matches, complete = texts.combinations(patterns)
        if not complete:
            raise TooManyBehavioursError
        numbers, times = self._numbers(), self._times()
        for value in (*matches.values(), *numbers, *times):
            self._show(value)
        for value in (*map(_text, numbers), *map(_text, times), "true", "false", "unreadable"):
            self._show(value)
        for number in numbers:
            # The same number in another text, for where one text is asked for.
            self._show(f"-0{_text(-number)}" if number < 0 else f"0{_text(number)}")
        known = {pattern: at for at, pattern in enumerate(patterns)}
        exact = [known[texts.pattern_for(each)] for each in self._texts()]
        for matched, shown in matches.items():
            if any(matched[at] for at in exact):
                # The text is known letter by letter, and with it what it reads as.
                self._show_all_of(shown)
                continue
            held = [each for each, is_held in zip(patterns, matched, strict=True) if is_held]
            letters = set(chain.from_iterable(map(elements_of, held))) - {ANY, ONE}
            self._combine(
                shown,
                numbers if letters <= _IN_NUMBERS else (),
                times if letters <= _IN_TIMES else (),
            )
        self._bags()
        # After all others: a number that JSON can say is the better one to show a behaviour.
        for value in (math.nan, math.inf, -math.inf):
            self._show(value)
        if len(self._found) > MOST_BEHAVIOURS:
            raise TooManyBehavioursError
        return self._found

    def _outcomes(self, value: Any) -> Behaviour:
        scope = One(self._parts, value)
        return tuple(each.outcome(scope) for each in self._atoms)

    def _show(self, value: Any) -> None:
        if can_have(self._parts, value):
            behaviour = self._outcomes(value)
            if behaviour not in self._found or self._found[behaviour] is _NOTHING:
                self._found[behaviour] = value

    def _show_all_of(self, text: str) -> None:
        """Note the behaviours of a text, and of the number and the time with that text."""
        self._show(text)
        for cast in (to_number, to_timestamp):
            try:
                value = cast(text)
                if to_string(value) == text:
                    self._show(value)
            except (FaultError, ValueError, OverflowError):
                continue

    def _combine(self, shown: str, numbers: Sequence[Any], times: Sequence[datetime]) -> None:
        """Note the behaviours of texts that match the patterns of an example, and read as a value.

        The text of a number or of a timestamp can match patterns too.
        """
        matched = self._outcomes(shown)
        of_strings = [_looks_at(each, _OF_STRINGS) for each in self._tests]
        for reading in (*map(_text, numbers), *map(_text, times), "true", "false", "unreadable"):
            self._mix(matched, of_strings, reading)
        of_numbers = [_looks_at(each, (View.TEXT, View.PATTERN)) for each in self._tests]
        for number in numbers if any(of_numbers) else ():
            self._mix(matched, of_numbers, number)
        # A timestamp is compared with text as a time, and only matched as text.
        of_times = [_looks_at(each, (View.PATTERN,)) for each in self._tests]
        for time in times if any(of_times) else ():
            self._mix(matched, of_times, time)
        if len(self._found) > MOST_BEHAVIOURS:
            raise TooManyBehavioursError

    def _mix(self, matched: Behaviour, of_text: Sequence[bool], value: Any) -> None:
        """Note a behaviour: outcomes of tests of text from `matched`, the others from a value."""
        if can_have(self._parts, value):
            read = self._outcomes(value)
            mixed = (m if text else r for m, r, text in zip(matched, read, of_text, strict=True))
            self._found.setdefault(tuple(mixed), _NOTHING)

    def _simple(self) -> list[Any]:
        return [MISSING, True, False, {"": 0}, []]

    # --- texts -----------------------------------------------------------------------------------

    def _texts(self) -> list[str]:
        """The texts of all constants that atoms compare with."""
        found = []
        for test in filter(None, self._tests):
            match test.view:
                case View.TEXT:
                    found.append(test.constant)
                case View.LISTED:
                    found += [_text(each) for each in test.constant]
                case View.BAG:
                    found += [_text(each) for each in test.constant[1]]
        return list(dict.fromkeys(found))

    def _patterns(self) -> list[str]:
        like = [each.constant for each in self._tests if each and each.view is View.PATTERN]
        return list(dict.fromkeys([*like, *map(texts.pattern_for, self._texts())]))

    # --- numbers and times -----------------------------------------------------------------------

    def _numbers(self) -> list[int | float]:
        """The constants, and numbers between and around them, as integers and as reals."""
        constants: set[int | float] = set()
        for each in self._constants:
            try:
                constants.add(to_number(each))
            except FaultError:
                continue
        wholes: set[int] = set()
        for each in constants:
            least, most = wholes_equal_to(each)
            wholes |= {least - 1, least, most, most + 1}
        reals = sorted({float(each) for each in constants}) or [0.0]
        near = [math.nextafter(each, way) for each in reals for way in (-math.inf, math.inf)]
        between = [low / 2 + high / 2 for low, high in pairwise(reals)]
        ends = [math.floor(reals[0]) - 0.5, math.ceil(reals[-1]) + 0.5]
        allowed = (each for each in sorted(wholes) if SMALLEST_INTEGER <= each <= LARGEST_IN_DATA)
        finite = (each for each in (*reals, *near, *between, *ends) if math.isfinite(each))
        return [*allowed, *finite]

    def _times(self) -> list[datetime]:
        constants: set[int] = set()
        for test in filter(None, self._tests):
            if test.view in (View.TIME, View.OWN_TIME):
                constants.add(test.constant)
        for each in self._constants:
            try:
                constants.add(microseconds_of(to_timestamp(each)))
            except (FaultError, ValueError, OverflowError):
                continue
        ordered = sorted(constants) or [0]
        around = {ordered[0] - 1, ordered[-1] + 1, *ordered}
        around |= {low + 1 for low, high in pairwise(ordered) if low + 1 < high}
        found = []
        for each in sorted(around):
            try:
                found.append(datetime_of(each))
            except (ValueError, OverflowError):
                continue
        return found

    # --- bags ------------------------------------------------------------------------------------

    def _bags(self) -> None:
        """Sequences matter to HAS only: which constants they hold, and whether anything else."""
        asked = [each for each in self._tests if each is not None and each.view is View.BAG]
        if not asked:
            return
        options = dict.fromkeys((type(o), o) for each in asked for o in each.constant[1])
        elements = [each for _, each in options]
        if len(elements) > MOST_ELEMENTS or not _are_apart(elements):
            self._unknown_bags()
        shown = elements[:MOST_ELEMENTS]
        for size in range(len(shown) + 1):
            for chosen in combinations(shown, size):
                self._show(list(chosen))
                self._show([*chosen, None])

    def _unknown_bags(self) -> None:
        of_bag = [each is not None and each.view is View.BAG for each in self._tests]
        like_list = self._outcomes([])
        if sum(of_bag) > 8:
            raise TooManyBehavioursError
        for ways in product((1, 2), repeat=sum(of_bag)):
            way = iter(ways)
            mixed = tuple(
                next(way) if bag else other for bag, other in zip(of_bag, like_list, strict=True)
            )
            self._found.setdefault(mixed, _NOTHING)


_OF_STRINGS = (View.TEXT, View.PATTERN, View.LISTED, View.BAG)


def _looks_at(test: Test | None, views: Sequence[View]) -> bool:
    return test is not None and test.view in views


def _constants_of(test: Test) -> Iterator[Any]:
    match test.view:
        case View.LISTED:
            yield from test.constant
        case View.BAG:
            yield from test.constant[1]
        case View.NUMBER | View.TEXT | View.TRUTH:
            yield test.constant


def _are_apart(options: Sequence[Any]) -> bool:
    """Whether no value is equal to two of the options, whatever its kind."""
    for kind in ("string", "number", "boolean", "timestamp"):
        casts = []
        for each in options:
            try:
                casts.append(CASTS[kind](each))
            except FaultError:
                continue
        if len(set(casts)) < len(casts):
            return False
    return True


def _text(value: Any) -> str:
    return format_time(microseconds_of(value)) if isinstance(value, datetime) else to_string(value)


def can_have(parts: Parts, value: Any) -> bool:
    """Whether a name can have a value: CloudEvents says what its own attributes are."""
    if len(parts) > 1:
        return True
    match parts[0]:
        case "id" | "source" | "type":
            return isinstance(value, str) and bool(value)
        case "time":
            return isinstance(value, datetime)
        case "specversion":
            return bool(value == "1.0")
        case _:
            return True
