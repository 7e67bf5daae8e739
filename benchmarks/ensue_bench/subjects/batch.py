"""The batch engine: from an Arrow table to a table of outputs, and its loops alone.

Beside it stands the least that any table engine must do: a compiled loop that looks up a state by
key and a next state by symbol, and counts. Both take turns on the same symbols and keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.input.intake import ROWS_AT_ONCE
from ensue.engine.batch.input.matching import Gathered
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue_bench.effort import Effort
from ensue_bench.pushing import matches_of, through_batch
from ensue_bench.report import Figure, cost, rate
from ensue_bench.timing import Work, rates, ratios, side_by_side
from ensue_bench.workload import UserSteps, leak, window_of

EVENTS_A_SECOND = 10_000_000
KERNEL_EVENTS_A_SECOND = 100_000_000
TIMES_WITH_WINDOW = 2


def measure(effort: Effort) -> Iterator[Figure]:
    pa.set_cpu_count(1)
    for keys, has_aims in ((effort.size(10_000, 50), True), (effort.size(1_000_000, 500), False)):
        steps = UserSteps(effort.size(5_000_000, 5000), keys)
        yield from _tables(effort, steps, has_aims)
        yield from _loops(effort, steps, has_aims)


def _tables(effort: Effort, steps: UserSteps, has_aims: bool) -> Iterator[Figure]:
    table, within = steps.table(), window_of(steps.keys)
    works = {"plain": through_batch(leak(), table), "window": through_batch(leak(within), table)}
    found = side_by_side(works, effort.times())
    keys = f"{steps.keys:,} keys"
    outputs = matches_of(leak(), table)
    plain = rates(len(steps), found["plain"])
    aim = EVENTS_A_SECOND if has_aims else None
    yield rate(f"table to table, {keys}", plain, aim, f"{outputs:,} outputs")
    yield rate(f"table to table, {keys}, `within`", rates(len(steps), found["window"]), note=within)
    yield cost(
        f"price of `within`, {keys}",
        "times",
        ratios(found["window"], found["plain"]),
        TIMES_WITH_WINDOW if has_aims else None,
    )


def _loops(effort: Effort, steps: UserSteps, has_aims: bool) -> Iterator[Figure]:
    """The loops over the machine, on symbols and key numbers, as the engine calls them."""
    wanted = steps.types < 4
    bits = (1 << steps.types[wanted]).astype(np.uint8)
    users = steps.users[wanted].astype(np.int32)
    times = steps.times[wanted]
    count, keys = len(bits), steps.keys
    table, symbols = _plain_table(), steps.types[wanted].astype(np.int32)
    works = {
        "plain walk": Work(
            lambda states: plain_walk(symbols, users, table, states),
            lambda: np.zeros(keys, np.int32),
        )
    }
    for name, within in (("kernel", ""), ("kernel, `within`", window_of(keys))):
        works[name] = Work(partial(_read_all, _walk(leak(within)), bits, users, times, keys))
    found = side_by_side(works, effort.times())
    for name, taken in found.items():
        aim = KERNEL_EVENTS_A_SECOND if name == "kernel" and has_aims else None
        yield rate(f"{name} alone, {keys:,} keys", rates(count, taken), aim)
    yield cost(f"kernel to plain walk, {keys:,} keys", "times",
               ratios(found["kernel"], found["plain walk"]))  # fmt: skip
    yield cost(
        f"kernel: price of `within`, {keys:,} keys",
        "times",
        ratios(found["kernel, `within`"], found["kernel"]),
        TIMES_WITH_WINDOW if has_aims else None,
    )


def _read_all(
    rule: ColumnCorrelation, bits: Any, users: Any, times: Any, keys: int, _: None
) -> None:
    """In pieces of the engine's size; the table is filled and the keys are known from round one."""
    for first in range(0, len(bits), ROWS_AT_ONCE):
        piece = slice(first, first + ROWS_AT_ONCE)
        rows = np.arange(len(bits[piece]))
        found = Gathered([], rows, bits[piece], users[piece], times[piece], None, rows)
        rule.walk_events(found, 0, keys)


def _walk(text: str) -> ColumnCorrelation:
    """The loop of a fresh engine."""
    running = BatchEngine(ensue.parse(text).checked).correlations["Leak"]
    assert isinstance(running, ColumnCorrelation)
    return running


def _plain_table() -> npt.NDArray[np.int32]:
    """`a ; b ; c` reset by `d`: states by symbols; the fourth state is the trigger."""
    return np.array([[1, 0, 0, 0], [1, 2, 1, 0], [2, 2, 3, 0], [1, 0, 0, 0]], np.int32)


@njit(cache=True, nogil=True)
def plain_walk(symbols: Any, users: Any, table: Any, states: Any) -> int:
    """How often the last state is entered."""
    found = 0
    for at in range(len(symbols)):
        state = table[states[users[at]], symbols[at]]
        states[users[at]] = state
        found += state == 3
    return found
