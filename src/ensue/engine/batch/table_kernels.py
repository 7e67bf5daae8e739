"""The compiled loops that take events through a table, without a window and with one.

As in `kernels`: plain arrays in, how far it came out, and Python mends what a loop cannot go on
with. What the arrays mean stands with `walks`, and with `ordered` and `window_walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import compiled, inlined

_ZERO, _ONE, _TWO, _THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_HALF, _LOW, _UNKNOWN = np.uint64(32), np.uint64(2**32 - 1), np.uint64(2**64 - 1)


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

    An entry of the table is two words: the next state and the action, a place to bind and a set of
    more places, each in half a word. The last place of a key is nobody's: an entry that binds
    nothing binds that one, since a store costs less than a branch that nobody can foresee. Stops at
    an entry that is not known (all its bits are set) and where there is no room for another firing.
    """
    width, stride = places.shape[1] - 1, np.uint64(places.shape[1])
    row = np.uint64(table.shape[1] * 2)
    # Flat arrays and unsigned numbers: nobody asks for strides, or whether one counts from the end.
    moves, held = table.reshape(-1), places.reshape(-1)
    for at in range(first, symbols.size):
        key = np.uint64(keys[at])
        entry = np.uint64(states[key]) * row + np.uint64(symbols[at]) * _TWO
        move, bound = moves[entry], moves[entry + _ONE]
        is_rare = (move | bound) >> _HALF != _ZERO
        if is_rare and (move == _UNKNOWN or fired == fired_at.size):
            return at, fired
        states[key] = move & _LOW
        held[key * stride + (bound & _LOW)] = readings_before + at
        if is_rare:
            more, action = bound >> _HALF, move >> _HALF
            for each in range(bind_from[more], bind_from[more + _ONE]):
                places[key, bind_places[each]] = readings_before + at
            if action != _ZERO:
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

    An entry of the table is that of `walk_table`, and a third word of which the lower half is the
    register that the present time is written to. Stops as `walk_table` does, and at a state of
    which it is not known what it is without its oldest register: the state of the key is that one
    then.
    """
    width, stride = places.shape[1] - 1, np.uint64(places.shape[1])
    row, registers_wide = np.uint64(table.shape[1] * 3), np.uint64(registers.shape[1])
    moves, held, starts = table.reshape(-1), places.reshape(-1), registers.reshape(-1)
    for at in range(first, symbols.size):
        key = np.uint64(keys[at])
        state = np.uint64(states[key])
        now = times[at]
        edge = now - window
        while starts[key * registers_wide + np.uint64(oldest[state])] < edge:
            following = expired[state]
            if following < 0:
                states[key] = state
                return at, fired
            state = np.uint64(following)
        entry = state * row + np.uint64(symbols[at]) * _THREE
        move, bound, written = moves[entry], moves[entry + _ONE], moves[entry + _TWO]
        is_rare = (move | bound) >> _HALF != _ZERO
        if is_rare and (move == _UNKNOWN or fired == fired_at.size):
            states[key] = state
            return at, fired
        states[key] = move & _LOW
        starts[key * registers_wide + (written & _LOW)] = now
        held[key * stride + (bound & _LOW)] = readings_before + at
        if is_rare:
            more, action = bound >> _HALF, move >> _HALF
            for each in range(bind_from[more], bind_from[more + _ONE]):
                places[key, bind_places[each]] = readings_before + at
            if action != _ZERO:
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
