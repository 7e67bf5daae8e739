"""Empty tables of rules, and how long their timers run."""

from __future__ import annotations

from typing import Any

from ensue.engine.core.bit_table import BitTable
from ensue.engine.core.effects import EclActions, FilterActions
from ensue.engine.core.rule_table import TABLE_STATES, place_count
from ensue.engine.core.shapes import durations_in
from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed, Timers
from ensue.engine.core.window_table import FilledWindow, OrderedTable
from ensue.lang.syntax import Correlation, EventPort, FilterCorrelation
from ensue.machine.model import Machine, PortAtom


def table_of_ports(correlation: Correlation, machine: Machine) -> FilledTable:
    """An empty table whose events are told by the ports that they match."""
    ports = [port for port in correlation.ports if isinstance(port, EventPort)]
    bits: dict[Any, int] = {PortAtom(port.name): bit for bit, port in enumerate(ports)}
    places = place_count(machine)
    actions: FilterActions | EclActions
    if isinstance(correlation, FilterCorrelation):
        actions = FilterActions(correlation, machine)
    else:
        actions = EclActions(correlation, machine)
    timers = Timers(correlation, machine)
    table = OrderedTable(machine) if machine.window is not None else BitTable(machine, TABLE_STATES)
    if len(timers):
        return FilledTimed(table, actions, bits, places, timers)
    kind = FilledTable if machine.window is None else FilledWindow
    return kind(table, actions, bits, places)


def lengths_of(correlation: Correlation, alike: Correlation, table: FilledTable) -> list[int]:
    """How long the timers of a correlation run, in the order that they have in its table."""
    assert isinstance(table, FilledTimed)
    own = dict(zip(durations_in(alike), durations_in(correlation), strict=True))
    return [own[each] for each in table.timers.after.tolist()]
