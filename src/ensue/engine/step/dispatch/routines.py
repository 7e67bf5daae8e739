"""Routines made for a library: for each event type one that knows what its rules ask.

In come the tests and plans of an event type (`plans`); out go functions that are compiled from
text, of which `routine_text` has the lines. `look` makes every distinct test of the type's ports
once and finds the plan for the tests that hold. `push` is the whole way of an event that comes in
order: its attributes are checked, the clock moves, the tests are made and the rules are stepped;
where a single rule reads it, without a loop. An event that needs more (a value that has to be
converted or refused, an extension that goes before an attribute, an event that is late) goes to the
slow path, which is the general code.

The text is made of names from the checked library and of our own words. Constants, predicates and
plans are handed over as values, so that nothing a user wrote is ever read as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ensue.engine.core.instances.compiling import filled, function_from
from ensue.engine.core.instances.keys import FastKey
from ensue.engine.step.dispatch.plans import (
    PLANS_REMEMBERED,
    MixedReadPlan,
    ReadPlan,
    TypeRoutines,
)
from ensue.engine.step.dispatch.predicates import Constants, OutsideError
from ensue.engine.step.dispatch.routine_text import AskedOfType, RoutineText
from ensue.events.event import Event

LookRoutine = Callable[[Event], tuple[ReadPlan, tuple[FastKey | None, ...]]]
PushRoutine = Callable[[Event], list[Event]]
_Known = tuple[Any, ...]
"""A plan, or None and then the one entry of a plan."""
_NOBODY = (None,) * 6


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

_NUMBER_EVENT = "numbered = (next(numbers), event)"

_COUNT_READING = "if rule.has_clock: instance.last_read = next(numbers)"
"""Numbers a reading: of keys whose timers are due together, the one with the oldest reading fires
first."""

_READ = """
instance = instances.get(key)
if instance is None:
    move = first.get(mask)
    if move is None or key is None: move = None
    elif move.is_noop: {done}
    else: instance = rule.begin(key, time)
else:
    move = instance.row.get(mask)
    if move is not None and move.is_noop:
        {count_reading}
        {done}
if move is not None and move.is_quiet:
    instance.row = move.to
    bind = move.bind
    if bind is not None:
        {number_event}
        bind(instance, numbered)
    {count_reading}
    {done}
if instance is not None and rule.is_direct:
    {number_event}
    outputs = instance.step(mask, time, numbered)
else: outputs = let_read(rule, key, mask, ports, event)
"""


def _reading(done: str, number_event: str) -> list[str]:
    """Statements that let one rule of a plan read the event."""
    return filled(_READ, done=[done], number_event=[number_event]).splitlines()[1:]


_PUSH = filled(
    """
def push(event):
    {checks}
    {exceptions}
    time = event.time
    if not ordering.latest <= time <= ordering.reach: return slow_path(event)
    ordering.latest = time
    counts.events += 1
    {alarms}
    {answers}
    {tests}
    {plan}
    {alarms_of_groups}
    if plan is None:
        {keys}
        {choose}
        {read_alone}
        if outputs:
            if rule.is_fed_from:
                made = [] if rule.is_internal else outputs
                spread([(output, rule.author) for output in outputs], made)
                outputs = made
            elif rule.is_internal: return []
            counts.outputs += len(outputs)
        return outputs
    if not plan: return []
    {keys}
    if plan.__class__ is MixedReadPlan: return read_together(plan, ({names}), event)
    made, waiting, numbered = [], None, None
    for instances, first, mask, {number}, rule, ports in plan:
        {choose}
        {read_in_turn}
        if outputs:
            if not rule.is_internal: made += outputs
            if rule.is_fed_from:
                waiting = [] if waiting is None else waiting
                waiting += [(output, rule.author) for output in outputs]
    if waiting: spread(waiting, made)
    if made: counts.outputs += len(made)
    return made
""",
    read_alone=_reading(done="return []", number_event=_NUMBER_EVENT),
    read_in_turn=_reading(done="continue", number_event=f"if numbered is None: {_NUMBER_EVENT}"),
)

_ALARMS = "if alarms and alarms[0].due <= time: return after_alarms(event)"

_PLAN = "plan, instances, first, mask, {number}, rule, ports"

_ALARMS_OF_GROUPS = (
    "if earliest[0] <= time and plan.__class__ is not MixedReadPlan: return after_alarms(event)"
)
"""Where groups read an event, `read_together` fires their alarms."""


def compile_look(
    routines: AskedOfType,
) -> Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]:
    """The function that finds the rules which read an event of this type, and under which keys."""
    writing = RoutineText(routines)
    tests, keys = writing.tests(), writing.keys()
    names = ["".join(f"{name}, " for name in writing.key_variables())]
    values = writing.values()
    text = filled(_LOOK, values=values, tests=tests, keys=keys, names=names)
    look: Callable[[Event], tuple[Any, tuple[FastKey | None, ...]]]
    look = _compiled(text, "look", routines, writing.constants, {})
    return look


def compile_fit(
    routines: AskedOfType, slow_path: Callable[[Event], Event]
) -> Callable[[Event], Event]:
    """The function that returns an event whose attributes are plainly as declared.

    Any other event goes to `slow_path`, and so do all events of a type with an attribute that
    cannot be a variable.
    """
    writing = RoutineText(routines)
    try:
        text = filled(_FIT, checks=writing.checks())
    except OutsideError:
        return slow_path
    fit: Callable[[Event], Event]
    fit = _compiled(text, "fit", routines, writing.constants, {"slow_path": slow_path})
    return fit


def compile_push(routines: TypeRoutines, shared: Mapping[str, Any]) -> PushRoutine:
    """The whole way of an event of this type that comes in order.

    `shared` has the names that are common to all types: the order, the alarms (`earliest` for those
    of groups, if a group has timers) and whether a rule can have one, the counts, the functions of
    the stream, and `slow_path`. Events of a type with an attribute that cannot be a variable all go
    to `slow_path`.
    """
    writing = RoutineText(routines, checked=True)
    try:
        checks, tests, keys = writing.checks(), writing.tests(), writing.keys()
        exceptions, answers = writing.exceptions(), writing.answers()
    except OutsideError:
        slow_path: PushRoutine = shared["slow_path"]
        return slow_path
    variables = writing.key_variables()
    several = len(variables) > 1
    number = "number" if several else "_"
    known: dict[int, _Known] = {}
    scope = {**shared, "known": known, "plan_of": partial(_plan_of, routines, known)}
    found = _PLAN.format(number=number)
    plan = [f"try: {found} = known[tests]", f"except KeyError: {found} = plan_of(tests)"]
    if not (routines.predicates or routines.sources):
        # Without tests, all events of the type have one plan.
        scope["only_plan"] = _plan_of(routines, known, 0)
        tests, plan = [], [f"{found} = only_plan"]
    text = filled(
        _PUSH,
        checks=checks,
        alarms=[_ALARMS] if shared["has_clock"] else [],
        alarms_of_groups=[_ALARMS_OF_GROUPS] if "earliest" in shared else [],
        count_reading=[_COUNT_READING] if routines.has_timer_ports else [],
        exceptions=exceptions,
        answers=answers,
        tests=tests,
        plan=plan,
        keys=keys,
        names=["".join(f"{name}, " for name in variables)],
        number=[number],
        choose=[f"key = ({', '.join(variables)})[number]"] if several else [],
    )
    push: PushRoutine = _compiled(text, "push", routines, writing.constants, scope)
    return push


def _plan_of(routines: TypeRoutines, known: dict[int, _Known], tests: int) -> _Known:
    """The plan for these tests, or, where a single rule reads the event, what the plan holds."""
    plan = routines.plans.get(tests)
    if plan is None:
        plan = routines.make_plan(tests)
    alone = plan[0] if isinstance(plan, tuple) and len(plan) == 1 else None
    found = (plan, *_NOBODY) if alone is None else (None, *alone)
    if len(known) < PLANS_REMEMBERED:
        known[tests] = found
    return found


def _compiled(
    text: str,
    function: str,
    routines: AskedOfType,
    constants: Constants,
    shared: Mapping[str, Any],
) -> Any:
    scope = {
        "datetime": datetime,
        "UTC": UTC,
        "MixedReadPlan": MixedReadPlan,
        "plans": routines.plans,
        "make_plan": routines.make_plan,
        **constants.names,
        **shared,
    }
    return function_from(text, function, scope)
