"""Routines of an event type: functions that know what its rules ask.

In come the tests and plans of an event type (`plans`); out go functions of an event. `look` makes
every distinct test of the type's ports once (`core.predicates`), and finds the plan for the tests
that hold and the keys. `push` is the whole way of an event that comes in order: its attributes are
checked, the clock moves, the tests are made and the rules are stepped. An event that needs more (a
value that has to be converted or refused, an event that is late) goes to the slow path, which is
the general code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from ensue.engine.core.instances.keys import FastKey, fast_key
from ensue.engine.core.predicates import PYTHON_TYPES, is_plain, names_over, tests_of
from ensue.engine.counts import Counts
from ensue.engine.ports import KeyNames, key_of
from ensue.engine.step.dispatch.plans import MixedReadPlan, ReadPlan, TypeRoutines
from ensue.engine.timing.ordering import Ordering
from ensue.events.event import CONTEXT, Event
from ensue.events.types import INTEGER_RANGES, ValueType
from ensue.lang.expressions import Expression

LARGEST_FLOAT = 3.4028234663852886e38

KeysOf = Callable[[Event], tuple[FastKey | None, ...]]
LookRoutine = Callable[[Event], tuple[ReadPlan, tuple[FastKey | None, ...]]]
PushRoutine = Callable[[Event], list[Event]]


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


# --- tests and keys -------------------------------------------------------------------------------


def look_routine(
    asked: AskedOfType,
) -> Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]:
    """The function that finds the rules which read an event of this type, and under which keys."""
    tests, keys_of = _tests(asked), _keys(asked)
    plans, make_plan = asked.plans, asked.make_plan

    def look(event: Event) -> tuple[Any, tuple[FastKey | None, ...]]:
        held = 0 if tests is None else tests(event)
        plan = plans.get(held)
        if plan is None:
            plan = make_plan(held)
        return (plan, keys_of(event)) if plan else (plan, ())

    return look


def _tests(asked: AskedOfType) -> Callable[[Event], int] | None:
    """The function for the bits of the tests that hold; None where there are no tests."""
    of_predicates = tests_of(asked.predicates, asked.attributes) if asked.predicates else None
    if not asked.sources:
        return of_predicates
    by_source: dict[str, int] = {}
    for sources, bit in asked.sources.items():
        for source in sources:
            by_source[source] = by_source.get(source, 0) | bit

    def tests(event: Event) -> int:
        bits = by_source.get(event.source, 0)
        return bits if of_predicates is None else bits | of_predicates(event)

    return tests


def _keys(asked: AskedOfType) -> KeysOf:
    """The function for the keys of an event; a single one, as most types have, without a loop."""
    functions = [_key(names, asked.attributes) for names in asked.keys]
    if len(functions) == 1:
        (only,) = functions
        return lambda event: (only(event),)
    return lambda event: tuple([function(event) for function in functions])


_KEY_KINDS = {str: "str", int: "number", float: "number", bool: "boolean"}


def _key(names: KeyNames, attributes: Mapping[str, ValueType]) -> Callable[[Event], FastKey | None]:
    """The key of an event by these names."""
    if not names:
        return lambda event: ()  # noqa: ARG005
    parts = []
    for name in names:
        declared = attributes.get(name)
        kind = PYTHON_TYPES.get(declared.kind) if declared else None
        if kind is None or "." in name or name.lower() in CONTEXT:
            return lambda event: key_under(event, names)
        parts.append((name, kind, _KEY_KINDS[kind]))
    over, kinds = names_over(names), tuple(kind for _, kind, _ in parts)
    if len(parts) == 1 and parts[0][1] is not bool:
        ((only, wanted, _),) = parts

        def single(event: Event) -> FastKey | None:
            if is_plain(event, over):
                value: FastKey = event.data.get(only)
                if value.__class__ is wanted:
                    return value
            return key_under(event, names)

        return single

    def several(event: Event) -> FastKey | None:
        if is_plain(event, over):
            data = event.data
            values = [(text, data.get(name)) for name, _, text in parts]
            if tuple([type(value) for _, value in values]) == kinds:
                return tuple(values)
        return key_under(event, names)

    return several


def key_under(event: Event, names: tuple[str, ...]) -> FastKey | None:
    key = key_of(event, names)
    return None if key is None else fast_key(key)


# --- attributes -----------------------------------------------------------------------------------


def fit_routine(
    attributes: Mapping[str, ValueType], slow_path: Callable[[Event], Event]
) -> Callable[[Event], Event]:
    """The function that returns an event whose attributes are plainly as declared.

    Any other event goes to `slow_path`.
    """
    fits = _fits_all(attributes)
    return lambda event: event if fits(event) else slow_path(event)


def _fits_all(attributes: Mapping[str, ValueType]) -> Callable[[Event], bool]:
    """Whether the data of an event are as its type wants them, and in normal form."""
    if not attributes:
        return lambda event: event.data is None or event.data.__class__ is dict
    if any("." in name for name in attributes):
        return lambda event: False  # noqa: ARG005
    checks = tuple((name, _fits(type_)) for name, type_ in attributes.items())

    def fits(event: Event) -> bool:
        data = event.data
        if data.__class__ is not dict:
            return False
        try:
            for name, check in checks:
                value = data[name]
                if not check(value) and value is not None:
                    return False
        except KeyError:
            return False
        return True

    return fits


def _fits(type_: ValueType) -> Callable[[Any], bool]:
    """Whether a value is as its type wants it, and in normal form."""
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        return lambda value: value.__class__ is int and low <= value <= high
    match type_.name:
        case "double":
            return lambda value: value.__class__ is float and value - value == 0.0
        case "float":
            return lambda value: (
                value.__class__ is float and -LARGEST_FLOAT <= value <= LARGEST_FLOAT
            )
        case "boolean":
            return lambda value: value.__class__ is bool
        case "string":
            return lambda value: value.__class__ is str
        case "char":
            return lambda value: value.__class__ is str and len(value) == 1
        case "timestamp":
            return lambda value: value.__class__ is datetime and value.tzinfo is UTC
    return lambda value: False  # noqa: ARG005


# --- the whole way --------------------------------------------------------------------------------


class StreamParts(NamedTuple):
    """What the routines of all types have in common.

    `alarms` are those of rules by themselves, if a rule has a clock, and `earliest` is a time
    before which no alarm of a group is due, if a group has timers.
    """

    ordering: Ordering
    counts: Counts
    numbers: Any
    alarms: list[Any] | None
    earliest: Any | None
    slow_path: PushRoutine
    after_alarms: PushRoutine
    let_read: Callable[..., list[Event]]
    spread: Callable[..., None]
    read_together: Callable[..., list[Event]]


def push_routine(routines: TypeRoutines, parts: StreamParts) -> PushRoutine:
    """The whole way of an event of this type that comes in order, without lateness."""
    fits, look = _fits_all(routines.attributes), look_routine(routines)
    ordering, counts, numbers = parts.ordering, parts.counts, parts.numbers
    alarms, earliest, let_read = parts.alarms, parts.earliest, parts.let_read

    def push(event: Event) -> list[Event]:
        time = event.time
        if not (ordering.latest <= time <= ordering.reach and fits(event)):
            return parts.slow_path(event)
        ordering.latest = time
        counts.events += 1
        if alarms and alarms[0].due <= time:
            return parts.after_alarms(event)
        plan, keys = look(event)
        if plan.__class__ is MixedReadPlan:
            # Alarms of groups are fired there.
            return parts.read_together(plan, keys, event)
        if earliest is not None and earliest[0] <= time:
            return parts.after_alarms(event)
        made: list[Event] = []
        waiting: list[Any] | None = None
        numbered = None
        for instances, first, mask, number, rule, ports in plan:
            key = keys[number]
            instance = instances.get(key)
            if instance is None and key is not None:
                move = first.get(mask)
                if move is not None:
                    if move.is_noop:
                        continue
                    instance = rule.begin(key, time)
            if instance is not None and rule.is_direct:
                if numbered is None:
                    numbered = (next(numbers), event)
                outputs = instance.step(mask, time, numbered)
            else:
                outputs = let_read(rule, key, mask, ports, event)
            if outputs:
                if not rule.is_internal:
                    made += outputs
                if rule.is_fed_from:
                    waiting = [] if waiting is None else waiting
                    waiting += [(output, rule.author) for output in outputs]
        if waiting:
            parts.spread(waiting, made)
        if made:
            counts.outputs += len(made)
        return made

    return push
