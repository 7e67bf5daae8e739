"""A form in which rules that differ only in how they are written are equal.

`+` and `|` (and ECL's groups other than `sequential`) do not care about the order of their parts,
chains inside chains are one chain, `x{n}` is n times `x`, and `repeat { notify { x } }` over ports,
`accumulate`, `select` and `sequential` is the filter of the same shape that always puts out. Two
rules of one form put out at the same moments, however many situations they have; rules of different
forms may do so too, and then the exploration has to tell.
"""

from __future__ import annotations

from collections.abc import Hashable

from ensue.lang.parts import labels_in
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
    Times,
    Unless,
)

Form = Hashable
JOINS = {"accumulate": "+", "select": "|", "sequential": ";"}


def normal_form(correlation: Correlation) -> Form:
    """Equal for two rules over the same ports only if they put out at the same moments."""
    ports = frozenset(correlation.ports)
    if isinstance(correlation, EclCorrelation):
        as_filter = _repeated(correlation.body)
        if as_filter is not None:
            return ports, (as_filter,), None, "always"
        return ports, _ecl(correlation.body)
    branches = tuple(_filter(branch) for branch in correlation.branches)
    within = correlation.clauses.within
    match correlation.cases:
        case [only] if (
            isinstance(only.condition, LabelTrue)
            and any(isinstance(each, PushNew) for each in only.statements)
            and not correlation.initially
            and not any(labels_in(correlation.branches))
        ):
            return ports, branches, within, "always"
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


def _times(form: Form, count: int) -> Form:
    return _joined(";", [form] * count)


def _joined(sign: str, forms: list[Form]) -> Form:
    """One chain for chains in chains; where order does not matter, each part once and sorted."""
    parts: list[Form] = []
    for form in forms:
        inner = form if isinstance(form, tuple) and form[0] == sign else None
        parts += inner[1:] if inner else [form]
    if sign != ";":
        parts = sorted(dict.fromkeys(parts), key=repr)
    return parts[0] if len(parts) == 1 else (sign, *parts)


def _repeated(x: Ecl) -> Form | None:
    """The filter that `repeat { notify { x } }` is, if x has only what filters have."""
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
