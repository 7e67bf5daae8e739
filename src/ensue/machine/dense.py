"""Dense tables: every state that a machine can reach over a fixed set of inputs, numbered.

A lazy table (`determinise`) has only the moves that a stream has asked for. Where the inputs are
few and known, and the states within a budget, the whole table can be made: a row for each state, a
column for each input. `ensue.machine.passes.minimising` makes it as small as possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensue.machine.determinise import Input, MachineTable, TableState
from ensue.machine.limits import MachineLimits
from ensue.machine.model import Bind, Emit, Machine, State, Timer
from ensue.machine.stepping import Fired

Effects = tuple[Emit | Bind | Fired, ...]


@dataclass(frozen=True)
class DenseMove:
    """An entry of a table: the next state, the effects, and the timeouts that are started."""

    to: int
    effects: Effects
    started: tuple[Timer, ...]


@dataclass(frozen=True)
class DenseTable:
    """`rows` has a move for each state and input, `watched` the marks of labels in each state."""

    first: int
    inputs: tuple[Input, ...]
    rows: tuple[tuple[DenseMove, ...], ...]
    watched: tuple[frozenset[State], ...]


def dense_table(
    machine: Machine, symbols: Iterable[frozenset[int]], budget: int = MachineLimits().table_states
) -> DenseTable | None:
    """The whole table over events with these sets of atoms, or None past the budget.

    Changes of labels are inputs like events. A machine with timeouts has no dense table: the sets
    of timeouts that are due together are no fixed set of inputs.
    """
    if any(isinstance(each.input, Timer) for each in machine.transitions):
        return None
    inputs: list[Input] = [("atoms", symbol) for symbol in dict.fromkeys(symbols)]
    if machine.switches:
        inputs.append(("atoms", frozenset()))
    inputs += [(switch.kind, switch.label) for switch in machine.switches]
    marks = frozenset(switch.requires for switch in machine.switches)
    table = MachineTable(machine, budget + 1, (budget + 1) * max(1, len(inputs)))
    numbers: dict[frozenset[State], int] = {table.first.active: 0}
    found: list[TableState] = [table.first]
    rows = []
    for state in found:
        row = []
        for given in inputs:
            move = table.move(state, given)
            number = numbers.setdefault(move.to.active, len(found))
            if number == len(found):
                if number == budget:
                    return None
                found.append(move.to)
            row.append(DenseMove(number, move.effects, move.started))
        rows.append(tuple(row))
    watched = tuple(state.active & marks for state in found)
    return DenseTable(0, tuple(inputs), tuple(rows), watched)
