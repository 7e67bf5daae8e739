"""The driver of one rule over a column of events.

In come the symbols, times and keys of events, the packed table of the rule and its cells; the cells
are moved, and firings are written. The loop stops where Python has to do something first: work out
a move, or make room for firings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import prefetch, uncounted
from ensue.engine.core.packed import SLOTS
from ensue.engine.core.stepping.step import (
    HALF,
    U0,
    U1,
    UNKNOWN,
    Cell,
    PackedMove,
    copy_slots,
    entry_of,
    inside,
    rule_of,
    take_move,
)

_AHEAD = 16
"""How many events ahead a cell is prefetched: the cells of many keys are in no cache."""


def _walking(windowed: bool) -> Any:
    @uncounted
    def walk(events: Any, first: int, tables: Any, cells: Any, fired: Any, count: int) -> Any:
        """Take each event through the cell of its key. Returns how far it came, and the firings.

        Stops before an event whose move is not known, or whose firing has no room.
        """
        symbols, times, keys = events.symbols, events.times, events.keys
        flat, stride = cells.flat, np.uint64(cells.stride)
        rule, slots = rule_of(tables, U0), tables.facts[0, SLOTS]
        moves, room, last = rule.moves, fired.rows.size, symbols.size - 1
        moment = np.int64(0)
        for at in range(first, symbols.size):
            prefetch(flat, np.uint64(keys[min(at + _AHEAD, last)]) * stride)
            cell = Cell(flat, np.uint64(keys[at]) * stride)
            state = np.uint64(flat[cell.at])
            if windowed:
                moment = times[at]
                state = inside(cell, rule, state, moment - rule.window)
            entry = entry_of(rule, state, np.uint64(symbols[at]))
            move = PackedMove(entry, moves[entry], moves[entry + U1])
            # Firings, moves that are not known and moves that bind several places are rare: one
            # test tells that an event is none of these.
            is_rare = (move.first | move.bound) >> HALF != U0
            if is_rare and (move.first == UNKNOWN or count == room):
                flat[cell.at] = np.int64(state)
                return at, count
            take_move(cell, rule, move, moment, events.before + at, windowed)
            if is_rare and move.first >> HALF != U0:
                fired.rows[count] = at
                fired.actions[count] = np.int64(move.first >> HALF)
                copy_slots(fired.slots, count, cell, slots)
                count += 1
        return symbols.size, count

    return walk


walk_table = _walking(False)
walk_window = _walking(True)
