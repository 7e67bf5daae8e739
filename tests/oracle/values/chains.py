"""Random rules that are chains of groups, with alternatives among them: `(l1:a | b) ; (c + d)`.

In comes a number; out goes a scenario of the oracle of values. The usual generator draws trees of
all kinds, of which few are chains without aggregates: engines have a form of their own for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from .generator import Drawing
from .model import (
    Aggregate,
    Clauses,
    Const,
    Label,
    Node,
    Pair,
    Place,
    Port,
    Timer,
    Times,
    Value,
)


class ChainDrawing(Drawing):
    """One scenario whose rules are chains."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.timers = 0.0

    def node(self, ports: Sequence[Port | Timer], depth: int, labels: bool = True) -> Node:
        del depth
        found = self._labelled(self._group(ports, labels), labels)
        for _ in range(self.random.choice([0, 1, 1, 2])):
            found = Pair(";", found, self._labelled(self._group(ports, labels), labels))
        return self._labelled(found, labels)

    def _group(self, ports: Sequence[Port | Timer], labels: bool) -> Node:
        if self.chance(0.1):
            return Times(self._group(ports, labels=False), self.random.choice([1, 2]))
        sign: Literal["|", "+"] | None = self.random.choice(["|", "|", "|", "+", None])
        place = Place(self.random.choice(ports).name)
        found = self._labelled(place, labels)
        if sign is not None:
            for _ in range(self.random.choice([1, 1, 2])):
                other = self._labelled(Place(self.random.choice(ports).name), labels)
                found = self._labelled(Pair(sign, found, other), labels)
        return found

    def _labelled(self, node: Node, labels: bool) -> Node:
        if not labels or self.labels >= 5 or not self.chance(0.2):
            return node
        self.labels += 1
        return Label(f"l{self.labels}", node)

    def clauses(self, ports: Sequence[Port | Timer], asked: Sequence[Port | Timer]) -> Clauses:
        found = super().clauses(ports, asked)
        bind = self.random.choice([None, "last", "latest", "latest"])
        # Without any clause over several events a rule runs on a machine.
        return replace(found, bind=bind, keep=found.keep or "last")

    def simple_value(self, ports: Sequence[Port], kind: str) -> Value:
        for _ in range(20):
            found = super().simple_value(ports, kind)
            if not isinstance(found, Aggregate):
                return found
        return self.const(kind) if kind != "boolean" else Const(True)
