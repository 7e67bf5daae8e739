"""The functions of CESQL: their signatures, and what they compute.

Arguments are cast as a signature says; that, and what an argument in error means, is the same for
all functions and stands in `evaluation`. What is wrong with the values themselves is a
`FaultError` with the value to go on with. A call of a function that is not here, or with another
number of arguments, is found when a library is checked (`kinds`), and is `missingFunction` when it
is evaluated all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    FaultError,
    to_string,
    to_truth,
    truncate,
)


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` are kinds; those past `required` may be left out, `more` may follow at will."""

    parameters: tuple[str, ...]
    result: str
    compute: Callable[..., Any]
    required: int
    more: str | None = None

    def accepts(self, count: int) -> bool:
        return self.required <= count and (self.more is not None or count <= len(self.parameters))

    def parameter(self, index: int) -> str:
        return self.parameters[index] if index < len(self.parameters) else self.more or "any"

    @property
    def allowed(self) -> str:
        """How many arguments are allowed, in words."""
        most = len(self.parameters)
        if self.more is not None:
            return f"{self.required} or more"
        return str(most) if most == self.required else f"{self.required} or {most}"


def _left(text: str, count: int) -> str:
    if count < 0:
        raise FaultError("functionEvaluation", text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise FaultError("functionEvaluation", text)
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, length: int | None = None) -> str:
    """Positions count from 1, or from the end where they are negative; 0 is before all text."""
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
) -> Function:
    return Function(
        parameters, result, compute, len(parameters) if required is None else required, more
    )


FUNCTIONS: Mapping[str, Function] = {
    "ABS": _function(("number",), "number", _absolute),
    "BOOL": _function(("any",), "boolean", to_truth),
    "CONCAT": _function((), "string", lambda *texts: "".join(texts), more="string"),
    "CONCAT_WS": _function(
        ("string",), "string", lambda delimiter, *texts: delimiter.join(texts), more="string"
    ),
    "INT": _function(("any",), "integer", truncate),
    "LEFT": _function(("string", "integer"), "string", _left),
    "LENGTH": _function(("string",), "integer", len),
    "LOWER": _function(("string",), "string", str.lower),
    "RIGHT": _function(("string", "integer"), "string", _right),
    "STRING": _function(("any",), "string", to_string),
    "SUBSTRING": _function(("string", "integer", "integer"), "string", _substring, required=2),
    "TRIM": _function(("string",), "string", str.strip),
    "UPPER": _function(("string",), "string", str.upper),
}
