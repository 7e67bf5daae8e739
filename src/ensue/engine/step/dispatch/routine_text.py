"""The lines of a type's routines: attributes into variables, and variables into tests and keys.

In comes what is asked of the events of a type; out go statements of Python, and the values that
they name. They are put together in `routines`, which says where an event goes that is not plain:
its values and keys are read in full by `found` and `key_under`.

A line is made of names from the checked library and of our own words. Constants and predicates are
handed over as values, so that nothing a user wrote is ever read as Python.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ensue.engine.core.instances.keys import FastKey, fast_key
from ensue.engine.ports import KeyNames, key_of
from ensue.engine.step.dispatch.predicate_lines import PredicateLines
from ensue.engine.step.dispatch.predicates import PYTHON_TYPES, Constants, variable
from ensue.events.event import CONTEXT, Event
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, EventScope, holds
from ensue.lang.expressions.values import LARGEST_IN_DATA, SMALLEST_INTEGER

LARGEST_FLOAT = 3.4028234663852886e38


class AskedOfType(Protocol):
    """What is asked of the events of one type: each test with its bit, and each key's names.

    `plans` has the plans by the tests that hold, as far as `make_plan` has made them.
    """

    name: str
    attributes: Mapping[str, ValueType]
    sources: dict[frozenset[str], int]
    predicates: dict[Expression, int]
    keys: dict[KeyNames, int]

    @property
    def plans(self) -> Mapping[int, Any]: ...

    def make_plan(self, tests: int, /) -> Any: ...


class RoutineText:
    """The text of one type's routines, and the values that it names.

    Where events are `checked`, a variable holds a value of the declared type, or None. A name that
    in lower case is an attribute of the event itself is an exception: it is asked in full.
    """

    def __init__(self, routines: AskedOfType, checked: bool = False) -> None:
        self._routines = routines
        self._trusted: frozenset[str] = frozenset()
        if checked:
            names = (name for name in routines.attributes if name.isidentifier())
            self._trusted = frozenset(name for name in names if name.lower() not in CONTEXT)
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
        predicates = PredicateLines(self._routines.attributes, self.constants, self._trusted)
        lines = predicates.lines(self._routines.predicates)
        self.reads |= predicates.reads
        if lines and lines[0].startswith("tests |= "):
            lines[0] = lines[0].replace("|=", "=", 1)
        else:
            lines = ["tests = 0", *lines]
        if self._routines.sources:
            by_source: dict[str, int] = {}
            for asked, bit in self._routines.sources.items():
                for source in asked:
                    by_source[source] = by_source.get(source, 0) | bit
            sources = self.constants.name(by_source, "s")
            lines += [f"tests |= {sources}.get(event.source, 0)"]
        return lines

    def keys(self) -> list[str]:
        """Statements that set the keys; a single one, as most types have, is just `key`."""
        lines = []
        for variable_name, names in zip(self.key_variables(), self._routines.keys, strict=True):
            if not names:
                lines.append(f"{variable_name} = ()")
                continue
            kinds = [self._key_kind(name) for name in names]
            if self._trusted.issuperset(names) and "" not in kinds:
                self.reads |= dict.fromkeys(names)
                lines.append(f"{variable_name} = {_trusted_key(names, kinds)}")
                continue
            constant = self.constants.name(names, "k")
            whole = f"key_under(event, {constant})"
            plain = {"string": "str", "integer": "int"}.get(kinds[0])
            if plain is not None and len(names) == 1:
                self.reads[names[0]] = None
                held = variable(names[0])
                whole = f"{held} if {held}.__class__ is {plain} else {whole}"
            lines.append(f"{variable_name} = {whole}")
        return lines

    def key_variables(self) -> list[str]:
        count = len(self._routines.keys)
        return ["key"] if count == 1 else [f"key{number}" for number in range(count)]

    def _key_kind(self, name: str) -> str:
        """The kind of an attribute whose variable may be a key, else nothing."""
        declared = self._routines.attributes.get(name)
        kind = declared.kind if declared and name.isidentifier() else ""
        return kind if kind in PYTHON_TYPES else ""

    def values(self) -> list[str]:
        """Statements that set the variables. An extension of the same name goes first."""
        if not self.reads:
            return []
        asked = "; ".join(f"{variable(name)} = found(event, {name!r})" for name in self.reads)
        usual = "; ".join(f"{variable(name)} = data.get({name!r})" for name in self.reads)
        plain = f"data.__class__ is not dict or {self._overrides('event.extensions')}"
        return [f"if {plain}: {asked}", f"else: {usual}", *self.answers()]

    def answers(self) -> list[str]:
        """Statements that ask in full for what an event also answers itself, in lower case."""
        special = [name for name in self.reads if name.lower() in CONTEXT]
        return [f"{variable(name)} = found(event, {name!r})" for name in special]

    def exceptions(self) -> list[str]:
        """Statements that leave for `slow_path` where an extension has the name of an attribute."""
        if not self.reads:
            return []
        overrides = self._overrides("extensions")
        return ["extensions = event.extensions", f"if {overrides}: return slow_path(event)"]

    def _overrides(self, extensions: str) -> str:
        # An extension goes before an attribute of its name, and after it in lower case.
        names = frozenset(each for name in self.reads for each in (name, name.lower()))
        named = self.constants.name(names, "n")
        return f"{extensions} and not {extensions}.keys().isdisjoint({named})"

    def checks(self) -> list[str]:
        """Statements that leave for `slow_path` unless every attribute is plainly as declared."""
        attributes = self._routines.attributes
        lines = ["data = event.data"]
        if not attributes:
            return [
                *lines,
                "if data is not None and data.__class__ is not dict: return slow_path(event)",
            ]
        lines += ["if data.__class__ is not dict: return slow_path(event)", "try:"]
        lines += [f"    {variable(name)} = data[{name!r}]" for name in attributes]
        lines += ["except KeyError: return slow_path(event)"]
        for name, type_ in attributes.items():
            held = variable(name)
            lines += [
                f"if not ({_fits(held, type_)}) and {held} is not None: return slow_path(event)"
            ]
        return lines


def _trusted_key(names: KeyNames, kinds: Sequence[str]) -> str:
    """A key as `key_under` gives it, of variables that hold what was declared, or None."""
    held = [variable(name) for name in names]
    if len(names) == 1 and kinds[0] != "boolean":
        return held[0]
    parts = "".join(
        f"({_KEY_KINDS[kind]!r}, {each}), " for kind, each in zip(kinds, held, strict=True)
    )
    return f"({parts}) if {' is not None and '.join(held)} is not None else None"


_KEY_KINDS = {"string": "str", "integer": "number", "real": "number", "boolean": "boolean"}


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


def key_under(event: Event, names: tuple[str, ...]) -> FastKey | None:
    key = key_of(event, names)
    return None if key is None else fast_key(key)
