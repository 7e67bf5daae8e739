"""The compiled loops that drive the step of a cell (`cell_step`) over events, and over a clock.

- A *walk* takes a column of events through the cells of one rule. In come the symbols, times and
  keys of the events, and the packed table of the rule.
- *Visits* take each event through the cells of the rules that want it, one rule after the other.
  Where rules have timers, an alarm waits until an event visits its cell, or until `advance` fires
  all alarms up to a time.

Loops move cells and write firings. A loop stops where Python has to provide something first: a move
of a table, or room for firings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.cell_step import (
    DONE,
    HALF,
    LACKS_MOVE,
    LACKS_ROOM,
    NO_ROW,
    U0,
    U1,
    UNKNOWN,
    Cell,
    PackedMove,
    copy_slots,
    entry_of,
    inside,
    rule_of,
    step_cell,
    take_move,
    take_timed,
)
from ensue.engine.core.jit import FAR, prefetch, uncounted
from ensue.engine.core.packed import CELL, LAST_READ, NEXT_DUE, SLOTS, TIMED

_CELL, _SLOTS, _TIMED = np.uint64(CELL), np.uint64(SLOTS), np.uint64(TIMED)
_NEXT_DUE, _LAST_READ = np.uint64(NEXT_DUE), np.uint64(LAST_READ)


@uncounted
def visit(
    events: Any, reached: Any, visits: Any, tables: Any, cells: Any, asked: Any, fired: Any
) -> Any:
    """Take each event through the cells of the rules that read it, in an order of the events.

    Returns the event's place in the order, how many of its visits are done, what is lacking,
    and the firings. `asked` says of a move that is lacking its rule, state and letter.
    """
    flat, stride = cells.flat, np.uint64(cells.stride)
    first, first_visit, count = reached
    order, keys = events.order, events.keys
    for step in range(first, order.size):
        at = order[step]
        if events.combinations[at] < 0 or keys[at] < 0:
            continue
        combination, of_key = np.uint64(events.combinations[at]), np.uint64(keys[at]) * stride
        begin, end = visits.begins[combination], visits.begins[combination + U1]
        done = first_visit if step == first else 0
        if count + end - begin - done > fired.rows.size:
            return step, done, LACKS_ROOM, count
        now, reading = events.times[at], events.before + at
        fired_before, number = count, begin + done
        while number < end:
            visited = np.uint64(visits.rules[number])
            rule = rule_of(tables, visited)
            cell = Cell(flat, of_key + np.uint64(tables.rules[visited, _CELL]))
            state = inside(cell, rule, np.uint64(flat[cell.at]), now - rule.window)
            letter = np.uint64(visits.letters[number])
            move, _ = step_cell(cell, rule, letter, state, now, reading)
            if move == UNKNOWN:
                asked[0], asked[1], asked[2] = visited, flat[cell.at], letter
                break
            # Which rules fire cannot be predicted: the next writes over what has not fired.
            fired.rules[np.uint64(count)] = visited
            fired.actions[np.uint64(count)] = np.int64(move >> HALF)
            count += move >> HALF != U0
            number += 1
        for each in range(fired_before, count):
            visited = np.uint64(fired.rules[each])
            fired.rows[each] = at
            cell = Cell(flat, of_key + np.uint64(tables.rules[visited, _CELL]))
            copy_slots(fired.slots, each, cell, tables.facts[visited, _SLOTS])
        if number < end:
            return step, number - begin, LACKS_MOVE, count
    return order.size, 0, DONE, count


@uncounted
def visit_timed(
    events: Any, reached: Any, visits: Any, tables: Any, cells: Any, asked: Any, fired: Any
) -> Any:
    """`visit` for rules with timers: a rule fires its alarms up to an event, then reads the event.

    Alarms that have fired are not due any more, so a visit can be taken up again in its middle.
    """
    flat, stride = cells.flat, np.uint64(cells.stride)
    nearest, earliest = cells.nearest, cells.earliest
    first, first_visit, count = reached
    order, keys = events.order, events.keys
    for step in range(first, order.size):
        at = order[step]
        if events.combinations[at] < 0 or keys[at] < 0:
            continue
        combination, key = np.uint64(events.combinations[at]), np.uint64(keys[at])
        begin, end = visits.begins[combination], visits.begins[combination + U1]
        done = first_visit if step == first else 0
        now, soonest = events.times[at], nearest[key]
        for number in range(begin + done, end):
            rule = np.uint64(visits.rules[number])
            cell = Cell(flat, key * stride + np.uint64(tables.rules[rule, _CELL]))
            timed = cell.at + np.uint64(tables.facts[rule, _TIMED])
            is_alarm = True
            while is_alarm:
                if count == fired.rows.size:
                    return step, number - begin, LACKS_ROOM, count
                move, letter, moment, is_alarm = take_timed(
                    cell, tables, rule, np.uint64(visits.letters[number]), now, events.before + at
                )
                if move == UNKNOWN:
                    asked[0], asked[1], asked[2] = rule, flat[cell.at], letter
                    return step, number - begin, LACKS_MOVE, count
                fired.rows[count] = NO_ROW if is_alarm else at
                fired.rules[count] = rule
                fired.actions[count] = np.int64(move >> HALF)
                if move >> HALF != U0:
                    fired.when[count, 0] = moment
                    fired.when[count, 1] = flat[timed + _LAST_READ] if is_alarm else 0
                    fired.when[count, 2] = key
                    copy_slots(fired.slots, count, cell, tables.facts[rule, _SLOTS])
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
    rules, facts = tables.rules, tables.facts
    if first == 0:
        earliest[0] = FAR
    for key in range(first, key_count):
        if nearest[key] > clock:
            earliest[0] = min(earliest[0], nearest[key])
            continue
        next_of_key = np.int64(FAR)
        for each in range(rules.shape[0]):
            rule = np.uint64(each)
            cell = Cell(flat, np.uint64(key) * stride + np.uint64(rules[rule, _CELL]))
            if facts[rule, _TIMED] == 0 or flat[cell.at] == 0:
                continue
            timed = cell.at + np.uint64(facts[rule, _TIMED])
            while flat[timed + _NEXT_DUE] <= clock:
                if count == fired.rows.size:
                    return key, LACKS_ROOM, count
                move, letter, moment, _ = take_timed(cell, tables, rule, U0, clock, np.int64(0))
                if move == UNKNOWN:
                    asked[0], asked[1], asked[2] = rule, flat[cell.at], letter
                    return key, LACKS_MOVE, count
                if move >> HALF != U0:
                    fired.rows[count] = NO_ROW
                    fired.rules[count] = rule
                    fired.actions[count] = np.int64(move >> HALF)
                    fired.when[count, 0] = moment
                    fired.when[count, 1] = flat[timed + _LAST_READ]
                    fired.when[count, 2] = key
                    copy_slots(fired.slots, count, cell, facts[rule, _SLOTS])
                    count += 1
            next_of_key = min(next_of_key, flat[timed + _NEXT_DUE])
        nearest[key] = next_of_key
        earliest[0] = min(earliest[0], next_of_key)
    return key_count, DONE, count


@uncounted
def drop_expired(edge: int, number: int, key_count: int, tables: Any, cells: Any) -> None:
    """Bring the cells of a rule to their states without what lies before the edge of its window."""
    rule, flat = rule_of(tables, np.uint64(number)), cells.flat
    for key in range(key_count):
        of_key = np.uint64(key) * np.uint64(cells.stride)
        cell = Cell(flat, of_key + np.uint64(tables.rules[number, CELL]))
        flat[cell.at] = np.int64(inside(cell, rule, np.uint64(flat[cell.at]), edge))


_AHEAD = 16
"""How many events ahead a cell is prefetched: the cells of many keys are in no cache."""


@uncounted
def walk(events: Any, first: int, tables: Any, cells: Any, fired: Any, count: int) -> Any:
    """Take each event through the cell of its key. Returns how far it came, and the firings.

    Stops before an event whose move is not known, or whose firing has no room.
    """
    symbols, times, keys = events.symbols, events.times, events.keys
    flat, stride = cells.flat, np.uint64(cells.stride)
    rule, slots = rule_of(tables, U0), tables.facts[0, SLOTS]
    moves, room, last = rule.moves, fired.rows.size, symbols.size - 1
    for at in range(first, symbols.size):
        prefetch(flat, np.uint64(keys[min(at + _AHEAD, last)]) * stride)
        cell = Cell(flat, np.uint64(keys[at]) * stride)
        moment = times[at]
        state = inside(cell, rule, np.uint64(flat[cell.at]), moment - rule.window)
        entry = entry_of(rule, state, np.uint64(symbols[at]))
        move = PackedMove(entry, moves[entry], moves[entry + U1])
        # Firings, moves that are not known and moves that bind several places are rare: one
        # test tells that an event is none of these.
        is_rare = (move.first | move.bound) >> HALF != U0
        if is_rare and (move.first == UNKNOWN or count == room):
            flat[cell.at] = np.int64(state)
            return at, count
        take_move(cell, rule, move, moment, events.before + at)
        if is_rare and move.first >> HALF != U0:
            fired.rows[count] = at
            fired.actions[count] = np.int64(move.first >> HALF)
            copy_slots(fired.slots, count, cell, slots)
            count += 1
    return symbols.size, count
