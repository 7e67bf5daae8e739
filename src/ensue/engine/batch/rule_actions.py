"""What many rules put out, numbered over all of them.

In come the actions of rules, each of which calls its ports by names of its own; out go numbers.
Ports go by their numbers, so that statements of different rules that say the same are one, and each
has one place: that of the last event that it wants (`last_events`). Of a timer the place holds a
time and not an event, and its name says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.engine.core.effects import Action, Push, Sent, Shape
from ensue.engine.renaming import numbered_ports, with_ports
from ensue.lang.syntax import Correlation, PushNew, TimerPort

_TIMER = "timer "


class RuleActions:
    """`table` has every action by its number; 0 puts out nothing."""

    def __init__(self, correlations: Sequence[Correlation]) -> None:
        self.table: list[Action] = [()]
        self._number_of: dict[Action, int] = {(): 0}
        self._ports = [numbered_ports(each) | _numbered_timers(each) for each in correlations]
        self._places = [
            {name: place for place, name in enumerate(ports.values())} for ports in self._ports
        ]

    def number(self, rule: int, action: Action) -> int:
        said = tuple(self._by_number(rule, push) for push in action)
        if said not in self._number_of:
            self._number_of[said] = len(self.table)
            self.table.append(said)
        return self._number_of[said]

    def _by_number(self, rule: int, push: Push) -> Push:
        names, places = self._ports[rule], self._places[rule]
        ports = sorted(names[port] for port, _ in push.shape.bound)
        shape = Shape(push.shape.labels, tuple((port, (places[port],)) for port in ports))
        what: Any = push.what
        if isinstance(what, Sent):
            what = Sent(names[what.port])
        elif isinstance(what, PushNew):
            what = with_ports(what, names)
        return Push(shape, what)

    def port_number(self, rule: int, port: str) -> int:
        return self._places[rule][self._ports[rule][port]]


def _numbered_timers(correlation: Correlation) -> dict[str, str]:
    return {
        port.name: f"{_TIMER}{number}"
        for number, port in enumerate(correlation.ports)
        if isinstance(port, TimerPort)
    }


def is_timer(port: str) -> bool:
    """Whether a port that goes by its number is a timer."""
    return port.startswith(_TIMER)
