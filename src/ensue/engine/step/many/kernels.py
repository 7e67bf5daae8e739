"""The compiled loops of the step engine: one event, or all alarms up to a time, through cells.

Arrays in, the number of firings out; a loop that lacks something (a move of a table, a cell, a
register, room for firings) says what it lacks, is called again when that is there, and goes on from
the same visit or alarm. The step of a cell itself is that of `cell_step`.

The cells of all keys of a group are in one array, so that one call fires all that is due under any
key, in the order of the stream: by time, then by the place of the rule in the library, then by the
number of its instance. The alarms are a lazy heap: an alarm that is put off or stopped stays where
it is until its time has come, and is put right then, since most timers are set anew before they
fire.

Arrays that are handed over together come as plain tuples, which a call unpacks far more quickly
than named ones; `cells` says what is in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, compiled
from ensue.engine.step.many.cell_step import (
    ACTION,
    AFTER,
    BASE,
    DUE,
    HEAD,
    LOW_BITS,
    MOVE,
    NEXT_DUE,
    PLACE_SHIFT,
    RUNNING,
    SETS,
    START,
    TIMERS,
    WIDTH,
    WINDOW,
    WRITES,
    due_letter,
    set_timers,
    window_state,
    write_cell,
)

LACKS_MOVE, LACKS_CELL, LACKS_REGISTER, LACKS_ROOM = -1, -2, -3, -4

SIZE, PLACES_AT, PLACES, TIMED_AT, OWNER_AT, HEAP_AT, FREE, USED, ALARMS = range(9)
VISIT, COUNT, BOUND, LACKING_RULE, LACKING_STATE, LACKING_LETTER, EVENTS = range(9, 16)
"""The control words: the length of a cell, where its places, its words for timers, its owner and
its place in the heap are, and how many places it has; the number of the first free cell and of the
first that was never used, and how many alarms are in the heap; the visit to go on with, what has
fired before it and whether anything was bound; the move that is lacking; how many events there
were."""

CONTROL_WORDS = 16

RULE_SHIFT = 32
"""The owner of a cell is the number of its rule, and in the low bits that of its key; -1 while the
cell is free."""

NUMBER_BITS = 40
"""An alarm in the heap has its due time, its rank among alarms of that time (the place of the rule
in the library, and in the low bits the number of the instance), and the offset of its cell. The
first is at 1, and each is before the four below it, which begin at four times its place less two.
"""

FIRED = 2
"""A firing is a column: its rule and its action; then what is bound in each place; at an alarm also
the time, the key and the number of the instance."""

_KEY_BITS = (1 << RULE_SHIFT) - 1


@compiled
def visit(
    where: Any, key: int, visits: Any, now: int, number: int, arrays: Any, fired: Any, alarms: Any
) -> Any:
    """Take an event through the cells of a key; `visits` has rules, and letters in the low byte.

    Returns twice the number of firings, and one more if the event was bound in a cell. A rule at
    its start has no cell: `where` has 0 for it, the number of a cell that is written over and never
    read. `alarms` is None where no rule has timers.
    """
    cells, moves, rules, control = arrays
    size, places_at, places = control[SIZE], control[PLACES_AT], control[PLACES]
    count, bound = control[COUNT], control[BOUND]
    for each in range(control[VISIT], visits.size):
        rule = np.int64(visits[each] >> np.uint32(8))
        letter = np.int64(visits[each] & np.uint32(255))
        base, width = rules[rule, BASE], rules[rule, WIDTH]
        cell = np.int64(where[rule]) * size
        before = window_state(
            cells, cell, moves, base, width, cells[np.uint64(cell)], now - rules[rule, WINDOW]
        )
        row = base + before * width
        move = row + HEAD + MOVE * letter
        following = np.int64(moves[np.uint64(move)])
        if following < 0:
            cells[np.uint64(cell)] = before
            control[LACKING_RULE], control[LACKING_STATE] = rule, before
            control[LACKING_LETTER] = letter
            control[VISIT], control[COUNT], control[BOUND] = each, count, bound
            return LACKS_MOVE
        writes = np.int64(moves[np.uint64(move + WRITES)])
        if (writes & LOW_BITS) >= places_at:
            control[VISIT], control[COUNT], control[BOUND] = each, count, bound
            return LACKS_REGISTER
        begins = cell == 0 and following != 0
        if begins:
            new = _new_cell(cells, control)
            if new == 0:
                control[VISIT], control[COUNT], control[BOUND] = each, count, bound
                return LACKS_CELL
            where[rule] = new
            cell = new * size
            cells[np.uint64(cell + control[OWNER_AT])] = rule << RULE_SHIFT | key
        write_cell(cells, cell, places_at, moves, move, number, now)
        bound |= np.int64(following != 0 and (writes >> PLACE_SHIFT) != 0)
        action = moves[np.uint64(move + ACTION)]
        if action != 0:
            fired[0, count], fired[1, count] = rule, action
            for place in range(places):
                fired[FIRED + place, count] = cells[np.uint64(cell + places_at + place)]
            count += 1
        # Where there are no alarms, the compiler leaves all of this out.
        if alarms is not None:  # noqa: SIM102
            if rules[rule, TIMERS] > 0:
                heap, earliest, ranks, started = alarms
                timed = cell + control[TIMED_AT]
                if begins:
                    cells[np.uint64(timed + START)] = started[rule]
                    started[rule] += 1
                    cells[np.uint64(cell + control[HEAP_AT])] = 0
                anew = np.int64(moves[np.uint64(move + SETS)]) & LOW_BITS
                running = np.int64(moves[np.uint64(base + following * width + RUNNING)])
                if begins or anew != 0 or running != moves[np.uint64(row + RUNNING)]:
                    due = set_timers(cells, timed, rules, rule, anew, running, now)
                    _set_alarm(cells, cell, due, ranks, rule, heap, control)
                    earliest[0] = min(earliest[0], due)
        if following == 0 and cell != 0:
            _free_cell(cells, np.int64(where[rule]), control)
            where[rule] = 0
    control[VISIT] = control[COUNT] = control[BOUND] = 0
    control[EVENTS] += 1
    return 2 * count + bound


@compiled
def _new_cell(cells: Any, control: Any) -> Any:
    """The number of a cell that nobody has; 0 if there is no room for another."""
    new = control[FREE]
    if new != 0:
        control[FREE] = cells[new * control[SIZE]]
        return new
    new = control[USED]
    if (new + 1) * control[SIZE] > cells.size:
        return np.int64(0)
    control[USED] = new + 1
    return new


@compiled
def _free_cell(cells: Any, number: int, control: Any) -> None:
    cell = number * control[SIZE]
    cells[cell + control[OWNER_AT]] = -1
    cells[cell] = control[FREE]
    control[FREE] = number


@compiled
def free_expired(arrays: Any, now: int, owners: Any) -> Any:
    """Free the cells whose rules are at their start again, since all else has left the window.

    Writes their owners, and returns how many there were.
    """
    cells, moves, rules, control = arrays
    count = 0
    for number in range(1, control[USED]):
        cell = number * control[SIZE]
        owner = cells[cell + control[OWNER_AT]]
        if owner < 0:
            continue
        rule = owner >> RULE_SHIFT
        edge = now - rules[rule, WINDOW]
        base, width = rules[rule, BASE], rules[rule, WIDTH]
        state = window_state(cells, cell, moves, base, width, cells[cell], edge)
        cells[cell] = state
        if state == 0:
            _free_cell(cells, number, control)
            owners[count] = owner
            count += 1
    return count


@compiled
def free_cells(where: Any, chosen: Any, arrays: Any) -> None:
    """Free the cells that some rules have under a key."""
    cells, _, _, control = arrays
    for rule in chosen:
        if where[rule] != 0:
            _free_cell(cells, np.int64(where[rule]), control)
            where[rule] = 0


@compiled
def mark_bound(where: Any, arrays: Any, numbers: Any, is_bound: Any) -> None:
    """Mark those of the sorted numbers of events that are bound in a cell of a key."""
    cells, _, _, control = arrays
    first, count = control[PLACES_AT], control[PLACES]
    for rule in range(where.size):
        cell = np.int64(where[rule]) * control[SIZE]
        if cell != 0:
            for place in range(count):
                number = cells[np.uint64(cell + first + place)]
                low, high = 0, numbers.size
                while low < high:
                    middle = (low + high) >> 1
                    if numbers[np.uint64(middle)] < number:
                        low = middle + 1
                    else:
                        high = middle
                if low < numbers.size and numbers[low] == number:
                    is_bound[low] = True


@compiled
def fire_until(limit: int, arrays: Any, fired: Any, alarms: Any) -> Any:
    """Fire all alarms that are due up to a time, in their order; returns how many rules put out.

    Then `earliest` is set to a time before which none of these alarms is due.
    """
    cells, moves, rules, control = arrays
    heap, earliest, _, _ = alarms
    timed_at, places_at, places = control[TIMED_AT], control[PLACES_AT], control[PLACES]
    count = control[COUNT]
    while control[ALARMS] > 0 and heap[1, 0] <= limit:
        cell = heap[1, 2]
        timed = cell + timed_at
        now = cells[timed + NEXT_DUE]
        if now != heap[1, 0]:
            _put_first_right(cells, heap, control)
            continue
        if count == fired.shape[1]:
            control[COUNT] = count
            return LACKS_ROOM
        owner = cells[cell + control[OWNER_AT]]
        rule = owner >> RULE_SHIFT
        base, width = rules[rule, BASE], rules[rule, WIDTH]
        running = np.int64(moves[base + cells[cell] * width + RUNNING])
        letter, port = due_letter(cells, timed, rules, rule, running, now)
        state = window_state(
            cells, cell, moves, base, width, cells[cell], now - rules[rule, WINDOW]
        )
        cells[cell] = state
        move = base + state * width + HEAD + MOVE * letter
        following = np.int64(moves[move])
        if following < 0:
            control[LACKING_RULE], control[LACKING_STATE] = rule, state
            control[LACKING_LETTER] = letter
            control[COUNT] = count
            return LACKS_MOVE
        if (np.int64(moves[move + WRITES]) & LOW_BITS) >= places_at:
            control[COUNT] = count
            return LACKS_REGISTER
        write_cell(cells, cell, places_at, moves, move, now, now)
        if port >= 0:
            cells[timed + DUE + port] = now + rules[rule, AFTER + port]
        running = np.int64(moves[base + following * width + RUNNING])
        set_timers(cells, timed, rules, rule, np.int64(moves[move + SETS]) & LOW_BITS, running, now)
        _put_first_right(cells, heap, control)
        action = moves[move + ACTION]
        if action != 0:
            fired[0, count], fired[1, count] = rule, action
            for place in range(places):
                fired[FIRED + place, count] = cells[cell + places_at + place]
            fired[FIRED + places, count] = now
            fired[FIRED + places + 1, count] = owner & _KEY_BITS
            fired[FIRED + places + 2, count] = cells[timed + START]
            count += 1
    control[COUNT] = 0
    earliest[0] = heap[1, 0] if control[ALARMS] > 0 else FAR
    return count


@compiled
def next_alarm(arrays: Any, alarms: Any) -> Any:
    """When the first alarm is due that is still set; `FAR` if there is none."""
    cells, _, _, control = arrays
    heap = alarms[0]
    while control[ALARMS] > 0:
        if heap[1, 0] == cells[heap[1, 2] + control[TIMED_AT] + NEXT_DUE]:
            return heap[1, 0]
        _put_first_right(cells, heap, control)
    return np.int64(FAR)


@compiled
def set_alarms(arrays: Any, alarms: Any) -> None:
    """Set the alarm of every cell, whatever the heap has held before."""
    cells, _, rules, control = arrays
    heap, _, ranks, _ = alarms
    control[ALARMS] = 0
    for number in range(1, control[USED]):
        cell = number * control[SIZE]
        owner = cells[cell + control[OWNER_AT]]
        rule = owner >> RULE_SHIFT
        if owner >= 0 and rules[rule, TIMERS] > 0:
            cells[cell + control[HEAP_AT]] = 0
            due = cells[cell + control[TIMED_AT] + NEXT_DUE]
            _set_alarm(cells, cell, due, ranks, rule, heap, control)


@compiled
def _set_alarm(
    cells: Any, cell: int, due: int, ranks: Any, rule: int, heap: Any, control: Any
) -> None:
    """Have the cell in the heap no later than it is due."""
    heap_at = control[HEAP_AT]
    at = cells[cell + heap_at]
    if at == 0:
        if due == FAR:
            return
        control[ALARMS] += 1
        at = control[ALARMS]
    elif due >= heap[at, 0]:
        return
    rank = ranks[rule] << NUMBER_BITS | cells[cell + control[TIMED_AT] + START]
    while at > 1:
        above = (at + 2) >> 2
        if heap[above, 0] < due or (heap[above, 0] == due and heap[above, 1] < rank):
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        cells[heap[at, 2] + heap_at] = at
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell + heap_at] = at


@compiled
def _put_first_right(cells: Any, heap: Any, control: Any) -> None:
    """Have the first cell of the heap where it is due, or nowhere."""
    heap_at, count = control[HEAP_AT], control[ALARMS]
    rank, cell = heap[1, 1], heap[1, 2]
    due = cells[cell + control[TIMED_AT] + NEXT_DUE]
    if due == FAR:
        cells[cell + heap_at] = 0
        due, rank, cell = heap[count, 0], heap[count, 1], heap[count, 2]
        count -= 1
        control[ALARMS] = count
        if count == 0:
            return
    at = 1
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
        cells[heap[at, 2] + heap_at] = at
        at = least
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell + heap_at] = at
