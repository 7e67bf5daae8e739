"""Predicates and values, as CESQL has them: the one thing that the oracle does not read again.

CESQL has conformance cases of its own, so here stands only how an event, the firing of a timer
and the ports of a transformer are handed to `ensue.lang.expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.events.event import Event
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, PortScope, TimerScope, evaluate, holds

from .filters import Firing


def predicate_holds(predicate: Expression, what: Event | Firing) -> bool:
    return holds(predicate, TimerScope(what.time) if isinstance(what, Firing) else what)


def value_of(expression: Expression, bound: Mapping[str, Event | Firing]) -> Any:
    """The value of an expression over the bound events; None where it meets an error."""
    scope = PortScope(
        {
            port: TimerScope(what.time) if isinstance(what, Firing) else what
            for port, what in bound.items()
        }
    )
    value, errors = evaluate(expression, scope)
    return None if errors or value is MISSING else value
