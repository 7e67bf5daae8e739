"""The compiled loops in which events and alarms visit the cells of rules with timers.

Arrays in, what fired out; what a loop cannot go on with is said, mended by `clocked_groups`, and
the loop goes on from the same visit or alarm.

The cells of all keys are in one array, so that one call fires all that is due under any of them, in
the order of the stream: by time, then by the place of the rule, then by the number of its instance.
A heap has a cell for each alarm that is set, and the cell says where in the heap it is. An alarm
that is put off or stopped stays where it was until its time has come, and is put right then: most
timers are set anew before they fire, many times, and all that costs nothing here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, compiled

LACKS_A_MOVE, LACKS_A_CELL, LACKS_A_REGISTER, LACKS_ROOM = -1, -2, -3, -4

STATE, RULE, KEY, NUMBER, NEXT, AT, DUE = 0, 1, 2, 3, 4, 5, 6
"""A cell: its state, whose it is and under which key, the number of its instance, when its next
timer is due, its place in the heap (0 for none). Then, as many as any rule has: when each timer is
due, when each timer port fired last, and the registers."""

BASE, WIDTH, WINDOW, PLACE, STARTED, ALARM, PORTS, TIMERS, AFTER = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A rule: where its rows begin, their width, its window, its place in the library, how many
instances it has had, the letter of its first alarm, how many timer ports and timers it has, and how
long each of them runs."""

HEAD, MOVE, RUNNING = 3, 4, 2
"""The head of a row has the oldest register, the state without it, and which timers run."""

VISIT, COUNT, LACKING_RULE, LACKING_STATE, LACKING_LETTER, EVENTS, USED, ALARMS = range(8)
"""What `status` says: the visit to go on with and what has fired before it, the move that lacks,
how many events there were, how many cells are used, and how many of them have an alarm."""

_NUMBER_BITS = 40
"""A heap has, for each alarm, when it is due, its rank among those that are due together (the place
of the rule, and in the lowest bits the number of the instance), and the cell. The first is at 1,
and each is before the four below it, from four times its place less two on."""

FIRED = 5
"""What fires is written as its rule, action, time, key and number; then come the last firings of
its timer ports."""


@compiled
def visit(
    where: Any,
    key: int,
    cells: Any,
    visits: Any,
    rules: Any,
    moves: Any,
    heap: Any,
    now: int,
    earliest: Any,
    fired: Any,
    status: Any,
) -> Any:
    """Take an event through the cells of a key; returns how many rules have fired.

    `visits` has rules, each with a letter in its lowest byte. `earliest` is a time before which no
    alarm is due.
    """
    timers = rules.shape[1] - AFTER
    fired_at = DUE + timers
    registers_at = fired_at + fired.shape[1] - FIRED - 1
    count = status[COUNT]
    for each in range(status[VISIT], visits.size):
        rule = np.int64(visits[each] >> np.uint32(8))
        letter = np.int64(visits[each] & np.uint32(255))
        base, width = rules[rule, BASE], rules[rule, WIDTH]
        cell = np.int64(where[rule])
        state = np.int64(0)
        if cell != 0:
            state = _inside(
                cells, cell, registers_at, moves, base, width, now - rules[rule, WINDOW]
            )
            cells[cell, STATE] = state
        row = base + state * width
        move = row + HEAD + MOVE * letter
        following, action, register = moves[move], moves[move + 1], moves[move + 2]
        if following < 0:
            status[LACKING_RULE], status[LACKING_STATE] = rule, state
            status[LACKING_LETTER] = letter
            status[VISIT], status[COUNT] = each, count
            return LACKS_A_MOVE
        if registers_at + register >= cells.shape[1]:
            status[VISIT], status[COUNT] = each, count
            return LACKS_A_REGISTER
        begins = cell == 0
        if begins:
            cell = status[USED]
            if cell == cells.shape[0]:
                status[VISIT], status[COUNT] = each, count
                return LACKS_A_CELL
            status[USED] += 1
            where[rule] = cell
            cells[cell, RULE], cells[cell, KEY] = rule, key
            cells[cell, NUMBER] = rules[rule, STARTED]
            rules[rule, STARTED] += 1
            cells[cell, NEXT], cells[cell, AT] = FAR, 0
        if register != 0:
            cells[cell, registers_at + register] = now
        cells[cell, STATE] = following
        anew, running = moves[move + 3], moves[base + following * width + RUNNING]
        if begins or anew != 0 or running != moves[row + RUNNING]:
            _set_timers(cells, cell, rules, rule, anew, running, now)
            _set_alarm(cells, cell, rules, heap, status)
            earliest[0] = min(earliest[0], cells[cell, NEXT])
        if action != 0:
            fired[count, 0], fired[count, 1] = rule, action
            for port in range(fired.shape[1] - FIRED):
                fired[count, FIRED + port] = cells[cell, fired_at + port]
            count += 1
    status[VISIT] = status[COUNT] = 0
    status[EVENTS] += 1
    return count


@compiled
def fire_until(
    limit: int,
    cells: Any,
    rules: Any,
    moves: Any,
    heap: Any,
    earliest: Any,
    fired: Any,
    status: Any,
) -> Any:
    """Fire all alarms that are due up to a time, in their order; returns how many have fired.

    Then `earliest` is set to a time before which none of these alarms is due.
    """
    timers = rules.shape[1] - AFTER
    fired_at = DUE + timers
    registers_at = fired_at + fired.shape[1] - FIRED - 1
    count = status[COUNT]
    while status[ALARMS] > 0 and heap[1, 0] <= limit:
        cell = heap[1, 2]
        now = cells[cell, NEXT]
        if now != heap[1, 0]:
            _put_right_first(cells, heap, status)
            continue
        if count == fired.shape[0]:
            status[COUNT] = count
            return LACKS_ROOM
        rule = cells[cell, RULE]
        base, width, ports = rules[rule, BASE], rules[rule, WIDTH], rules[rule, PORTS]
        state = cells[cell, STATE]
        running = moves[base + state * width + RUNNING]
        port = -1
        for number in range(ports):
            if cells[cell, DUE + number] == now:
                port = number
                break
        letter = rules[rule, ALARM] + port
        if port < 0:
            together = np.int64(0)
            for number in range(ports, rules[rule, TIMERS]):
                if running >> number & 1 and cells[cell, DUE + number] == now:
                    together |= np.int64(1) << (number - ports)
            letter = rules[rule, ALARM] + ports + together
        state = _inside(cells, cell, registers_at, moves, base, width, now - rules[rule, WINDOW])
        cells[cell, STATE] = state
        move = base + state * width + HEAD + MOVE * letter
        following, action, register = moves[move], moves[move + 1], moves[move + 2]
        if following < 0:
            status[LACKING_RULE], status[LACKING_STATE] = rule, state
            status[LACKING_LETTER] = letter
            status[COUNT] = count
            return LACKS_A_MOVE
        if registers_at + register >= cells.shape[1]:
            status[COUNT] = count
            return LACKS_A_REGISTER
        if register != 0:
            cells[cell, registers_at + register] = now
        cells[cell, STATE] = following
        if port >= 0:
            cells[cell, DUE + port] = now + rules[rule, AFTER + port]
            cells[cell, fired_at + port] = now
        running = moves[base + following * width + RUNNING]
        _set_timers(cells, cell, rules, rule, moves[move + 3], running, now)
        _put_right_first(cells, heap, status)
        if action != 0:
            fired[count, 0], fired[count, 1], fired[count, 2] = rule, action, now
            fired[count, 3], fired[count, 4] = cells[cell, KEY], cells[cell, NUMBER]
            for each in range(fired.shape[1] - FIRED):
                fired[count, FIRED + each] = cells[cell, fired_at + each]
            count += 1
    status[COUNT] = 0
    earliest[0] = heap[1, 0] if status[ALARMS] > 0 else FAR
    return count


@compiled
def next_alarm(cells: Any, heap: Any, status: Any) -> Any:
    """When the first alarm is due that is still set; `FAR` if there is none."""
    while status[ALARMS] > 0:
        if heap[1, 0] == cells[heap[1, 2], NEXT]:
            return heap[1, 0]
        _put_right_first(cells, heap, status)
    return np.int64(FAR)


@compiled
def set_alarms(cells: Any, rules: Any, heap: Any, status: Any) -> None:
    """Set the alarm of every cell, whatever the heap has held before."""
    status[ALARMS] = 0
    for cell in range(1, status[USED]):
        cells[cell, AT] = 0
        _set_alarm(cells, cell, rules, heap, status)


@compiled
def _inside(
    cells: Any, cell: int, registers_at: int, moves: Any, base: int, width: int, edge: int
) -> Any:
    """The state of a cell without what has left its window."""
    state = cells[cell, STATE]
    while True:
        row = base + state * width
        oldest = moves[row]
        if oldest == 0 or cells[cell, registers_at + oldest] >= edge:
            return state
        state = np.int64(moves[row + 1])


@compiled
def _set_timers(
    cells: Any, cell: int, rules: Any, rule: int, anew: int, running: int, now: int
) -> None:
    """Set some timers anew, and find out which of those that run is due first."""
    nearest = np.int64(FAR)
    for number in range(rules[rule, TIMERS]):
        if anew >> number & 1:
            cells[cell, DUE + number] = now + rules[rule, AFTER + number]
        if running >> number & 1:
            nearest = min(nearest, cells[cell, DUE + number])
    cells[cell, NEXT] = nearest


@compiled
def _set_alarm(cells: Any, cell: int, rules: Any, heap: Any, status: Any) -> None:
    """Have the cell in the heap no later than it is due."""
    due, at = cells[cell, NEXT], cells[cell, AT]
    if at == 0:
        if due == FAR:
            return
        status[ALARMS] += 1
        at = status[ALARMS]
    elif due >= heap[at, 0]:
        return
    rank = rules[cells[cell, RULE], PLACE] << _NUMBER_BITS | cells[cell, NUMBER]
    while at > 1:
        above = (at + 2) >> 2
        if heap[above, 0] < due or (heap[above, 0] == due and heap[above, 1] < rank):
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        cells[heap[at, 2], AT] = at
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell, AT] = at


@compiled
def _put_right_first(cells: Any, heap: Any, status: Any) -> None:
    """Have the first cell of the heap where it is due, or nowhere."""
    count = status[ALARMS]
    rank, cell = heap[1, 1], heap[1, 2]
    due = cells[cell, NEXT]
    if due == FAR:
        cells[cell, AT] = 0
        due, rank, cell = heap[count, 0], heap[count, 1], heap[count, 2]
        count -= 1
        status[ALARMS] = count
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
        cells[heap[at, 2], AT] = at
        at = least
    heap[at, 0], heap[at, 1], heap[at, 2] = due, rank, cell
    cells[cell, AT] = at
