"""Correlations that are alike run together: a thousand of them in one pass over a batch.

Two are alike if they differ in their names, in the names of their ports and in what those ask of an
event, and in nothing else: then they have one machine, one table and the same statements. A
`RuleGroup` holds the states of all: as bits where that will do (`slices`), else as numbers
(`numbered`). Past `MOST_STATES` and past the budget of the table a group says that it has to be
left, and the engine lets each of its members run on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.correlations import TABLE_STATES, Path, asked_of
from ensue.engine.batch.groups import RowGroup, common_key, table_of_ports
from ensue.engine.batch.numbered import NumberedStates
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.slices import SlicedStates
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.numbering import Numbers
from ensue.engine.counts import Counts
from ensue.engine.renaming import numbered_ports, with_ports
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, EventPort, FilterCorrelation
from ensue.machine.model import Machine, PortAtom


def likeness(correlation: Correlation) -> Correlation | None:
    """What correlations that can run together have in common; None if this one cannot."""
    if common_key(correlation) is None:
        return None
    numbered = numbered_ports(correlation)
    bare = tuple(EventPort("", name) for name in numbered.values())
    said: Correlation = with_ports(correlation, numbered)
    return replace(said, name="", ports=bare)


class RuleGroup(RowGroup):
    """Correlations that are alike, of one machine."""

    states: SlicedStates | NumberedStates

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        path: Path,
        machine: Machine,
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        one = correlations[0]
        has_start = isinstance(one, FilterCorrelation) and bool(one.initially)
        bind_first = isinstance(one, FilterCorrelation) and one.clauses.bind == "first"
        starts = [has_start] * len(correlations)
        remembered = Remembered(*asked_of(one))
        super().__init__(correlations, numbers, path, types, counts, remembered, starts, bind_first)
        self.table_states = TABLE_STATES
        self._filled = table_of_ports(one, machine)
        bit_of = {PortAtom(port.name): bit for bit, port in enumerate(one.ports)}
        self.states = SlicedStates(
            self._filled, self._lists, self._row_lists.count, bit_of, has_start
        )

    @property
    def is_too_large(self) -> bool:
        return self.states.size > self.most_states or len(self._filled.known) > self.table_states

    def _walk(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: npt.NDArray[np.int64],  # noqa: ARG002 - without windows they do not count
        before: int,
        without: Any,
    ) -> Iterator[tuple[Firings, int]]:
        read = 0
        for firings, read in self.states.read(lists, keys, self.keys.count, before, without):
            yield firings, read
        if read < len(keys):
            rest = [each[each >= read] for each in lists]
            self._use_numbers()
            yield from self.states.read(rest, keys, self.keys.count, before, without)

    def _use_numbers(self) -> None:
        """Hold the states as numbers from now on."""
        numbered = NumberedStates(self._filled, self._lists, self._row_lists.count)
        walks = (self.states.walk_of(number) for number in range(len(self.members)))
        numbered.take_over(walks, self.keys.count)
        self.states = numbered

    def put_back(self, number: int, walk: TableWalk | WindowWalk) -> None:
        assert isinstance(walk, TableWalk), "what runs together has no window"
        if isinstance(self.states, SlicedStates) and not self.states.put(number, walk):
            self._use_numbers()
            self.states.walk_of(number).states[: len(walk.states)] = walk.states
            self.states.walk_of(number).places[: len(walk.states)] = walk.places
