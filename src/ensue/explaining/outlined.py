"""The machine of the filter of a rule that relates events, for a drawing.

Such a rule runs from remembered events and has no machine. In comes the correlation; out comes the
machine of its filter without the clauses that relate events, with a timer for each timeout. It
shows what the rule waits for, and is never run.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.lang.durations import print_duration
from ensue.lang.syntax import (
    Both,
    Clauses,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    Port,
    PortRef,
    Then,
    Timeout,
    TimerPort,
    Times,
)
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.model import Machine
from ensue.machine.passes import optimise


def machine_of_filter_alone(correlation: FilterCorrelation, unoptimised: bool) -> Machine:
    timers: dict[str, Port] = {}
    plain = replace(
        correlation,
        branches=tuple(_with_timers(each, timers) for each in correlation.branches),
        ports=(*correlation.ports, *timers.values()),
        clauses=Clauses(correlation.clauses.within, correlation.clauses.by),
    )
    built = machine_of_filter(plain)
    return built if unoptimised else optimise(built)


def _with_timers(part: Filter, timers: dict[str, Port]) -> Filter:
    """The filter with each timeout replaced by a timer, which is added to `timers`."""
    match part:
        case Timeout(after):
            name = f"timeout({print_duration(after)})"
            timers[name] = TimerPort("deadline", after, name)
            return PortRef(name)
        case Labelled() | Times():
            return replace(part, body=_with_timers(part.body, timers))
        case Both() | Either() | Then():
            return replace(part, parts=tuple(_with_timers(each, timers) for each in part.parts))
        case _:
            return part
