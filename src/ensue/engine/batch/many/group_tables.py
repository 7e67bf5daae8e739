"""The actions of many rules, numbered over all of them.

In come the actions of tables, each of which calls its ports by names of its own; out go numbers.
Ports go by their numbers, so that statements of different rules that say the same are one. A slot
of a timer port holds a time and not a reading, and the name of the port says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.engine.batch.output.remembered import TIMER_PORT
from ensue.engine.core.effects import Action, Push, Sent, Shape
from ensue.engine.core.packed import PackedTables
from ensue.engine.core.renaming import numbered_ports, with_ports
from ensue.engine.core.rule_table import RuleTable
from ensue.lang.syntax import Correlation, PushNew, TimerPort


class GroupTables(PackedTables):
    """Tables of many rules, whose actions have one numbering; `alike` has a rule of each shape."""

    def __init__(
        self,
        tables: Sequence[RuleTable],
        shape_of: Sequence[int],
        windows: Sequence[int | None],
        durations: Sequence[Sequence[int]],
        event_ports: Sequence[int],
        alike: Sequence[Correlation],
    ) -> None:
        self.actions: list[Action] = [()]
        """Every action by its number; 0 puts out nothing."""
        self._number_of: dict[Action, int] = {(): 0}
        self._numbers: list[dict[int, int]] = [{0: 0} for _ in tables]
        self._names = [numbered_ports(each) | _numbered_timers(each) for each in alike]
        super().__init__(tables, shape_of, windows, durations, event_ports)

    def _action(self, shape: int, action: int) -> int:
        numbers = self._numbers[shape]
        if action not in numbers:
            table = self.tables[shape]
            said = tuple(self._by_number(shape, push) for push in table.actions[action])
            if said not in self._number_of:
                self._number_of[said] = len(self.actions)
                self.actions.append(said)
            numbers[action] = self._number_of[said]
        return numbers[action]

    def _by_number(self, shape: int, push: Push) -> Push:
        names, slot_of = self._names[shape], self.tables[shape].slot_of
        bound = sorted(
            (names[port], tuple(slot_of[place] for place in places))
            for port, places in push.shape.bound
        )
        what: Any = push.what
        if isinstance(what, Sent):
            what = Sent(names[what.port])
        elif isinstance(what, PushNew):
            what = with_ports(what, names)
        return Push(Shape(push.shape.labels, tuple(bound)), what)


def _numbered_timers(correlation: Correlation) -> dict[str, str]:
    return {
        port.name: f"{TIMER_PORT}{number}"
        for number, port in enumerate(correlation.ports)
        if isinstance(port, TimerPort)
    }
