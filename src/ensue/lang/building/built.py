"""The base of all values of the builder: a node, its text, and the words that are no names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from ensue.errors import UsageError
from ensue.lang.durations import LONGEST_DURATION, parse_duration
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.syntax import Duration, Parameter

Node = TypeVar("Node", covariant=True)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# A word is a keyword only in some places; in these places it cannot be a name.
RESERVED_IN_ECL = frozenset(
    (
        *("accumulate", "do", "fail", "false", "loop", "modes", "notify", "parallel"),
        *("persist", "push", "repeat", "select", "sequential", "timeout", "true"),
    )
)
RESERVED_AS_OUTPUT = frozenset({"eventtype"})
RESERVED_AS_PORT_TYPE = frozenset({"every", "deadline"})
# After the sources of a port, `B where` is one more source and a condition.
RESERVED_AS_EVENT_PORT = frozenset({"where"})
# A word that begins a clause is no name of a duration.
RESERVED_AS_LENGTH = frozenset({"within", "by", "bind", "keep", "unless", "having"})
RESERVED_IN_CASE = frozenset({"true"})
RESERVED_AFTER_PUSH = frozenset({"new"})
RESERVED_AFTER_LONG = frozenset({"long"})


class Built(Generic[Node]):
    """A value of the builder. Values with equal nodes are equal."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def _text(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        refuse_depth(self.node)
        return self._text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Built) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash(self.node)


def identifier(name: object, what: str, reserved: Iterable[str] = ()) -> str:
    """The name itself. Raises `UsageError` if it cannot be a name here."""
    if not isinstance(name, str):
        raise UsageError(f"{what} must be a name, and `{name!r}` is none")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{what} cannot be called `{name}`: a name has letters, digits and `_`, "
            "and does not begin with a digit"
        )
    if name in reserved:
        raise UsageError(
            f"{what} cannot be called `{name}`, which is a word of the language here; "
            "choose another name"
        )
    return name


def dotted(name: object, what: str, reserved: Iterable[str] = ()) -> str:
    """A name, or a dotted name of nested data."""
    if not isinstance(name, str):
        return identifier(name, what)
    first, *inner = name.split(".")
    parts = [identifier(first, what, reserved), *(identifier(each, what) for each in inner)]
    return ".".join(parts)


def plain_text(text: object, what: str) -> str:
    """The text itself. Raises `UsageError` if it cannot stand between quotes."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be a text, and `{text!r}` is none")
    if "\n" in text or "\0" in text:
        raise UsageError(f"{what} has a line end or a NUL in it, which a library cannot hold")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"{what} has half a character in it (a lone surrogate)")
    return text


Length = str | timedelta | Built[Parameter]
"""A duration as text such as `10 s`, as Python has it, or of a parameter."""


def named_parameter(given: object) -> str | None:
    """The name of a parameter that stands for its value."""
    if isinstance(given, Built) and isinstance(given.node, Parameter):
        return given.node.name
    return None


def duration(length: Length) -> Duration:
    """A duration from text such as `10 s`, from a `timedelta`, or of a parameter."""
    name = named_parameter(length)
    if name is not None:
        return Duration(1_000_000, identifier(name, "a duration", RESERVED_AS_LENGTH))
    if isinstance(length, timedelta):
        found = Duration(length // timedelta(microseconds=1))
    elif isinstance(length, str):
        try:
            found = parse_duration(length)
        except ValueError as error:
            raise UsageError(str(error)) from None
    else:
        raise UsageError(f"`{length!r}` is no duration: write `10 s`, or give a timedelta")
    if not 0 < found.microseconds <= LONGEST_DURATION:
        raise UsageError(f"the duration `{length}` must be more than zero, and at most 1000000 d")
    return found


def count(number: object, what: str, most: int) -> int:
    """A number of repetitions."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise UsageError(f"{what} must be a whole number, and `{number!r}` is none")
    if not 1 <= number <= most:
        raise UsageError(f"{what} is {number:,}, and must be from 1 to {most:,}")
    return number


def refuse_depth(node: object) -> None:
    """Refuse a tree that is deeper than any text, since functions on trees recurse."""
    waiting: list[tuple[Any, int]] = [(node, 0)]
    # Five levels more than an expression: the definition, its cases and statements.
    deepest = DEFAULT_LIMITS.nesting + 5
    while waiting:
        current, depth = waiting.pop()
        if isinstance(current, tuple):
            waiting.extend((each, depth) for each in current)
        elif is_dataclass(current):
            if depth > deepest:
                raise UsageError(
                    f"there are more than {DEFAULT_LIMITS.nesting} levels of operators inside "
                    "each other, which is the most that a library may have"
                )
            waiting.extend(
                (getattr(current, each.name), depth + 1) for each in fields(current) if each.compare
            )
