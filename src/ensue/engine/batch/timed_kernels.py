"""The compiled loop for timers, as `kernels` has those without.

The same holds here: plain arrays in, how far it came out, and Python mends what the loop cannot go
on with. What the arrays mean stands with `timers` and `timed_walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, compiled

ONE = np.int64(1)


@compiled
def walk_timed(
    symbols: Any,
    times: Any,
    limits: Any,
    keys: Any,
    at: int,
    read: int,
    table: Any,
    anew: Any,
    running: Any,
    after: Any,
    port_symbols: Any,
    due_masks: Any,
    due_symbols: Any,
    oldest: Any,
    expired: Any,
    bind_from: Any,
    bind_places: Any,
    window: int,
    states: Any,
    registers: Any,
    due: Any,
    next_due: Any,
    numbers: Any,
    started: int,
    places: Any,
    readings_before: int,
    noted_before: Any,
    noted_key: Any,
    noted_time: Any,
    noted: int,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: int,
) -> Any:
    """Take each event through the table of its key's state, after the alarms that come before it.

    Only the alarms of its own key matter to an event, so those of a key are fired when it reads
    again: all that are due up to the limit of the event. A symbol of -1 is no event, and lets only
    the clock of its key go on. An alarm is a reading if it binds or fires something; it is noted
    then, with how many events have been read before.

    Returns where it stands (the event, how many were read, started, noted, fired) and the mask of
    timeouts that have no symbol yet, 0 if it stopped for something else: an entry that is not
    known, a state of which it is not known what it is without its oldest register, or no room.
    """
    width = places.shape[1] - 1
    ports = port_symbols.size
    count = after.size
    while at < symbols.size:
        key = keys[at]
        state = states[key]
        time = next_due[key]
        is_alarm = time <= limits[at]
        port = -1
        if is_alarm:
            symbol = np.int32(-1)
            for number in range(ports):
                if due[key, number] == time:
                    port = number
                    symbol = port_symbols[number]
                    break
            if port < 0:
                mask = np.int64(0)
                for number in range(ports, count):
                    if running[state] >> number & ONE and due[key, number] == time:
                        mask |= ONE << number
                for each in range(due_masks.size):
                    if due_masks[each] == mask:
                        symbol = due_symbols[each]
                        break
                if symbol < 0:
                    return at, read, started, noted, fired, mask
        elif symbols[at] < 0:
            at += 1
            continue
        else:
            time = times[at]
            symbol = symbols[at]
        edge = time - window
        while registers[key, oldest[state]] < edge:
            if expired[state] < 0:
                states[key] = state
                return at, read, started, noted, fired, np.int64(0)
            state = expired[state]
        following = table[state, symbol, 0]
        action = table[state, symbol, 1]
        if following < 0 or fired == fired_at.size or noted == noted_key.size:
            states[key] = state
            return at, read, started, noted, fired, np.int64(0)
        if state == 0:
            numbers[key] = started
            started += 1
        states[key] = following
        registers[key, table[state, symbol, 4]] = time
        reading = read + noted
        place = table[state, symbol, 2]
        more = table[state, symbol, 3]
        places[key, place] = readings_before + reading
        for entry in range(bind_from[more], bind_from[more + 1]):
            places[key, bind_places[entry]] = readings_before + reading
        if port >= 0:
            due[key, port] = time + after[port]
        mask = anew[table[state, symbol, 5]]
        if mask != 0:
            for number in range(count):
                if mask >> number & ONE:
                    due[key, number] = time + after[number]
        if is_alarm or mask != 0 or running[state] != running[following]:
            nearest = np.int64(FAR)
            for number in range(count):
                if running[following] >> number & ONE:
                    nearest = min(nearest, due[key, number])
            next_due[key] = nearest
        if action != 0:
            fired_at[fired] = reading
            fired_action[fired] = action
            for each in range(width):
                fired_places[fired, each] = places[key, each]
            fired += 1
        if not is_alarm:
            read += 1
            at += 1
        elif action != 0 or place < width or more != 0:
            noted_before[noted] = read
            noted_key[noted] = key
            noted_time[noted] = time
            noted += 1
    return at, read, started, noted, fired, np.int64(0)
