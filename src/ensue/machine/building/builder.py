"""The builder of a machine: it numbers states and atoms, and collects transitions in their order.

`from_filter` and `from_ecl` say which states and transitions there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, refuse_states
from ensue.machine.model import Atom, Effect, State, Timer, Transition


class MachineBuilder:
    """The parts of a machine so far. Raises `LimitError` where a machine has too many states."""

    def __init__(self, most_states: int = DEFAULT_MACHINE_LIMITS.states) -> None:
        self._most_states = most_states
        self.names: list[str] = []
        self.transitions: list[Transition] = []
        self.atoms: dict[Atom, int] = {}

    def state(self, name: str) -> State:
        """A new state."""
        self.names.append(name)
        if len(self.names) > self._most_states:
            raise refuse_states(len(self.names), self._most_states)
        return len(self.names) - 1

    def atom(self, atom: Atom) -> int:
        """The number of an atom; equal atoms have one number."""
        return self.atoms.setdefault(atom, len(self.atoms))

    def add(
        self,
        enabling: Iterable[Iterable[State]],
        *,
        input: int | Timer | None = None,  # noqa: A002
        clear: Iterable[State] = (),
        target: Iterable[State] = (),
        effect: Effect | None = None,
    ) -> None:
        """Add a transition behind all others."""
        sets = tuple(frozenset(each) for each in enabling)
        self.transitions.append(
            Transition(sets, input, frozenset(clear), frozenset(target), effect)
        )
