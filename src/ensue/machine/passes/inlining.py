"""Removes internal transitions whose state only stands for a condition on other states."""

from __future__ import annotations

from dataclasses import replace

from ensue.machine.model import Machine, State, Transition

Sets = tuple[frozenset[State], ...]


def inline_derived(machine: Machine) -> Machine:
    """Transitions that test a state which follows from others test those states instead.

    A state `y` is *derived* if just one internal transition sets it, which clears nothing and has
    no effect: at the turn of that transition in each pass, `y` follows from its enabling sets. If
    every transition that sets a state of these sets stands before it, and `y` and these states are
    always cleared together, then `y` is active exactly when the sets enable it. That holds for an
    input transition, which tests the states before the event, and for an internal one that stands
    further on. So an enabling set that contains `y` may contain the states of its only set instead
    (with starts: the latest of the latest), and the enabling set `{y}` may become several sets (the
    earliest of the earliest). Then no transition tests `y` any more.

    With labels that are aborted, states are derived again between two events; such machines are
    left as they are.
    """
    if machine.switches:
        return machine
    noticed = {state for branch in machine.branches for _, state in branch.labels}
    noticed |= {state for branch in machine.branches for _, _, state in branch.places}
    noticed |= machine.initial | machine.constant
    transitions: list[Transition | None] = list(machine.transitions)
    mentions = _Mentions(transitions)
    for number, transition in enumerate(machine.transitions):
        given = transitions[number]
        if given is None or transition.input is not None or transition.effect is not None:
            continue
        if transition.clear or len(transition.target) != 1:
            continue
        (y,) = transition.target
        if y in noticed or not _follows(y, number, given.enabling, transitions, mentions):
            continue
        looking = mentions.looking.get(y, set())
        parts = frozenset().union(*given.enabling)
        if len(looking) > 1 and len(parts) > 2:
            continue
        if len(given.enabling) > 1 and any(
            y in s and len(s) > 1 for s in _sets(transitions, looking)
        ):
            continue
        for other in looking:
            looker = transitions[other]
            assert looker is not None
            sets = [s for each in looker.enabling for s in _instead(each, y, given.enabling)]
            transitions[other] = replace(looker, enabling=tuple(dict.fromkeys(sets)))
            for state in parts:
                mentions.looking.setdefault(state, set()).add(other)
        for state in parts:
            mentions.looking[state].discard(number)
        mentions.looking.pop(y, None)
        mentions.setting.pop(y, None)
        transitions[number] = None
    kept = tuple(each for each in transitions if each is not None)
    return replace(machine, transitions=kept)


class _Mentions:
    """For each state the transitions that test it, set it, and clear it."""

    def __init__(self, transitions: list[Transition | None]) -> None:
        self.looking: dict[State, set[int]] = {}
        self.setting: dict[State, set[int]] = {}
        self.clearing: dict[State, set[int]] = {}
        for number, transition in enumerate(transitions):
            if transition is not None:
                for state in frozenset().union(*transition.enabling):
                    self.looking.setdefault(state, set()).add(number)
                for state in transition.target:
                    self.setting.setdefault(state, set()).add(number)
                for state in transition.clear:
                    self.clearing.setdefault(state, set()).add(number)


def _follows(
    y: State,
    number: int,
    enabling: Sets,
    transitions: list[Transition | None],
    mentions: _Mentions,
) -> bool:
    if mentions.setting.get(y) != {number}:
        return False
    for other in mentions.looking.get(y, ()):
        looker = transitions[other]
        if looker is None or (looker.input is None and other < number):
            return False
    cleared = mentions.clearing.get(y, set())
    for state in frozenset().union(*enabling):
        if any(other > number for other in mentions.setting.get(state, ())):
            return False
        if mentions.clearing.get(state, set()) != cleared:
            return False
    return True


def _sets(transitions: list[Transition | None], numbers: set[int]) -> list[frozenset[State]]:
    found = [transitions[number] for number in numbers]
    return [states for each in found if each is not None for states in each.enabling]


def _instead(states: frozenset[State], y: State, enabling: Sets) -> Sets:
    if y not in states:
        return (states,)
    if len(enabling) == 1:
        return ((states - {y}) | enabling[0],)
    return enabling
