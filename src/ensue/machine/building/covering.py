"""Places of a port that are superfluous, since an earlier place of the port covers them.

In come, for each state that stands before a part of a filter, the ports that are read on the way to
that state and the ports that are read from it on. Out goes whether a place would note an event that
an earlier place of the same port does not. The part before the earlier place is complete whenever
the later place reads, and was complete first. So the earlier place has every event that the later
place would have, for `bind first` and for `bind last`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ensue.lang.syntax import Both, Either, Filter, Labelled, PortRef, Then, Timeout, Times
from ensue.machine.model import State

Read = tuple[str, tuple[State, ...]]
"""A port that is read, and the labels that must be alive for it."""

_NONE: frozenset[Read] = frozenset()


class Cover:
    """The places of one branch. `alive` has the state that says that a label is alive."""

    def __init__(self, alive: Mapping[str, State], origin: State, branch: Filter) -> None:
        self._alive = alive
        self._covered: dict[State, frozenset[Read]] = {origin: _NONE}
        self._read_at: dict[State, frozenset[Read]] = {origin: self.reads(branch, ())}

    def has(self, port: str, before: State, alive: tuple[State, ...]) -> bool:
        """Whether some place of the port notes every event that a place after `before` would."""
        covered = self._covered.get(before, _NONE)
        return (port, ()) in covered or (port, alive) in covered

    def after(self, before: State) -> frozenset[Read]:
        """What is covered for the parts that follow a part after `before`."""
        return self._covered.get(before, _NONE) | self._read_at.get(before, _NONE)

    def note(
        self, before: State, covered: frozenset[Read], part: Filter, alive: tuple[State, ...]
    ) -> None:
        """Add a part that stands after `before`, where `covered` holds already."""
        self._covered[before] = self._covered.get(before, _NONE) | covered
        self._read_at[before] = self._read_at.get(before, _NONE) | self.reads(part, alive)

    def reads(self, x: Filter, alive: tuple[State, ...]) -> frozenset[Read]:
        """The ports that are read as soon as what stands before `x` is complete."""
        match x:
            case PortRef(name):
                return frozenset({(name, alive)})
            case Labelled(label, body):
                inner = (*alive, self._alive[label]) if label in self._alive else alive
                return self.reads(body, inner)
            case Both(parts) | Either(parts):
                return _NONE.union(*(self.reads(part, alive) for part in parts))
            case Then(parts):
                return self.reads(parts[0], alive)
            case Times(body, _):
                return self.reads(body, alive)
            case Timeout():
                return _NONE
