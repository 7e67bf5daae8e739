"""Which outputs of many firings are made at once: those of one statement.

In come actions by number; out go bundles. The same statement may be reached with different ports
bound, by rules of different shapes or by branches of one. As long as every port is bound at the
same places, that is one bundle, of which some outputs lack a port: making them apart would cost as
much again, and they would have to be put in order after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensue.engine.batch.input.column import Mask
from ensue.engine.batch.many.group_tables import is_timer
from ensue.engine.core.effects import Action, Shape


@dataclass(slots=True)
class Bundle:
    """One statement of several actions; in each of them it comes after `offset` other outputs."""

    what: Any
    labels: str
    offset: int
    places: dict[str, tuple[int, ...]]
    """Of every port that is bound in any of the actions."""
    bound_in: dict[int, frozenset[str]] = field(default_factory=dict)
    """For each action the ports that are bound in it."""

    def takes(self, shape: Shape) -> bool:
        """Whether outputs of that shape can be among these.

        Where some lack a port, all have a bound event: another stands in for the one they lack.
        """
        if not self.bound_in or dict(shape.bound) == self.places:
            return True
        return (
            any(not is_timer(port) for port in self.places)
            and any(not is_timer(port) for port, _ in shape.bound)
            and all(self.places.get(port, places) == places for port, places in shape.bound)
        )

    def add(self, action: int, shape: Shape) -> None:
        self.places |= dict(shape.bound)
        self.bound_in[action] = frozenset(port for port, _ in shape.bound)

    def without(self, port: str) -> Mask | None:
        """For each action whether it lacks a port; None if all have it."""
        lacking = [each for each, ports in self.bound_in.items() if port not in ports]
        if not lacking:
            return None
        lacks = np.zeros(1 + max(self.bound_in), np.bool_)
        lacks[lacking] = True
        return lacks

    def lacks(self, ports: Sequence[str]) -> Mask:
        """Whether an action lacks a port, by action and port; without rows if none lacks any."""
        every = [self.without(port) for port in ports]
        none = np.zeros(1 + max(self.bound_in), np.bool_)
        if all(each is None for each in every):
            return np.zeros((0, len(ports)), np.bool_)
        return np.column_stack([none if each is None else each for each in every])


def bundles_of(table: Sequence[Action], occurring: Sequence[int]) -> list[Bundle]:
    """The bundles of the actions that occur, each output of them in one."""
    found: dict[tuple[int, str, Any], list[Bundle]] = {}
    for action in occurring:
        for offset, push in enumerate(table[action]):
            alike = found.setdefault((offset, push.shape.labels, push.what), [])
            bundle = next((each for each in alike if each.takes(push.shape)), None)
            if bundle is None:
                bundle = Bundle(push.what, push.shape.labels, offset, {})
                alike.append(bundle)
            bundle.add(action, push.shape)
    return [bundle for alike in found.values() for bundle in alike]
