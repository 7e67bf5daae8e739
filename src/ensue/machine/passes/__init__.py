"""Passes: each takes a machine and gives back a smaller one that does the same.

*The same* means: whatever is read, the effects of every moment are the same, in the same order, and
so are the timeouts that run. Each pass argues why that holds. `optimise` runs them until nothing
changes, and numbers what is left.
"""

from __future__ import annotations

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
    "renumber",
]

ROUNDS = 10
"""Each round only shrinks a machine; what is left after so many is small change."""


def optimise(machine: Machine) -> Machine:
    for _ in range(ROUNDS):
        before = machine
        machine = merge_handovers(inline_derived(drop_useless(drop_unreachable(machine))))
        if machine == before:
            break
    return renumber(machine)
