"""Systems of linear inequalities over named unknowns, and the conflicts in them.

In come inequalities `c1*x1 + ... + c <= 0` (or `< 0`), each with the number of its source; out come
the sources of a few inequalities without a common solution, or None. Unknowns are eliminated one by
one (Fourier and Motzkin), in exact fractions. Past a budget the answer is None. A system without a
rational solution has no integer solution either; where all unknowns of an inequality are integers,
`<` is sharpened to `<= -1` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

MOST_INEQUALITIES = 1_500
"""The most inequalities at a time; past that an elimination is given up."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """The sum of coefficients times unknowns, plus a constant, is at most 0, or below 0."""

    terms: Mapping[str, Fraction]
    constant: Fraction
    strict: bool = False
    sources: frozenset[int] = frozenset()

    @property
    def is_false(self) -> bool:
        return not self.terms and (self.constant > 0 or (self.strict and self.constant == 0))

    def sharpened(self) -> Inequality:
        """The inequality over integer unknowns, with `<` as `<= -1`."""
        if not self.strict or not self.terms:
            return self
        scale = lcm(*(each.denominator for each in (*self.terms.values(), self.constant)))
        terms = {name: value * scale for name, value in self.terms.items()}
        return Inequality(terms, self.constant * scale + 1, False, self.sources)


def core(inequalities: Iterable[Inequality]) -> frozenset[int] | None:
    """The sources of inequalities that exclude each other, as few as are easily found."""
    all_of_them = list(inequalities)
    found = _conflict(all_of_them)
    if found is None:
        return None
    # A source without which the conflict remains is left out.
    for source in sorted(found, reverse=True):
        fewer = [each for each in all_of_them if each.sources <= found - {source}]
        if _conflict(fewer) is not None:
            found = found - {source}
    return found


def _conflict(inequalities: Sequence[Inequality]) -> frozenset[int] | None:
    system = list(inequalities)
    while True:
        for each in system:
            if each.is_false:
                return each.sources
        unknowns = {name for each in system for name in each.terms}
        if not unknowns:
            return None
        system = _without(system, min(sorted(unknowns), key=lambda name: _price(system, name)))
        if len(system) > MOST_INEQUALITIES:
            return None


def _price(system: Sequence[Inequality], name: str) -> int:
    """The number of inequalities that the elimination of an unknown makes."""
    above = sum(each.terms.get(name, 0) > 0 for each in system)
    below = sum(each.terms.get(name, 0) < 0 for each in system)
    return above * below - above - below


def _without(system: Sequence[Inequality], name: str) -> list[Inequality]:
    above = [each for each in system if each.terms.get(name, 0) > 0]
    below = [each for each in system if each.terms.get(name, 0) < 0]
    rest = [each for each in system if name not in each.terms]
    return rest + [_joined(one, other, name) for one in above for other in below]


def _joined(above: Inequality, below: Inequality, name: str) -> Inequality:
    """The sum of two inequalities in which an unknown cancels out."""
    left, right = -below.terms[name], above.terms[name]
    terms: dict[str, Fraction] = {}
    for factor, each in ((left, above), (right, below)):
        for unknown, value in each.terms.items():
            terms[unknown] = terms.get(unknown, Fraction(0)) + factor * value
    return Inequality(
        {unknown: value for unknown, value in terms.items() if value},
        left * above.constant + right * below.constant,
        above.strict or below.strict,
        above.sources | below.sources,
    )
