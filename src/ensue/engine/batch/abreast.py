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

from ensue.engine.batch.correlations import Path
from ensue.engine.batch.groups import (
    Company,
    LooseGroup,
    RowGroup,
    bound_by_last,
    is_on_table,
    remembered_by,
    table_of_ports,
)
from ensue.engine.batch.joint import JointStates
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.rule_tables import RuleTables
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.numbering import Numbers
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine


def company_of(correlation: Correlation, path: Path, machine: Machine | None) -> Company | None:
    """What correlations that can run abreast have in common; None if this one cannot."""
    return bound_by_last(correlation, machine) if is_on_table(path, machine) else None


class AbreastGroup(LooseGroup, RowGroup):
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
        remembered, starts = remembered_by(correlations)
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
