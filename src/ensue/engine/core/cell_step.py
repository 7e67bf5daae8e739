"""One step of one cell: through a letter, or through its next alarm.

A *cell* is what one rule holds under one key: its state, its slots, its timers and its registers,
side by side in one array of numbers (`core.cells`). In come a cell by its offset, the packed table
of its rule (`core.packed`), and a letter with its moment; out go the words of the move, and the
cell is in its next state. The step is inlined into drivers, which find the cells and write the
firings:

- `core.cell_drivers`: one rule over a column of events, and many rules over many events;
- `ensue.engine.step.many.kernels`: many rules over one event, where keys come and go.

Few rules are stepped event by event in Python instead (`core.instances.rows`).

A driver that lacks something (a move that has not been worked out, room for firings) stops and says
what it lacks; Python provides it and calls the driver again, from the same place. Offsets are
unsigned, so that no code asks whether they count from the end of an array. First come the arrays
that drivers take and fill.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import FAR, inlined
from ensue.engine.core.packed import (
    ALARMS,
    BASE,
    DUE,
    HEAD,
    LAST_READ,
    MOVE,
    NEXT_DUE,
    PORTS,
    TIMED,
    TIMERS,
    WIDTH,
    WINDOW,
)

DONE, LACKS_MOVE, LACKS_ROOM = 0, -1, -2
"""How a driver ended: at the end, at a move that has not been worked out, at a full array."""

NO_ROW = -1
"""The row of a firing that an alarm has caused."""


class CellArrays(NamedTuple):
    """The cells of all keys in one array, and how many numbers the cells of one key have.

    `nearest` has for each key a time before which none of its alarms is due, `earliest` has one for
    all keys. Both are empty where there are no timers.
    """

    flat: npt.NDArray[np.int64]
    stride: int
    nearest: npt.NDArray[np.int64]
    earliest: npt.NDArray[np.int64]


class WalkedEvents(NamedTuple):
    """Events of one rule: their symbols, times and keys, and how many events came before them."""

    symbols: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    before: int


class VisitedEvents(NamedTuple):
    """Events of many rules, and the order in which they are read.

    `combinations` has for each event which lists it is in, or -1 for none; `keys` has -1 for an
    event without a key; `before` is how many events came before them.
    """

    order: npt.NDArray[np.int64]
    combinations: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    before: int


class Reached(NamedTuple):
    """How far a driver has come: the place in the order, the visits done there, the firings."""

    step: int
    visits: int
    fired: int


class Visits(NamedTuple):
    """Which rules read an event, by the number of its combination, and by which letter."""

    begins: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int32]
    letters: npt.NDArray[np.uint8]


class FiringArrays(NamedTuple):
    """Firings: the row that caused each, or `NO_ROW`; its rule, its action, and what is bound.

    `when` has, where there are timers, the time of the trigger, the key's last event and the key.
    """

    rows: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    when: npt.NDArray[np.int64]


U0, U1, U2, U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
HALF, LOW, UNKNOWN = np.uint64(32), np.uint64(2**32 - 1), np.uint64(2**64 - 1)
"""A word is two halves; the first word of a move that has not been worked out is `UNKNOWN`."""

_HEAD, _MOVE = np.uint64(HEAD), np.uint64(MOVE)
_NEXT_DUE, _LAST_READ, _DUE = np.uint64(NEXT_DUE), np.uint64(LAST_READ), np.uint64(DUE)
_BASE, _WIDTH, _WINDOW, _TIMED = (np.uint64(each) for each in (BASE, WIDTH, WINDOW, TIMED))
_ALARMS, _PORTS, _TIMERS = np.uint64(ALARMS), np.uint64(PORTS), np.uint64(TIMERS)


class Cell(NamedTuple):
    """A cell: the array of all cells, and the offset of this one."""

    flat: npt.NDArray[np.int64]
    at: np.uint64


class PackedRule(NamedTuple):
    """The packed table of one rule: the words of all tables, and where its own words begin."""

    moves: npt.NDArray[np.uint64]
    halves: npt.NDArray[np.int32]
    more_from: npt.NDArray[np.int32]
    more_at: npt.NDArray[np.int32]
    base: np.uint64
    width: np.uint64
    window: int


class PackedMove(NamedTuple):
    """A move of a table: where it stands among the words, and its first two words."""

    entry: np.uint64
    first: np.uint64
    bound: np.uint64


class CellTimers(NamedTuple):
    """The timers of a cell: where their due times are, and what a rule says of them.

    `alarms` is the letter of the first alarm, `ports` the number of timer ports, `total` the number
    of all timers. `after` has for each rule how long each timer runs.
    """

    due_at: np.uint64
    alarms: int
    ports: int
    total: int
    after: npt.NDArray[np.int64]
    rule: np.uint64


@inlined
def rule_of(tables: Any, rule: Any) -> Any:
    """The packed table of a rule."""
    rules = tables.rules
    return PackedRule(
        tables.moves,
        tables.halves,
        tables.more_from,
        tables.more_at,
        np.uint64(rules[rule, _BASE]),
        np.uint64(rules[rule, _WIDTH]),
        rules[rule, _WINDOW],
    )


@inlined
def timers_of(facts: Any, after: Any, rule: Any, timed: Any) -> Any:
    """The timers of a cell whose timed part is at an offset."""
    return CellTimers(
        timed + _DUE,
        facts[rule, _ALARMS],
        facts[rule, _PORTS],
        facts[rule, _TIMERS],
        after,
        rule,
    )


@inlined
def running_in(rule: Any, state: Any) -> Any:
    """The timers that run in a state, as bits."""
    return np.int64(rule.moves[rule.base + state * rule.width + U3] >> HALF)


@inlined
def entry_of(rule: Any, state: Any, letter: Any) -> Any:
    """Where the move of a state by a letter stands among the words of tables."""
    return rule.base + state * rule.width + _HEAD + _MOVE * letter


@inlined
def inside(cell: Any, rule: Any, state: Any, edge: Any) -> Any:
    """The state of a cell without the registers whose times lie before the edge of its window."""
    flat, halves = cell.flat, rule.halves
    while True:
        # Which starts have left the window cannot be predicted, so no branch depends on it; that a
        # state has more than two can.
        row = (rule.base + state * rule.width) * U2
        gone = np.uint64(flat[cell.at + np.uint64(halves[row])] < edge)
        gone |= np.uint64(flat[cell.at + np.uint64(halves[row + U1])] < edge) << U1
        state = np.uint64(halves[row + U2 + gone])
        if halves[row + np.uint64(6)] == 0 or gone != U3:
            return state


@inlined
def step_cell(cell: Any, rule: Any, letter: Any, state: Any, moment: Any, reading: Any) -> Any:
    """Take a cell in a state through one letter. Returns the first word of the move, and its last.

    The first word is `UNKNOWN` where the move has not been worked out: then only the state is
    written. The last has the timers that the move sets, in its upper half.
    """
    entry = entry_of(rule, state, letter)
    first = rule.moves[entry]
    if first == UNKNOWN:
        cell.flat[cell.at] = np.int64(state)
        return first, U0
    move = PackedMove(entry, first, rule.moves[entry + U1])
    return first, take_move(cell, rule, move, moment, reading)


@inlined
def take_move(cell: Any, rule: Any, move: Any, moment: Any, reading: Any) -> Any:
    """Write what a move that is known does to a cell; returns the last word of the move."""
    flat, at, bound = cell.flat, cell.at, move.bound
    flat[at + (bound & LOW)] = reading
    # The test that a walk has made already: where nothing more is bound, the loop is empty.
    if (move.first | bound) >> HALF != U0:
        more = bound >> HALF
        for each in range(rule.more_from[more], rule.more_from[more + U1]):
            flat[at + np.uint64(rule.more_at[each])] = reading
    last = rule.moves[move.entry + U2]
    flat[at + (last & LOW)] = moment
    # The state is written last: what goes to no slot and no register went here.
    flat[at] = np.int64(move.first & LOW)
    return last


@inlined
def copy_slots(to: Any, count: Any, cell: Any, slots: Any) -> None:
    """Copy the slots of a cell to a firing."""
    for slot in range(slots):
        to[count, slot] = cell.flat[cell.at + U1 + np.uint64(slot)]


@inlined
def due_letter(cell: Any, timers: Any, running: Any, moment: Any) -> Any:
    """What is due in a cell at a time: its letter, and the timer port that it is of, or -1.

    Timer ports fire one after the other, and all timeouts together after them.
    """
    for number in range(timers.ports):
        if cell.flat[timers.due_at + np.uint64(number)] == moment:
            return np.uint64(timers.alarms + number), np.int64(number)
    together = np.int64(0)
    for number in range(timers.ports, timers.total):
        is_due = cell.flat[timers.due_at + np.uint64(number)] == moment
        together |= (np.int64(is_due) & (running >> number)) << (number - timers.ports)
    return np.uint64(timers.alarms + timers.ports + together), np.int64(-1)


@inlined
def set_timers(cell: Any, timers: Any, anew: Any, running: Any, moment: Any) -> Any:
    """Set some timers anew; returns when the first of the timers that run is due."""
    nearest = np.int64(FAR)
    for number in range(timers.total):
        at = timers.due_at + np.uint64(number)
        again = moment + timers.after[timers.rule, np.uint64(number)]
        due = again if anew >> number & 1 else cell.flat[at]
        cell.flat[at] = due
        nearest = min(nearest, due if running >> number & 1 else np.int64(FAR))
    return nearest


@inlined
def is_idle(moves: Any, entry: Any, state: Any) -> Any:
    """Whether a move leads nowhere, puts nothing out, and binds and sets nothing."""
    return (moves[entry] == state) & (moves[entry + U1] == U0) & (moves[entry + U2] == U0)


@inlined
def after_idle(
    cell: Any,
    rule: Any,
    state: Any,
    timers: Any,
    running: Any,
    port: Any,
    moment: Any,
    limit: Any,
) -> Any:
    """When a timer port fires next, after a firing that was idle, past all idle ones up to a limit.

    Firings stay idle as long as no start leaves the window and no other timer does something.
    """
    flat, moves = cell.flat, rule.moves
    period = timers.after[timers.rule, np.uint64(port)]
    due, until = moment + period, limit
    oldest = moves[rule.base + state * rule.width] & LOW
    if oldest != U0:
        until = min(until, flat[cell.at + oldest] + rule.window)
    for number in range(timers.total):
        if number != port and running >> number & 1:
            entry = entry_of(rule, state, np.uint64(timers.alarms + number))
            if number >= timers.ports or not is_idle(moves, entry, state):
                until = min(until, flat[timers.due_at + np.uint64(number)] - 1)
    if due <= until:
        due += ((until - due) // period + 1) * period
    return due


@inlined
def after_alarm(
    cell: Any,
    rule: Any,
    state: Any,
    timers: Any,
    running: Any,
    port: Any,
    moment: Any,
    limit: Any,
) -> None:
    """Set the timer port that has fired in a state to its next time."""
    at = timers.due_at + np.uint64(port)
    cell.flat[at] = moment + timers.after[timers.rule, np.uint64(port)]
    entry = entry_of(rule, state, np.uint64(timers.alarms + port))
    if is_idle(rule.moves, entry, state):
        cell.flat[at] = after_idle(cell, rule, state, timers, running, port, moment, limit)


@inlined
def take_timed(cell: Any, tables: Any, number: Any, letter: Any, now: Any, reading: Any) -> Any:
    """Take a cell with timers through its next alarm up to a time, or else through a letter.

    `number` is that of its rule. Returns the move, the letter, the moment, and whether it was an
    alarm.
    """
    flat, rule = cell.flat, rule_of(tables, number)
    timed = cell.at + np.uint64(tables.facts[number, _TIMED])
    timers = timers_of(tables.facts, tables.after, number, timed)
    before = flat[cell.at]
    due = flat[timed + _NEXT_DUE]
    # The timers of a cell that has not started mean nothing.
    is_alarm = (before != 0) & (due <= now)
    moment, port, value = now, np.int64(-1), reading
    if is_alarm:
        letter, port = due_letter(cell, timers, running_in(rule, np.uint64(before)), due)
        moment = value = due
    state = inside(cell, rule, np.uint64(before), moment - rule.window)
    move, last = step_cell(cell, rule, letter, state, moment, value)
    if move != UNKNOWN:
        if not is_alarm:
            flat[timed + _LAST_READ] = reading
        running = running_in(rule, move & LOW)
        if port >= 0:
            after_alarm(cell, rule, state, timers, running, port, moment, now)
        flat[timed + _NEXT_DUE] = set_timers(cell, timers, np.int64(last >> HALF), running, moment)
    return move, letter, moment, is_alarm
