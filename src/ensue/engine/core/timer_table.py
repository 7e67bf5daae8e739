"""The timers of a correlation, and the table of its machine with what it does to them.

A correlation has a timer for each timer port (`every`, `deadline`) and for each state of its
machine that is a timeout. Which timers run follows from the state of the table that a key is in;
an entry of the table says which are set anew, each to its own duration from that moment. The firing
of a port is a symbol of its own, and so is each set of timeouts that are due together.

Whether a predicate holds for the firing of a timer may depend on the time of the firing;
`why_not_in_columns` refuses rules with such a predicate, and rules with more timers than a word has
bits.
"""

from __future__ import annotations

import numpy as np

from ensue.engine.core.atoms import satisfies
from ensue.engine.core.effects import Entry
from ensue.engine.ports import Reading
from ensue.lang.expressions.names import names_in
from ensue.lang.syntax import Correlation, TimerPort
from ensue.machine.model import Machine, PredicateAtom, State, Timer

MOST_TIMERS = 62
"""The most timers that have room in one word as bits."""


class Timers:
    """Timer ports first, in their order; then timeouts. Masks have a bit for each."""

    def __init__(self, correlation: Correlation, machine: Machine) -> None:
        self.ports = [port for port in correlation.ports if isinstance(port, TimerPort)]
        found = [each.input for each in machine.transitions if isinstance(each.input, Timer)]
        self.timeouts = list(dict.fromkeys(found))
        durations = [port.period.microseconds for port in self.ports]
        durations += [timer.after for timer in self.timeouts]
        self.after = np.array(durations, np.int64)
        self._bit_of = {t.state: 1 << len(self.ports) + n for n, t in enumerate(self.timeouts)}
        self.port_mask = (1 << len(self.ports)) - 1
        kinds = [port.kind for port in self.ports]
        self.deadlines = sum(1 << n for n, kind in enumerate(kinds) if kind == "deadline")

    def __len__(self) -> int:
        return len(self.after)

    @property
    def alarms(self) -> int:
        """How many alarms there are to tell apart: of ports, and of sets of timeouts."""
        return len(self.ports) + (1 << len(self.timeouts))

    def running(self, active: frozenset[State]) -> int:
        """The timers that run in a state. An expression that is finished has none."""
        if not active:
            return 0
        return self.port_mask | sum(bit for state, bit in self._bit_of.items() if state in active)

    def set_anew(self, entry: Entry, begins: bool) -> int:
        mask = self.port_mask if begins else self.deadlines if entry.triggers else 0
        for timer in entry.started:
            mask |= self._bit_of[timer.state]
        return mask & self.running(entry.to.active)

    def states_of(self, mask: int) -> frozenset[State]:
        return frozenset(state for state, bit in self._bit_of.items() if mask & bit)

    def atoms_of(self, port: TimerPort, machine: Machine) -> frozenset[int]:
        """The atoms that the firing of a port satisfies, whenever it is."""
        firing = Reading(0, frozenset({port.name}))
        return frozenset(n for n, atom in enumerate(machine.atoms) if satisfies(firing, atom))


def why_not_in_columns(correlation: Correlation, machine: Machine) -> str | None:
    timers = Timers(correlation, machine)
    if len(timers) > MOST_TIMERS:
        return f"it has more than {MOST_TIMERS} timers"
    for atom in machine.atoms:
        if isinstance(atom, PredicateAtom) and timers.ports:
            names = names_in(atom.predicate)
            if any(parts[0].lower() == "time" for parts in names):
                return "a predicate asks for the time at which a timer fires"
    return None
