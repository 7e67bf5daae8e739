"""The compiled loops that take events through a table, without a window and with one.

As in `kernels`: plain arrays in, how far it came out, and Python mends what a loop cannot go on
with. What the arrays mean stands with `walks`, and with `ordered` and `window_walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.batch.kernels import compiled, inlined


@inlined
def _bind_more(
    places: Any, key: Any, bind_from: Any, bind_places: Any, more: Any, reading: Any
) -> None:
    """Bind a set of places of a key to what was read."""
    for entry in range(bind_from[more], bind_from[more + 1]):
        places[key, bind_places[entry]] = reading


@inlined
def _note(
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: Any,
    at: Any,
    action: Any,
    places: Any,
    key: Any,
    width: Any,
) -> None:
    """Write down a firing, with what is in the places of its key.

    Its callers know the width beforehand: asked for here, the loop would be a tenth slower.
    """
    fired_at[fired] = at
    fired_action[fired] = action
    for place in range(width):
        fired_places[fired, place] = places[key, place]


@compiled
def walk_table(
    symbols: Any,
    keys: Any,
    first: int,
    table: Any,
    bind_from: Any,
    bind_places: Any,
    states: Any,
    places: Any,
    readings_before: int,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: int,
) -> Any:
    """Take each event through the table of its key's state.

    An entry of the table is (next state, action, a place to bind, a set of more places). The last
    place of a key is nobody's: an entry that binds nothing binds that one, since a store costs less
    than a branch that nobody can foresee. Stops at an entry that is not known (its next state is
    -1) and where there is no room for another firing.
    """
    width = places.shape[1] - 1
    for at in range(first, symbols.size):
        # Unsigned numbers, for which nobody asks whether they count from the end.
        key = np.uint64(keys[at])
        state = np.uint64(states[key])
        symbol = np.uint64(symbols[at])
        following = table[state, symbol, np.uint64(0)]
        action = table[state, symbol, np.uint64(1)]
        if following < 0 or (action != 0 and fired == fired_at.size):
            return at, fired
        states[key] = following
        places[key, np.uint64(table[state, symbol, np.uint64(2)])] = readings_before + at
        more = table[state, symbol, np.uint64(3)]
        if more != 0:
            _bind_more(places, key, bind_from, bind_places, more, readings_before + at)
        if action != 0:
            _note(fired_at, fired_action, fired_places, fired, at, action, places, key, width)
            fired += 1
    return symbols.size, fired


@compiled
def walk_ordered(
    symbols: Any,
    times: Any,
    keys: Any,
    first: int,
    table: Any,
    oldest: Any,
    expired: Any,
    bind_from: Any,
    bind_places: Any,
    window: int,
    states: Any,
    registers: Any,
    places: Any,
    readings_before: int,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: int,
) -> Any:
    """Take each event through the table of its key's state, once what is too old is dropped.

    An entry of the table is that of `walk_table`, and the register that the present time is written
    to. Stops as `walk_table` does, and at a state of which it is not known what it is without its
    oldest register: the state of the key is that one then.
    """
    zero, one, two, three, four = (
        np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    )  # fmt: skip
    width = places.shape[1] - 1
    for at in range(first, symbols.size):
        # Unsigned numbers, for which nobody asks whether they count from the end.
        key = np.uint64(keys[at])
        state = np.uint64(states[key])
        symbol = np.uint64(symbols[at])
        now = times[at]
        edge = now - window
        while registers[key, np.uint64(oldest[state])] < edge:
            following = expired[state]
            if following < 0:
                states[key] = state
                return at, fired
            state = np.uint64(following)
        following = table[state, symbol, zero]
        action = table[state, symbol, one]
        if following < 0 or (action != 0 and fired == fired_at.size):
            states[key] = state
            return at, fired
        states[key] = following
        registers[key, np.uint64(table[state, symbol, four])] = now
        places[key, np.uint64(table[state, symbol, two])] = readings_before + at
        more = table[state, symbol, three]
        if more != 0:
            _bind_more(places, key, bind_from, bind_places, more, readings_before + at)
        if action != 0:
            _note(fired_at, fired_action, fired_places, fired, at, action, places, key, width)
            fired += 1
    return symbols.size, fired


@compiled
def drop_expired(
    edge: int, first: int, oldest: Any, expired: Any, states: Any, registers: Any
) -> Any:
    """Bring every key to its state without what lies before the edge of the window.

    Stops at a key whose state has not been worked out, as `walk_ordered` does.
    """
    for key in range(first, states.size):
        state = states[key]
        while registers[key, oldest[state]] < edge:
            state = expired[state]
            if state < 0:
                return key
            states[key] = state
    return states.size
