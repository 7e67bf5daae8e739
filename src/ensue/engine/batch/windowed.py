"""Correlations with windows side by side: all that share a key in one pass over a batch.

An event goes only to those that want it (`visits`), and their keys, rows and outputs are worked out
for all of them at once. They may be of different shapes, and their windows of different lengths;
those that differ in nothing but names, predicates and the length of the window share one table.
Others that have no window may be among them: one pass for all costs less than one for each kind. A
filter with labels that are aborted is not for this: what its ports are bound to depends on more
than the last event that they want. Where a table keeps growing, the correlations of its shape leave
the group, in the middle of a batch if need be, and go on as they would have on their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ensue.engine.batch.correlations import Path
from ensue.engine.batch.groups import (
    Company,
    LooseGroup,
    RowGroup,
    bound_by_last,
    remembered_by,
    table_of_ports,
)
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.visit_tables import VisitTables
from ensue.engine.batch.visits import Instants, VisitedStates
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.numbering import Numbers
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine


def windowed_company(
    correlation: Correlation, path: Path, machine: Machine | None
) -> Company | None:
    """What those with windows that can run side by side have in common; None if one cannot."""
    return bound_by_last(correlation, machine) if path.name == "window" else None


class WindowedGroup(LooseGroup, RowGroup):
    """Correlations with windows and one key; `shape_of` says which of the machines each has."""

    states: VisitedStates

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        shape_of: Sequence[int],
        machines: Sequence[Machine],
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        remembered, starts = remembered_by(correlations)
        super().__init__(
            correlations, numbers, Path("window"), types, counts, remembered, starts, False
        )
        firsts = [correlations[shape_of.index(shape)] for shape in range(len(machines))]
        filled = [table_of_ports(*each) for each in zip(firsts, machines, strict=True)]
        tables = VisitTables(firsts, filled, shape_of, [window_of(each) for each in correlations])
        for member, correlation in zip(self.members.values(), correlations, strict=True):
            if window_of(correlation) is None:
                member.path = Path("table")
        self.states = VisitedStates(tables, self._lists, self._row_lists.count)

    @property
    def is_too_large(self) -> bool:
        return not self.states.has_room

    def _walk(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: Instants,
        before: int,
        without: Any,
    ) -> Iterator[tuple[Firings, int]]:
        return self.states.read(lists, keys, times, self.keys.count, before, without)

    def put_back(self, number: int, walk: TableWalk | WindowWalk) -> None:
        self.states.put(number, walk)


def shape_of_windowed(common: Correlation) -> tuple[bool, Correlation]:
    """What correlations of one table have in common, of what those that are alike have."""
    has_window = common.clauses.within is not None
    return has_window, replace(common, clauses=replace(common.clauses, within=None))


def window_of(correlation: Correlation) -> int | None:
    within = correlation.clauses.within
    return None if within is None else within.microseconds
