"""Routines made for a library: for each event type one that knows what its rules ask.

In come the running rules and the types; out go, for each declared type, two functions that are
compiled from text written here. `look` evaluates every distinct test of the type's ports once and
finds the plan: which rules read the event, by which mask of atoms and under which key. `push` is
the whole way of an event that comes in order: its attributes are checked, the clock moves, the
tests are made and the rules are stepped. Whatever is unusual about an event (a value that has to
be converted or refused, an event that is late) is left to the general code, which knows it all.

The text is made of names from the checked library and of our own words. Constants, predicates and
plans are handed over as values, so that nothing a user wrote is ever read as Python.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from ensue.engine.ports import key_of
from ensue.engine.step.compiling import compiled, filled
from ensue.engine.step.groups import Group
from ensue.engine.step.predicates import (
    PYTHON_TYPES,
    Constants,
    OutsideError,
    equality_of,
    translate,
    variable,
)
from ensue.engine.step.readings import GroupReading, GroupWant
from ensue.engine.step.rows import Step
from ensue.engine.step.rules import FastKey, Rule, fast_key
from ensue.engine.step.shapes import atoms_of
from ensue.engine.step.windows import Nothing
from ensue.events.event import Event
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, EventScope, holds
from ensue.lang.expressions.values import LARGEST_IN_DATA, SMALLEST_INTEGER
from ensue.lang.syntax import EventPort
from ensue.machine.model import AnyAtom, PortAtom, PredicateAtom

LARGEST_FLOAT = 3.4028234663852886e38
PLANS_REMEMBERED = 4096
"""How many combinations of tests are remembered with what follows from them, for each type."""

KeyNames = tuple[str, ...]
Entry = tuple[
    Mapping[Any, Any], Mapping[int, Step | Nothing], int, int, "Rule | SplitReading", frozenset[str]
]
"""Instances to look in, the row of keys that have none, the mask, which key, who reads it, and the
ports that it matches."""
Readers = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class MixedPlan:
    """Who reads an event where groups of rules do, too."""

    readers: Readers
    groups: tuple[GroupReading, ...]


Plan = Readers | MixedPlan
Look = Callable[[Event], tuple[Plan, tuple[FastKey | None, ...]]]
Push = Callable[[Event], list[Event]]

NEVER: Mapping[Any, Any] = {}
"""The instances of a rule that is always read in full: none is found."""


@dataclass(frozen=True, slots=True)
class SplitReading:
    """A rule whose matched ports ask for different keys: each key reads its own ports."""

    rule: Rule
    matched: tuple[str, ...]
    others: int
    bits: Mapping[str, int]

    @property
    def author(self) -> Rule:
        return self.rule

    @property
    def is_fed_from(self) -> bool:
        return self.rule.is_fed_from

    def readings(self, event: Event) -> Iterator[tuple[FastKey, int, frozenset[str]]]:
        for key, reading in self.rule.ports.readings(event, list(self.matched)).items():
            mask = self.others
            for port in reading.ports:
                mask |= self.bits.get(port, 0)
            yield fast_key(key), mask, reading.ports


@dataclass(frozen=True, slots=True)
class Want:
    """What a rule wants of a type: ports and predicates, each by the tests that must hold."""

    rule: Rule
    ports: tuple[tuple[str, int, int], ...]
    """(port, its tests, its atom's bit)"""
    predicates: tuple[tuple[int, int], ...]
    always: int


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


class TypeRoutines:
    """The tests, plans and keys of one event type."""

    def __init__(self, name: str, types: TypeSystem, rules: Sequence[Rule]) -> None:
        self.name = name
        self.attributes = types.attributes(name)
        self.sources: dict[str, int] = {}
        self.predicates: dict[Expression, int] = {}
        self.keys: dict[KeyNames, int] = {}
        self._groups: dict[Group, GroupWant] = {}
        self._tests = 0
        self._wants: list[Want] = []
        self._everywhere: list[int] = []
        self._by_test: dict[int, list[int]] = defaultdict(list)
        self.plans: dict[int, Plan] = {}
        for rule in rules:
            self._add(rule, types)

    @property
    def is_wanted(self) -> bool:
        return bool(self._wants or self._groups)

    def _add(self, rule: Rule, types: TypeSystem) -> None:
        matching = [
            port
            for port in rule.correlation.ports
            if isinstance(port, EventPort) and types.is_subtype(self.name, port.type)
        ]
        if not matching:
            return
        if rule.group is not None:
            self._add_to_group(rule, rule.group, matching)
            return
        bits: dict[str, int] = {}
        predicates: list[tuple[int, int]] = []
        always = 0
        for number, atom in enumerate(rule.machine.atoms if rule.machine else ()):
            match atom:
                case PortAtom(port_name):
                    bits[port_name] = 1 << number
                case PredicateAtom(predicate):
                    predicates.append((self._test(self.predicates, predicate), 1 << number))
                case AnyAtom():
                    always |= 1 << number
        ports = []
        place = len(self._wants)
        for port in matching:
            needed = self._needed(port)
            ports.append((port.name, needed, bits.get(port.name, 0)))
            self.keys.setdefault(rule.ports.key_names[port.name], len(self.keys))
            where = self._by_test[needed.bit_length()] if needed else self._everywhere
            if place not in where[-1:]:
                where.append(place)
        self._wants.append(Want(rule, tuple(ports), tuple(predicates), always))

    def _add_to_group(self, rule: Rule, group: Group, matching: Sequence[EventPort]) -> None:
        want = self._groups.get(group)
        if want is None:
            key = self.keys.setdefault(group.key_names, len(self.keys))
            want = self._groups[group] = GroupWant(key)
        bit, atoms = group.bit(rule), atoms_of(rule)
        for port in matching:
            needed = self._needed(port)
            want.add(needed, atoms.get(port.name), bit, group.letter(port))

    def _needed(self, port: EventPort) -> int:
        """The tests that must hold for a port, as a mask."""
        needed = 0
        if port.source is not None:
            needed |= self._test(self.sources, port.source)
        if port.where is not None:
            needed |= self._test(self.predicates, port.where)
        return needed

    def _test(self, known: dict[Any, int], what: Any) -> int:
        if what not in known:
            known[what] = 1 << self._tests
            self._tests += 1
        return known[what]

    def make_plan(self, tests: int) -> Plan:
        """Who reads an event of which exactly these tests hold."""
        places = set(self._everywhere)
        left = tests
        while left:
            bit = left.bit_length()
            places.update(self._by_test.get(bit, ()))
            left ^= 1 << (bit - 1)
        entries = (self._entry(self._wants[place], tests) for place in sorted(places))
        readers = tuple(entry for entry in entries if entry is not None)
        readings = (want.reading(group, tests) for group, want in self._groups.items())
        together = tuple(reading for reading in readings if reading is not None)
        plan: Plan = MixedPlan(readers, together) if together else readers
        if len(self.plans) < PLANS_REMEMBERED:
            self.plans[tests] = plan
        return plan

    def _entry(self, want: Want, tests: int) -> Entry | None:
        matched = [port for port in want.ports if port[1] & tests == port[1]]
        if not matched:
            return None
        mask = want.always
        for needed, bit in want.predicates:
            if needed & tests == needed:
                mask |= bit
        rule = want.rule
        names = {rule.ports.key_names[port] for port, _, _ in matched}
        ports = frozenset(port for port, _, _ in matched)
        if len(names) > 1:
            bits = {port: bit for port, _, bit in matched}
            split = SplitReading(rule, tuple(bits), mask, bits)
            return NEVER, NEVER, 0, 0, split, ports
        for _, _, bit in matched:
            mask |= bit
        key = self.keys[names.pop()]
        if rule.has_timeouts or rule.form == "memory":
            return NEVER, NEVER, mask, key, rule, ports
        return rule.instances, rule.first_steps, mask, key, rule, ports


# --- what generated code calls ------------------------------------------------------------------


def found(event: Event, name: str) -> Any:
    """The value of a name, None where it is missing. An integer beyond 64 bits is no integer."""
    value = EventScope(event).lookup((name,))
    if value is MISSING:
        return None
    if type(value) is int and not SMALLEST_INTEGER <= value <= LARGEST_IN_DATA:
        return _Beyond
    return value


class _Beyond:
    """Stands for an integer that is too large for CESQL: it is there, and of no type."""


def key_under(event: Event, names: KeyNames) -> FastKey | None:
    key = key_of(event, names)
    return None if key is None else fast_key(key)


# --- the text -----------------------------------------------------------------------------------


class _Writing:
    """The text of one type's routines, and the values that it names."""

    def __init__(self, routines: Asked) -> None:
        self._routines = routines
        self.constants = Constants(
            {"holds": holds, "found": found, "key_under": key_under, "Event": Event}
        )
        self.reads: dict[str, None] = {}

    def tests(self) -> list[str]:
        """Statements that set `tests` from the variables."""
        lines = ["tests = 0"]
        attributes = self._routines.attributes
        equalities: dict[str, dict[Any, int]] = defaultdict(dict)
        others: dict[str, list[tuple[Expression, int]]] = defaultdict(list)
        for predicate, bit in self._routines.predicates.items():
            equality = equality_of(predicate, attributes)
            if equality is not None and equality.name.isidentifier():
                equalities[equality.name][equality.value] = (
                    equalities[equality.name].get(equality.value, 0) | bit
                )
                others[equality.name].append((predicate, bit))
                continue
            translation = translate(predicate, attributes, self.constants)
            tree = self.constants.name(predicate, "p")
            if translation is None:
                lines += [f"if holds({tree}, event): tests |= {bit}"]
                continue
            self.reads |= dict.fromkeys(sorted(translation.reads))
            guard = " and ".join(
                f"{held}.__class__ is {kind.__name__}" for held, kind in translation.guards.items()
            )
            if guard:
                lines += [
                    f"if {guard}:",
                    f"    if {translation.text}: tests |= {bit}",
                    f"elif holds({tree}, event): tests |= {bit}",
                ]
            else:
                lines += [f"if {translation.text}: tests |= {bit}"]
        for name, table in equalities.items():
            self.reads[name] = None
            held, kind = variable(name), PYTHON_TYPES[attributes[name].kind]
            lookup = self.constants.name(table, "t")
            slow = self.constants.name(_tests_of(others[name]), "f")
            lines += [
                f"if {held}.__class__ is {kind.__name__}: tests |= {lookup}.get({held}, 0)",
                f"elif {held} is not None: tests |= {slow}(event)",
            ]
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


def _tests_of(predicates: Sequence[tuple[Expression, int]]) -> Callable[[Event], int]:
    def tests_of(event: Event) -> int:
        tests = 0
        for predicate, bit in predicates:
            if holds(predicate, event):
                tests |= bit
        return tests

    return tests_of


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
            if step is not None and step.is_quiet and key is not None:
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
