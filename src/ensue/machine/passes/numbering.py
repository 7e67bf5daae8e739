"""Numbers states, atoms and places anew, without gaps, in the order of their use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ensue.machine.model import Machine, State, Timer, Transition


def renumber(machine: Machine) -> Machine:
    """The machine with consecutive numbers of states and atoms.

    Numbers of states and atoms are only names: to exchange them one for one in every set changes
    nothing. An atom that no transition waits for is never tested and goes. Places keep their
    numbers, since bindings are stored under them.
    """
    states = _in_order_of_use(machine)
    new = {state: number for number, state in enumerate(states)}
    read = sorted({t.input for t in machine.transitions if isinstance(t.input, int)})
    atoms = {old: number for number, old in enumerate(read)}

    def moved(old: Iterable[State]) -> frozenset[State]:
        return frozenset(new[state] for state in old if state in new)

    def moved_transition(transition: Transition) -> Transition:
        wanted = transition.input
        if isinstance(wanted, Timer):
            wanted = Timer(new[wanted.state], wanted.after)
        elif wanted is not None:
            wanted = atoms[wanted]
        return replace(
            transition,
            enabling=tuple(moved(each) for each in transition.enabling),
            input=wanted,
            clear=moved(transition.clear),
            target=moved(transition.target),
        )

    return Machine(
        tuple(machine.names[state] for state in states),
        moved(machine.initial),
        tuple(moved_transition(each) for each in machine.transitions),
        tuple(machine.atoms[old] for old in read),
        tuple(
            replace(
                branch,
                root=new.get(branch.root, -1),
                labels=tuple((label, new[state]) for label, state in branch.labels),
                places=tuple((place, port, new[state]) for place, port, state in branch.places),
            )
            for branch in machine.branches
        ),
        tuple(
            replace(
                each,
                requires=new[each.requires],
                clear=moved(each.clear),
                target=moved(each.target),
            )
            for each in machine.switches
        ),
        machine.window,
        moved(machine.constant),
    )


def _in_order_of_use(machine: Machine) -> list[State]:
    """Initial states, then states in the order of transitions, without those only cleared."""
    used = dict.fromkeys(sorted(machine.initial))
    for transition in machine.transitions:
        for states in (*transition.enabling, transition.target):
            used.update(dict.fromkeys(sorted(states)))
    for switch in machine.switches:
        used.update(dict.fromkeys([switch.requires, *sorted(switch.target)]))
    for branch in machine.branches:
        used.update(dict.fromkeys(state for _, state in branch.labels))
        used.update(dict.fromkeys(state for _, _, state in branch.places))
    return list(used)
