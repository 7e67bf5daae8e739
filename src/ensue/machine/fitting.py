"""Checks that a machine read from tables may belong to its correlation.

In come a machine whose numbers have been checked (`records`) and the correlation that it is said to
run. A machine on which an engine could fail, or that it would run for ever, is a `ValueError` that
says what does not fit. Every machine that Ensue builds passes, however it was optimised. Whether
the machine means exactly what the text says is not checked: for that it would have to be built
again.
"""

from __future__ import annotations

from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import changed_labels, labels_in
from ensue.lang.expressions import Expression
from ensue.lang.syntax import (
    Correlation,
    EclCorrelation,
    FilterCorrelation,
    Holds,
    Push,
    Timeout,
)
from ensue.machine.building.labels import needs_memory
from ensue.machine.model import (
    Bind,
    Emit,
    Fire,
    Machine,
    PortAtom,
    PredicateAtom,
    State,
    Timer,
    Transition,
)


def check_form(form: str, machine: Machine | None, correlation: Correlation) -> None:
    """Raises `ValueError` if a correlation cannot run in a form."""
    has_window = correlation.clauses.within is not None
    is_filter = isinstance(correlation, FilterCorrelation)
    possible = {"linear" if has_window else "table"}
    if isinstance(correlation, FilterCorrelation):
        # Every filter can run from remembered events.
        possible = {"memory"} if needs_memory(correlation) else possible | {"memory"}
    if form not in possible or (form != "memory" and machine is None):
        kind = "filter" if is_filter else "expression"
        raise ValueError(f"`{correlation.name}` is no {kind} that runs in the form `{form}`")


def check_fit(machine: Machine, correlation: Correlation) -> None:
    """Raises `ValueError` if a machine cannot be one of a correlation."""
    within = correlation.clauses.within
    ports = {port.name for port in correlation.ports}
    for atom in machine.atoms:
        if isinstance(atom, PortAtom) and atom.name not in ports:
            _refuse(correlation, f"waits for `{atom.name}`, which is no port")
    if machine.window != (within.microseconds if within else None):
        _refuse(correlation, "has another window than its clause")
    if isinstance(correlation, FilterCorrelation):
        _check_filter(machine, correlation)
    else:
        _check_ecl(machine, correlation)


def _refuse(correlation: Correlation, why: str) -> None:
    raise ValueError(f"the machine of `{correlation.name}` {why}")


# --- filters ------------------------------------------------------------------------------------


def _check_filter(machine: Machine, correlation: FilterCorrelation) -> None:
    if len(machine.branches) != len(correlation.branches):
        _refuse(correlation, "has other branches than its filter")
    if not all(isinstance(atom, PortAtom) for atom in machine.atoms):
        _refuse(correlation, "waits for what is no port")
    if any(isinstance(each.input, Timer) for each in machine.transitions):
        _refuse(correlation, "waits for a timeout, and is one of a filter")
    if any(isinstance(each.effect, Emit) for each in machine.transitions):
        _refuse(correlation, "puts out by itself, and is one of a filter")
    for branch, x in zip(machine.branches, correlation.branches, strict=True):
        if not {label for label, _ in branch.labels} <= {each.label for each in labels_in([x])}:
            _refuse(correlation, "has a label that is not in its filter")
    switches = sorted((each.label, each.kind) for each in machine.switches)
    changed = sorted(changed_labels(correlation))
    if switches != [(label, kind) for label in changed for kind in ("abort", "revive")]:
        _refuse(correlation, "has other labels to abort and revive than its statements")
    _check_places(machine, correlation)
    _check_firing(machine, correlation)


def _check_places(machine: Machine, correlation: FilterCorrelation) -> None:
    """Refuses a place whose state is set by anything but an event that is bound in it."""
    bound = [each for branch in machine.branches for each in branch.places]
    if len({place for place, _, _ in bound}) != len(bound):
        _refuse(correlation, "has a place twice")
    # Each place that is built has a state of its own: there are no more places than states.
    if not all(0 <= place < len(machine.names) for place, _, _ in bound):
        _refuse(correlation, "has a place with a number that none can have")
    by_state: dict[State, list[tuple[int, str]]] = {}
    for number, port, state in bound:
        by_state.setdefault(state, []).append((number, port))
    set_otherwise = machine.initial.union(*(each.target for each in machine.switches))
    if not set_otherwise.isdisjoint(by_state):
        _refuse(correlation, "has a place that is bound without an event")
    noted = {place: port for place, port, _ in bound}
    for transition in machine.transitions:
        place: int | None = None
        if isinstance(transition.effect, Bind):
            place = transition.effect.place
            if not isinstance(transition.input, int):
                _refuse(correlation, "notes an event where none is read")
            elif machine.atoms[transition.input] != PortAtom(noted[place]):
                _refuse(correlation, f"notes an event of another port than `{noted[place]}`")
        for state in transition.target & by_state.keys():
            if [each for each, _ in by_state[state]] != [place]:
                _refuse(correlation, "has a place that is bound without an event")


def _check_firing(machine: Machine, correlation: FilterCorrelation) -> None:
    """Refuses a branch that could fire again without an event, by changes of labels alone."""
    internal = [each for each in machine.transitions if each.input is None]
    followed = frozenset[State]().union(*(each.target for each in internal))
    switched = frozenset[State]().union(*(each.target for each in machine.switches))
    for transition in machine.transitions:
        if not isinstance(transition.effect, Fire):
            continue
        if transition.input is not None:
            _refuse(correlation, "has a branch that fires before all is read")
        gone = transition.clear - transition.target - followed - switched
        if any(states <= gone for states in transition.enabling):
            continue
        kept = frozenset(range(len(machine.names))) - transition.clear
        left = kept | transition.target | switched
        following = [each for each in internal if each is not transition]
        if _is_enabled(transition, _followed(left, following)):
            _refuse(correlation, "has a branch that fires for ever")


def _followed(active: frozenset[State], internal: list[Transition]) -> frozenset[State]:
    """The active states, and all states that internal transitions can set from them."""
    while True:
        new = [each.target for each in internal if _is_enabled(each, active)]
        more = active.union(*new)
        if more == active:
            return active
        active = more


def _is_enabled(transition: Transition, active: frozenset[State]) -> bool:
    return not any(states.isdisjoint(active) for states in transition.enabling)


# --- ECL ----------------------------------------------------------------------------------------


def _check_ecl(machine: Machine, correlation: EclCorrelation) -> None:
    parts = list(expressions_in(correlation.body))
    if machine.branches or machine.switches:
        _refuse(correlation, "has branches or labels, and is one of an ECL expression")
    asked: set[Expression] = {each.predicate for each in parts if isinstance(each, Holds)}
    for atom in machine.atoms:
        if isinstance(atom, PredicateAtom) and atom.predicate not in asked:
            _refuse(correlation, "asks a predicate that is not in its expression")
    emitted = {each.type for each in parts if isinstance(each, Push)}
    periods = {each.after.microseconds for each in parts if isinstance(each, Timeout)}
    timers: dict[State, int] = {}
    for transition in machine.transitions:
        effect, given = transition.effect, transition.input
        if isinstance(effect, Emit) and effect.type not in emitted:
            _refuse(correlation, f"puts out `{effect.type}`, which its expression does not")
        if isinstance(given, Timer) and (
            given.after not in periods or timers.setdefault(given.state, given.after) != given.after
        ):
            _refuse(correlation, "has a timeout that is not in its expression")
        if isinstance(given, Timer) and given.state not in transition.clear:
            _refuse(correlation, "has a timeout that stays due, and would fire for ever")
