"""The driver of one rule over a column of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import uncounted
from ensue.engine.core.packed import SLOTS
from ensue.engine.core.stepping.step import (
    HALF,
    U0,
    UNKNOWN,
    Cell,
    copy_slots,
    inside,
    rule_of,
    step_cell,
)


def _walking(windowed: bool) -> Any:
    @uncounted
    def walk(events: Any, first: int, tables: Any, cells: Any, fired: Any, count: int) -> Any:
        """Take each event through the cell of its key. Returns how far it came, and the firings.

        Stops before an event whose move is not known, or that may have no room for its firing.
        """
        symbols, times, keys = events.symbols, events.times, events.keys
        flat, stride = cells.flat, np.uint64(cells.stride)
        rule, slots = rule_of(tables, U0), tables.facts[0, SLOTS]
        moment = np.int64(0)
        for at in range(first, symbols.size):
            if count == fired.rows.size:
                return at, count
            cell = Cell(flat, np.uint64(keys[at]) * stride)
            state = np.uint64(flat[cell.at])
            if windowed:
                moment = times[at]
                state = inside(cell, rule, state, moment - rule.window)
            move, _ = step_cell(
                cell, rule, np.uint64(symbols[at]), state, moment, events.before + at, windowed
            )
            if move >> HALF != U0:
                if move == UNKNOWN:
                    return at, count
                fired.rows[count] = at
                fired.actions[count] = np.int64(move >> HALF)
                copy_slots(fired.slots, count, cell, slots)
                count += 1
        return symbols.size, count

    return walk


walk_table = _walking(False)
walk_window = _walking(True)
