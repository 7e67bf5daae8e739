"""Which rules that relate events run in columns, and as what.

In comes a filter with clauses over several events (`keep`, `unless`, `having`, `bind latest`,
aggregates); out goes its `ChainForm`, or the reason why it runs event by event. The form is a chain
of groups, `(a + b) ; c ; d`: each group is a set of ports that all have to come, in any order,
behind the group before it. In such an expression without `|` every part of a match is matched
itself, so that all labels are active at a trigger, and a port's last event always lies in its
stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from ensue.engine.core.effects import Action, PushedOutput, Sent, TriggerShape
from ensue.engine.core.relating.condition import Condition, NotInProgramError, condition_of
from ensue.events.types import TypeSystem
from ensue.lang.derived.label_logic import label_value
from ensue.lang.derived.parts import parts_of
from ensue.lang.derived.relating import aggregated_name, aggregates_of, relates_events
from ensue.lang.expressions import Expression, Name
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.names import Parts
from ensue.lang.expressions.rewriting import replaced
from ensue.lang.syntax import (
    Assignment,
    Both,
    Correlation,
    Either,
    EventPort,
    Extension,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    PushNew,
    PushPort,
    Statement,
    Then,
    Timeout,
    Times,
)

MOST_PLACES = 8
"""The most places of a chain; every place carries the events of its match."""
MOST_AGGREGATES = 64
MOST_PORTS = 63
"""What an event matches has to have room in one word."""
UNDECLARED = "undeclared"
"""The kind of the values of an attribute that a type does not declare."""
COMPUTED = "computed"
"""The first part of the name under which an output finds the value of an aggregate."""

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class AskedAggregate:
    """An aggregate: its function, the port, the attribute and the kind of its values."""

    function: str
    port: str
    name: Parts
    kind: str

    @property
    def result(self) -> str:
        match self.function:
            case "COUNT" | "DISTINCT":
                return "integer"
            case "AVG":
                return "real"
        return self.kind


@dataclass(frozen=True)
class ChainForm:
    """A rule that relates events, as columns run it: a chain of groups of ports, and its clauses.

    `groups` names the ports of each group; `rounds` above 1 asks for so many events of one port.
    `places` are the ports of all groups, one after the other. `slots` are what a firing binds.
    """

    groups: Groups
    rounds: int
    window: int | None
    keep: str
    bind: str
    unless: tuple[str, ...]
    aggregates: tuple[AskedAggregate, ...]
    """Aggregates of any port of the rule; a port that is not in the filter has no events."""
    condition: Condition | None
    action: Action
    after: int | None = None
    """The time of a `timeout` behind the chain, at which it triggers."""
    either: tuple[int, ...] = ()
    """The groups of which one port is enough, `(a | b) ; c`. There are none in columns."""
    choosing: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels inside of such a group: each with the ports of which one has to have come."""

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(port for group in self.groups for port in group)

    @property
    def slots(self) -> tuple[str, ...]:
        """The port of each slot of a firing."""
        return self.places if self.bind == "latest" else tuple(dict.fromkeys(self.places))

    @property
    def needs_stretches(self) -> bool:
        """Whether more counts than the latest match: then events stay until they have left."""
        return bool(self.aggregates) or self.rounds > 1 or self.bind == "first"

    @property
    def is_running(self) -> bool:
        """Whether aggregates are over all events since the rule last forgot, and kept as totals.

        Then no event has to be kept for them.
        """
        running = all(AGGREGATES[each.function].running for each in self.aggregates)
        return self.window is None and running

    @property
    def counted(self) -> tuple[str, ...]:
        """The ports whose events are counted or aggregated."""
        rounds = self.places[:1] if self.rounds > 1 else ()
        counted = (each.port for each in self.aggregates if each.port in self.places)
        return tuple(dict.fromkeys([*rounds, *counted]))

    @property
    def forgets(self) -> bool:
        """Whether a trigger or an event may make it forget something."""
        return self.keep != "all" or bool(self.unless)


def remembers_events(correlation: Correlation) -> bool:
    """Whether a rule runs from remembered events: by its clauses, or for the first in a window."""
    clauses = correlation.clauses
    return relates_events(correlation) or (clauses.bind == "first" and clauses.within is not None)


def form_of(
    correlation: Correlation, types: TypeSystem, in_columns: bool = True
) -> ChainForm | str:
    """The form of a rule, or why it has none.

    In columns, `having` becomes a program, and aggregates are of declared numbers. Event by event
    both are evaluated, and a form has no condition.
    """
    try:
        return _form(correlation, types, in_columns)
    except NotInProgramError as error:
        return str(error)


def _form(correlation: Correlation, types: TypeSystem, in_columns: bool) -> ChainForm:
    if not isinstance(correlation, FilterCorrelation) or not remembers_events(correlation):
        raise NotInProgramError("it relates no events")
    if len(correlation.branches) > 1:
        raise NotInProgramError("it relates events in several branches")
    if correlation.initially:
        raise NotInProgramError("it relates events, and says something at its start")
    ports = {port.name: port for port in correlation.ports if isinstance(port, EventPort)}
    if len(ports) < len(correlation.ports):
        raise NotInProgramError("it relates events, and has a port that is a timer")
    if len(ports) > MOST_PORTS:
        raise NotInProgramError(f"it relates events of more than {MOST_PORTS} ports")
    clauses = correlation.clauses
    chain, after = _waiting(correlation.branches[0])
    found, rounds = _groups(chain)
    groups = tuple(group.ports for group in found)
    either = tuple(number for number, group in enumerate(found) if group.is_either)
    asked = _asked(correlation, ports, types)
    if either and (in_columns or asked or clauses.bind == "first"):
        raise NotInProgramError("it relates events by `|`")
    if in_columns:
        _check_in_columns(correlation, asked)
    if after is not None and (asked or rounds > 1 or clauses.bind == "first" or not in_columns):
        raise NotInProgramError("it relates events by `timeout`, and by more than the latest match")
    names = {port: types.attributes(each.type) for port, each in ports.items()}
    condition = None
    if clauses.having is not None and in_columns:
        numbers = {each: number for number, each in enumerate(asked)}
        results = [each.result for each in asked.values()]
        condition = condition_of(clauses.having, numbers, results, names)
        if clauses.bind == "first" and condition.operands:
            raise NotInProgramError("`having` asks for the first events, which a trigger changes")
    bind = clauses.bind or "last"
    places = tuple(port for group in groups for port in group)
    slots = places if bind == "latest" else tuple(dict.fromkeys(places))
    return ChainForm(
        groups,
        rounds,
        None if clauses.within is None else clauses.within.microseconds,
        clauses.keep or "none",
        bind,
        tuple(each.name for each in clauses.unless),
        tuple(asked.values()),
        condition,
        _action(correlation, slots, list(asked)),
        after,
        either,
        tuple(choice for group in found if group.is_either for choice in group.labels),
    )


# --- the expression -----------------------------------------------------------------------------


def _waiting(x: Filter) -> tuple[Filter, int | None]:
    """A chain without the `timeout` at its end, and the time of that."""
    match _unlabelled(x):
        case Then((*left, Timeout(after))) as chain:
            return left[0] if len(left) == 1 else replace(chain, parts=tuple(left)), (
                after.microseconds
            )
    return x, None


class _Group(NamedTuple):
    """The ports of a group, and whether one of them is enough; then also the labels inside."""

    ports: tuple[str, ...]
    is_either: bool = False
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()


def _groups(x: Filter) -> tuple[list[_Group], int]:
    """The groups of a chain, and how often its only port has to come, if that is very often."""
    body = _unlabelled(x)
    if isinstance(body, Times) and body.count > MOST_PLACES:
        repeated = _unlabelled(body.body)
        if isinstance(repeated, PortRef):
            return [_Group((repeated.name,))], body.count
    groups = _chain(body)
    if sum(len(group.ports) for group in groups) > MOST_PLACES:
        raise NotInProgramError(f"it relates events at more than {MOST_PLACES} places")
    return groups, 1


def _chain(x: Filter) -> list[_Group]:
    match x:
        case Labelled(_, body):
            return _chain(body)
        case PortRef() | Both():
            return [_Group(_together(x))]
        case Either():
            ports = tuple(dict.fromkeys(_alternatives(x)))
            return [_Group(ports, len(ports) > 1, tuple(_choosing(x)))]
        case Then(parts):
            return [group for part in parts for group in _chain(part)]
        case Times(body, count):
            if count > MOST_PLACES:
                raise NotInProgramError(f"it relates events at more than {MOST_PLACES} places")
            return _chain(body) * count
    raise NotInProgramError("it relates events by `timeout`")


def _alternatives(x: Filter) -> list[str]:
    match x:
        case PortRef(name):
            return [name]
        case Labelled(_, body):
            return _alternatives(body)
        case Either(parts):
            return [port for part in parts for port in _alternatives(part)]
    raise NotInProgramError("it relates events by `|`")


def _choosing(x: Filter) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The labels inside of alternatives, each with the ports that it stands for."""
    match x:
        case Labelled(label, body):
            yield label, tuple(_alternatives(body))
            yield from _choosing(body)
        case Either(parts):
            for part in parts:
                yield from _choosing(part)


def _together(x: Filter) -> tuple[str, ...]:
    match x:
        case PortRef(name):
            return (name,)
        case Labelled(_, body):
            return _together(body)
        case Both(parts):
            return tuple(dict.fromkeys(port for part in parts for port in _together(part)))
    raise NotInProgramError("it relates events where `;` or `|` stands inside of `+`")


def _unlabelled(x: Filter) -> Filter:
    while isinstance(x, Labelled):
        x = x.body
    return x


# --- aggregates and outputs ---------------------------------------------------------------------


def _asked(
    correlation: FilterCorrelation, ports: dict[str, EventPort], types: TypeSystem
) -> dict[Expression, AskedAggregate]:
    """The aggregates of a rule by the calls that ask for them."""
    found: dict[Expression, AskedAggregate] = {}
    for call in aggregates_of(correlation):
        port, *path = aggregated_name(call)
        if not path:
            found[call] = AskedAggregate("COUNT", port, (), "integer")
            continue
        declared = types.attributes(ports[port].type).get(".".join(path))
        kind = UNDECLARED if declared is None else declared.kind
        found[call] = AskedAggregate(call.function, port, tuple(path), kind)
    if len(found) > MOST_AGGREGATES:
        raise NotInProgramError(f"it has more than {MOST_AGGREGATES} aggregates")
    return found


def _check_in_columns(
    correlation: FilterCorrelation, asked: Mapping[Expression, AskedAggregate]
) -> None:
    """Raises `NotInProgramError` where loops cannot count what is asked."""
    for each in asked.values():
        if each.function not in ("COUNT", "DISTINCT") and each.kind not in ("integer", "real"):
            raise NotInProgramError(f"`{each.function.lower()}` of what is no declared number")
        if each.kind not in ("integer", "real", "string", "boolean", "timestamp"):
            raise NotInProgramError("an aggregate of what is no single declared value")
    in_filter = {each.name for each in parts_of(correlation.branches) if isinstance(each, PortRef)}
    if any(each.port not in in_filter for each in asked.values()):
        raise NotInProgramError("an aggregate of a port that the filter does not ask for")


def _action(
    correlation: FilterCorrelation, slots: tuple[str, ...], asked: list[Expression]
) -> Action:
    """What a trigger puts out: every label is active, and every port of the filter bound."""
    labels = frozenset(
        part.label for part in parts_of(correlation.branches) if isinstance(part, Labelled)
    )
    bound: dict[str, list[int]] = {}
    for slot, port in enumerate(slots):
        bound.setdefault(port, []).append(slot)
    shape = TriggerShape(",".join(sorted(labels)), tuple((p, tuple(s)) for p, s in bound.items()))
    values = {call: Name((COMPUTED, str(number))) for number, call in enumerate(asked)}
    pushes: list[PushedOutput] = []
    for case in correlation.cases:
        if label_value(case.condition, labels, lambda _: False):
            pushes += [
                PushedOutput(shape, what)
                for statement in case.statements
                if (what := _what(statement, bound.keys(), values)) is not None
            ]
    return tuple(pushes)


def _what(
    statement: Statement, bound: object, values: dict[Expression, Name]
) -> Sent | PushNew | None:
    match statement:
        case PushPort(port, extensions=extensions):
            computed = _computed(extensions, values)
            return Sent(port, computed) if port in bound else None  # type: ignore[operator]
        case PushNew(_, assignments, extensions=extensions):
            return replace(
                statement,
                assignments=_computed(assignments, values),
                extensions=_computed(extensions, values),
            )
    raise NotInProgramError("it relates events, and changes labels")


Set = TypeVar("Set", Assignment, Extension)


def _computed(what: tuple[Set, ...], values: dict[Expression, Name]) -> tuple[Set, ...]:
    """What a statement sets, with names for what is computed over a stretch."""
    return tuple(replace(each, value=replaced(each.value, values)) for each in what)
