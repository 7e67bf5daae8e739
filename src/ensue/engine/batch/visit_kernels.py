"""The compiled loops in which each event visits the rules that want it.

As in `kernels`: plain arrays in, how far it came out, and Python mends what a loop cannot go on
with. What the arrays mean stands with `visits` and `visit_tables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.batch.slice_kernels import lowest
from ensue.engine.core.jit import compiled

_ONE = np.uint64(1)


@compiled
def list_visits(
    entry_from: Any,
    words: Any,
    letters: Any,
    masks: Any,
    is_plain: Any,
    done: int,
    count: int,
    visit_from: Any,
    plain_from: Any,
    rules: Any,
    read: Any,
) -> int:
    """What each rule reads of each combination from `done` on, by rule, the plain ones at the end.

    Stops without room.
    """
    for number in range(done, count):
        at = visit_from[number]
        begin, end = entry_from[number], entry_from[number + 1]
        if at + (end - begin) * 64 > rules.size:
            return number
        for plain in range(2):
            plain_from[number] = at
            entry = begin
            while entry < end:
                word = words[entry]
                after = entry
                everyone = np.uint64(0)
                while after < end and words[after] == word:
                    everyone |= masks[after]
                    after += 1
                while everyone != 0:
                    low = lowest(everyone)
                    everyone &= everyone - _ONE
                    each = entry
                    while (masks[each] >> low) & _ONE == 0:
                        each += 1
                    rule = (np.int64(word) << 6) + np.int64(low)
                    if is_plain[rule] == plain:
                        rules[at] = rule
                        read[at] = letters[each]
                        at += 1
                entry = after
        visit_from[number + 1] = at
    return count


@compiled
def walk_visits(
    order: Any,
    combinations: Any,
    keys: Any,
    times: Any,
    first: int,
    first_visit: int,
    visit_from: Any,
    plain_from: Any,
    visited: Any,
    read: Any,
    list_from: Any,
    lists: Any,
    rules: Any,
    moves: Any,
    cells: Any,
    last: Any,
    list_of: Any,
    restored: Any,
    readings_before: int,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_ports: Any,
    fired: int,
    is_plain: Any,
    aside: Any,
) -> Any:
    """Take each event through the rules that read it, by the state of its key, in an order.

    A rule is (where its rows begin, their width, its window). A cell has the state of a rule under
    a key, and then its registers. The row of a state says which two of them are oldest (0 for
    none), which state it is with both of them, without the first, without the second and without
    both, and whether there are more; then come, for each letter, the next state, the action and the
    register that the present time is written to (0 for none). The last event of each list and key
    is noted, for that is what ports are bound to. From `plain_from` on come rules without a window:
    those have no registers, and what fires of them is put among the others by rule.

    Stops at a visit for which there is no move: the state in the cell is the one that lacks it.
    Stops before an event where there might be no room for its firings. Returns the event's place in
    the order, how many of its visits are done (-1 if there is no room) and the firings.
    """
    count, size = np.uint64(cells.shape[1]), np.uint64(cells.shape[2])
    flat = cells.reshape(-1)
    width = fired_ports.shape[1]
    is_restored = restored.size > 0
    zero, two, three = np.uint64(0), np.uint64(2), np.uint64(3)
    four, six, eight = np.uint64(4), np.uint64(6), np.uint64(8)
    for step in range(first, order.size):
        at = order[step]
        if combinations[at] < 0 or keys[at] < 0:
            continue
        # Unsigned numbers, for which nobody asks whether they count from the end.
        combination, key = np.uint64(combinations[at]), np.uint64(keys[at])
        begin = visit_from[combination]
        end = visit_from[combination + _ONE]
        if fired + end - begin >= fired_at.size:
            return step, -1, fired
        for each in range(list_from[combination], list_from[combination + _ONE]):
            last[key, np.uint64(lists[each])] = readings_before + at
        now = times[at]
        of_key = key * count
        visit = begin + (first_visit if step == first else 0)
        plain = plain_from[combination]
        lacks_move = False
        fired_before = fired
        while visit < plain:
            rule = np.uint64(visited[visit])
            cell = (of_key + rule) * size
            base, row_width = rules[rule, zero], rules[rule, _ONE]
            edge = now - rules[rule, two]
            state = flat[cell]
            # Nobody can foresee what has left a window, so there is no branch for it.
            while True:
                row = np.uint64(base + state * row_width)
                gone = np.uint64(flat[cell + np.uint64(moves[row])] < edge)
                gone |= np.uint64(flat[cell + np.uint64(moves[row + _ONE])] < edge) << _ONE
                state = np.int64(moves[row + two + gone])
                if moves[row + six] == 0 or gone != three:
                    break
            move = np.uint64(base + state * row_width) + eight + four * np.uint64(read[visit])
            following = moves[move]
            if following < 0:
                flat[cell] = state
                lacks_move = True
                break
            # What goes to no register is written over by the state.
            flat[cell + np.uint64(moves[move + two])] = now
            flat[cell] = following
            # Nor can anyone foresee who fires: what has not is written over by the next.
            action = moves[move + _ONE]
            fired_rule[np.uint64(fired)] = rule
            fired_action[np.uint64(fired)] = action
            fired += action != 0
            visit += 1
        fired_plain = fired
        while visit < end and not lacks_move:
            rule = np.uint64(visited[visit])
            cell = (of_key + rule) * size
            move = np.uint64(rules[rule, zero] + flat[cell] * rules[rule, _ONE])
            move += eight + four * np.uint64(read[visit])
            following = moves[move]
            if following < 0:
                lacks_move = True
                break
            flat[cell] = following
            action = moves[move + _ONE]
            fired_rule[np.uint64(fired)] = rule
            fired_action[np.uint64(fired)] = action
            fired += action != 0
            visit += 1
        for each in range(fired_before, fired):
            fired_at[each] = at
        if lacks_move:
            return step, visit - begin, fired
        if step == first:
            # Some may be from before it stopped in the middle of this event.
            while fired_before > 0 and fired_at[fired_before - 1] == at:
                fired_before -= 1
            fired_plain = fired_before
            while fired_plain < fired and not is_plain[fired_rule[fired_plain]]:
                fired_plain += 1
        if fired_before < fired_plain < fired:
            one, other, to = 0, fired_plain, fired_before
            for each in range(fired_before, fired_plain):
                aside[each - fired_before, 0] = fired_rule[each]
                aside[each - fired_before, 1] = fired_action[each]
            while one < fired_plain - fired_before:
                if other < fired and fired_rule[other] < aside[one, 0]:
                    fired_rule[to], fired_action[to] = fired_rule[other], fired_action[other]
                    other += 1
                else:
                    fired_rule[to], fired_action[to] = aside[one, 0], aside[one, 1]
                    one += 1
                to += 1
        for each in range(fired_before, fired):
            rule = np.uint64(fired_rule[each])
            for port in range(width):
                held = last[key, np.uint64(list_of[rule, port])]
                if is_restored and held == 0:
                    held = restored[rule, key, port]
                fired_ports[each, port] = held
    return order.size, 0, fired
