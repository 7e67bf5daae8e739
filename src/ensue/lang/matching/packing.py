"""Tests as the compiled loops read them, and back.

A test of a number, a text, a truth, a time or of presence is packed into a few numbers; texts get
codes, so that comparing them is comparing integers. Tests of other views are not packed: they are
asked by evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ensue.events.times import datetime_of, format_time
from ensue.lang.expressions.tree import Comparison, Exists, Expression, Literal, Name, Negate
from ensue.lang.matching import kernels as k
from ensue.lang.matching.attribute import Attribute
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.storage import Packed
from ensue.lang.matching.tests import Parts, Test, View

_SIGNS = {
    "=": k.EQUAL,
    "<": k.LESS,
    "<=": k.LESS_OR_EQUAL,
    ">": k.GREATER,
    ">=": k.GREATER_OR_EQUAL,
}
_TEXTS_OF_SIGNS = {code: text for text, code in _SIGNS.items()}
_VIEWS = {
    k.ON_NUMBER: View.NUMBER,
    k.ON_REAL: View.NUMBER,
    k.ON_TEXT: View.TEXT,
    k.ON_TRUTH: View.TRUTH,
    k.ON_TIME: View.TIME,
    k.ON_OWN_TIME: View.OWN_TIME,
    k.ON_PRESENCE: View.PRESENCE,
    k.ON_NOTHING: View.PRESENCE,
}


class Codes:
    """Codes of the texts that atoms compare with, for as long as one does."""

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

    def use(self, atom: Packed) -> None:
        if atom.form >> 4 == k.ON_TEXT:
            self._uses[atom.constant] += 1

    def release(self, atom: Packed) -> None:
        if atom.form >> 4 != k.ON_TEXT:
            return
        code = atom.constant
        self._uses[code] -= 1
        if not self._uses[code]:
            text = self.texts[code]
            assert text is not None
            del self.by_text[text]
            self.texts[code] = None
            self._free.append(code)


def view_of(form: int) -> View:
    return _VIEWS[form >> 4]


def pack(test: Test, attributes: Mapping[Parts, Attribute], codes: Codes) -> Packed | None:
    """The test for the loops, or None if it is to be asked by evaluation."""
    constant, real, view = 0, 0.0, None
    match test.view:
        case View.NUMBER if isinstance(test.constant, int):
            view, constant, real = k.ON_NUMBER, test.constant, float(test.constant)
        case View.NUMBER:
            view, real = k.ON_REAL, test.constant
        case View.TEXT:
            view, constant = k.ON_TEXT, codes.code(test.constant)
        case View.TRUTH:
            view, constant = k.ON_TRUTH, int(test.constant)
        case View.TIME:
            view, constant = k.ON_TIME, test.constant
        case View.OWN_TIME:
            view, constant = k.ON_OWN_TIME, test.constant
        case View.PRESENCE:
            view = k.ON_PRESENCE
    if view is None:
        return None
    form = (view << 4) | (_SIGNS[test.sign] << 1) | test.positive
    return Packed(attributes[test.name].slot, form, constant, real)


def unpack(atom: Packed, by_slot: Sequence[Attribute | None], codes: Codes) -> Signed:
    """The signed atom that was packed, or one of the same meaning."""
    attribute = by_slot[atom.slot]
    assert attribute is not None
    name = Name(attribute.parts)
    view, sign = atom.form >> 4, _TEXTS_OF_SIGNS[(atom.form >> 1) & 7]
    if view == k.ON_PRESENCE:
        return Signed(Exists(name), bool(atom.form & 1))
    constant = _constant(view, atom, codes)
    return Signed(Comparison(name, ((sign, constant),)), bool(atom.form & 1))


def _constant(view: int, atom: Packed, codes: Codes) -> Expression:
    value: Any
    match view:
        case k.ON_NUMBER:
            value = atom.constant
        case k.ON_REAL:
            value = atom.real
        case k.ON_TEXT:
            value = codes.texts[atom.constant]
        case k.ON_TRUTH:
            return Literal(bool(atom.constant))
        case k.ON_TIME:
            return Literal(datetime_of(atom.constant))
        case _:
            return Literal(format_time(atom.constant))
    return Negate(Literal(-value)) if not isinstance(value, str) and value < 0 else Literal(value)
