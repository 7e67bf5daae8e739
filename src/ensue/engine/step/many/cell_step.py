"""One step of one cell: the functions that every compiled loop over cells is made of.

A cell is what one rule holds under one key: consecutive words of one array of 64-bit integers,
addressed by the offset of the first. They are

    state | registers | places | next due, start, due times of the timers | words of the driver

The state is a number in the rule's packed table (`packed_table`), and 0 before the rule has
started. A register holds the start of some state of the machine; a place holds the number of the
event that is bound in it, or the time at which a timer port fired. `next due` is the earliest due
time of the timers that run in the state, and `start` orders instances of one rule. Rules without a
window have no registers, rules without timers none of the words for timers.

A driver finds the cell, calls `window_state`, looks up the move, makes sure that there is room for
what follows, and calls `write_cell`; rules with timers then need `set_timers`, and an alarm first
asks `due_letter` which timer it is. No function here checks for room or for a missing move.

Offsets are added as signed integers and cast once: an unsigned index spares the test for negative
ones, and adding signed to unsigned integers would give a float.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, inlined

BASE, WIDTH, WINDOW, FIRST_ALARM, TIMER_PORTS, TIMERS, AFTER = range(7)
"""The columns of a rule: where its table begins in the array of moves, how long a row of it is, the
length of its window, the letter of its first alarm, how many timer ports and how many timers it
has, and from `AFTER` on how long each timer runs."""

HEAD, RUNNING = 8, 7
"""The head of a row: the two oldest registers (0 for none), the state with both of them inside the
window, without the first, without the second and without both, whether there are more registers,
and which timers run, as bits. Then come the moves, one for each letter."""

MOVE, ACTION, WRITES, SETS = 4, 1, 2, 3
"""A move: the next state (-1 while it is unknown), the action, the register that the present time
is written to and the first place that is bound, and the timers that are set anew and all other
places that are bound."""

PLACE_SHIFT, LOW_BITS = 8, 255
"""`WRITES` has the register in its low bits (0 for none) and the place, counted from 1, above (0
for none). `SETS` has the timers in its low bits, and a bit for each other place above."""

NEXT_DUE, START, DUE = 0, 1, 2
"""The words of a cell for timers, from where they begin."""

_U1, _U2, _U6 = np.uint64(1), np.uint64(2), np.uint64(6)


@inlined
def window_state(
    cells: Any, cell: Any, moves: Any, base: Any, width: Any, state: Any, edge: Any
) -> Any:
    """The state of a cell without the registers whose times lie before the edge of the window."""
    while True:
        # Which registers have left the window cannot be predicted, so there is no branch on it.
        row = np.uint64(base + state * width)
        gone = np.int64(cells[np.uint64(cell + moves[row])] < edge)
        gone |= np.int64(cells[np.uint64(cell + moves[row + _U1])] < edge) << 1
        state = np.int64(moves[row + _U2 + np.uint64(gone)])
        if moves[row + _U6] == 0 or gone != 3:
            return state


@inlined
def write_cell(
    cells: Any, cell: Any, places_at: Any, moves: Any, move: Any, bound: Any, now: Any
) -> None:
    """Take a move: write the present time, what is bound, and the next state.

    `bound` is the number of an event or the time of a firing. What goes to no register or to no
    place is written to the word of the state, which is written last.
    """
    writes = np.int64(moves[np.uint64(move + WRITES)])
    place = writes >> PLACE_SHIFT
    cells[np.uint64(cell + (writes & LOW_BITS))] = now
    cells[np.uint64(cell + (places_at + place - 1 if place != 0 else 0))] = bound
    others = np.int64(moves[np.uint64(move + SETS)]) >> PLACE_SHIFT
    at = cell + places_at
    while others != 0:
        if others & 1:
            cells[np.uint64(at)] = bound
        others >>= 1
        at += 1
    cells[np.uint64(cell)] = moves[np.uint64(move)]


@inlined
def due_letter(cells: Any, timed_at: Any, rules: Any, rule: Any, running: Any, now: Any) -> Any:
    """What is due at a time: its letter, and the timer port that it is of, or -1.

    Timer ports fire one after the other, and then all timeouts that are due together.
    """
    first, ports = rules[rule, FIRST_ALARM], rules[rule, TIMER_PORTS]
    due_at = timed_at + DUE
    for port in range(ports):
        if cells[np.uint64(due_at + port)] == now:
            return first + port, np.int64(port)
    together = np.int64(0)
    for timer in range(ports, rules[rule, TIMERS]):
        is_due = np.int64(cells[np.uint64(due_at + timer)] == now)
        together |= (is_due & (running >> timer)) << (timer - ports)
    return first + ports + together, np.int64(-1)


@inlined
def set_timers(
    cells: Any, timed_at: Any, rules: Any, rule: Any, anew: Any, running: Any, now: Any
) -> Any:
    """Set some timers anew; returns, and notes, when the first of those that run is due."""
    due_at = timed_at + DUE
    nearest = np.int64(FAR)
    for timer in range(rules[rule, TIMERS]):
        at = np.uint64(due_at + timer)
        due = now + rules[rule, AFTER + timer] if anew >> timer & 1 else cells[at]
        cells[at] = due
        nearest = min(nearest, due if running >> timer & 1 else np.int64(FAR))
    cells[np.uint64(timed_at + NEXT_DUE)] = nearest
    return nearest
