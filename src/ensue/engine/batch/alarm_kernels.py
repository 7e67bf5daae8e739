"""The compiled loops that take events and alarms through the cells of many rules with timers.

`visit_kernels` for rules that have due times besides their registers: plain arrays in, how far it
came out, and Python mends what a loop cannot go on with. What the arrays mean stands with `alarms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.batch.kernels import FAR, compiled

_ONE = np.int64(1)
DONE, LACKS_MOVE, LACKS_ROOM = 0, 1, 2
_RUNNING = 7
"""Where the row of a state says which timers run in it."""


@compiled
def fire_alarms(
    flat: Any,
    cell: int,
    key: int,
    rule: int,
    limit: int,
    rules: Any,
    timers: Any,
    after: Any,
    moves: Any,
    registers: int,
    last: Any,
    bound_of: Any,
    restored: Any,
    asked: Any,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_ports: Any,
    fired_when: Any,
    fired: int,
) -> Any:
    """Fire what is due in a cell up to a limit, one moment and one timer port after the other.

    Returns whether that is done, or what it lacks, and the firings. The cell is as good to go on
    from as before, whatever is lacking.
    """
    base, width, window = rules[rule, 0], rules[rule, 1], rules[rule, 2]
    letters, ports, count = timers[rule, 0], timers[rule, 1], timers[rule, 2]
    next_at = cell + 1 + registers
    due_at = next_at + 2
    while flat[next_at] <= limit:
        now = flat[next_at]
        state = flat[cell]
        running = moves[base + state * width + _RUNNING]
        port = -1
        for number in range(ports):
            if flat[due_at + number] == now:
                port = number
                break
        if port >= 0:
            letter = letters + port
        else:
            together = np.int64(0)
            for number in range(ports, count):
                if running >> number & 1 and flat[due_at + number] == now:
                    together |= _ONE << (number - ports)
            letter = letters + ports + together
        state = _inside(flat, cell, moves, base, width, state, now - window)
        flat[cell] = state
        move = base + state * width + 8 + 4 * letter
        following, action = moves[move], moves[move + 1]
        if following < 0:
            asked[0], asked[1], asked[2] = rule, state, letter
            return LACKS_MOVE, fired
        if action != 0 and fired == fired_at.size:
            return LACKS_ROOM, fired
        flat[cell + moves[move + 2]] = now
        flat[cell] = following
        if port >= 0:
            flat[due_at + port] = now + after[rule, port]
            flat[due_at + after.shape[1] + port] = now
        _set_timers(
            flat, next_at, moves[move + 3], moves[base + following * width + _RUNNING],
            after, rule, count, now,
        )  # fmt: skip
        if action != 0:
            fired_at[fired] = -1
            fired_when[fired, 0] = now
            fired_when[fired, 1] = flat[next_at + 1]
            fired_when[fired, 2] = key
            _note(
                flat, due_at + after.shape[1], key, rule, action, last, bound_of, restored,
                fired_rule, fired_action, fired_ports, fired,
            )  # fmt: skip
            fired += 1
    return DONE, fired


@compiled
def _inside(flat: Any, cell: int, moves: Any, base: int, width: int, state: Any, edge: int) -> Any:
    """The state without what has left its window."""
    while True:
        row = base + state * width
        gone = np.int64(flat[cell + moves[row]] < edge)
        gone |= np.int64(flat[cell + moves[row + 1]] < edge) << 1
        state = np.int64(moves[row + 2 + gone])
        if moves[row + 6] == 0 or gone != 3:
            return state


@compiled
def _set_timers(
    flat: Any, next_at: int, anew: int, running: int, after: Any, rule: int, count: int, now: int
) -> None:
    """Set some timers anew, and find out which of those that run is due first."""
    nearest = np.int64(FAR)
    for number in range(count):
        due = next_at + 2 + number
        if anew >> number & 1:
            flat[due] = now + after[rule, number]
        if running >> number & 1:
            nearest = min(nearest, flat[due])
    flat[next_at] = nearest


@compiled
def _note(
    flat: Any,
    alarmed_at: int,
    key: int,
    rule: int,
    action: int,
    last: Any,
    bound_of: Any,
    restored: Any,
    fired_rule: Any,
    fired_action: Any,
    fired_ports: Any,
    fired: int,
) -> None:
    """Write down a firing, with the last event of each port, or the last time of a timer."""
    fired_rule[fired] = rule
    fired_action[fired] = action
    for port in range(fired_ports.shape[1]):
        of = bound_of[rule, port]
        if of < 0:
            fired_ports[fired, port] = flat[alarmed_at - 1 - of]
        else:
            held = last[key, of]
            if restored.size > 0 and held == 0:
                held = restored[rule, key, port]
            fired_ports[fired, port] = held


@compiled
def walk_alarmed(
    order: Any,
    combinations: Any,
    keys: Any,
    times: Any,
    first: int,
    first_visit: int,
    visit_from: Any,
    visited: Any,
    read: Any,
    list_from: Any,
    lists: Any,
    rules: Any,
    timers: Any,
    after: Any,
    moves: Any,
    registers: int,
    cells: Any,
    nearest: Any,
    earliest: Any,
    last: Any,
    bound_of: Any,
    restored: Any,
    readings_before: int,
    asked: Any,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_ports: Any,
    fired_when: Any,
    fired: int,
) -> Any:
    """Take each event through the rules that read it, after the alarms that come before it.

    The alarms of a rule under a key are fired when it reads again under it. All rules that read an
    event fire theirs before any of them reads it, as it will be the last of its lists. `nearest`
    has for each key a time before which none of its alarms is due, and `earliest` one for all keys.

    Returns the event's place in the order, how many of its visits are done, whether something is
    lacking, and the firings. Alarms that have been fired are not due any more, so it may look for
    them again when it goes on in the middle of an event.
    """
    count, size = cells.shape[1], cells.shape[2]
    flat = cells.reshape(-1)
    for step in range(first, order.size):
        at = order[step]
        if combinations[at] < 0 or keys[at] < 0:
            continue
        combination, key = combinations[at], np.int64(keys[at])
        begin, end = visit_from[combination], visit_from[combination + 1]
        now = times[at]
        done = first_visit if step == first else 0
        if nearest[key] <= now:
            for visit in range(begin, end):
                rule = np.int64(visited[visit])
                cell = (key * count + rule) * size
                if flat[cell] != 0 and flat[cell + 1 + registers] <= now:
                    lacking, fired = fire_alarms(
                        flat, cell, key, rule, now, rules, timers, after, moves, registers,
                        last, bound_of, restored, asked,
                        fired_rule, fired_at, fired_action, fired_ports, fired_when, fired,
                    )  # fmt: skip
                    if lacking != DONE:
                        return step, done, lacking, fired
        for each in range(list_from[combination], list_from[combination + 1]):
            last[key, lists[each]] = readings_before + at
        for visit in range(begin + done, end):
            rule = np.int64(visited[visit])
            cell = (key * count + rule) * size
            base, width = rules[rule, 0], rules[rule, 1]
            before = flat[cell]
            state = _inside(flat, cell, moves, base, width, before, now - rules[rule, 2])
            row = base + state * width
            move = row + 8 + 4 * np.int64(read[visit])
            following, action = moves[move], moves[move + 1]
            if following < 0:
                flat[cell] = state
                asked[0], asked[1], asked[2] = rule, state, read[visit]
                return step, visit - begin, LACKS_MOVE, fired
            if action != 0 and fired == fired_at.size:
                return step, visit - begin, LACKS_ROOM, fired
            next_at = cell + 1 + registers
            flat[cell + moves[move + 2]] = now
            flat[cell] = following
            if before == 0:
                flat[next_at + 1] = readings_before + at
            running = moves[base + following * width + _RUNNING]
            # A cell that nobody has written to says nothing of when it is due.
            if before == 0 or moves[move + 3] != 0 or running != moves[row + _RUNNING]:
                _set_timers(
                    flat, next_at, moves[move + 3], running, after, rule, timers[rule, 2], now
                )
                nearest[key] = min(nearest[key], flat[next_at])
                earliest[0] = min(earliest[0], flat[next_at])
            if action != 0:
                fired_at[fired] = at
                fired_when[fired, 0] = now
                fired_when[fired, 1] = 0
                fired_when[fired, 2] = key
                _note(
                    flat, next_at + 2 + after.shape[1], key, rule, action, last, bound_of,
                    restored, fired_rule, fired_action, fired_ports, fired,
                )  # fmt: skip
                fired += 1
    return order.size, 0, DONE, fired


@compiled
def advance_clock(
    clock: int,
    first: int,
    key_count: int,
    rules: Any,
    timers: Any,
    after: Any,
    moves: Any,
    registers: int,
    cells: Any,
    nearest: Any,
    earliest: Any,
    last: Any,
    bound_of: Any,
    restored: Any,
    asked: Any,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_ports: Any,
    fired_when: Any,
    fired: int,
) -> Any:
    """Fire all that is due up to a time, of every key from the first on.

    Returns the key that it has come to, whether something is lacking there, and the firings.
    """
    count, size = cells.shape[1], cells.shape[2]
    flat = cells.reshape(-1)
    if first == 0:
        earliest[0] = FAR
    for key in range(first, key_count):
        if nearest[key] > clock:
            earliest[0] = min(earliest[0], nearest[key])
            continue
        next_of_key = np.int64(FAR)
        for rule in range(count):
            cell = (key * count + rule) * size
            if flat[cell] == 0:
                continue
            if flat[cell + 1 + registers] <= clock:
                lacking, fired = fire_alarms(
                    flat, cell, key, rule, clock, rules, timers, after, moves, registers,
                    last, bound_of, restored, asked,
                    fired_rule, fired_at, fired_action, fired_ports, fired_when, fired,
                )  # fmt: skip
                if lacking != DONE:
                    return key, lacking, fired
            next_of_key = min(next_of_key, flat[cell + 1 + registers])
        nearest[key] = next_of_key
        earliest[0] = min(earliest[0], next_of_key)
    return key_count, DONE, fired
