"""Removes states that are never active, and transitions that are never enabled."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ensue.machine.model import Machine, State, Transition


def drop_unreachable(machine: Machine) -> Machine:
    """The machine without the states and transitions that no stream can reach.

    A state can be active only if it is active at the start, or if a switch or a transition sets it;
    a transition can set it only if each of its enabling sets has a state that can be active. The
    least set of states that is closed under these rules has every state that is ever active, by
    induction over the steps of a run. States outside of it can go: a transition that needs one is
    never taken, and to test or to clear one has no effect.
    """
    reached = _reached(machine)
    return replace(
        machine,
        transitions=tuple(
            _within(transition, reached)
            for transition in machine.transitions
            if not any(reached.isdisjoint(states) for states in transition.enabling)
        ),
        branches=tuple(
            replace(
                branch,
                labels=tuple(each for each in branch.labels if each[1] in reached),
                places=tuple(each for each in branch.places if each[2] in reached),
            )
            for branch in machine.branches
        ),
        switches=tuple(replace(each, clear=each.clear & reached) for each in machine.switches),
        constant=machine.constant & reached,
    )


def _within(transition: Transition, reached: frozenset[State]) -> Transition:
    if transition.clear <= reached and all(states <= reached for states in transition.enabling):
        return transition
    return replace(
        transition,
        enabling=tuple(states & reached for states in transition.enabling),
        clear=transition.clear & reached,
    )


def _reached(machine: Machine) -> frozenset[State]:
    waiting_for: dict[State, list[tuple[int, int]]] = {}
    missing = []
    for number, transition in enumerate(machine.transitions):
        missing.append(set(range(len(transition.enabling))))
        for part, states in enumerate(transition.enabling):
            for state in states:
                waiting_for.setdefault(state, []).append((number, part))
    # A switch needs a mark of its label, and one of the two marks is always active.
    found = machine.initial.union(*(switch.target for switch in machine.switches))
    reached = set(found)
    queue = deque(found)
    while queue:
        for number, part in waiting_for.get(queue.popleft(), ()):
            still = missing[number]
            if part in still:
                still.remove(part)
                if not still:
                    new = machine.transitions[number].target - reached
                    reached |= new
                    queue.extend(new)
    return frozenset(reached)
