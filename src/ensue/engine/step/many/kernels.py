"""The compiled loops of the step engine: one event, or all alarms up to a time, through cells.

Arrays in, the number of firings out; a loop that lacks something (a move of a table, a cell, a
register, room for firings) says what it lacks, is called again when that is there, and goes on from
the same visit or alarm. The step of a cell itself is that of `core.cell_step`.

The cells of all keys of a group are in one array, so that one call fires all that is due under any
key, in the order of the stream: by time, then by the place of the rule in the library, then by the
last event that the key has read. Two words stand before each cell: its owner, and its place among
the alarms. The alarms are a lazy heap: an alarm that is put off or stopped stays where it is until
its time has come, and is moved or removed then, since most timers are set anew before they fire.

Arrays that are handed over together come as plain tuples, which a call unpacks far more quickly
than named ones; `cells` says what is in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.cell_step import (
    HALF,
    LACKS_MOVE,
    LACKS_ROOM,
    LOW,
    U1,
    U2,
    UNKNOWN,
    Cell,
    PackedRule,
    after_alarm,
    due_letter,
    entry_of,
    inside,
    running_in,
    set_timers,
    step_cell,
    timers_of,
)
from ensue.engine.core.jit import FAR, inlined, uncounted
from ensue.engine.core.packed import BASE, LAST_READ, NEXT_DUE, TIMED, TIMERS, WIDTH, WINDOW

LACKS_CELL, LACKS_REGISTER = -3, -4
"""Also how a loop may end: at a rule that needs a cell, at a cell that needs one register more."""

CELL_SIZE, CELL_WORDS, SLOT_COUNT, FIRST_FREE, FIRST_UNUSED, ALARM_COUNT = range(6)
"""The first control words: the length of a cell with the words before it, and without these; the
slots of a firing; the numbers of the first free cell and of the first cell that was never used; the
alarms in the heap."""
NEXT_VISIT, FIRED_COUNT, HAS_BOUND, EVENT_COUNT = range(6, 10)
"""The progress of a loop: the visit to go on with, the firings before it, and whether the event was
bound by then; the number of events that have been read."""
LACKING_RULE, LACKING_STATE, LACKING_LETTER = range(10, 13)
"""The move that a loop lacks."""
CONTROL_WORDS = 13

OWNER_AT, HEAP_AT, WORDS_BEFORE = -2, -1, 2
"""Before a cell stand its owner and its place in the heap (0 for none)."""

RULE_SHIFT = 32
"""The owner of a cell is the number of its rule, and in the low bits that of its key; -1 while the
cell is free."""

NUMBER_BITS = 40
"""An alarm in the heap has its due time, its rank among alarms of that time (the place of the rule
in the library, and in the low bits the number of the last event), and the offset of its cell. The
first is at 1, and each is before the four below it, which begin at four times its place less two.
"""

FIRED = 2
"""A firing is a column: its rule and its action; then what is in each slot; at an alarm also the
time, the key and the number of the last event."""

_KEY_BITS = (1 << RULE_SHIFT) - 1


@inlined
def rule_in(arrays: Any, number: Any) -> Any:
    """The packed table of a rule."""
    _, moves, halves, rules, more_from, more_at, _ = arrays
    base, width = np.uint64(rules[number, BASE]), np.uint64(rules[number, WIDTH])
    return PackedRule(moves, halves, more_from, more_at, base, width, rules[number, WINDOW])


@uncounted
def visit(
    where: Any, key: int, visits: Any, now: int, number: int, arrays: Any, fired: Any, alarms: Any
) -> Any:
    """Take an event through the cells of a key; `visits` has rules, and letters in the low byte.

    Returns twice the number of firings, and one more if the event was bound in a cell. A rule at
    its start has no cell: `where` has 0 for it, the number of a cell that is written over and never
    read. `alarms` is None where no rule has timers.
    """
    cells, moves, control = arrays[0], arrays[1], arrays[6]
    size, slots = control[CELL_SIZE], control[SLOT_COUNT]
    count, bound = control[FIRED_COUNT], control[HAS_BOUND]
    for each in range(control[NEXT_VISIT], visits.size):
        visited = np.uint64(visits[each] >> np.uint32(8))
        letter = np.uint64(visits[each] & np.uint32(255))
        rule = rule_in(arrays, visited)
        cell = Cell(cells, np.uint64(np.int64(where[visited]) * size + WORDS_BEFORE))
        state = inside(cell, rule, np.uint64(cells[cell.at]), now - rule.window)
        entry = entry_of(rule, state, letter)
        move = moves[entry]
        lacking = 0
        if move == UNKNOWN:
            cells[cell.at] = np.int64(state)
            control[LACKING_RULE], control[LACKING_STATE] = visited, np.int64(state)
            control[LACKING_LETTER] = letter
            lacking = LACKS_MOVE
        elif np.int64(moves[entry + U2] & LOW) >= control[CELL_WORDS]:
            lacking = LACKS_REGISTER
        begins = where[visited] == 0 and move & LOW != 0
        if begins and lacking == 0:
            new = _new_cell(cells, control)
            if new == 0:
                lacking = LACKS_CELL
            else:
                where[visited] = new
                cell = Cell(cells, np.uint64(new * size + WORDS_BEFORE))
                cells[cell.at - U2] = np.int64(visited) << RULE_SHIFT | key
                cells[cell.at - U1] = 0
        if lacking != 0:
            control[NEXT_VISIT], control[FIRED_COUNT], control[HAS_BOUND] = each, count, bound
            return lacking
        _, last = step_cell(cell, rule, letter, state, now, number)
        following = move & LOW
        bound |= np.int64(following != 0 and moves[entry + U1] != 0)
        if move >> HALF != 0:
            fired[0, count], fired[1, count] = visited, np.int64(move >> HALF)
            for slot in range(slots):
                fired[FIRED + slot, count] = cells[cell.at + U1 + np.uint64(slot)]
            count += 1
        # Where there are no alarms, the compiler leaves all of this out.
        if alarms is not None:
            heap, earliest, ranks, facts, after = alarms
            if facts[visited, TIMERS] > 0:
                timed = cell.at + np.uint64(facts[visited, TIMED])
                cells[timed + np.uint64(LAST_READ)] = number
                anew = np.int64(last >> HALF)
                running = running_in(rule, following)
                if begins or anew != 0 or running != running_in(rule, state):
                    timers = timers_of(facts, after, visited, timed)
                    due = set_timers(cell, timers, anew, running, now)
                    cells[timed + np.uint64(NEXT_DUE)] = due
                    rank = ranks[visited] << NUMBER_BITS | number
                    _set_alarm(cells, np.int64(cell.at), due, rank, heap, control)
                    earliest[0] = min(earliest[0], due)
        # A cell that is still in the heap is kept for the next start of its rule: an alarm that is
        # put off costs far less than one that is taken out and set again.
        if following == 0 and where[visited] != 0 and cells[cell.at - U1] == 0:
            _free_cell(cells, np.int64(where[visited]), control, alarms)
            where[visited] = 0
    control[NEXT_VISIT] = control[FIRED_COUNT] = control[HAS_BOUND] = 0
    control[EVENT_COUNT] += 1
    return 2 * count + bound


@uncounted
def _new_cell(cells: Any, control: Any) -> Any:
    """The number of a free cell; 0 if there is no room."""
    new = control[FIRST_FREE]
    if new != 0:
        control[FIRST_FREE] = cells[new * control[CELL_SIZE] + WORDS_BEFORE]
        return new
    new = control[FIRST_UNUSED]
    if (new + 1) * control[CELL_SIZE] > cells.size:
        return np.int64(0)
    control[FIRST_UNUSED] = new + 1
    return new


@uncounted
def _free_cell(cells: Any, number: int, control: Any, alarms: Any) -> None:
    cell = number * control[CELL_SIZE] + WORDS_BEFORE
    if alarms is not None and cells[cell + HEAP_AT] != 0:
        _move_alarm(cells, cells[cell + HEAP_AT], FAR, 0, alarms[0], control)
    cells[cell + OWNER_AT] = -1
    cells[cell] = control[FIRST_FREE]
    control[FIRST_FREE] = number


@uncounted
def free_expired(arrays: Any, now: int, owners: Any, alarms: Any) -> Any:
    """Free the cells whose rules are at their start again, since all else has left the window.

    Writes their owners, and returns how many there were.
    """
    cells, control = arrays[0], arrays[6]
    count = 0
    for number in range(1, control[FIRST_UNUSED]):
        cell = Cell(cells, np.uint64(number * control[CELL_SIZE] + WORDS_BEFORE))
        owner = cells[cell.at - U2]
        if owner < 0:
            continue
        rule = rule_in(arrays, owner >> RULE_SHIFT)
        state = inside(cell, rule, np.uint64(cells[cell.at]), now - rule.window)
        cells[cell.at] = np.int64(state)
        if state == 0:
            _free_cell(cells, number, control, alarms)
            owners[count] = owner
            count += 1
    return count


@uncounted
def free_cells(where: Any, chosen: Any, cells: Any, control: Any, alarms: Any) -> None:
    """Free the cells that some rules have under a key."""
    for rule in chosen:
        if where[rule] != 0:
            _free_cell(cells, np.int64(where[rule]), control, alarms)
            where[rule] = 0


@uncounted
def mark_bound(where: Any, cells: Any, control: Any, numbers: Any, is_bound: Any) -> None:
    """Mark the events, by their sorted numbers, that are in a slot of a cell of a key."""
    for rule in range(where.size):
        if where[rule] == 0:
            continue
        first = np.int64(where[rule]) * control[CELL_SIZE] + WORDS_BEFORE + 1
        for slot in range(control[SLOT_COUNT]):
            number = cells[first + slot]
            low, high = 0, numbers.size
            while low < high:
                middle = (low + high) >> 1
                if numbers[middle] < number:
                    low = middle + 1
                else:
                    high = middle
            if low < numbers.size and numbers[low] == number:
                is_bound[low] = True


@uncounted
def fire_until(limit: int, arrays: Any, fired: Any, alarms: Any) -> Any:
    """Fire all alarms that are due up to a time, in their order; returns how many rules put out.

    Then `earliest` is set to a time before which none of these alarms is due.
    """
    cells, moves, control = arrays[0], arrays[1], arrays[6]
    heap, earliest, ranks, facts, after = alarms
    slots, count = control[SLOT_COUNT], control[FIRED_COUNT]
    while control[ALARM_COUNT] > 0 and heap[1, 0] <= limit:
        cell = Cell(cells, np.uint64(heap[1, 2]))
        owner = cells[cell.at - U2]
        number = np.uint64(owner >> RULE_SHIFT)
        timed = cell.at + np.uint64(facts[number, TIMED])
        now = cells[timed + np.uint64(NEXT_DUE)]
        rank = ranks[number] << NUMBER_BITS | cells[timed + np.uint64(LAST_READ)]
        if now != heap[1, 0] or rank != heap[1, 1]:
            _move_alarm(cells, 1, now, rank, heap, control)
            continue
        if count == fired.shape[1]:
            control[FIRED_COUNT] = count
            return LACKS_ROOM
        rule, timers = rule_in(arrays, number), timers_of(facts, after, number, timed)
        before = np.uint64(cells[cell.at])
        letter, port = due_letter(cell, timers, running_in(rule, before), now)
        state = inside(cell, rule, before, now - rule.window)
        cells[cell.at] = np.int64(state)
        entry = entry_of(rule, state, letter)
        if moves[entry] == UNKNOWN:
            control[LACKING_RULE], control[LACKING_STATE] = number, np.int64(state)
            control[LACKING_LETTER] = letter
            control[FIRED_COUNT] = count
            return LACKS_MOVE
        if np.int64(moves[entry + U2] & LOW) >= control[CELL_WORDS]:
            control[FIRED_COUNT] = count
            return LACKS_REGISTER
        move, last = step_cell(cell, rule, letter, state, now, now)
        running = running_in(rule, move & LOW)
        if port >= 0:
            after_alarm(cell, rule, state, timers, running, port, now, limit)
        due = set_timers(cell, timers, np.int64(last >> HALF), running, now)
        cells[timed + np.uint64(NEXT_DUE)] = due
        _move_alarm(cells, 1, due, rank, heap, control)
        if move >> HALF != 0:
            fired[0, count], fired[1, count] = number, np.int64(move >> HALF)
            for slot in range(slots):
                fired[FIRED + slot, count] = cells[cell.at + U1 + np.uint64(slot)]
            fired[FIRED + slots, count] = now
            fired[FIRED + slots + 1, count] = owner & _KEY_BITS
            fired[FIRED + slots + 2, count] = cells[timed + np.uint64(LAST_READ)]
            count += 1
    control[FIRED_COUNT] = 0
    earliest[0] = heap[1, 0] if control[ALARM_COUNT] > 0 else FAR
    return count


@uncounted
def next_alarm(cells: Any, control: Any, alarms: Any) -> Any:
    """When the first alarm is due that is still set; `FAR` if there is none."""
    heap, _, ranks, facts, _ = alarms
    while control[ALARM_COUNT] > 0:
        cell = heap[1, 2]
        rule = cells[cell + OWNER_AT] >> RULE_SHIFT
        due = cells[cell + facts[rule, TIMED] + NEXT_DUE]
        if heap[1, 0] == due:
            return due
        rank = ranks[rule] << NUMBER_BITS | cells[cell + facts[rule, TIMED] + LAST_READ]
        _move_alarm(cells, 1, due, rank, heap, control)
    return np.int64(FAR)


@uncounted
def set_alarms(cells: Any, control: Any, alarms: Any) -> None:
    """Set the alarms of all cells anew."""
    heap, _, ranks, facts, _ = alarms
    control[ALARM_COUNT] = 0
    for number in range(1, control[FIRST_UNUSED]):
        cell = number * control[CELL_SIZE] + WORDS_BEFORE
        owner = cells[cell + OWNER_AT]
        rule = owner >> RULE_SHIFT
        if owner >= 0 and facts[rule, TIMERS] > 0:
            timed = cell + facts[rule, TIMED]
            cells[cell + HEAP_AT] = 0
            rank = ranks[rule] << NUMBER_BITS | cells[timed + LAST_READ]
            _set_alarm(cells, cell, cells[timed + NEXT_DUE], rank, heap, control)


@uncounted
def _set_alarm(cells: Any, cell: int, due: int, rank: int, heap: Any, control: Any) -> None:
    """Set the alarm of a cell, unless the heap has one for it that is due no later."""
    at = cells[cell + HEAP_AT]
    if at == 0:
        if due == FAR:
            return
        control[ALARM_COUNT] += 1
        at = control[ALARM_COUNT]
    elif due >= heap[at, 0]:
        return
    _sift_up(cells, at, due, rank, cell, heap)


@uncounted
def _sift_up(cells: Any, at: int, due: int, rank: int, cell: int, heap: Any) -> None:
    """Put the alarm of a cell at a place of the heap, or above it where alarms are due later."""
    while at > 1:
        above = (at + 2) >> 2
        if heap[above, 0] < due or (heap[above, 0] == due and heap[above, 1] < rank):
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        cells[heap[at, 2] + HEAP_AT] = at
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell + HEAP_AT] = at


@uncounted
def _move_alarm(cells: Any, at: int, due: int, rank: int, heap: Any, control: Any) -> None:
    """Move the alarm at a place of the heap to a later due time; `FAR` removes it."""
    count = control[ALARM_COUNT]
    cell = heap[at, 2]
    if due == FAR:
        cells[cell + HEAP_AT] = 0
        due, rank, cell = heap[count, 0], heap[count, 1], heap[count, 2]
        count -= 1
        control[ALARM_COUNT] = count
        if at > count:
            return
        above = (at + 2) >> 2
        if at > 1 and (due < heap[above, 0] or (due == heap[above, 0] and rank < heap[above, 1])):
            # The last alarm of the heap may be due before the one above this place.
            _sift_up(cells, at, due, rank, cell, heap)
            return
    while True:
        below = 4 * at - 2
        if below > count:
            break
        least = below
        for other in range(below + 1, min(below + 4, count + 1)):
            if heap[other, 0] < heap[least, 0] or (
                heap[other, 0] == heap[least, 0] and heap[other, 1] < heap[least, 1]
            ):
                least = other
        if due < heap[least, 0] or (due == heap[least, 0] and rank < heap[least, 1]):
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[least, 0], heap[least, 1], heap[least, 2]
        cells[heap[at, 2] + HEAP_AT] = at
        at = least
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell + HEAP_AT] = at
