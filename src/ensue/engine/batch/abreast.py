"""Correlations of different shapes run abreast: all that share a key in one pass over a batch.

Each has a table of its own; a key is in one joint state of all of them (`joint`). A filter with
labels that are aborted, or with `bind first`, is not for this: what its ports are bound to depends
on more than the last event that they want. A rule whose table keeps growing leaves the group, in
the middle of a batch if need be, and goes on as it would have on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.correlations import Path, asked_of
from ensue.engine.batch.groups import LooseGroup, common_key, is_on_table, table_of_ports
from ensue.engine.batch.joint import JointStates
from ensue.engine.batch.keys import Numbers
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.rule_tables import RuleTables
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.model import Machine

Company = tuple[tuple[str, ...], bool]


def company_of(correlation: Correlation, path: Path, machine: Machine | None) -> Company | None:
    """What correlations that can run abreast have in common; None if this one cannot."""
    key = common_key(correlation)
    if key is None or machine is None or not is_on_table(path, machine) or machine.switches:
        return None
    if isinstance(correlation, FilterCorrelation) and correlation.clauses.bind == "first":
        return None
    # Where some send on whole events, those are kept: of others only what they ask for.
    _, whole = asked_of(correlation)
    return key, whole


class AbreastGroup(LooseGroup):
    """Correlations with one key, each with its machine."""

    states: JointStates

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        machines: Sequence[Machine],
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        asked = [asked_of(each) for each in correlations]
        starts = [isinstance(c, FilterCorrelation) and bool(c.initially) for c in correlations]
        remembered = Remembered([name for names, _ in asked for name in names], asked[0][1])
        super().__init__(
            correlations, numbers, Path("table"), types, counts, remembered, starts, False
        )
        filled = [table_of_ports(*each) for each in zip(correlations, machines, strict=True)]
        tables = RuleTables(correlations, filled, starts)
        self.states = JointStates(tables, self._lists, self._row_lists.count)

    @property
    def is_too_large(self) -> bool:
        return self.states.size > self.most_states

    def _walk(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: npt.NDArray[np.int64],  # noqa: ARG002 - without windows they do not count
        before: int,
        without: Any,
    ) -> Iterator[tuple[Firings, int]]:
        return self.states.read(lists, keys, self.keys.count, before, without)

    def put_back(self, number: int, walk: TableWalk | WindowWalk) -> None:
        assert isinstance(walk, TableWalk), "what is abreast has no window"
        self.states.put(number, walk)
