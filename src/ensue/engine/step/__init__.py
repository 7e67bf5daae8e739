"""The step engine: one event in, outputs out, over correlation machines.

A correlation becomes a machine, and the machine a table that grows with the states that a stream
visits. Machines with a window are stepped directly, since their states carry times. The few filters
that need their events back run on the reference engine's memory.
"""

from __future__ import annotations

from functools import partial

from ensue.engine.counts import Counts
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.step.ecl import EclRunner
from ensue.engine.step.filters import TabledFilter, WindowedFilter
from ensue.engine.stream import InstanceStart, Stream
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.determinise import Table
from ensue.machine.from_ecl import machine_of_ecl
from ensue.machine.from_filter import machine_of_filter, needs_memory
from ensue.machine.stepping import Stepper

TABLE_STATES = 10_000
"""How many states a table may have before its machine is stepped directly."""


def step_engine(library: CheckedLibrary, counts: Counts) -> Stream:
    return Stream(library, counts, _starter)


def _starter(correlation: Correlation) -> InstanceStart:
    if isinstance(correlation, FilterCorrelation):
        if needs_memory(correlation):
            return partial(FilterInstance, correlation)
        machine = machine_of_filter(correlation)
        if machine.window is not None:
            return partial(WindowedFilter, correlation, Stepper(machine))
        return partial(TabledFilter, correlation, Table(machine, TABLE_STATES))
    return partial(EclRunner, correlation, Table(machine_of_ecl(correlation), TABLE_STATES))
