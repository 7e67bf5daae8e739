"""ECL expressions: a function for each operator, of the same name where Python allows it."""

from __future__ import annotations

from typing import Literal

from ensue.errors import UsageError
from ensue.lang import syntax
from ensue.lang.building.built import (
    RESERVED_IN_ECL,
    Built,
    Length,
    count,
    duration,
    identifier,
    named_parameter,
)
from ensue.lang.building.filters import Port, TypeName, type_name
from ensue.lang.building.values import Value, predicate
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.printer import print_ecl


class Ecl(Built[syntax.Ecl]):
    """An ECL expression."""

    def _text(self) -> str:
        return print_ecl(self.node)


Part = Ecl | Port | Value | bool
Rounds = int | Built[syntax.Parameter] | None


def as_ecl(given: object) -> Ecl:
    """An ECL expression from a port, a condition (`holds`), `True`, `False` or an expression."""
    match given:
        case Ecl():
            return given
        case Port():
            return Ecl(syntax.PortRef(identifier(given.name, "a port in ECL", RESERVED_IN_ECL)))
        case Value():
            return holds(given)
        case bool():
            return Ecl(syntax.Constant(given))
        case _:
            raise UsageError(f"`{given!r}` is neither a port nor an ECL expression")


def holds(condition: str | Value) -> Ecl:
    """`< predicate >`: an event of which the predicate holds."""
    return Ecl(syntax.Holds(predicate(condition).node))


def timeout(after: Length) -> Ecl:
    return Ecl(syntax.Timeout(duration(after)))


def accumulate(*parts: Part) -> Ecl:
    return _group("accumulate", parts)


def select(*parts: Part) -> Ecl:
    return _group("select", parts)


def select_strict(*parts: Part) -> Ecl:
    """`select*`, which fails as soon as one part does."""
    return _group("select*", parts)


def sequential(*parts: Part) -> Ecl:
    return _group("sequential", parts)


def parallel(*parts: Part) -> Ecl:
    return _group("parallel", parts)


def unless(body: Part, stop: Part) -> Ecl:
    """`do { body } unless { stop }`."""
    return Ecl(syntax.Unless(as_ecl(body).node, as_ecl(stop).node))


def fail(body: Part) -> Ecl:
    return Ecl(syntax.Fail(as_ecl(body).node))


def repeat(body: Part, rounds: Rounds = None) -> Ecl:
    return _round("repeat", body, rounds)


def persist(body: Part, rounds: Rounds = None) -> Ecl:
    return _round("persist", body, rounds)


def loop(body: Part, rounds: Rounds = None) -> Ecl:
    return _round("loop", body, rounds)


def push_type(type: TypeName, body: Part) -> Ecl:  # noqa: A002 - the word that the language uses
    """`push(Type) { body }`."""
    return Ecl(syntax.Push(type_name(type, "an event type"), as_ecl(body).node))


def notify(body: Part) -> Ecl:
    return Ecl(syntax.Push(None, as_ecl(body).node))


def modes(*modes: tuple[Part, Part]) -> Ecl:
    """`modes { in (guard) do { body } ... }`, each mode as a pair of guard and body."""
    if not modes:
        raise UsageError("`modes` needs at least one pair of a guard and a body")
    pairs = ((as_ecl(guard).node, as_ecl(body).node) for guard, body in modes)
    return Ecl(syntax.Modes(tuple(syntax.Mode(guard, body) for guard, body in pairs)))


def _group(
    kind: Literal["accumulate", "select", "select*", "sequential", "parallel"],
    parts: tuple[Part, ...],
) -> Ecl:
    if not parts:
        raise UsageError(f"`{kind}` needs at least one part")
    return Ecl(syntax.Group(kind, tuple(as_ecl(each).node for each in parts)))


def _round(kind: Literal["repeat", "persist", "loop"], body: Part, rounds: Rounds) -> Ecl:
    name = named_parameter(rounds)
    if name is not None:
        return Ecl(syntax.Round(kind, as_ecl(body).node, 1, syntax.NOWHERE, name))
    bound = None
    if rounds is not None:
        bound = count(rounds, "the number of rounds", DEFAULT_LIMITS.rounds)
    return Ecl(syntax.Round(kind, as_ecl(body).node, bound))
