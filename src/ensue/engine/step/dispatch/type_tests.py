"""The tests that ports ask of events of one type: each has a bit, however many ports ask it.

In come ports that take the type; out goes, for each, the mask of the tests that must hold for it.
How the tests are put to an event is written out in `routines`; what follows from the answers stands
in `plans`.
"""

from __future__ import annotations

from typing import Any

from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.syntax import EventPort


class TypeTests:
    def __init__(self, name: str, types: TypeSystem) -> None:
        self.name = name
        self.attributes = types.attributes(name)
        self.sources: dict[str, int] = {}
        self.predicates: dict[Expression, int] = {}
        self._tests = 0

    def needed(self, port: EventPort) -> int:
        """The tests that must hold for a port, as a mask."""
        needed = 0
        if port.source is not None:
            needed |= self._bit(self.sources, port.source)
        if port.where is not None:
            needed |= self.holds(port.where)
        return needed

    def holds(self, predicate: Expression) -> int:
        """The bit of a predicate."""
        return self._bit(self.predicates, predicate)

    def _bit(self, known: dict[Any, int], what: Any) -> int:
        if what not in known:
            known[what] = 1 << self._tests
            self._tests += 1
        return known[what]
