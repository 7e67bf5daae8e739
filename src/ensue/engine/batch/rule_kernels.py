"""The compiled loops for many rules at once, as `kernels` has those for one.

The same holds here: plain arrays in, how far it came out, and Python mends what a loop cannot go on
with. What the arrays mean stands with `row_lists` and `together`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import compiled


@compiled
def rows_by_code(codes: Any, count: int) -> Any:
    """The rows of each code, one code after the other, and where each begins; -1 is in none."""
    begins = np.zeros(count + 1, np.int64)
    for row in range(codes.size):
        if codes[row] >= 0:
            begins[codes[row] + 1] += 1
    for code in range(count):
        begins[code + 1] += begins[code]
    at = begins.copy()
    rows = np.empty(begins[count], np.int32)
    for row in range(codes.size):
        code = codes[row]
        if code >= 0:
            rows[at[code]] = row
            at[code] += 1
    return rows, begins


@compiled
def rows_by_key(keys: Any, count: int) -> Any:
    """The rows in the order of their keys, rows of one key in their own; -1 comes first."""
    begins = np.zeros(count + 2, np.int64)
    for row in range(keys.size):
        begins[keys[row] + 2] += 1
    for key in range(count + 1):
        begins[key + 1] += begins[key]
    rows = np.empty(keys.size, np.int32)
    ranks = np.empty(keys.size, np.int32)
    for row in range(keys.size):
        key = keys[row] + 1
        rows[begins[key]] = row
        ranks[row] = begins[key]
        begins[key] += 1
    return rows, ranks


@compiled
def merge_three(ranks: Any, at: Any, merged: Any, bits: Any) -> int:
    """Merge three lists that begin at `at` and end in a rank past all others; without branches."""
    last = ranks[ranks.size - 1]
    one, two, three = np.uint64(at[0]), np.uint64(at[1]), np.uint64(at[2])
    x, y, z = ranks[one], ranks[two], ranks[three]
    count = 0
    while True:
        rank = min(x, min(y, z))
        if rank == last:
            return count
        has_x, has_y, has_z = np.uint64(x == rank), np.uint64(y == rank), np.uint64(z == rank)
        merged[count] = rank
        bits[count] = has_x | has_y << np.uint64(1) | has_z << np.uint64(2)
        count += 1
        one, two, three = one + has_x, two + has_y, three + has_z
        x, y, z = ranks[one], ranks[two], ranks[three]


@compiled
def merge_many(ranks: Any, at: Any, merged: Any, bits: Any) -> int:
    """The same for any number of lists."""
    last = ranks[ranks.size - 1]
    count = 0
    while True:
        rank = last
        for port in range(at.size):
            rank = min(rank, ranks[at[port]])
        if rank == last:
            return count
        found = 0
        for port in range(at.size):
            if ranks[at[port]] == rank:
                found |= 1 << port
                at[port] += 1
        merged[count] = rank
        bits[count] = found
        count += 1


@compiled
def walk_rules(
    ranks: Any,
    list_from: Any,
    lists: Any,
    merged: Any,
    bits: Any,
    first: int,
    first_at: int,
    rows: Any,
    keys: Any,
    symbol_of: Any,
    table: Any,
    bind_from: Any,
    bind_places: Any,
    states: Any,
    places: Any,
    readings_before: int,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: int,
    without_key: Any,
) -> Any:
    """Take what each rule reads through one table, rule after rule and key after key.

    Rows are named by their ranks in the order of their keys (`rows` and `keys` are by rank), so
    that states are visited from the first to the last. What a rule reads is merged from the lists
    of its ports, at least three; each list ends in a rank past all others. The ports for which a
    rank is listed are bits, which make its symbol. Stops, before a rank, as `walk_table` does, and
    at bits that have no symbol yet. Returns the rule and how far it came in what is merged for it.
    """
    width = places.shape[0] - 1
    for rule in range(first, lists.shape[0]):
        states_of = states[rule]
        begins = list_from[lists[rule]]
        if begins.size == 3:
            count = merge_three(ranks, begins, merged, bits)
        else:
            count = merge_many(ranks, begins, merged, bits)
        for at in range(first_at if rule == first else 0, count):
            rank = np.uint64(merged[at])
            if keys[rank] < 0:
                without_key[rule] += 1
                continue
            key = np.uint64(keys[rank])
            if symbol_of[bits[at]] < 0:
                return rule, at, fired
            symbol = np.uint64(symbol_of[bits[at]])
            state = np.uint64(states_of[key])
            following = table[state, symbol, np.uint64(0)]
            action = table[state, symbol, np.uint64(1)]
            if following < 0 or (action != 0 and fired == fired_at.size):
                return rule, at, fired
            states_of[key] = following
            one = np.uint64(table[state, symbol, np.uint64(2)])
            # What binds nothing binds the first cell of the last place, which is nobody's.
            real = np.uint64(one != width)
            reading = readings_before + rows[rank]
            places[one, np.uint64(rule) * real, key * real] = reading
            more = table[state, symbol, np.uint64(3)]
            if more != 0:
                for entry in range(bind_from[more], bind_from[more + 1]):
                    places[bind_places[entry], rule, key] = reading
            if action != 0:
                fired_rule[fired] = rule
                fired_at[fired] = rows[rank]
                fired_action[fired] = action
                for place in range(width):
                    fired_places[fired, place] = places[place, rule, key]
                fired += 1
    return lists.shape[0], 0, fired
