"""The table of a machine without a window, worked out with sets of states as bits of integers.

The same states and moves as `ensue.machine.determinise` makes, and the same budget: only how a move
is worked out differs (`ensue.machine.bitwise`), for a hundred rules have thousands of them.
"""

from __future__ import annotations

from ensue.machine.bitwise import BitStepper, bits_of, numbers_in
from ensue.machine.determinise import Input, MachineMove, MachineTable, TableState
from ensue.machine.model import Bind, Machine


class BitTable(MachineTable):
    def __init__(self, machine: Machine, states: int) -> None:
        self._stepping = BitStepper(machine)
        self._bits: dict[TableState, int] = {}
        self._by_bits: dict[int, TableState] = {}
        self._atoms: dict[frozenset[int], int] = {}
        super().__init__(machine, states)

    def _make(self, state: TableState, given: Input) -> MachineMove:
        kind, what = given
        if isinstance(what, str):
            return super()._make(state, given)
        active = self._bits.get(state)
        if active is None:
            active = self._bits[state] = bits_of(state.active)
        if kind == "due":
            readers = self._stepping.due(what)
        else:
            atoms = self._atoms.get(what)
            if atoms is None:
                atoms = self._atoms[what] = bits_of(what)
            readers = self._stepping.readers(active, atoms)
        taken = self._stepping.take(active, readers)
        to = self._by_bits.get(taken.active)
        if to is None:
            to = self._by_bits[taken.active] = self._state(frozenset(numbers_in(taken.active)))
            self._bits[to] = taken.active
        binds = [Bind(place) for place in taken.binds]
        return MachineMove(to, (*binds, *taken.effects), taken.started)
