"""The meaning of temporal terms, by the definitions alone: every stored publication is tried.

Nothing is shared with `ensue.history` but the reading of filters. Uncertain times are judged by
trying every instant of every range, so ranges are kept to a few microseconds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ensue.events.event import Event
from ensue.events.times import parse_time
from ensue.lang.expressions.comparing import stands_in
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    ConceptTerm,
    During,
    Expression,
    Related,
    TemporalTerm,
)

Placed = tuple[int, int | None]
"""A start and an end."""

ALLEN: Mapping[str, str] = {
    "BEFORE": "xe < ys",
    "AFTER": "xs > ye",
    "MEETS": "xe == ys",
    "MET_BY": "xs == ye",
    "OVERLAPS": "xs < ys < xe < ye",
    "OVERLAPPED_BY": "ys < xs < ye < xe",
    "STARTS": "xs == ys and xe < ye",
    "STARTED_BY": "xs == ys and xe > ye",
    "DURING": "xs > ys and xe < ye",
    "CONTAINS": "xs < ys and xe > ye",
    "FINISHES": "xe == ye and xs > ys",
    "FINISHED_BY": "xe == ye and xs < ys",
    "EQUALS": "xs == ys and xe == ye",
}
"""The relations as Allen has defined them, for X and Y with their starts and ends."""
_COMPILED = {name: compile(text, name, "eval") for name, text in ALLEN.items()}


def is_related(name: str, xs: int, xe: int, ys: int, ye: int) -> bool:
    return bool(eval(_COMPILED[name], {"xs": xs, "xe": xe, "ys": ys, "ye": ye}))


USES_END_OF_X = set(ALLEN) - {"AFTER", "MET_BY"}
USES_END_OF_Y = set(ALLEN) - {"BEFORE", "MEETS"}


@dataclass(frozen=True)
class Known:
    """A publication with all the places that its start and its end may have."""

    event: Event
    starts: tuple[int, ...]
    ends: tuple[int | None, ...]

    @classmethod
    def of(cls, event: Event) -> Known:
        given = event.extensions
        last = given.get("timeuntil")
        starts = tuple(range(event.time, (parse_time(last) if last else event.time) + 1))
        if given.get("phase") == "start":
            return cls(event, starts, (None,))
        if "endtime" not in given:
            return cls(event, starts, starts)
        first = parse_time(given["endtime"])
        last = given.get("endtimeuntil")
        return cls(event, starts, tuple(range(first, (parse_time(last) if last else first) + 1)))

    def places(self) -> Iterator[Placed]:
        for start, end in product(self.starts, self.ends):
            if end is None or start <= end:
                yield start, end


@dataclass(frozen=True)
class Judge:
    """A history as a list, in the order of arrival."""

    stored: Sequence[Known]
    # Filters inside of filters are asked of the same publications over and over.
    _known: dict[tuple[int, str, bool], tuple[Expression, bool]] = field(
        default_factory=dict, compare=False
    )

    def matches(self, expression: Expression, x: Known, possibly: bool = False) -> bool:
        key = id(expression), x.event.id, possibly
        if key not in self._known:
            self._known[key] = expression, self._matches(expression, x, possibly)
        return self._known[key][1]

    def _matches(self, expression: Expression, x: Known, possibly: bool) -> bool:
        terms: list[TemporalTerm] = []
        answers: dict[int, list[bool | None]] = {}

        def answer(term: TemporalTerm) -> bool | None:
            if id(term) not in answers:
                terms.append(term)
                surely = self.holds(term, x, False)
                answers[id(term)] = (
                    [surely]
                    if surely in (True, None) or not self.holds(term, x, True)
                    else [True, False]
                )
            return answers[id(term)][0]

        _collect(expression, answer)
        ways = [
            holds(
                expression,
                _Scope(x.event, dict(zip([id(each) for each in terms], way, strict=True))),
            )
            for way in product(*(answers[id(each)] for each in terms))
        ]
        return any(ways) if possibly else all(ways)

    def holds(self, term: TemporalTerm, x: Known, possibly: bool) -> bool | None:
        others = [y for y in self.stored if not _is_same(x.event, y.event)]
        if isinstance(term, Compared):
            return self._compared(term, x, others, possibly)
        reference = None if isinstance(term, Related) else term.reference
        if isinstance(term, Related) and term.reference is not None:
            points = x.starts if term.reference == "start" else x.ends
            x = replace(x, starts=points, ends=points)  # type: ignore[arg-type]
            if None in points:
                return None
            condition = _relation(term.relation)
            pairs_of: Callable[[Known], Iterator[Placed]] = _points
        elif isinstance(term, Related):
            if x.ends == (None,) and term.relation in USES_END_OF_X:
                return None
            condition = _relation(term.relation)
            pairs_of = Known.places
        else:
            if reference == "end" and x.ends == (None,):
                return None
            condition = _window(term)
            points = x.starts if reference == "start" else x.ends
            x = replace(x, starts=points, ends=points)  # type: ignore[arg-type]
            pairs_of = _points
        quantify = any if possibly else all
        count = sum(
            quantify(condition(a, b) for a in _rooms(pairs_of, x) for b in y.places())
            and self.matches(term.filter, y, possibly)
            for y in others
        )
        return count >= getattr(term, "times", 1)

    def _compared(
        self, term: Compared, x: Known, others: Sequence[Known], possibly: bool
    ) -> bool | None:
        values = _values(term, x)
        if values == [MISSING]:
            return None
        quantify = any if possibly else all
        later = 0
        for y in reversed(others):
            if term.limit is not None and later >= term.limit:
                return False
            if self.matches(term.filter, y, possibly) and quantify(
                b is not MISSING and _stands(term.operator, a, b)
                for a in values
                for b in _values(term, y)
            ):
                return True
            later += self.matches(term.filter, y, not possibly)
        return False


def _rooms(pairs_of: Callable[[Known], Iterator[Placed]], x: Known) -> list[Placed]:
    return list(pairs_of(x))


def _points(x: Known) -> Iterator[Placed]:
    """The places of an instant."""
    for each in x.starts:
        yield each, each


def _is_same(x: Event, y: Event) -> bool:
    return (x.source, x.id) == (y.source, y.id)


def _relation(name: str) -> Callable[[Placed, Placed], bool]:
    def condition(x: Placed, y: Placed) -> bool:
        if y[1] is None and name in USES_END_OF_Y:
            return False
        # What a relation leaves out may be anything.
        xe = x[1] if x[1] is not None else 0
        ye = y[1] if y[1] is not None else 0
        return is_related(name, x[0], xe, y[0], ye)

    return condition


def _window(term: After | Before | During) -> Callable[[Placed, Placed], bool]:
    def condition(x: Placed, y: Placed) -> bool:
        r, (ys, ye) = x[0], y
        match term:
            case After(limit=limit):
                return ye is not None and ye < r and (limit is None or ye >= r - limit)
            case Before(limit=limit):
                return ys > r and (limit is None or ys <= r + limit)
            case During():
                return ys <= r and (ye is None or ye >= r)

    return condition


class _Time(int):
    """An instant that a name stands for."""


def _values(term: Compared, y: Known) -> list[Any]:
    found = EventScope(y.event).lookup(term.name.parts)
    if found is MISSING and term.name.parts == ("start",):
        return [_Time(each) for each in y.starts]
    if found is MISSING and term.name.parts == ("end",) and y.ends != (None,):
        return [_Time(each) for each in y.ends if each is not None]
    return [found]


_SIGNS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _stands(sign: str, left: Any, right: Any) -> bool:
    if isinstance(left, _Time) and isinstance(right, _Time):
        return bool(_SIGNS[sign](left, right))
    if isinstance(left, _Time) or isinstance(right, _Time):
        return False
    return stands_in(sign, left, right)


@dataclass(frozen=True)
class _Scope:
    event: Event
    answers: Mapping[int, bool | None]

    def lookup(self, parts: tuple[str, ...]) -> Any:
        return EventScope(self.event).lookup(parts)

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        return self.answers[id(term)]


def _collect(expression: Any, answer: Callable[[TemporalTerm], Any]) -> None:
    """Ask every temporal term of an expression, but none inside of the filters of others."""
    if isinstance(expression, After | Before | During | Compared | Related):
        answer(expression)
    elif isinstance(expression, tuple):
        for each in expression:
            _collect(each, answer)
    elif hasattr(expression, "__dataclass_fields__"):
        for name in expression.__dataclass_fields__:
            _collect(getattr(expression, name), answer)
