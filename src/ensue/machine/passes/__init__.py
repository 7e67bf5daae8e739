"""Passes: each makes a smaller machine of a machine, with equal behaviour.

*Equal behaviour* means: on every stream, every step has the same effects in the same order, and the
same timeouts run. The docstring of each pass argues why that holds. `optimise` runs the passes
until nothing changes, and then numbers the states that are left.
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
"""The most rounds of all passes. Each round shrinks a machine; later ones gain little."""


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
    """The number of states that some transition tests or sets, and the number of transitions.

    States that are gone keep their numbers until `renumber`, so that names cannot be counted.
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
