"""What a consumer wants, as plain values: events by type and predicate, groups, correlations.

`want`, `any_of`, `all_of`, `correlated` and `nothing` create them. A channel turns them into
entries of its look-up (`index`) and, if one event alone cannot decide, into a step
(`delivery.conditions`, `delivery.correlation`). Nothing is matched here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.timing.clock import DurationLike
    from ensue.lang.expressions import Expression
    from ensue.library import Library

Test = Callable[[Event], bool]


@dataclass(frozen=True, slots=True)
class EventWant:
    """Events of a type (its subtypes included), from a source, that pass a predicate.

    `None` stands for any. `where` is CESQL and is evaluated in the look-up; `test` is a Python
    function, may be slow, and is called as a step in the consumer's turn.
    """

    type: str | None = None
    source: str | None = None
    where: Expression | None = None
    test: Test | None = None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Disjunction: passes an event that any part passes."""

    parts: tuple[Wants, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conjunction: one event each time every part has been satisfied."""

    parts: tuple[Wants, ...]


@dataclass(frozen=True, slots=True)
class Correlated:
    """The output of one correlation of a library or, without a name, of all of them."""

    library: Library
    name: str | None = None
    lateness: DurationLike = "0 s"
    max_jump: DurationLike = "1 d"


Wants = EventWant | AnyOf | AllOf | Correlated


def want(
    type: str | None = None,  # noqa: A002 - the CloudEvents name
    *,
    source: str | None = None,
    where: str | Expression | Test | None = None,
) -> EventWant:
    """Events by type, source and predicate: CESQL text, its syntax tree, or a Python function."""
    if isinstance(where, str):
        from ensue.lang.expressions.text.parsing import parse_expression

        return EventWant(type, source, parse_expression(where))
    if callable(where):
        return EventWant(type, source, None, where)
    return EventWant(type, source, where)


def any_of(*parts: Wants | str) -> AnyOf:
    return AnyOf(_parts("any_of", parts))


def all_of(*parts: Wants | str) -> AllOf:
    return AllOf(_parts("all_of", parts))


def nothing() -> AnyOf:
    """No event at all: for a consumer that has only timeouts."""
    return AnyOf(())


def correlated(
    library: Library,
    name: str | None = None,
    *,
    lateness: DurationLike = "0 s",
    max_jump: DurationLike = "1 d",
) -> Correlated:
    """The outputs of one correlation of a library or, without a name, of all of them.

    An event is dropped and counted if it comes more than `lateness` after an event with a later
    time, or if its time lies more than `max_jump` ahead of the events before it and of the
    channel's clock (`max_jump="none"` allows any time).
    """
    if name is not None and name not in library.correlations.names:
        known = ", ".join(f"`{each}`" for each in library.correlations.names)
        raise UsageError(f"the library has no correlation `{name}`; it has {known}")
    if name is not None and library.correlations[name].role == "internal":
        raise UsageError(
            f"`{name}` is internal, and what it puts out goes nowhere: name a correlation that"
            " reads it, or leave out `internal`"
        )
    return Correlated(library, name, lateness, max_jump)


def as_wants(given: Wants | str | None) -> Wants:
    """Wants for a type name, for None (every event), or unchanged."""
    if given is None or isinstance(given, str):
        return EventWant(given)
    if not isinstance(given, Wants):
        raise UsageError(
            "what a consumer wants is the name of a type, or a value of `want`, `any_of`, `all_of`,"
            f" `correlated` or `nothing`; given is `{given!r}`"
        )
    return given


def is_decided_by_one_event(wants: Wants) -> bool:
    """Whether the look-up alone can decide, without a step."""
    match wants:
        case EventWant(test=test):
            return test is None
        case AnyOf(parts):
            return all(is_decided_by_one_event(part) for part in parts)
        case _:
            return False


def _parts(name: str, parts: tuple[Wants | str, ...]) -> tuple[Wants, ...]:
    if not parts:
        raise UsageError(f"`{name}` needs at least one part")
    return tuple(as_wants(part) for part in parts)
