"""Sizes at which the engines change how they work, and never what they put out.

Compiled loops pay from some number of rules on, tables grow up to some number of states, keys
whose time has passed are looked for now and then, and rows go through in parts of some thousands.
Each such size stands here, with what it was measured by. Engines ask for `sizes()` when they are
made or when they decide; nothing else may depend on them.

`with small_sizes(seed):` makes some of them as small as they can be, or all without a seed, so that
a stream of a hundred events goes through every change of way: that is how tests and hunts reach
them, without a word of what the sizes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from random import Random


@dataclass(frozen=True)
class Sizes:
    """What the engines use; the defaults are what was measured to be quickest."""

    rules_in_cells: int = 16
    """The fewest rules of a key for which cells are quicker than stepping each rule by itself.

    A call of the compiled loop costs some two microseconds, a rule that is stepped by itself half a
    microsecond: of eight rules `a ; b` that half of all events concern it is quicker to step each,
    of sixteen it is quicker to visit their cells. Compiled loops also take half a second to load.
    """
    table_states: int = 20_000
    """The most states of a table; with more, a rule goes on without one."""
    free_moves: int = 1024
    """The moves of a table that may be worked out before they are counted against events."""
    free_moves_of_cells: int = 8192
    """The same for a table that many rules of the step engine share."""

    keys_before_a_sweep: int = 1024
    """Keys that the step engine holds before it looks for those whose time has passed."""
    keys_before_a_sweep_in_columns: int = 1 << 18
    keys_before_a_timed_sweep: int = 1 << 16
    """The same for the batch engine, which counts them anew only when some time has passed."""
    rows_before_clearing: int = 1 << 18
    """Events that rules relate, before those that no key remembers are let go."""
    rows_of_a_table_before_clearing: int = 1_000_000
    """The same where a rule remembers only what it has bound."""

    first_rows: int = 1 << 12
    fewest_rows: int = 1 << 7
    most_rows: int = 1 << 18
    """How many rows go through at once: more as long as little fires and tables are full."""
    firings_at_once: int = 1 << 17
    alarms_at_once: int = 1024
    triggers_at_once: int = 1 << 10
    values_at_first: int = 1 << 10
    """Room for what a compiled loop puts out before it stops to have it made larger."""
    positions_at_once: int = 1 << 22
    """Places in the order of outputs that are held for rows which go through together."""
    most_combinations: int = 1 << 14
    fewest_combinations: int = 16
    """Combinations of ports that an event may match and whose rules are known."""
    numbers_in_cells: int = 1 << 27
    """Past so many numbers in the cells of all keys and rules, most are of rules that are idle."""


_SMALLEST = Sizes(
    rules_in_cells=1,
    table_states=2,
    free_moves=6,
    free_moves_of_cells=10,
    keys_before_a_sweep=4,
    keys_before_a_sweep_in_columns=4,
    keys_before_a_timed_sweep=4,
    rows_before_clearing=0,
    rows_of_a_table_before_clearing=0,
    first_rows=4,
    fewest_rows=1,
    most_rows=16,
    firings_at_once=1,
    alarms_at_once=7,
    triggers_at_once=1,
    values_at_first=32,
    positions_at_once=80,
    most_combinations=2,
    fewest_combinations=2,
    numbers_in_cells=30,
)

_in_use = Sizes()


def sizes() -> Sizes:
    """The sizes in use."""
    return _in_use


@contextmanager
def small_sizes(seed: int | None = None) -> Iterator[None]:
    """Every size at its smallest, or with a seed about half of them; for the whole process."""
    global _in_use
    before, draw = _in_use, Random(seed)
    smallest = asdict(_SMALLEST)
    if seed is not None:
        smallest = {name: size for name, size in smallest.items() if draw.random() < 0.5}
    _in_use = replace(before, **smallest)
    try:
        yield
    finally:
        _in_use = before
