"""Which rules can have their cells side by side, and which rules share a table.

In comes a correlation; out go its *traits*, equal for rules that can be one group with their cells
side by side, and its *shape*, equal for rules of one table. Rules of a shape may differ in their
names, in the types and predicates of their ports, in the length of their windows and in the
durations of their timers, if these have the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ensue.engine.core.cell_limits import BATCH_CELLS, why_no_cells
from ensue.engine.core.machine_tables import RuleTimers
from ensue.engine.core.rule_table import RuleTable
from ensue.lang.derived.parts import statements_of, timeouts_in
from ensue.lang.derived.renaming import numbered_ports, with_ports
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    PushPort,
    Timeout,
    TimerPort,
)
from ensue.machine.model import Machine, PortAtom


@dataclass(frozen=True, slots=True)
class GroupTraits:
    """The properties that all rules of a group share, so that their cells stand side by side."""

    key: tuple[str, ...]
    keeps_events: bool
    """Whole events are sent on; else only the names that statements ask for are kept."""
    binds_first: bool
    has_timers: bool


def event_ports(correlation: Correlation) -> list[EventPort]:
    return [port for port in correlation.ports if isinstance(port, EventPort)]


def group_traits(correlation: Correlation, machine: Machine | None) -> GroupTraits | None:
    """The traits of a rule in batches; None if it cannot have cells beside other rules."""
    keys = correlation.clauses.by
    if machine is None or not all(isinstance(key, CommonKey) for key in keys):
        return None
    if why_no_cells(correlation, machine, BATCH_CELLS) is not None:
        return None
    names = tuple(key.name for key in keys if isinstance(key, CommonKey))
    sends = any(isinstance(each, PushPort) for each in statements_of(correlation))
    binds_first = correlation.clauses.bind == "first"
    return GroupTraits(names, sends, binds_first, len(RuleTimers(correlation, machine)) > 0)


def begins_with_statements(correlation: Correlation) -> bool:
    """Whether a rule has statements that run when a key starts, before its first event."""
    return isinstance(correlation, FilterCorrelation) and bool(correlation.initially)


def shape_of(correlation: Correlation) -> tuple[bool, Correlation]:
    """The shape of rules that share a table."""
    lengths = durations_in(correlation)
    ranks = {length: Duration(1 + rank) for rank, length in enumerate(lengths)}
    numbered = numbered_ports(correlation)
    bare = tuple(
        EventPort("", numbered[port.name])
        if isinstance(port, EventPort)
        else TimerPort(port.kind, ranks[port.period.microseconds], numbered[port.name])
        for port in correlation.ports
    )
    shape: Any = replace(with_ports(correlation, numbered), name="", ports=bare)
    if isinstance(shape, EclCorrelation) and ranks:
        shape = replace(shape, body=_with_ranks(shape.body, ranks))
    clauses = shape.clauses
    return clauses.within is not None, replace(shape, clauses=replace(clauses, within=None))


def table_of(correlation: Correlation, machine: Machine) -> RuleTable:
    """An empty table, in whose symbols an event is the set of ports that it matches."""
    bits: dict[Any, int] = {
        PortAtom(port.name): bit for bit, port in enumerate(event_ports(correlation))
    }
    return RuleTable(correlation, machine, bits, _slots(correlation, machine))


def _slots(correlation: Correlation, machine: Machine) -> Sequence[int]:
    """The slot of each place: the first place of a port has the port's number."""
    number_of = {port.name: number for number, port in enumerate(correlation.ports)}
    port_of = {place: port for branch in machine.branches for place, port, _ in branch.places}
    slots, taken, more = [], set[int](), len(number_of)
    for place in range(1 + max(port_of, default=-1)):
        slot = number_of[port_of[place]] if place in port_of else -1
        if slot < 0 or slot in taken:
            slot, more = more, more + 1
        taken.add(slot)
        slots.append(slot)
    return slots


def window_of(correlation: Correlation) -> int | None:
    within = correlation.clauses.within
    return None if within is None else within.microseconds


def lengths_of(correlation: Correlation, example: Correlation, table: RuleTable) -> list[int]:
    """How long the timers of a rule run, in the order of its table, which was made of `example`."""
    own = dict(zip(durations_in(example), durations_in(correlation), strict=True))
    return [own[each] for each in table.timers.after.tolist()]


def durations_in(correlation: Correlation) -> list[int]:
    """How long the timers of a rule run, each length once, the shortest first."""
    found = {port.period.microseconds for port in correlation.ports if isinstance(port, TimerPort)}
    if isinstance(correlation, EclCorrelation):
        found.update(each.microseconds for each in timeouts_in(correlation.body))
    return sorted(found)


def _with_ranks(expression: Any, ranks: Mapping[int, Duration]) -> Any:
    """An expression in which the ranks of its durations stand for the durations."""

    def ranked(node: Any) -> Any:
        return Timeout(ranks[node.after.microseconds]) if isinstance(node, Timeout) else None

    return mapped(expression, ranked)
