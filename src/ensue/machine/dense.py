"""Dense tables: every state that a machine can get to, over a fixed set of inputs, as numbers.

A lazy table (`determinise`) has only what a stream has asked for. Where the inputs are few and
known, and the states within a budget, the whole table can be written down: one row a state, one
column an input. `ensue.machine.passes.minimising` makes it as small as it can be.
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
    """`watched` holds, for each state, those active states that an engine asks about."""

    first: int
    inputs: tuple[Input, ...]
    rows: tuple[tuple[DenseMove, ...], ...]
    watched: tuple[frozenset[State], ...]


def dense_table(
    machine: Machine, letters: Iterable[frozenset[int]], budget: int = MachineLimits().table_states
) -> DenseTable | None:
    """The whole table over events with these sets of atoms, or None past the budget.

    A machine with timeouts has none: which of them are due together is no fixed set of inputs.
    Changes of labels are inputs like events.
    """
    if any(isinstance(each.input, Timer) for each in machine.transitions):
        return None
    inputs: list[Input] = [("atoms", letter) for letter in dict.fromkeys(letters)]
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
