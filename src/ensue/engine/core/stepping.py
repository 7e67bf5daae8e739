"""The step of a cell, and the compiled loops that drive it.

A *cell* is what one rule holds under one key: its state, its places, its timers and its registers,
side by side in one array of numbers (`cells`). `step_cell` takes a cell through one letter by the
packed table of its rule (`packed`); it is inlined into three drivers:

- `walk`: one rule over a column of events;
- `visit`: many rules over many events, each event through the cells of the rules that want it,
  after the alarms of those cells that come before it;
- `advance`: no event, but a clock that has moved on: all alarms up to a time.

A driver stops at what it cannot go on with and says what it lacks; Python mends that and calls it
again from the same place. Numbers are unsigned where they address memory, so that no code asks
whether they count from the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import FAR, inlined, uncounted
from ensue.engine.core.packed import (
    ALARMS,
    BASE,
    CELL,
    DUE,
    HEAD,
    LAST_READ,
    MOVE,
    NEXT_DUE,
    PORTS,
    SLOTS,
    TIMED,
    TIMERS,
    WIDTH,
    WINDOW,
)

DONE, LACKS_MOVE, LACKS_ROOM = 0, 1, 2
NO_ROW = -1
"""The row of a firing that an alarm has caused."""

_HEAD, _MOVE = np.uint64(HEAD), np.uint64(MOVE)
_U0, _U1, _U2, _U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_HALF, _LOW, _UNKNOWN = np.uint64(32), np.uint64(2**32 - 1), np.uint64(2**64 - 1)
_NEXT_DUE, _LAST_READ, _DUE = np.uint64(NEXT_DUE), np.uint64(LAST_READ), np.uint64(DUE)
_BASE, _WIDTH, _WINDOW = np.uint64(BASE), np.uint64(WIDTH), np.uint64(WINDOW)
_CELL, _SLOTS, _TIMED = np.uint64(CELL), np.uint64(SLOTS), np.uint64(TIMED)
_ALARMS, _PORTS, _TIMERS = np.uint64(ALARMS), np.uint64(PORTS), np.uint64(TIMERS)


class Fired(NamedTuple):
    """Firings: the row that caused each, or `NO_ROW`; its rule, its action, and what is bound.

    `when` has, where there are timers, the time of the trigger, the key's last event and the key.
    """

    rows: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    when: npt.NDArray[np.int64]


class CellArrays(NamedTuple):
    """All cells, and how many numbers those of one key have.

    `nearest` has for each key a time before which none of its alarms is due, `earliest` has one for
    all keys. Both are empty where there are no timers.
    """

    flat: npt.NDArray[np.int64]
    stride: int
    nearest: npt.NDArray[np.int64]
    earliest: npt.NDArray[np.int64]


class Visits(NamedTuple):
    """Which rules read an event, by the number of its combination, and what it is to each."""

    begins: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int32]
    letters: npt.NDArray[np.uint8]


@inlined
def inside(flat: Any, cell: Any, halves: Any, base: Any, width: Any, state: Any, edge: Any) -> Any:
    """The state of a cell without the registers whose times lie before the edge of its window."""
    while True:
        # Which starts have left the window cannot be predicted, so no branch depends on it; that a
        # state has more than two can.
        row = (base + state * width) * _U2
        gone = np.uint64(flat[cell + np.uint64(halves[row])] < edge)
        gone |= np.uint64(flat[cell + np.uint64(halves[row + _U1])] < edge) << _U1
        state = np.uint64(halves[row + _U2 + gone])
        if halves[row + np.uint64(6)] == 0 or gone != _U3:
            return state


@inlined
def step_cell(
    flat: Any,
    cell: Any,
    moves: Any,
    more_from: Any,
    more_at: Any,
    base: Any,
    width: Any,
    letter: Any,
    state: Any,
    moment: Any,
    reading: Any,
    windowed: Any,
) -> Any:
    """Take a cell in a state through one letter. Returns the first word of the move, and its last.

    The first word is `_UNKNOWN` where the move has not been worked out: then only the state is
    written. The last has the timers that the move sets, in its upper half.
    """
    entry = base + state * width + _HEAD + _MOVE * letter
    move = moves[entry]
    if move == _UNKNOWN:
        flat[cell] = np.int64(state)
        return move, _U0
    bound, last = moves[entry + _U1], _U0
    flat[cell + (bound & _LOW)] = reading
    if bound >> _HALF != _U0:
        more = bound >> _HALF
        for each in range(more_from[more], more_from[more + _U1]):
            flat[cell + np.uint64(more_at[each])] = reading
    if windowed:
        last = moves[entry + _U2]
        flat[cell + (last & _LOW)] = moment
    # The state is written last: what goes to no slot and no register went here.
    flat[cell] = np.int64(move & _LOW)
    return move, last


@inlined
def copy_slots(to: Any, count: Any, flat: Any, cell: Any, slots: Any) -> None:
    """Write down what is in the slots of a cell."""
    for slot in range(slots):
        to[count, slot] = flat[cell + _U1 + np.uint64(slot)]


def _walking(windowed: bool) -> Any:
    @uncounted
    def walk(
        symbols: Any,
        times: Any,
        keys: Any,
        first: int,
        tables: Any,
        cells: Any,
        readings_before: int,
        fired: Any,
        count: int,
    ) -> Any:
        """Take each event through the cell of its key. Returns how far it came, and the firings.

        Stops before an event whose move is not known, or that may have no room for its firing.
        """
        flat, stride = cells.flat, np.uint64(cells.stride)
        moves, more_from, more_at = tables.moves, tables.more_from, tables.more_at
        halves = tables.halves
        rows, actions, bound = fired.rows, fired.actions, fired.slots
        base, width = np.uint64(tables.rules[0, BASE]), np.uint64(tables.rules[0, WIDTH])
        window, slots = tables.rules[0, WINDOW], tables.facts[0, SLOTS]
        moment, room = np.int64(0), rows.size
        for at in range(first, symbols.size):
            if count == room:
                return at, count
            cell = np.uint64(keys[at]) * stride
            state = np.uint64(flat[cell])
            if windowed:
                moment = times[at]
                state = inside(flat, cell, halves, base, width, state, moment - window)
            move, _ = step_cell(
                flat, cell, moves, more_from, more_at, base, width,
                np.uint64(symbols[at]), state, moment, readings_before + at, windowed,
            )  # fmt: skip
            if move >> _HALF != _U0:
                if move == _UNKNOWN:
                    return at, count
                rows[count] = at
                actions[count] = np.int64(move >> _HALF)
                copy_slots(bound, count, flat, cell, slots)
                count += 1
        return symbols.size, count

    return walk


walk_table = _walking(False)
walk_window = _walking(True)


@inlined
def due_letter(
    flat: Any, due_at: Any, alarms: Any, ports: Any, count: Any, running: Any, moment: Any
) -> Any:
    """What is due in a cell at a time: its letter, and the timer port that it is of, or -1.

    Timer ports fire one after the other, and all timeouts together after them.
    """
    for number in range(ports):
        if flat[due_at + np.uint64(number)] == moment:
            return np.uint64(alarms + number), np.int64(number)
    together = np.int64(0)
    for number in range(ports, count):
        is_due = flat[due_at + np.uint64(number)] == moment
        together |= (np.int64(is_due) & (running >> number)) << (number - ports)
    return np.uint64(alarms + ports + together), np.int64(-1)


@inlined
def set_timers(
    flat: Any, due_at: Any, after: Any, rule: Any, count: Any, anew: Any, running: Any, moment: Any
) -> Any:
    """Set some timers anew; returns when the first of those that run is due."""
    nearest = np.int64(FAR)
    for number in range(count):
        each = np.uint64(number)
        due = moment + after[rule, each] if anew >> number & 1 else flat[due_at + each]
        flat[due_at + each] = due
        nearest = min(nearest, due if running >> number & 1 else np.int64(FAR))
    return nearest


@inlined
def is_idle(moves: Any, entry: Any, state: Any) -> Any:
    """Whether a move leads nowhere, puts nothing out, and binds and sets nothing."""
    return (moves[entry] == state) & (moves[entry + _U1] == _U0) & (moves[entry + _U2] == _U0)


@inlined
def after_idle(
    flat: Any,
    cell: Any,
    moves: Any,
    row: Any,
    state: Any,
    due_at: Any,
    alarms: Any,
    ports: Any,
    count: Any,
    running: Any,
    window: Any,
    port: Any,
    period: Any,
    moment: Any,
    limit: Any,
) -> Any:
    """When a timer port fires next whose firing was idle: past all firings that are, up to a time.

    They are as long as no start leaves the window and no other timer does something. `row` is where
    the row of the state begins.
    """
    due, until = moment + period, limit
    oldest = moves[row] & _LOW
    if oldest != _U0:
        until = min(until, flat[cell + oldest] + window)
    for number in range(count):
        if number != port and running >> number & 1:
            entry = row + _HEAD + _MOVE * np.uint64(alarms + number)
            if number >= ports or not is_idle(moves, entry, state):
                until = min(until, flat[due_at + np.uint64(number)] - 1)
    if due <= until:
        due += ((until - due) // period + 1) * period
    return due


@inlined
def take_timed(
    flat: Any,
    cell: Any,
    moves: Any,
    halves: Any,
    more_from: Any,
    more_at: Any,
    rules: Any,
    facts: Any,
    after: Any,
    rule: Any,
    letter: Any,
    now: Any,
    reading: Any,
) -> Any:
    """Take a cell with timers through its next alarm up to a time, or else through a letter.

    Returns the move, the letter, the moment, and whether it was an alarm.
    """
    base, width = np.uint64(rules[rule, _BASE]), np.uint64(rules[rule, _WIDTH])
    timed, timers = cell + np.uint64(facts[rule, _TIMED]), facts[rule, _TIMERS]
    due_at = timed + _DUE
    before = flat[cell]
    due = flat[timed + _NEXT_DUE]
    # The timers of a cell that has not started mean nothing.
    is_alarm = (before != 0) & (due <= now)
    moment, port, value = now, np.int64(-1), reading
    if is_alarm:
        running = np.int64(moves[base + np.uint64(before) * width + _U3] >> _HALF)
        letter, port = due_letter(
            flat, due_at, facts[rule, _ALARMS], facts[rule, _PORTS], timers, running, due
        )
        moment = value = due
    edge = moment - rules[rule, _WINDOW]
    state = inside(flat, cell, halves, base, width, np.uint64(before), edge)
    move, last = step_cell(
        flat, cell, moves, more_from, more_at, base, width, letter, state,
        moment, value, True,
    )  # fmt: skip
    if move != _UNKNOWN:
        if not is_alarm:
            flat[timed + _LAST_READ] = reading
        running = np.int64(moves[base + (move & _LOW) * width + _U3] >> _HALF)
        if port >= 0:
            period, row = after[rule, np.uint64(port)], base + state * width
            flat[due_at + np.uint64(port)] = moment + period
            if is_idle(moves, row + _HEAD + _MOVE * letter, state):
                flat[due_at + np.uint64(port)] = after_idle(
                    flat, cell, moves, row, state, due_at, facts[rule, _ALARMS],
                    facts[rule, _PORTS], timers, running, rules[rule, _WINDOW], port, period,
                    moment, now,
                )  # fmt: skip
        flat[timed + _NEXT_DUE] = set_timers(
            flat, due_at, after, rule, timers, np.int64(last >> _HALF), running, moment
        )
    return move, letter, moment, is_alarm


def _visiting(windowed: bool) -> Any:
    @uncounted
    def visit(
        order: Any,
        combinations: Any,
        keys: Any,
        times: Any,
        first: int,
        first_visit: int,
        visits: Any,
        tables: Any,
        cells: Any,
        readings_before: int,
        asked: Any,
        fired: Any,
        count: int,
    ) -> Any:
        """Take each event through the cells of the rules that read it, in an order of the events.

        Returns the event's place in the order, how many of its visits are done, what is lacking,
        and the firings. `asked` says of a move that is lacking its rule, state and letter.
        """
        flat, stride = cells.flat, np.uint64(cells.stride)
        moves, more_from, more_at = tables.moves, tables.more_from, tables.more_at
        halves, rules, facts = tables.halves, tables.rules, tables.facts
        begins, visited, letters = visits.begins, visits.rules, visits.letters
        rows, fired_rules, actions, bound = fired.rows, fired.rules, fired.actions, fired.slots
        for step in range(first, order.size):
            at = order[step]
            if combinations[at] < 0 or keys[at] < 0:
                continue
            combination, of_key = np.uint64(combinations[at]), np.uint64(keys[at]) * stride
            begin, end = begins[combination], begins[combination + _U1]
            done = first_visit if step == first else 0
            if count + end - begin - done > rows.size:
                return step, done, LACKS_ROOM, count
            now, reading = times[at], readings_before + at
            fired_before, number = count, begin + done
            while number < end:
                rule = np.uint64(visited[number])
                cell = of_key + np.uint64(rules[rule, _CELL])
                base, width = np.uint64(rules[rule, _BASE]), np.uint64(rules[rule, _WIDTH])
                state = np.uint64(flat[cell])
                if windowed:
                    edge = now - rules[rule, _WINDOW]
                    state = inside(flat, cell, halves, base, width, state, edge)
                move, _ = step_cell(
                    flat, cell, moves, more_from, more_at, base, width,
                    np.uint64(letters[number]), state, now, reading, windowed,
                )  # fmt: skip
                if move == _UNKNOWN:
                    asked[0], asked[1], asked[2] = rule, flat[cell], letters[number]
                    break
                # Which rules fire cannot be predicted: the next writes over what has not fired.
                fired_rules[np.uint64(count)] = rule
                actions[np.uint64(count)] = np.int64(move >> _HALF)
                count += move >> _HALF != _U0
                number += 1
            for each in range(fired_before, count):
                rule = np.uint64(fired_rules[each])
                rows[each] = at
                cell = of_key + np.uint64(rules[rule, _CELL])
                copy_slots(bound, each, flat, cell, facts[rule, _SLOTS])
            if number < end:
                return step, number - begin, LACKS_MOVE, count
        return order.size, 0, DONE, count

    return visit


visit_table = _visiting(False)
visit_window = _visiting(True)


@uncounted
def visit_timed(
    order: Any,
    combinations: Any,
    keys: Any,
    times: Any,
    first: int,
    first_visit: int,
    visits: Any,
    tables: Any,
    cells: Any,
    readings_before: int,
    asked: Any,
    fired: Any,
    count: int,
) -> Any:
    """`visit` for rules with timers: a rule fires its alarms up to an event, then reads the event.

    Alarms that have fired are not due any more, so a visit can be begun again in its middle.
    """
    flat, stride = cells.flat, np.uint64(cells.stride)
    nearest, earliest = cells.nearest, cells.earliest
    moves, more_from, more_at = tables.moves, tables.more_from, tables.more_at
    halves, rules, after = tables.halves, tables.rules, tables.after
    facts = tables.facts
    begins, visited, letters = visits.begins, visits.rules, visits.letters
    rows, fired_rules, actions, bound = fired.rows, fired.rules, fired.actions, fired.slots
    when = fired.when
    for step in range(first, order.size):
        at = order[step]
        if combinations[at] < 0 or keys[at] < 0:
            continue
        combination, key = np.uint64(combinations[at]), np.uint64(keys[at])
        begin, end = begins[combination], begins[combination + _U1]
        done = first_visit if step == first else 0
        now, soonest = times[at], nearest[key]
        for number in range(begin + done, end):
            rule = np.uint64(visited[number])
            cell = key * stride + np.uint64(rules[rule, _CELL])
            timed = cell + np.uint64(facts[rule, _TIMED])
            is_alarm = True
            while is_alarm:
                if count == rows.size:
                    return step, number - begin, LACKS_ROOM, count
                move, letter, moment, is_alarm = take_timed(
                    flat, cell, moves, halves, more_from, more_at, rules, facts, after, rule,
                    np.uint64(letters[number]), now, readings_before + at,
                )  # fmt: skip
                if move == _UNKNOWN:
                    asked[0], asked[1], asked[2] = rule, flat[cell], letter
                    return step, number - begin, LACKS_MOVE, count
                rows[count] = NO_ROW if is_alarm else at
                fired_rules[count] = rule
                actions[count] = np.int64(move >> _HALF)
                if move >> _HALF != _U0:
                    when[count, 0] = moment
                    when[count, 1] = flat[timed + _LAST_READ] if is_alarm else 0
                    when[count, 2] = key
                    copy_slots(bound, count, flat, cell, facts[rule, _SLOTS])
                    count += 1
            soonest = min(soonest, flat[timed + _NEXT_DUE])
            nearest[key] = soonest
        earliest[0] = min(earliest[0], soonest)
    return order.size, 0, DONE, count


@uncounted
def advance(
    clock: int,
    first: int,
    key_count: int,
    tables: Any,
    cells: Any,
    asked: Any,
    fired: Any,
    count: int,
) -> Any:
    """Fire all alarms up to a time, of every key from the first on.

    Returns the key that it has come to, what is lacking there, and the firings.
    """
    flat, stride = cells.flat, np.uint64(cells.stride)
    nearest, earliest = cells.nearest, cells.earliest
    moves, more_from, more_at = tables.moves, tables.more_from, tables.more_at
    halves, rules, after = tables.halves, tables.rules, tables.after
    facts = tables.facts
    rows, fired_rules, actions, bound = fired.rows, fired.rules, fired.actions, fired.slots
    when = fired.when
    if first == 0:
        earliest[0] = FAR
    for key in range(first, key_count):
        if nearest[key] > clock:
            earliest[0] = min(earliest[0], nearest[key])
            continue
        next_of_key = np.int64(FAR)
        for each in range(rules.shape[0]):
            rule = np.uint64(each)
            cell = np.uint64(key) * stride + np.uint64(rules[rule, _CELL])
            if facts[rule, _TIMED] == 0 or flat[cell] == 0:
                continue
            timed = cell + np.uint64(facts[rule, _TIMED])
            while flat[timed + _NEXT_DUE] <= clock:
                if count == rows.size:
                    return key, LACKS_ROOM, count
                move, letter, moment, _ = take_timed(
                    flat, cell, moves, halves, more_from, more_at, rules, facts, after, rule,
                    _U0, clock, np.int64(0),
                )  # fmt: skip
                if move == _UNKNOWN:
                    asked[0], asked[1], asked[2] = rule, flat[cell], letter
                    return key, LACKS_MOVE, count
                if move >> _HALF != _U0:
                    rows[count] = NO_ROW
                    fired_rules[count] = rule
                    actions[count] = np.int64(move >> _HALF)
                    when[count, 0] = moment
                    when[count, 1] = flat[timed + _LAST_READ]
                    when[count, 2] = key
                    copy_slots(bound, count, flat, cell, facts[rule, _SLOTS])
                    count += 1
            next_of_key = min(next_of_key, flat[timed + _NEXT_DUE])
        nearest[key] = next_of_key
        earliest[0] = min(earliest[0], next_of_key)
    return key_count, DONE, count


@uncounted
def drop_expired(edge: int, rule: int, key_count: int, tables: Any, cells: Any) -> None:
    """Bring the cells of a rule to their states without what lies before the edge of its window."""
    halves = tables.halves
    base, width = np.uint64(tables.rules[rule, BASE]), np.uint64(tables.rules[rule, WIDTH])
    for key in range(key_count):
        cell = np.uint64(key) * np.uint64(cells.stride) + np.uint64(tables.rules[rule, CELL])
        state = np.uint64(cells.flat[cell])
        cells.flat[cell] = np.int64(inside(cells.flat, cell, halves, base, width, state, edge))
