"""Routines made for a library: for each event type one that knows what its rules ask.

In comes what is asked of the events of a type (`plans`); out go functions that are compiled from
text written here. `look` evaluates every distinct test of the type's ports once and finds the plan
of those that hold. `push` is the whole way of an event that comes in order: its attributes are
checked, the clock moves, the tests are made and the rules are stepped. Whatever is unusual about an
event (a value that has to be converted or refused, an event that is late) is left to the general
code, which knows it all.

The text is made of names from the checked library and of our own words. Constants, predicates and
plans are handed over as values, so that nothing a user wrote is ever read as Python.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from ensue.engine.step.asking import Asking
from ensue.engine.step.compiling import compiled, filled
from ensue.engine.step.keys import FastKey
from ensue.engine.step.plans import (
    PLANS_REMEMBERED,
    KeyNames,
    MixedPlan,
    Plan,
    SplitReading,
    TypeRoutines,
)
from ensue.engine.step.predicates import Constants, OutsideError, variable
from ensue.engine.step.values import found, key_under
from ensue.events.event import Event
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds

__all__ = [
    "PLANS_REMEMBERED",
    "KeyNames",
    "Look",
    "Plan",
    "Push",
    "SplitReading",
    "TypeRoutines",
    "compile_fit",
    "compile_look",
    "compile_push",
]

LARGEST_FLOAT = 3.4028234663852886e38

Look = Callable[[Event], tuple[Plan, tuple[FastKey | None, ...]]]
Push = Callable[[Event], list[Event]]


class Asked(Protocol):
    """What is asked of the events of one type: each test with its bit, and each key's names.

    `plans` has what follows from the tests that hold, as far as `make_plan` was asked for it.
    """

    name: str
    attributes: Mapping[str, ValueType]
    sources: dict[str, int]
    predicates: dict[Expression, int]
    keys: dict[KeyNames, int]

    @property
    def plans(self) -> Mapping[int, Any]: ...

    def make_plan(self, tests: int, /) -> Any: ...


class _Writing:
    """The text of one type's routines, and the values that it names."""

    def __init__(self, routines: Asked) -> None:
        self._routines = routines
        self.constants = Constants(
            {
                "holds": holds,
                "found": found,
                "key_under": key_under,
                "Event": Event,
                "bisect_left": bisect_left,
                "bisect_right": bisect_right,
            }
        )
        self.reads: dict[str, None] = {}

    def tests(self) -> list[str]:
        """Statements that set `tests` from the variables."""
        asking = Asking(self._routines.attributes, self.constants)
        lines = ["tests = 0", *asking.lines(self._routines.predicates)]
        self.reads |= asking.reads
        if self._routines.sources:
            sources = self.constants.name(dict(self._routines.sources), "s")
            lines += [f"tests |= {sources}.get(event.source, 0)"]
        return lines

    def keys(self) -> list[str]:
        """Statements that set the keys; a single one, as most types have, is just `key`."""
        lines = []
        for variable_name, names in zip(self.key_variables(), self._routines.keys, strict=True):
            if not names:
                lines.append(f"{variable_name} = ()")
                continue
            constant = self.constants.name(names, "k")
            whole = f"key_under(event, {constant})"
            kind = self._key_kind(names)
            if kind is not None:
                self.reads[names[0]] = None
                held = variable(names[0])
                whole = f"{held} if {held}.__class__ is {kind} else {whole}"
            lines.append(f"{variable_name} = {whole}")
        return lines

    def key_variables(self) -> list[str]:
        count = len(self._routines.keys)
        return ["key"] if count == 1 else [f"key{number}" for number in range(count)]

    def _key_kind(self, names: KeyNames) -> str | None:
        if len(names) != 1 or not names[0].isidentifier():
            return None
        declared = self._routines.attributes.get(names[0])
        kind = declared.kind if declared else ""
        return {"string": "str", "integer": "int"}.get(kind)

    def values(self, checked: bool) -> list[str]:
        """Statements that set the variables. An extension of the same name goes first."""
        if not self.reads:
            return []
        # An extension goes before an attribute of its name, and after it in lower case.
        names = frozenset(each for name in self.reads for each in (name, name.lower()))
        named = self.constants.name(names, "n")
        plain = f"event.extensions and not event.extensions.keys().isdisjoint({named})"
        plain = plain if checked else f"data.__class__ is not dict or {plain}"
        asked = "; ".join(f"{variable(name)} = found(event, {name!r})" for name in self.reads)
        # A name that an event also answers itself, in lower case, is asked in full.
        special = [n for n in self.reads if n.lower() in _CONTEXT]
        if checked:
            lines = [f"if {plain}: {asked}"]
            return lines + [f"{variable(n)} = found(event, {n!r})" for n in special]
        usual = "; ".join(f"{variable(name)} = data.get({name!r})" for name in self.reads)
        lines = [f"if {plain}: {asked}", f"else: {usual}"]
        return lines + [f"{variable(n)} = found(event, {n!r})" for n in special]

    def checks(self) -> list[str]:
        """Statements that leave for `unusual` unless every attribute is plainly as declared."""
        attributes = self._routines.attributes
        lines = ["data = event.data"]
        if not attributes:
            return [
                *lines,
                "if data is not None and data.__class__ is not dict: return unusual(event)",
            ]
        lines += ["if data.__class__ is not dict: return unusual(event)", "try:"]
        lines += [f"    {variable(name)} = data[{name!r}]" for name in attributes]
        lines += ["except KeyError: return unusual(event)"]
        for name, type_ in attributes.items():
            held = variable(name)
            lines += [
                f"if {held} is not None and not ({_fits(held, type_)}): return unusual(event)"
            ]
        return lines


_CONTEXT = frozenset({"id", "source", "type", "time", "specversion"})


def _fits(held: str, type_: ValueType) -> str:
    """An expression that is true only if the value is as its type wants it, and in normal form."""
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        return f"{held}.__class__ is int and {low} <= {held} <= {high}"
    match type_.name:
        case "double":
            return f"{held}.__class__ is float and {held} - {held} == 0.0"
        case "float":
            return (
                f"{held}.__class__ is float and -{LARGEST_FLOAT!r} <= {held} <= {LARGEST_FLOAT!r}"
            )
        case "boolean":
            return f"{held}.__class__ is bool"
        case "string":
            return f"{held}.__class__ is str"
        case "char":
            return f"{held}.__class__ is str and len({held}) == 1"
        case "timestamp":
            return f"{held}.__class__ is datetime and {held}.tzinfo is UTC"
        case _:
            return "False"


_LOOK = """
def look(event):
    data = event.data
    {values}
    {tests}
    plan = plans.get(tests)
    if plan is None: plan = make_plan(tests)
    if not plan: return plan, ()
    {keys}
    return plan, ({names})
"""

_FIT = """
def fit(event):
    {checks}
    return event
"""

_PUSH = """
def push(event):
    {checks}
    time = event.time
    if time < ordering.latest: return unusual(event)
    ordering.latest = time
    counts.events += 1
    if alarms and alarms[0].due <= time: return after_alarms(event)
    {values}
    {tests}
    plan = plans.get(tests)
    if plan is None: plan = make_plan(tests)
    if not plan: return []
    {keys}
    if plan.__class__ is MixedPlan: return read_together(plan, ({names}), event)
    made, waiting, noted = [], None, None
    for instances, first, mask, {number}, rule, ports in plan:
        {choose}
        instance = instances.get(key)
        if instance is None:
            step = first.get(mask)
            if step is not None and key is not None:
                if step.is_nothing: continue
                instance = rule.begin(key, time)
            else: step = None
        else:
            step = instance.row.get(mask)
        if step is not None and step.is_quiet:
            instance.row = step.to
            binds = step.binds
            if binds:
                if noted is None: noted = (next(numbers), event)
                places = instance.places
                for place in binds: places[place] = noted
            continue
        if instance is not None and rule.is_direct:
            if noted is None: noted = (next(numbers), event)
            outputs = instance.step(mask, time, noted)
        else: outputs = let_read(rule, key, mask, ports, event)
        if outputs:
            made += outputs
            if rule.is_fed_from:
                waiting = [] if waiting is None else waiting
                waiting += [(output, rule.author) for output in outputs]
    if waiting: spread(waiting, made)
    if made: counts.outputs += len(made)
    return made
"""


def compile_look(routines: Asked) -> Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]:
    """The function that finds out who reads an event of this type, and under which keys."""
    writing = _Writing(routines)
    tests, keys = writing.tests(), writing.keys()
    names = ["".join(f"{name}, " for name in writing.key_variables())]
    values = writing.values(checked=False)
    text = filled(_LOOK, values=values, tests=tests, keys=keys, names=names)
    look: Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]
    look = _compiled(text, "look", routines, writing.constants, {})
    return look


def compile_fit(routines: Asked, unusual: Callable[[Event], Event]) -> Callable[[Event], Event]:
    """The function that gives back an event which is plainly as declared, and else asks `unusual`.

    A type with an attribute that cannot be a variable is always asked in full.
    """
    writing = _Writing(routines)
    try:
        text = filled(_FIT, checks=writing.checks())
    except OutsideError:
        return unusual
    fit: Callable[[Event], Event]
    fit = _compiled(text, "fit", routines, writing.constants, {"unusual": unusual})
    return fit


def compile_push(routines: TypeRoutines, around: Mapping[str, Any]) -> Push | None:
    """The whole way of an event of this type that comes in order.

    `around` has what is common to all types: the order, the alarms, the counts, and the general
    ways. A type with an attribute that cannot be a variable has no such routine.
    """
    writing = _Writing(routines)
    try:
        checks, tests, keys = writing.checks(), writing.tests(), writing.keys()
        values = writing.values(checked=True)
    except OutsideError:
        return None
    variables = writing.key_variables()
    several = len(variables) > 1
    text = filled(
        _PUSH,
        checks=checks,
        values=values,
        tests=tests,
        keys=keys,
        names=["".join(f"{name}, " for name in variables)],
        number=["number" if several else "_"],
        choose=[f"key = ({', '.join(variables)})[number]"] if several else [],
    )
    push: Push = _compiled(text, "push", routines, writing.constants, around)
    return push


def _compiled(
    text: str,
    function: str,
    routines: Asked,
    constants: Constants,
    around: Mapping[str, Any],
) -> Any:
    scope = {
        "datetime": datetime,
        "UTC": UTC,
        "MixedPlan": MixedPlan,
        "plans": routines.plans,
        "make_plan": routines.make_plan,
        **constants.names,
        **around,
    }
    return compiled(text, function, scope)
