"""The step engine: one event in, outputs out, over correlation machines.

A correlation becomes a machine (`rules`), and the machine a table that grows with the states that
a stream visits (`rows`). Machines with a window are stepped directly, since their states carry
times; the few filters that need their events back run on the reference engine's memory. What the
events of a type are asked is written down once for all rules, as Python that is made for the
library (`predicates`, `routines`); `stream` is the clock and the order around it.
"""

from __future__ import annotations

from itertools import count

from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, Start
from ensue.engine.counts import Counts
from ensue.engine.step.stream import StepStream
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits

__all__ = ["StepStream", "instance_starter", "step_engine"]


def step_engine(
    library: CheckedLibrary, counts: Counts, limits: MachineLimits = DEFAULT_MACHINE_LIMITS
) -> StepStream:
    return StepStream(library, counts, limits)


def instance_starter(correlation: Correlation, types: TypeSystem) -> Start:
    """A function that starts instances of a correlation, for callers that hold keys themselves."""
    return Rule(correlation, types, SharedTables(), count(1)).starter
