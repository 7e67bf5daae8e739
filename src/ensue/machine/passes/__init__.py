"""Passes: each takes a machine and gives back a smaller one that does the same.

*The same* means: whatever is read, the effects of every moment are the same, in the same order, and
so are the timeouts that run. Each pass argues why that holds. `optimise` runs them until nothing
changes, and numbers what is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.machine.model import Machine
from ensue.machine.passes.handing_over import merge_handovers
from ensue.machine.passes.inlining import inline_derived
from ensue.machine.passes.numbering import renumber
from ensue.machine.passes.reachability import drop_unreachable
from ensue.machine.passes.usefulness import drop_useless

__all__ = [
    "drop_unreachable",
    "drop_useless",
    "inline_derived",
    "merge_handovers",
    "optimise",
    "optimising",
    "renumber",
    "size_of",
]

ROUNDS = 10
"""Each round only shrinks a machine; what is left after so many is small change."""


def optimise(machine: Machine) -> Machine:
    for _, left in optimising(machine):
        machine = left
    return machine


def optimising(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The name of each pass, in order, and the machine after it."""
    for _ in range(ROUNDS):
        before = machine
        for each in (drop_unreachable, drop_useless, inline_derived, merge_handovers):
            machine = each(machine)
            yield each.__name__, machine
        if machine == before:
            break
    yield renumber.__name__, renumber(machine)


def size_of(machine: Machine) -> tuple[int, int]:
    """The states that are still looked at or set, and the transitions.

    Until they are renumbered, states that are gone keep their numbers.
    """
    used = set(machine.initial)
    for each in machine.transitions:
        used.update(each.target, *each.enabling)
    for branch in machine.branches:
        used.update(state for _, state in branch.labels)
        used.update(state for _, _, state in branch.places)
    for switch in machine.switches:
        used.update(switch.target)
        used.add(switch.requires)
    return len(used), len(machine.transitions)
