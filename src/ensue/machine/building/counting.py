"""Binary counters in a machine: the number of rounds that are over, two states for each digit.

The steps of a counter are the ways in which a binary number grows by one: the lowest zero becomes a
one, and the ones below it become zeros. So `x{100000}` and `repeat(100000) { x }` have some forty
states, and not a hundred thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.machine.building.builder import MachineBuilder
from ensue.machine.model import State


@dataclass(frozen=True, slots=True)
class CounterStep:
    """The step to the next number: states that must be active, are cleared, and are set."""

    enabling: tuple[frozenset[State], ...]
    clear: frozenset[State]
    target: frozenset[State]


class Counter:
    """Counts from 0 to `rounds - 1`, the last round. Exactly one of its transitions is enabled."""

    def __init__(self, builder: MachineBuilder, name: str, rounds: int) -> None:
        width = (rounds - 1).bit_length()
        digits = [
            (builder.state(f"{name}: no {1 << place}"), builder.state(f"{name}: {1 << place}"))
            for place in range(width)
        ]
        self.states = frozenset(state for digit in digits for state in digit)
        self.first = frozenset(zero for zero, _ in digits)
        self.last = tuple(
            frozenset({digit[(rounds - 1) >> place & 1]}) for place, digit in enumerate(digits)
        )
        """The enabling sets of the last round. Its transition stands before those of the steps."""
        self.steps = tuple(_step(digits[: place + 1]) for place in range(width))


def _step(digits: list[tuple[State, State]]) -> CounterStep:
    """A carry: the highest digit becomes one, and all lower digits, which are ones, become zero."""
    *below, (zero, one) = digits
    gone = frozenset({zero, *(one_below for _, one_below in below)})
    come = frozenset({one, *(zero_below for zero_below, _ in below)})
    return CounterStep(tuple(frozenset({state}) for state in gone), gone, come)
