"""Limits of machines and their tables, by name.

The limits of a text (`nesting`, `ports`, `repetition` and others) are in `ensue.lang.limits` and
are checked when it is read. The limits here are checked when a machine is built or runs. A machine
with more than `states` is refused. Past a limit of its table nothing is refused: the table grows no
more, and the machine is stepped.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.errors import LimitError


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """`table_marks` bounds the active states of all states of a table together."""

    states: int = 500_000
    table_states: int = 10_000
    table_moves: int = 100_000
    table_marks: int = 1_000_000


DEFAULT_MACHINE_LIMITS = MachineLimits()


def refuse_states(given: int, allowed: int) -> LimitError:
    return LimitError(
        "states",
        given,
        allowed,
        "states of the machine of a correlation",
        "use smaller counts, leave out the window, or split the correlation into several",
    )
