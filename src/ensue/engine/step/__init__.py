"""The step engine: one event in, outputs out.

`stream` has the clock, the rules and their order. `dispatch` has, for each event type, the
function that checks an event and finds the rules which read it. A rule is stepped by itself, in
Python (`ensue.engine.core.instances`), or, where enough rules share a key, in a cell, by a compiled
loop (`many`). `saving` turns the state of a stream into plain data and back.
"""

from __future__ import annotations

from itertools import count

from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, Start
from ensue.engine.step.stream import StepStream
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation

__all__ = ["StepStream", "instance_starter"]


def instance_starter(correlation: Correlation, types: TypeSystem) -> Start:
    """A function that starts instances of a correlation, for callers that hold keys themselves."""
    return Rule(correlation, types, SharedTables(), count(1)).starter
