"""A normal form of rules: equal for rules that differ only in how they are written.

The order of parts does not matter in `+`, `|` and ECL's groups other than `sequential`; chains
inside chains are one chain; `x{n}` is n times `x`; and `repeat { notify { x } }` over ports,
`accumulate`, `select` and `sequential` is the filter of the same shape that always puts out. In
such a filter, which has no labels, redundant parts are left out. Two rules with equal forms put out
at the same moments, however many situations they have. Rules with different forms may do so as
well: that takes a search.
"""

from __future__ import annotations

from collections.abc import Hashable

from ensue.lang.derived.parts import labels_in
from ensue.lang.derived.relating import relates_events
from ensue.lang.syntax import (
    Both,
    Correlation,
    Ecl,
    EclCorrelation,
    Either,
    Fail,
    Filter,
    Group,
    Labelled,
    LabelTrue,
    Mode,
    Modes,
    PortRef,
    Push,
    PushNew,
    Round,
    Then,
    Timeout,
    Times,
    Unless,
)

Form = Hashable
JOINS = {"accumulate": "+", "select": "|", "sequential": ";"}

LARGE_FORM = 1_000
"""From so many ports on, redundant parts are not looked for."""


def normal_form(correlation: Correlation) -> Form:
    """Equal for two rules over the same ports only if they put out at the same moments."""
    ports = frozenset(correlation.ports)
    if isinstance(correlation, EclCorrelation):
        as_filter = _repeated(correlation.body)
        if as_filter is not None:
            return ports, frozenset({_without_needless(as_filter)}), None, "always"
        return ports, _ecl(correlation.body)
    if relates_events(correlation):
        # A part that is redundant for matches may still count for `having`.
        whole = correlation.branches, correlation.clauses, correlation.initially, correlation.cases
        return ports, whole
    branches = tuple(_filter(branch) for branch in correlation.branches)
    within = correlation.clauses.within
    match correlation.cases:
        case [only] if (
            isinstance(only.condition, LabelTrue)
            and any(isinstance(each, PushNew) for each in only.statements)
            and not correlation.initially
            and not any(labels_in(correlation.branches))
        ):
            needed = dict.fromkeys(_without_needless(branch) for branch in branches)
            return ports, frozenset(needed), within, "always"
    return ports, branches, within, correlation.initially, correlation.cases


def _filter(x: Filter) -> Form:
    match x:
        case PortRef(name):
            return name
        case Labelled(label, body):
            return ":", label, _filter(body)
        case Both(parts):
            return _joined("+", [_filter(part) for part in parts])
        case Either(parts):
            return _joined("|", [_filter(part) for part in parts])
        case Then(parts):
            return _joined(";", [_filter(part) for part in parts])
        case Times(body, count):
            return _times(_filter(body), count)
        case Timeout(after):
            return "timeout", after.microseconds


def _times(form: Form, count: int) -> Form:
    return _joined(";", [form] * count)


def _joined(sign: str, forms: list[Form]) -> Form:
    """One form for nested ones of a sign; for `+` and `|`, each part once and sorted."""
    parts: list[Form] = []
    for form in forms:
        inner = form if isinstance(form, tuple) and form[0] == sign else None
        parts += inner[1:] if inner else [form]
    if sign != ";":
        parts = sorted(dict.fromkeys(parts), key=repr)
    return parts[0] if len(parts) == 1 else (sign, *parts)


def _without_needless(form: Form) -> Form:
    """The form without redundant parts of `|` and `+`.

    If y implies x, every match of y is a match of x with no earlier start: so `x | y` is x, and
    `x + y` is y, within a window too.
    """
    return _needed(form, _Implications()) if _size(form) < LARGE_FORM else form


def _needed(form: Form, implications: _Implications) -> Form:
    if not isinstance(form, tuple):
        return form
    sign, *parts = form
    inner = _joined(sign, [_needed(part, implications) for part in parts])
    if not isinstance(inner, tuple) or inner[0] != sign or sign == ";":
        return inner

    def is_needless(part: Form, beside: Form) -> bool:
        pair = (part, beside) if sign == "|" else (beside, part)
        return implications.hold(*pair)

    kept: list[Form] = []
    for part in inner[1:]:
        # Of two parts that imply each other the first stays.
        if not any(is_needless(part, other) for other in kept):
            kept = [other for other in kept if not is_needless(other, part)]
            kept.append(part)
    return _joined(sign, kept)


class _Implications:
    """Implications between forms, with a cache of pairs."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Form, Form, bool]] = {}

    def hold(self, y: Form, x: Form) -> bool:
        """Whether every match of y is certainly a match of x."""
        pair = (id(y), id(x))
        if pair not in self._known:
            # Both forms are kept with the answer, so that no other form gets their `id`.
            self._known[pair] = (y, x, self._look(y, x))
        return self._known[pair][2]

    def _look(self, y: Form, x: Form) -> bool:
        if y == x:
            return True
        x_sign, *x_parts = x if isinstance(x, tuple) else ("",)
        y_sign, *y_parts = y if isinstance(y, tuple) else ("",)
        if x_sign == "+":
            return all(self.hold(y, part) for part in x_parts)
        if y_sign == "|":
            return all(self.hold(part, x) for part in y_parts)
        if x_sign == "|" and any(self.hold(y, part) for part in x_parts):
            return True
        if y_sign in ("+", ";") and any(self.hold(part, x) for part in y_parts):
            return True
        return x_sign == y_sign == ";" and self._leads_through(y_parts, x_parts)

    def _leads_through(self, chain: list[Form], wanted: list[Form]) -> bool:
        """Whether a chain has, in order, a part that implies each of the wanted parts."""
        left = list(reversed(wanted))
        for part in chain:
            if left and self.hold(part, left[-1]):
                left.pop()
        return not left


def _size(form: Form) -> int:
    return sum(map(_size, form[1:])) if isinstance(form, tuple) else 1


def _repeated(x: Ecl) -> Form | None:
    """The form of `repeat { notify { x } }` as a filter, if x has only operators of filters."""
    match x:
        case Round("repeat", Push(_, body), None):
            return _as_filter(body)
        case _:
            return None


def _as_filter(x: Ecl) -> Form | None:
    match x:
        case PortRef(name):
            return name
        case Group(kind, parts) if kind in JOINS:
            forms = [_as_filter(part) for part in parts]
            return None if None in forms else _joined(JOINS[kind], [f for f in forms if f])
        case _:
            return None


def _ecl(x: Ecl) -> Form:
    match x:
        case Group(kind, parts):
            forms = [_ecl(part) for part in parts]
            return kind, *(forms if kind == "sequential" else sorted(forms, key=repr))
        case Unless(body, stop):
            return "unless", _ecl(body), _ecl(stop)
        case Fail(body):
            return "fail", _ecl(body)
        case Push(_, body):
            return "push", _ecl(body)
        case Round(kind, body, bound):
            return kind, bound, _ecl(body)
        case Modes(modes):
            return "modes", *(_mode(mode) for mode in modes)
        case _:
            return x


def _mode(mode: Mode) -> Form:
    return _ecl(mode.guard), _ecl(mode.body)
