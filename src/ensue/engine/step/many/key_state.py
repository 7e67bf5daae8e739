"""What a group holds under one key: the cells of its rules, bound events, and counts of outputs.

Loops know keys and events by number. Here the numbers of a key's cells are kept, the events that
these cells may bind, and how many outputs each rule has put out at the present time, for their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.ports import key_text
from ensue.events.event import Event

FEWEST_EVENTS = 32
"""How many events a key keeps before it pays to look for events that are no longer bound."""

Firing = tuple[int, ...]
"""The number of a rule, its action, and what is bound in each place (`kernels`)."""

Counts = dict[int, int]
"""How much each rule has put out, by its number."""


class KeyState:
    """A key of a group. `where` has the number of each rule's cell, 0 for a rule at its start.

    `events` has, by their numbers, events that may be bound in a cell. `emitted` counts what rules
    have put out at `time`, by trigger; the latest firings are counted only when they are asked for.
    """

    __slots__ = (
        "_latest",
        "emitted",
        "events",
        "key",
        "most_events",
        "number",
        "text",
        "time",
        "where",
    )

    def __init__(self, key: FastKey, number: int, rules: int) -> None:
        self.key = key
        self.number = number
        self.where = np.zeros(rules, np.uint32)
        self.text = key_text(whole_key(key))
        self.events: dict[int, Event] = {}
        self.most_events = FEWEST_EVENTS
        self.time: int | None = None
        self.emitted: dict[str, Counts] = {}
        self._latest: tuple[str, Sequence[int], Sequence[int]] | None = None

    def keep(self, number: int, event: Event) -> None:
        """Keep an event that came from elsewhere: of some, only the id is known."""
        known = self.events.get(number)
        if known is None or known.type == "":
            self.events[number] = event

    def forget_unbound(self, is_bound: Callable[[Any, Any], Any]) -> None:
        """Keep only the events that are bound in some cell."""
        numbers = np.sort(np.fromiter(self.events, np.int64, len(self.events)))
        kept = numbers[is_bound(self.where, numbers)].tolist()
        events = self.events
        self.events = {number: events[number] for number in kept}
        self.most_events = max(FEWEST_EVENTS, 4 * len(kept))

    # --- counts of outputs ------------------------------------------------------------------------

    def begin(self, time: int) -> None:
        """Count outputs from here on at another time."""
        self.time = time
        self._latest = None
        self.emitted.clear()

    def counts(self, time: int, trigger: str, count_of: Callable[[int], int]) -> Counts | None:
        """What rules have put out at a trigger so far; None if that is nothing."""
        if self.time != time:
            self.begin(time)
            return None
        self.settle_counts(count_of)
        return self.emitted.get(trigger)

    def count(
        self,
        trigger: str,
        rules: Sequence[int],
        actions: Sequence[int],
        count_of: Callable[[int], int],
    ) -> None:
        """These rules have put out what their actions say; `count_of` says how much that is."""
        if self._latest is not None:
            self.settle_counts(count_of)
        self._latest = trigger, rules, actions

    def settle_counts(self, count_of: Callable[[int], int]) -> None:
        """Count the latest firings, which so far are only noted."""
        if self._latest is not None:
            trigger, rules, actions = self._latest
            self._latest = None
            counts = self.emitted.setdefault(trigger, {})
            for rule, action in zip(rules, actions, strict=True):
                counts[rule] = counts.get(rule, 0) + count_of(action)

    def emitted_by(self, rule: int) -> dict[str, int]:
        """How much one rule has put out at `time`, by trigger; counts are settled."""
        return {trigger: n for trigger, by in self.emitted.items() if (n := by.get(rule, 0))}

    def renumber(self, numbers: Any, rules: int) -> None:
        """Give rules other numbers, by their old numbers; -1 for rules that are gone."""
        before = self.where
        self.where = np.zeros(rules, np.uint32)
        stays = numbers >= 0
        self.where[numbers[stays]] = before[stays]
        self.emitted = {
            trigger: {int(numbers[rule]): n for rule, n in by.items() if numbers[rule] >= 0}
            for trigger, by in self.emitted.items()
        }
