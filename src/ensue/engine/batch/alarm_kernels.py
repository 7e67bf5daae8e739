"""The compiled loops that take events and alarms through the cells of many rules with timers.

`visit_kernels` for rules that have due times besides their registers: plain arrays in, how far it
came out, and Python mends what a loop cannot go on with. What the arrays mean stands with `alarms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, compiled, inlined

_U0, _U1, _U2, _U3, _U6 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(6)
DONE, LACKS_MOVE, LACKS_ROOM = 0, 1, 2
_RUNNING = np.uint64(7)
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
        running = moves[base + state * width + np.int64(_RUNNING)]
        letter, port = _due_letter(flat, np.uint64(due_at), letters, ports, count, running, now)
        state = _inside(flat, np.uint64(cell), moves, base, width, state, now - window)
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
        flat[next_at] = _set_timers(
            flat, np.uint64(due_at), moves[move + 3],
            moves[base + following * width + np.int64(_RUNNING)],
            after, np.uint64(rule), count, now,
        )  # fmt: skip
        if action != 0:
            fired_at[fired] = -1
            fired_when[fired, 0] = now
            fired_when[fired, 1] = flat[next_at + 1]
            fired_when[fired, 2] = key
            _note(
                flat, np.uint64(due_at + after.shape[1]), np.uint64(key), np.uint64(rule), action,
                last, bound_of, restored, fired_rule, fired_action, fired_ports, fired,
            )  # fmt: skip
            fired += 1
    return DONE, fired


@inlined
def _due_letter(
    flat: Any, due_at: Any, letters: Any, ports: Any, count: Any, running: Any, now: Any
) -> Any:
    """What is due at a time: its letter, and the timer port that it is of, or -1.

    Timer ports fire one after the other, and all timeouts together after them.
    """
    for number in range(ports):
        if flat[due_at + np.uint64(number)] == now:
            return letters + number, np.int64(number)
    together = np.int64(0)
    for number in range(ports, count):
        is_due = flat[due_at + np.uint64(number)] == now
        together |= (np.int64(is_due) & (running >> number)) << (number - ports)
    return letters + ports + together, np.int64(-1)


@inlined
def _inside(flat: Any, cell: Any, moves: Any, base: Any, width: Any, state: Any, edge: Any) -> Any:
    """The state without what has left its window."""
    while True:
        row = np.uint64(base + state * width)
        gone = np.uint64(flat[cell + np.uint64(moves[row])] < edge)
        gone |= np.uint64(flat[cell + np.uint64(moves[row + _U1])] < edge) << _U1
        state = np.int64(moves[row + _U2 + gone])
        if moves[row + _U6] == 0 or gone != _U3:
            return state


@inlined
def _set_timers(
    flat: Any, due_at: Any, anew: Any, running: Any, after: Any, rule: Any, count: Any, now: Any
) -> Any:
    """Set some timers anew; returns when the first of those that run is due."""
    nearest = np.int64(FAR)
    for number in range(count):
        each = np.uint64(number)
        due = now + after[rule, each] if anew >> number & 1 else flat[due_at + each]
        flat[due_at + each] = due
        nearest = min(nearest, due if running >> number & 1 else np.int64(FAR))
    return nearest


@inlined
def _note(
    flat: Any,
    alarmed_at: Any,
    key: Any,
    rule: Any,
    action: Any,
    last: Any,
    bound_of: Any,
    restored: Any,
    fired_rule: Any,
    fired_action: Any,
    fired_ports: Any,
    fired: Any,
) -> None:
    """Write down a firing, with the last event of each port, or the last time of a timer."""
    fired_rule[fired] = rule
    fired_action[fired] = action
    for port in range(fired_ports.shape[1]):
        of = bound_of[rule, port]
        if of < 0:
            fired_ports[fired, port] = flat[alarmed_at + np.uint64(-1 - of)]
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
    is_bound: bool,
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

    Where nothing is bound to events, each fires them just before it reads.

    Returns the event's place in the order, how many of its visits are done, whether something is
    lacking, and the firings. Alarms that have been fired are not due any more, so it may look for
    them again when it goes on in the middle of an event.
    """
    count, size = np.uint64(cells.shape[1]), np.uint64(cells.shape[2])
    to_next, to_due = np.uint64(1 + registers), np.uint64(3 + registers)
    to_fired = to_due + np.uint64(after.shape[1])
    flat = cells.reshape(-1)
    for step in range(first, order.size):
        at = order[step]
        if combinations[at] < 0 or keys[at] < 0:
            continue
        # Unsigned numbers, for which nobody asks whether they count from the end.
        combination, key = np.uint64(combinations[at]), np.uint64(keys[at])
        begin, end = visit_from[combination], visit_from[combination + _U1]
        now = times[at]
        done = first_visit if step == first else 0
        if is_bound and nearest[key] <= now:
            for visit in range(begin, end):
                rule = np.uint64(visited[visit])
                cell = (key * count + rule) * size
                if flat[cell] != 0 and flat[cell + to_next] <= now:
                    lacking, fired = fire_alarms(
                        flat, np.int64(cell), np.int64(key), np.int64(rule), now,
                        rules, timers, after, moves, registers,
                        last, bound_of, restored, asked,
                        fired_rule, fired_at, fired_action, fired_ports, fired_when, fired,
                    )  # fmt: skip
                    if lacking != DONE:
                        return step, done, lacking, fired
        if is_bound:
            for each in range(list_from[combination], list_from[combination + _U1]):
                last[key, np.uint64(lists[each])] = readings_before + at
        for visit in range(begin + done, end):
            rule = np.uint64(visited[visit])
            cell = (key * count + rule) * size
            next_at = cell + to_next
            base, width = rules[rule, _U0], rules[rule, _U1]
            running_timers = timers[rule, _U2]
            while True:
                before = flat[cell]
                due = flat[next_at]
                # A cell that nobody has written to says nothing of when it is due.
                is_alarm = (before != 0) & (due <= now)
                moment = due if is_alarm else now
                letter, port = np.int64(read[visit]), np.int64(-1)
                if is_alarm:
                    letter, port = _due_letter(
                        flat, cell + to_due, timers[rule, _U0], timers[rule, _U1], running_timers,
                        moves[np.uint64(base + before * width) + _RUNNING], due,
                    )  # fmt: skip
                state = before
                if registers > 0:
                    state = _inside(
                        flat, cell, moves, base, width, before, moment - rules[rule, _U2]
                    )
                move = np.uint64(base + state * width + 8 + 4 * letter)
                following, action = np.int64(moves[move]), moves[move + _U1]
                if following < 0:
                    flat[cell] = state
                    asked[0], asked[1], asked[2] = rule, state, letter
                    return step, visit - begin, LACKS_MOVE, fired
                if action != 0 and fired == fired_at.size:
                    return step, visit - begin, LACKS_ROOM, fired
                flat[cell + np.uint64(moves[move + _U2])] = moment
                flat[cell] = following
                start = flat[next_at + _U1]
                flat[next_at + _U1] = start if before != 0 else readings_before + at
                if port >= 0:
                    flat[cell + to_due + np.uint64(port)] = moment + after[rule, np.uint64(port)]
                    flat[cell + to_fired + np.uint64(port)] = moment
                # Nobody can foresee which timers go on, so they are always gone through.
                soonest = _set_timers(
                    flat, cell + to_due, moves[move + _U3],
                    moves[np.uint64(base + following * width) + _RUNNING],
                    after, rule, running_timers, moment,
                )  # fmt: skip
                flat[next_at] = soonest
                nearest[key] = min(nearest[key], soonest)
                if action != 0:
                    fired_at[fired] = -1 if is_alarm else at
                    fired_when[fired, 0] = moment
                    fired_when[fired, 1] = start if is_alarm else 0
                    fired_when[fired, 2] = key
                    _note(
                        flat, cell + to_fired, key, rule, action, last, bound_of,
                        restored, fired_rule, fired_action, fired_ports, fired,
                    )  # fmt: skip
                    fired += 1
                if not is_alarm:
                    break
        earliest[0] = min(earliest[0], nearest[key])
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
