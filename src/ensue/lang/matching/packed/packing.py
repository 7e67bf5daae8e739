"""Packed tests for the compiled loops, and signed atoms of packed tests.

A test of a number, a text, a truth, a time or of presence becomes a cell and two ends between which
it must lie; texts have codes, so that they are compared as numbers. Bounds on one cell become one
interval. Tests of other views, and of numbers and times that are not exact as doubles, are not
packed: they are evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ensue.events.times import datetime_of, format_time
from ensue.lang.expressions.tree import (
    Comparison,
    Exists,
    Expression,
    Literal,
    Logic,
    Name,
    Negate,
)
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.lang.matching.attribute import AttributeIndex
from ensue.lang.matching.computed import operand_of
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.packed import kernels as k
from ensue.lang.matching.packed.storage import Packed
from ensue.lang.matching.tests import Test, View

_CELLS = {
    View.NUMBER: k.NUMBER,
    View.TEXT: k.TEXT,
    View.TRUTH: k.TRUTH,
    View.TIME: k.TIME,
    View.OWN_TIME: k.OWN_TIME,
    View.PRESENCE: k.PRESENT,
}


class Codes:
    """The codes of texts in atoms; a code is released when no atom uses it any more."""

    def __init__(self) -> None:
        self.by_text: dict[str, int] = {}
        self.texts: list[str | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def code(self, text: str) -> int:
        known = self.by_text.get(text)
        if known is None:
            if self._free:
                known = self._free.pop()
                self.texts[known], self._uses[known] = text, 0
            else:
                known = len(self.texts)
                self.texts.append(text)
                self._uses.append(0)
            self.by_text[text] = known
        return known

    def use(self, code: int) -> None:
        self._uses[code] += 1

    def release(self, code: int) -> None:
        self._uses[code] -= 1
        if not self._uses[code]:
            text = self.texts[code]
            assert text is not None
            del self.by_text[text]
            self.texts[code] = None
            self._free.append(code)


def pack(test: Test, slot: int, codes: Codes) -> Packed | None:
    """The packed test, or None if it has to be evaluated."""
    cell = _CELLS.get(test.view)
    if cell is None:
        return None
    constant = test.constant
    turned = not test.positive
    at = slot * k.CELLS + cell
    if cell == k.PRESENT:
        return Packed(at, turned, 1.0, 1.0)
    if cell == k.TEXT:
        constant = codes.code(constant)
    if abs(constant) >= EXACT_IN_DOUBLES:
        return None
    number = float(constant)
    # The next smaller and larger double make `<` of `<=`, and `>` of `>=`.
    below, above = math.nextafter(number, -math.inf), math.nextafter(number, math.inf)
    if cell in (k.TIME, k.OWN_TIME):
        below, above = number - 1, number + 1
    match test.sign:
        case "=":
            return Packed(at, turned, number, number)
        case "<":
            return Packed(at, turned, -math.inf, below)
        case "<=":
            return Packed(at, turned, -math.inf, number)
        case ">":
            return Packed(at, turned, above, math.inf)
        case _:
            return Packed(at, turned, number, math.inf)


def joined(atoms: Iterable[Packed]) -> list[Packed]:
    """The atoms with all intervals of one cell joined into one."""
    plain: dict[int, Packed] = {}
    turned = []
    for atom in atoms:
        known = plain.get(atom.cell)
        if atom.turned:
            turned.append(atom)
        elif known is None:
            plain[atom.cell] = atom
        else:
            low, high = max(known.low, atom.low), min(known.high, atom.high)
            plain[atom.cell] = Packed(atom.cell, False, low, high)
    return [*plain.values(), *turned]


def unpack(atom: Packed, by_slot: Sequence[AttributeIndex | None], codes: Codes) -> Signed:
    """A signed atom with the same meaning as a packed one."""
    attribute = by_slot[atom.cell // k.CELLS]
    assert attribute is not None
    name, cell = operand_of(attribute.parts), atom.cell % k.CELLS
    if cell == k.PRESENT:
        return Signed(Exists(Name(attribute.parts)), not atom.turned)
    if atom.low > atom.high:
        return Signed(Literal(False), not atom.turned)
    if atom.low == atom.high:
        equal = Comparison(name, (("=", _constant(cell, atom.low, codes)),))
        return Signed(equal, not atom.turned)
    bounds: list[Expression] = []
    if math.isfinite(atom.low):
        bounds.append(Comparison(name, ((">=", _constant(cell, atom.low, codes)),)))
    if math.isfinite(atom.high):
        bounds.append(Comparison(name, (("<=", _constant(cell, atom.high, codes)),)))
    both = bounds[0] if len(bounds) == 1 else Logic(tuple(bounds), ("AND",))
    return Signed(both, not atom.turned)


def _constant(cell: int, number: float, codes: Codes) -> Expression:
    match cell:
        case k.TEXT:
            text: Any = codes.texts[int(number)]
            return Literal(text)
        case k.TRUTH:
            return Literal(bool(number))
        case k.TIME:
            return Literal(datetime_of(int(number)))
        case k.OWN_TIME:
            return Literal(format_time(int(number)))
        case _:
            return Negate(Literal(-number)) if number < 0 else Literal(number)
