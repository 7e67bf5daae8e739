"""The functions of CESQL: their signatures, and their implementation.

`evaluation` casts arguments as the signature says, and handles arguments in error. A value that a
function cannot take is a `FaultError` with the value to go on with. A call of an unknown function,
or with a wrong number of arguments, is found when a library is checked (`checking.kinds`); its
evaluation has the error `missingFunction`. `BETWEEN`, `IS_NULL` and `MATCHES` are written as
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.lang.expressions.builtins.clocks import hour_of, minute_of, weekday_of, zone_problem
from ensue.lang.expressions.builtins.instants import instant_in, instant_problem
from ensue.lang.expressions.builtins.networks import is_in_network, network_problem
from ensue.lang.expressions.builtins.patterns import (
    extracted,
    extraction_problem,
    is_found,
    pattern_problem,
)
from ensue.lang.expressions.comparing import is_between
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    FaultError,
    to_real,
    to_string,
    to_truth,
    truncate,
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `parameters` are kinds; those past `required` are optional.

    Any number of arguments of the kind `more` may follow. With `takes_null` a null argument is
    passed as `MISSING`. With `problem` the arguments past the first must be constants, and
    `problem` tells what is wrong with the last of those that it is given.
    """

    parameters: tuple[str, ...]
    result: str
    compute: Callable[..., Any]
    required: int
    more: str | None = None
    takes_null: bool = False
    problem: Callable[[Sequence[Any]], str | None] | None = None

    def accepts(self, count: int) -> bool:
        return self.required <= count and (self.more is not None or count <= len(self.parameters))

    def parameter(self, index: int) -> str:
        return self.parameters[index] if index < len(self.parameters) else self.more or "any"

    @property
    def allowed(self) -> str:
        """The allowed number of arguments, in words."""
        most = len(self.parameters)
        if self.more is not None:
            return f"{self.required} or more"
        *counts, last = map(str, range(self.required, most + 1))
        return f"{', '.join(counts)} or {last}" if counts else last


def _left(text: str, count: int) -> str:
    if count < 0:
        raise FaultError("functionEvaluation", text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise FaultError("functionEvaluation", text)
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, length: int | None = None) -> str:
    """Positions count from 1, or from the end if negative; 0 is before the text."""
    if abs(position) > len(text) or (length is not None and length < 0):
        raise FaultError("functionEvaluation", "")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start:] if length is None else text[start : start + length]


def _absolute(number: int | float) -> int | float:
    size = abs(number)
    if isinstance(size, int) and size > LARGEST_INTEGER:
        raise FaultError("math", LARGEST_INTEGER)
    return size


def _function(
    parameters: tuple[str, ...],
    result: str,
    compute: Callable[..., Any],
    required: int | None = None,
    more: str | None = None,
    takes_null: bool = False,
    problem: Callable[[Sequence[Any]], str | None] | None = None,
) -> Function:
    least = len(parameters) if required is None else required
    return Function(parameters, result, compute, least, more, takes_null, problem)


def _coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    for value in values:
        if value is not MISSING:
            return value
    raise FaultError("missingAttribute", False)


def _matches(text: str, pattern: str) -> bool:
    try:
        return is_found(text, pattern)
    except ValueError:
        raise FaultError("functionEvaluation", False) from None


def _extract(text: str, pattern: str, group: int | str | None = None) -> str:
    try:
        found = extracted(text, pattern, group)
    except (ValueError, LookupError, TypeError):
        raise FaultError("functionEvaluation", "") from None
    if found is None:
        raise FaultError("missingAttribute", "")
    return found


def _each_alone(problem: Callable[[str], str | None]) -> Callable[[Sequence[Any]], str | None]:
    """What is wrong with a constant that does not depend on those before it."""
    return lambda constants: problem(constants[-1])


def _clock(compute: Callable[..., int]) -> Function:
    problem = _each_alone(zone_problem)
    return _function(("timestamp", "string"), "integer", compute, required=1, problem=problem)


FUNCTIONS: Mapping[str, Function] = {
    "ABS": _function(("number",), "number", _absolute),
    "BETWEEN": _function(("any", "any", "any"), "boolean", is_between),
    "BOOL": _function(("any",), "boolean", to_truth),
    "COALESCE": _function(("any",), "any", _coalesce, required=1, more="any", takes_null=True),
    "CONCAT": _function((), "string", lambda *texts: "".join(texts), more="string"),
    "CONCAT_WS": _function(
        ("string",), "string", lambda delimiter, *texts: delimiter.join(texts), more="string"
    ),
    "DOUBLE": _function(("any",), "real", to_real),
    "EXTRACT": _function(
        ("string", "string", "group"), "string", _extract, required=2, problem=extraction_problem
    ),
    "HOUR": _clock(hour_of),
    "INT": _function(("any",), "integer", truncate),
    "IN_NETWORK": _function(
        ("string", "string"),
        "boolean",
        is_in_network,
        more="string",
        problem=_each_alone(network_problem),
    ),
    "IS_NULL": _function(("any",), "boolean", lambda value: value is MISSING, takes_null=True),
    "LEFT": _function(("string", "integer"), "string", _left),
    "LENGTH": _function(("string",), "integer", len),
    "LOWER": _function(("string",), "string", str.lower),
    "MATCHES": _function(
        ("string", "string"), "boolean", _matches, problem=_each_alone(pattern_problem)
    ),
    "MINUTE": _clock(minute_of),
    "RIGHT": _function(("string", "integer"), "string", _right),
    "STRING": _function(("any",), "string", to_string),
    "SUBSTRING": _function(("string", "integer", "integer"), "string", _substring, required=2),
    "TIMESTAMP": _function(
        ("any", "string", "string"), "timestamp", instant_in, required=1, problem=instant_problem
    ),
    "TRIM": _function(("string",), "string", str.strip),
    "UPPER": _function(("string",), "string", str.upper),
    "WEEKDAY": _clock(weekday_of),
}
