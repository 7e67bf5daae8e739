"""The compiled loops in which an event visits the cells of the rules that want it.

Arrays in, what fired out; what a loop cannot go on with is said, mended by `cell_groups`, and the
loop goes on from the same visit. What the arrays mean stands with `cell_tables` and `cell_groups`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import compiled

LACKS_A_MOVE, LACKS_A_CELL, LACKS_A_REGISTER = -1, -2, -3

NEXT, COUNT, RULE, STATE, EVENTS = 0, 1, 2, 3, 4
"""What `status` says: the visit to go on with, what has fired before it, where a move is lacking,
and how many events there have been."""

_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_FOUR, _EIGHT, _LETTER = np.uint64(4), np.uint64(8), np.uint64(255)


@compiled
def visit(
    where: Any,
    cells: Any,
    visits: Any,
    rules: Any,
    moves: Any,
    now: int,
    fired: Any,
    status: Any,
) -> Any:
    """Take an event through the cells of a key; returns how many rules have fired.

    `visits` has rules, each with a letter in its lowest byte. A rule that stands at its start has
    no cell; the first cell is nobody's, and knows which are free.
    """
    width = cells.shape[1]
    count = status[COUNT]
    for each in range(status[NEXT], visits.size):
        rule = np.uint64(visits[each]) >> _EIGHT
        letter = np.uint64(visits[each]) & _LETTER
        base, row_width = rules[rule, _ZERO], rules[rule, _ONE]
        cell = np.uint64(where[rule])
        state = np.int64(0)
        if cell != _ZERO:
            edge = now - rules[rule, _TWO]
            state = cells[cell, _ZERO]
            while True:
                row = np.uint64(base + state * row_width)
                oldest = np.uint64(moves[row])
                if oldest == _ZERO or cells[cell, oldest] >= edge:
                    break
                state = np.int64(moves[row + _ONE])
        move = np.uint64(base + state * row_width) + _TWO + _FOUR * letter
        following = moves[move]
        if following < 0:
            if cell != _ZERO:
                cells[cell, _ZERO] = state
            status[NEXT], status[COUNT], status[RULE], status[STATE] = each, count, rule, state
            return LACKS_A_MOVE
        if following == 0:
            if cell != _ZERO:
                cells[cell, _ZERO] = cells[_ZERO, _ZERO]
                cells[_ZERO, _ZERO] = cell
                where[rule] = 0
        else:
            register = np.uint64(moves[move + _TWO])
            if register >= width:
                status[NEXT], status[COUNT] = each, count
                return LACKS_A_REGISTER
            if cell == _ZERO:
                cell = np.uint64(cells[_ZERO, _ZERO])
                if cell != _ZERO:
                    cells[_ZERO, _ZERO] = cells[cell, _ZERO]
                else:
                    cell = np.uint64(cells[_ZERO, _ONE])
                    if cell == cells.shape[0]:
                        status[NEXT], status[COUNT] = each, count
                        return LACKS_A_CELL
                    cells[_ZERO, _ONE] += 1
                where[rule] = cell
            # What goes to no register is written over by the state.
            cells[cell, register] = now
            cells[cell, _ZERO] = following
        action = moves[move + _ONE]
        if action != 0:
            fired[count, 0] = rule
            fired[count, 1] = action
            count += 1
    status[NEXT] = status[COUNT] = 0
    status[EVENTS] += 1
    return count


@compiled
def let_go(where: Any, cells: Any, rules: Any, moves: Any, now: int) -> int:
    """Free the cells of which all has left its window; returns how many are left."""
    left = 0
    for rule in range(where.size):
        cell = where[rule]
        if cell == 0:
            continue
        base, row_width, edge = rules[rule, 0], rules[rule, 1], now - rules[rule, 2]
        state = cells[cell, 0]
        while True:
            row = base + state * row_width
            oldest = moves[row]
            if oldest == 0 or cells[cell, oldest] >= edge:
                break
            state = np.int64(moves[row + 1])
        if state == 0:
            cells[cell, 0] = cells[0, 0]
            cells[0, 0] = cell
            where[rule] = 0
        else:
            cells[cell, 0] = state
            left += 1
    return left
