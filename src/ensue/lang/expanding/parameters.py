"""Parameters: their values, from the text and from outside, and rules with the values put in.

In come declarations and what is given; out go values that fit their types. `with_values` replaces a
parameter wherever it stands in a rule: in predicates and values by a constant, in `within`,
`timeout` and timers by a duration, in `x{n}` and rounds by a count. What does not fit where it
stands is reported there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any

from ensue.errors import UsageError
from ensue.events.conformance import conform_value, describe, with_whole_numbers
from ensue.events.times import datetime_of, parse_time
from ensue.events.types import ValueType
from ensue.lang.checking.names import CONTEXT_ATTRIBUTES, data_type
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.durations import DURATION_RANGE, LONGEST_DURATION, parse_duration, print_duration
from ensue.lang.expressions import Call, Like, Literal, Name
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.expressions.tree import After, Before, Expression, Negate
from ensue.lang.limits import DEFAULT_LIMITS, report_limit
from ensue.lang.printer import print_parameter_value
from ensue.lang.source import Span
from ensue.lang.syntax import (
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    Parameter,
    ParameterValue,
    Round,
    Times,
)

Values = Mapping[str, ParameterValue]
GivenValues = Mapping[str, object]
"""Values from outside, by the names of parameters: as Python has them, or as text."""


class ParameterError(UsageError):
    """Values from outside that do not fit. `problems` says why, by the names that were given."""

    def __init__(self, problems: Mapping[str, str], there_is: str) -> None:
        self.problems = dict(problems)
        self.there_is = there_is
        super().__init__(self.problems, there_is)

    def __str__(self) -> str:
        return f"{'; '.join(self.problems.values())} ({self.there_is})"


_WHOLE = re.compile(r"[+-]?\d+")
_TRUTHS = {"true": True, "false": False}


def type_name(parameter: Parameter) -> str:
    return "duration" if parameter.type is None else str(parameter.type)


def value_of(parameter: Parameter, given: object) -> ParameterValue:
    """What is given, as the value of a parameter. Raises `ValueError` where it does not fit."""
    if parameter.type is None:
        return _duration(given)
    if isinstance(given, Duration | timedelta):
        raise ValueError(f"a duration is no `{parameter.type}`")
    held = given.value if isinstance(given, Literal) else given
    if isinstance(held, str) and parameter.type.kind not in ("string", "sequence"):
        held = _read(held, parameter.type)
    if held is None:
        raise ValueError("a parameter has a value, and null is none")
    if parameter.type.kind == "real" and isinstance(held, int) and not isinstance(held, bool):
        held = float(held)
    value = conform_value(with_whole_numbers(held, parameter.type), parameter.type)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{describe(parameter.type)} is needed, and not `{value}`")
    if isinstance(value, str) and ("\n" in value or "\0" in value):
        raise ValueError("a text with a line end or a NUL cannot be a constant of a library")
    return Literal(value)


def _duration(given: object) -> Duration:
    if isinstance(given, timedelta):
        given = Duration(given // timedelta(microseconds=1))
    if isinstance(given, str):
        given = parse_duration(given)
    if not isinstance(given, Duration):
        shown = given.value if isinstance(given, Literal) else given
        raise ValueError(f"`{shown}` is no duration: write a number and a unit, as in `10 s`")
    if not 0 < given.microseconds <= LONGEST_DURATION:
        raise ValueError(DURATION_RANGE)
    return Duration(given.microseconds)


def _read(text: str, type_: ValueType) -> object:
    """A value that was given as text, as on a command line."""
    written = text.strip()
    if type_.kind == "integer" and _WHOLE.fullmatch(written):
        return int(written)
    if type_.kind == "real":
        return float(written)
    if type_.kind == "boolean" and written.lower() in _TRUTHS:
        return _TRUTHS[written.lower()]
    if type_.kind == "timestamp":
        return datetime_of(parse_time(written))
    return text


def python_value(value: ParameterValue) -> object:
    """A value as Python has it; a duration is its text."""
    return print_duration(value) if isinstance(value, Duration) else value.value


def declared_values(parameters: Iterable[Parameter], scope: LibraryScope) -> dict[str, Parameter]:
    """The parameters by name, each with a value that fits; mistakes are reported."""
    known: dict[str, Parameter] = {}
    for each in parameters:
        if each.name in known:
            scope.error(
                "duplicate-parameter",
                f"parameter `{each.name}` is declared twice",
                each.span,
                f"the first one is at {scope.place(known[each.name].span)}; rename one of them",
            )
            continue
        if each.name.lower() in CONTEXT_ATTRIBUTES:
            scope.error(
                "reserved-name",
                f"a parameter cannot be called `{each.name}`, which is an attribute of every event",
                each.span,
                "choose another name",
            )
        known[each.name] = each
        if each.type is not None and each.type.kind == "sequence":
            scope.error(
                "parameter-does-not-fit",
                f"a parameter has a single value, and `{each.type}` is a list",
                each.span,
                "declare a parameter for each value",
            )
            known[each.name] = replace(each, value=_stand_in(None))
            continue
        try:
            known[each.name] = replace(each, value=value_of(each, each.value))
        except ValueError as error:
            scope.error(
                "parameter-does-not-fit",
                f"the value of `{each.name}`, a `{type_name(each)}`, does not fit: {error}",
                each.value_span,
            )
            known[each.name] = replace(each, value=_stand_in(each.type))
    return known


def _stand_in(type_: ValueType | None) -> ParameterValue:
    """A value that fits, so that a mistake in a declaration is reported once."""
    if type_ is None:
        return Duration(1_000_000)
    match type_.kind:
        case "integer":
            return Literal(1)
        case "real":
            return Literal(1.0)
        case "boolean":
            return Literal(True)
        case "timestamp":
            return Literal(datetime_of(0))
        case _:
            return Literal("x")


def given_values(parameters: Mapping[str, Parameter], given: GivenValues) -> Values:
    """The values of all parameters, with those that are given from outside.

    Raises `ParameterError` with all that is wrong with what is given, and what there is.
    """
    values = {name: each.value for name, each in parameters.items()}
    problems: dict[str, str] = {}
    for name, value in given.items():
        if name not in parameters:
            known = did_you_mean(name, parameters) if parameters else ""
            guess = f"; {known}" if known.startswith("did you mean") else ""
            problems[name] = f"there is no parameter `{name}`{guess}"
            continue
        try:
            values[name] = value_of(parameters[name], value)
        except (ValueError, OverflowError) as error:
            needed = type_name(parameters[name])
            problems[name] = f"`{value}` does not fit parameter `{name}`, a `{needed}`: {error}"
    if problems:
        raise ParameterError(problems, what_there_is(parameters.values()))
    return values


def what_there_is(parameters: Iterable[Parameter]) -> str:
    """The parameters of a library in words, for messages."""
    shown = [
        f"`{each.name}` ({type_name(each)}, {print_parameter_value(each.value)})"
        for each in parameters
    ]
    if not shown:
        return "the library has no parameters"
    return f"the library has the parameter{'s' if len(shown) > 1 else ''} {', '.join(shown)}"


def types_with_values(
    types: Iterable[EventTypeDeclaration], parameters: Iterable[Parameter], given: GivenValues
) -> tuple[EventTypeDeclaration, ...]:
    """Event types whose derived attributes have values in place of parameters.

    Values that do not fit are reported elsewhere. A name that the type declares is no parameter.
    """
    constants: dict[str, ParameterValue] = {}
    for each in parameters:
        for value in (given.get(each.name), each.value):
            with suppress(ValueError, OverflowError):
                if value is not None:
                    constants.setdefault(each.name, value_of(each, value))
    return tuple(_type_with_values(each, constants) for each in types)


def _type_with_values(type_: EventTypeDeclaration, values: Values) -> EventTypeDeclaration:
    if all(each.value is None for each in type_.attributes) or not values:
        return type_
    own = {each.name for each in type_.attributes}

    def change(part: Any) -> Any:
        match part:
            case Like(operand, parameter=Name((name,))):
                value = values.get(name)
                if isinstance(value, Literal) and isinstance(value.value, str):
                    inner = mapped(operand, change)
                    return replace(part, operand=inner, pattern=value.value, parameter=None)
            case Name((name,)) if name not in own:
                value = values.get(name)
                return _literal(value.value, part.span) if isinstance(value, Literal) else None
        return None

    return replace(
        type_,
        attributes=tuple(
            replace(each, value=mapped(each.value, change)) if each.value is not None else each
            for each in type_.attributes
        ),
    )


# --- values in rules -----------------------------------------------------------------------------


@dataclass
class Filling:
    """Puts values into rules. `used` collects the parameters that stand in one."""

    parameters: Mapping[str, Parameter]
    scope: LibraryScope
    used: set[str]

    def with_values(self, rule: Correlation, values: Values) -> Correlation:
        """The rule with the values of its parameters; mistakes are reported."""
        ports = {port.name for port in rule.ports}
        types = [port.type for port in rule.ports if isinstance(port, EventPort)]
        filled_ports = tuple(
            self._filled(port, values, [port.type] if isinstance(port, EventPort) else [], set())
            for port in rule.ports
        )
        hidden = set() if isinstance(rule, EclCorrelation) else ports
        of_events = types if isinstance(rule, EclCorrelation) else []
        rest = replace(rule, ports=())
        filled: Correlation = self._filled(rest, values, of_events, hidden)
        return replace(filled, ports=filled_ports)

    def _filled(self, node: Any, values: Values, types: list[str], hidden: set[str]) -> Any:
        """A part of a rule; names on events of some types, names of ports hidden from view."""

        def change(part: Any) -> Any:
            match part:
                case Duration(parameter=str(name)):
                    return self._length(name, part.span, values)
                case Times(body, parameter=str(name)):
                    count = self._count(name, part.span, values, "repetition")
                    return Times(mapped(body, change), count, part.span)
                case Round(kind, body, parameter=str(name)):
                    count = self._count(name, part.span, values, "rounds")
                    return Round(kind, mapped(body, change), count, part.span)
                case Like() | Call("MATCHES", (_, Name((_,)))) | After() | Before():
                    return self._with_constant(part, values, change)
                case Name((name,)) if name in values and name not in hidden:
                    return self._constant(name, part.span, values, types)
            if isinstance(getattr(part, "name", None), Name):
                # `EXISTS limit` and the terms of ontologies are about a name, and not a value.
                inner = {
                    each.name: mapped(getattr(part, each.name), change)
                    for each in fields(part)
                    if each.compare and each.name != "name"
                }
                return replace(part, **inner)
            return None

        return mapped(node, change)

    def _with_constant(
        self, part: Like | Call | After | Before, values: Values, change: Callable[[Any], Any]
    ) -> Expression | None:
        """A part of a predicate with the value of a parameter for its pattern or its window."""
        if isinstance(part, Call):
            text, name = part.arguments
            assert isinstance(name, Name)
            pattern = self._pattern(name, values)
            return replace(part, arguments=(mapped(text, change), Literal(pattern, name.span)))
        if part.parameter is None:
            return None
        name = part.parameter
        if isinstance(part, Like):
            pattern = self._pattern(name, values)
            operand = mapped(part.operand, change)
            return replace(part, operand=operand, pattern=pattern, parameter=None)
        length = self._length(name.text, name.span, values).microseconds
        return replace(part, limit=length, filter=mapped(part.filter, change), parameter=None)

    def _pattern(self, name: Name, values: Values) -> str:
        value = self._known(name.text, name.span, values, f"parameter string {name.text} = 'a%';")
        if isinstance(value, Literal) and isinstance(value.value, str):
            return value.value
        if value is not None:
            self._report_misfit(name.text, name.span, "a text", "parameter string")
        return ""

    def _constant(self, name: str, span: Span, values: Values, types: list[str]) -> Expression:
        self.used.add(name)
        for type_ in types:
            known = data_type(self.scope, type_, name) if type_ in self.scope.types else None
            if known is not None and known.declared:
                self.scope.error(
                    "ambiguous-parameter",
                    f"`{name}` is a parameter, and an attribute of `{type_}` too",
                    span,
                    "give the parameter another name",
                )
        value = values[name]
        if isinstance(value, Duration):
            self.scope.error(
                "parameter-does-not-fit",
                f"`{name}` is a duration, and a constant is needed here",
                span,
                "a duration stands after `within`, in `timeout` and in timers",
            )
            return Literal(0, span)
        return _literal(value.value, span)

    def _length(self, name: str, span: Span, values: Values) -> Duration:
        value = self._known(name, span, values, f"parameter duration {name} = 10 s;")
        if value is not None and not isinstance(value, Duration):
            self._report_misfit(name, span, "a duration", "parameter duration")
        return value if isinstance(value, Duration) else Duration(1_000_000)

    def _count(self, name: str, span: Span, values: Values, limit: str) -> int:
        value = self._known(name, span, values, f"parameter long {name} = 3;")
        if value is None:
            return 1
        number = None if isinstance(value, Duration) else value.value
        if isinstance(number, bool) or not isinstance(number, int):
            self._report_misfit(name, span, "a count", "parameter long")
            return 1
        if number < 1:
            self.scope.error(
                "bad-count",
                f"`{name}` is {number}, and there must be at least 1 repetition",
                span,
                "give it a value of 1 or more",
            )
            return 1
        if number > getattr(DEFAULT_LIMITS, limit):
            report_limit(self.scope.diagnostics, DEFAULT_LIMITS, limit, number, span)
            return 1
        return number

    def _known(
        self, name: str, span: Span, values: Values, declaration: str
    ) -> ParameterValue | None:
        self.used.add(name)
        if name not in values:
            self.scope.error(
                "unknown-parameter",
                f"there is no parameter `{name}`",
                span,
                self.scope.hint(name, self.parameters)
                if self.parameters
                else f"declare it: `{declaration}`",
            )
        return values.get(name)

    def _report_misfit(self, name: str, span: Span, needed: str, declaration: str) -> None:
        kind = type_name(self.parameters[name])
        self.scope.error(
            "parameter-does-not-fit",
            f"`{name}` is a `{kind}`, and {needed} is needed here",
            span,
            f"declare it as `{declaration} {name} = ...;`",
        )


def _literal(value: Any, span: Span) -> Expression:
    """A constant; a number below zero is written with a sign."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.copysign(1, value) < 0:
        return Negate(Literal(-value, span), span)
    return Literal(value, span)
