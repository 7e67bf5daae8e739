"""Equivalence classes of the values of an attribute: values that predicates cannot tell apart.

In come the values of an attribute and the *facts* about it: the largest parts of predicates that
mention no other name. Out comes one value of each class, and the facts that hold for it. The fact
`n IN (2,500 numbers)` has two classes, not 5,001.

A comparison with a constant holds on runs of the ordered values, so that it is answered by
bisection, and combined with others as bits: a fact of 30,000 terms costs 30,000 bisections, where
its evaluation for every value would cost a billion. Other facts are evaluated for each value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from math import isfinite
from operator import xor
from random import Random
from typing import Any

from ensue.lang.expressions import Comparison, Expression, In, Literal, Logic, Name, Not
from ensue.lang.expressions.evaluation import Outcome
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.expressions.values import FaultError, kind_of, to_timestamp
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.events.mentions import constant_of

NUMBERS = frozenset({"integer", "real"})
SIGNATURE_BITS = 128

Run = tuple[int, int]
"""Consecutive places from the first up to, but without, the second."""


def facts_about(parts: Parts, predicate: Expression) -> Iterator[Expression]:
    """The largest parts of a predicate that mention this name only."""
    names = set(names_in(predicate))
    if names == {parts}:
        yield predicate
    elif parts in names:
        match predicate:
            case Not(operand):
                yield from facts_about(parts, operand)
            case Logic(operands):
                for each in operands:
                    yield from facts_about(parts, each)


class Classes:
    """The values of one attribute, by the outcomes of facts about it.

    `outcome` evaluates a fact for a value; it is called only where bisection is not possible.
    """

    def __init__(
        self, values: Sequence[Any], outcome: Callable[[Expression, Any], Outcome]
    ) -> None:
        self._given = values
        self._outcome = outcome
        kinds = {kind_of(each) for each in values}
        self._is_numbers = bool(kinds) and kinds <= NUMBERS
        self._is_texts = kinds == {"string"}
        self._is_times = kinds == {"timestamp"}
        is_ordered = self._is_numbers or self._is_texts or self._is_times
        self._values = sorted(values) if is_ordered else list(values)
        self._reals = [float(each) for each in self._values] if self._is_numbers else []
        self._whole = all(isinstance(each, int) for each in self._values)
        self._places = {(type(each), each): place for place, each in enumerate(self._values)}

    def one_of_each(self, facts: Iterable[Expression], alike: int = 1) -> list[Any]:
        """Up to `alike` values of each class, in the order of values."""
        random = Random(0)
        changes = [0] * (len(self._values) + 1)
        for fact in facts:
            poll()
            for runs in self._outcomes(fact):
                mark = random.getrandbits(SIGNATURE_BITS)
                for start, end in runs:
                    changes[start] ^= mark
                    changes[end] ^= mark
        signatures = list(accumulate(changes[:-1], xor))
        seen: dict[int, int] = {}
        kept = []
        for value in self._given:
            signature = signatures[self._place(value)]
            seen[signature] = seen.get(signature, 0) + 1
            if seen[signature] <= alike:
                kept.append(value)
        return kept

    def truths(self, fact: Expression, values: Sequence[Any]) -> list[bool] | None:
        """Whether a fact holds for each value; None where bisection is not possible."""
        runs = self._runs(fact)
        if runs is None:
            mask = self._mask(fact)
            if mask is None:
                return None
            runs = _runs_of(mask, len(self._values))
        starts = [start for start, _ in runs]
        found = []
        for value in values:
            number = bisect_right(starts, self._place(value)) - 1
            found.append(number >= 0 and self._place(value) < runs[number][1])
        return found

    def _place(self, value: Any) -> int:
        return self._places[type(value), value]

    def _outcomes(self, fact: Expression) -> Iterator[list[Run]]:
        """The runs of values for each outcome of a fact; for a boolean, those where it is true."""
        runs = self._runs(fact)
        if runs is not None:
            yield runs
            return
        mask = self._mask(fact)
        if mask is not None:
            yield _runs_of(mask, len(self._values))
            return
        by_outcome: dict[object, list[Run]] = {}
        for place, value in enumerate(self._values):
            poll()
            result = self._outcome(fact, value)
            key = (type(result.value), repr(result.value), result.errors)
            by_outcome.setdefault(key, []).append((place, place + 1))
        yield from by_outcome.values()

    def _mask(self, fact: Expression) -> int | None:
        """The values for which a fact is true, as bits; None if it is no logic of comparisons."""
        match fact:
            case Not(operand):
                inner = self._mask(operand)
                return None if inner is None else ~inner & ((1 << len(self._values)) - 1)
            case Logic(operands, operators):
                # `a AND b OR c` is `a AND (b OR c)`.
                result = self._mask(operands[-1])
                for operand, sign in zip(operands[-2::-1], operators[::-1], strict=True):
                    left = self._mask(operand)
                    if left is None or result is None:
                        return None
                    poll()
                    if sign == "AND":
                        result &= left
                    else:
                        result = result | left if sign == "OR" else result ^ left
                return result
            case _:
                runs = self._runs(fact)
                if runs is None:
                    return None
                mask = 0
                for start, end in runs:
                    mask |= ((1 << (end - start)) - 1) << start
                return mask

    def _runs(self, fact: Expression) -> list[Run] | None:
        """The values for which a comparison, or `IN`, is true."""
        match fact:
            case Comparison(Name(), ((sign, constant),)):
                return self._compared(sign, constant_of(constant))
            case Comparison(Literal() as constant, ((sign, Name()),)):
                turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
                return self._compared(turned.get(sign, sign), constant_of(constant))
            case In(Name(), options, negated):
                equal = [self._equal(constant_of(each)) for each in options]
                found = [each for each in equal if each is not None]
                if len(found) < len(equal):
                    return None
                joined = _joined(found)
                return _others(joined, len(self._values)) if negated else joined
            case _:
                return None

    def _compared(self, sign: str, constant: Any) -> list[Run] | None:
        equal = self._equal(constant)
        if equal is None or (self._is_texts and sign not in ("=", "!=")):
            return None
        (start, end), size = equal, len(self._values)
        runs: dict[str, list[Run]] = {
            "=": [(start, end)],
            "!=": [(0, start), (end, size)],
            "<": [(0, start)],
            "<=": [(0, end)],
            ">": [(end, size)],
            ">=": [(start, size)],
        }
        return [each for each in runs[sign] if each[0] < each[1]]

    def _equal(self, constant: Any) -> Run | None:
        """The values that are equal to a constant, or an empty run at its place between values."""
        kind = kind_of(constant)
        if self._is_texts and kind == "string":
            ordered: Sequence[Any] = self._values
        elif self._is_numbers and kind in NUMBERS and isfinite(constant):
            # An integer is compared with a real as a real.
            exactly = self._whole and kind == "integer"
            ordered = self._values if exactly else self._reals
            constant = constant if exactly else float(constant)
        elif self._is_times:
            try:
                ordered, constant = self._values, to_timestamp(constant)
            except FaultError:
                return None
        else:
            return None
        return bisect_left(ordered, constant), bisect_right(ordered, constant)


def _joined(runs: Iterable[Run]) -> list[Run]:
    """The union of runs, as disjoint runs in order."""
    joined: list[Run] = []
    for start, end in sorted(each for each in runs if each[0] < each[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _others(runs: Sequence[Run], size: int) -> list[Run]:
    """The complement of disjoint runs in order."""
    ends = [0, *(end for _, end in runs)]
    starts = [*(start for start, _ in runs), size]
    return [each for each in zip(ends, starts, strict=True) if each[0] < each[1]]


def _runs_of(mask: int, size: int) -> list[Run]:
    bits = bin(mask)[2:].zfill(size)[::-1] if size else ""
    runs: list[Run] = []
    start = bits.find("1")
    while start >= 0:
        end = bits.find("0", start)
        end = size if end < 0 else end
        runs.append((start, end))
        start = bits.find("1", end)
    return runs
