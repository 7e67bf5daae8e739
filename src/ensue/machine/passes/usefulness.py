"""Removes states that no transition tests, and transitions that do nothing."""

from __future__ import annotations

from dataclasses import replace

from ensue.machine.model import Machine, State


def drop_useless(machine: Machine) -> Machine:
    """The machine without the states and transitions that change nothing.

    A transition is *useful* if it has an effect, or sets or clears a state that is tested. A state
    is tested if a useful transition needs it, or if it is the mark of a label, or shows that a
    label is active or a place is bound. Other states decide nothing and are left out of every set;
    a transition that then has no effect and changes no state goes. (A machine that waits for
    nothing more is left with no active state.)
    """
    looked_at = _looked_at(machine)
    kept = []
    for transition in machine.transitions:
        clear, target = transition.clear & looked_at, transition.target & looked_at
        if transition.effect is None and not clear and not target:
            continue
        is_whole = (clear, target) == (transition.clear, transition.target)
        kept.append(transition if is_whole else replace(transition, clear=clear, target=target))
    return replace(
        machine,
        initial=machine.initial & looked_at,
        transitions=tuple(kept),
        switches=tuple(
            replace(each, clear=each.clear & looked_at, target=each.target & looked_at)
            for each in machine.switches
        ),
        constant=machine.constant & looked_at,
    )


def _looked_at(machine: Machine) -> frozenset[State]:
    found = {switch.requires for switch in machine.switches}
    for branch in machine.branches:
        found.update(state for _, state in branch.labels)
        found.update(state for _, _, state in branch.places)
    changing: dict[State, list[int]] = {}
    queue = []
    for number, transition in enumerate(machine.transitions):
        for state in transition.clear | transition.target:
            changing.setdefault(state, []).append(number)
        if transition.effect is not None:
            queue.append(number)
    queue += [number for state in found for number in changing.get(state, ())]
    of_use = set(queue)
    while queue:
        for states in machine.transitions[queue.pop()].enabling:
            for state in states - found:
                found.add(state)
                new = [each for each in changing.get(state, ()) if each not in of_use]
                of_use.update(new)
                queue += new
    return frozenset(found)
