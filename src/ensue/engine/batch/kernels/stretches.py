"""Compiled loops: what lies in the stretches of ports, as events come, age and are forgotten.

The remembered events of a key are a list through the store of events: each knows the next of its
key. Registers point into it: the first event, for each place the first event of its port in its
stretch (`bind first`, and where the next stretch begins), and for each port with an aggregate the
first event that counts. Every pointer only moves forward, so that an event costs amortised constant
time whatever the window holds. Aggregates take an event in when it comes and out when it leaves:
sums by exact limbs, the least and the greatest by monotone queues, different values by whether the
same value comes again later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.kernels.conditions import (
    AVERAGE,
    DISTINCT,
    FIRST,
    LAST,
    LEAST,
    SUM,
    aggregate,
    condition_holds,
)
from ensue.engine.batch.kernels.exact_sums import add_integer, add_real
from ensue.engine.core.jit import uncounted
from ensue.engine.core.numbering import MULTIPLIER

DONE, LACKS_ROOM, LACKS_TABLE = 0, 1, 2
HEAD, TAIL, POINTERS = 0, 1, 2
"""The first two registers of a key: its first and its last remembered event."""
LOW, COUNTED, PER_PORT = 0, 1, 2
"""The registers of a port with aggregates: the first event that counts, and how many do."""
WIDTH_OF_AGGREGATE = 7
"""Kind, whether values are real, registers, that of the count, limbs, power of two, port."""


class Stretches(NamedTuple):
    """What a rule asks of stretches.

    `begins` and `bits` are those of the chain. `ports` has a row for each port with aggregates: its
    bit, its group and its registers. `aggregates` has a row for each, as said above.
    """

    begins: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint64]
    ports: npt.NDArray[np.int64]
    aggregates: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    window: int
    rounds: int
    unless: np.uint64
    has_pointers: bool
    keep_none: bool
    keep_last: bool
    bind_first: bool


class Store(NamedTuple):
    """The remembered events, by their numbers less `base`; values and queues by aggregate too."""

    letters: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    nexts: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    after: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    table_keys: npt.NDArray[np.uint64]
    table_rows: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    base: int


class Program(NamedTuple):
    """A condition, its operands for each candidate, and the registers of its steps."""

    steps: npt.NDArray[np.int64]
    integers: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float64]
    known_integers: npt.NDArray[np.int64]
    known_reals: npt.NDArray[np.float64]
    errors: npt.NDArray[np.bool_]
    whole: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    digits: npt.NDArray[np.uint64]


class Triggered(NamedTuple):
    """Triggers: which candidate, what is bound if that is the first events, and aggregates."""

    candidates: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float64]
    lacking: npt.NDArray[np.bool_]


@uncounted
def next_of_port(letters: Any, nexts: Any, base: int, row: int, bit: Any) -> Any:
    """The next event of a key behind a row that matches a port; 0 if there is none."""
    row = nexts[row - base]
    while row != 0 and letters[row - base] >> bit & np.uint64(1) == np.uint64(0):
        row = nexts[row - base]
    return row


@uncounted
def slot_of(table_keys: Any, pair: Any) -> Any:
    """Where a pair of key and value stands in the table of values, or where it is to stand."""
    mask = np.uint64(table_keys.size - 1)
    mixed = pair * MULTIPLIER
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while table_keys[slot] != np.uint64(0) and table_keys[slot] != pair:
        slot = (slot + np.uint64(1)) & mask
    return slot


@uncounted
def take_in(held: Any, key: int, port: int, row: int, stretches: Any, store: Any) -> None:
    """Let an event count for a port: it is the last of those that do."""
    ports, aggregates, base = stretches.ports, stretches.aggregates, store.base
    at = ports[port, 2]
    if held[key, at + LOW] == 0:
        held[key, at + LOW] = row
    low = held[key, at + LOW]
    held[key, at + COUNTED] += 1
    place = row - base
    for each in range(len(aggregates)):
        if aggregates[each, 6] != port or not store.present[place, each]:
            continue
        kind, is_real, own = aggregates[each, 0], aggregates[each, 1], aggregates[each, 2]
        if kind in (SUM, AVERAGE):
            held[key, own] += 1
            if is_real:
                power = aggregates[each, 5]
                add_real(held, key, own + 1, power, store.reals[place, each], 1)
            else:
                add_integer(held, key, own + 1, store.values[place, each], 1)
        elif kind == DISTINCT:
            pair = np.uint64(key + 1) << np.uint64(32) | np.uint64(store.values[place, each])
            slot = slot_of(store.table_keys, pair)
            earlier = np.int64(0)
            if store.table_keys[slot] == pair:
                earlier = store.table_rows[slot]
            else:
                store.table_keys[slot] = pair
                store.used[0] += 1
            store.table_rows[slot] = row
            store.after[place, each] = 0
            # An event that is all that is kept is taken in a second time.
            if low <= earlier < row:
                store.after[earlier - base, each] = row
            else:
                held[key, own] += 1
        elif kind >= LEAST:
            last = held[key, own + 1]
            if kind == LAST:
                last = np.int64(0)
            while last != 0 and kind != FIRST:
                if is_real:
                    new, old = store.reals[place, each], store.reals[last - base, each]
                    is_better = new < old if kind == LEAST else new > old
                else:
                    new_i, old_i = store.values[place, each], store.values[last - base, each]
                    is_better = new_i < old_i if kind == LEAST else new_i > old_i
                if not is_better:
                    break
                last = store.before[last - base, each]
            store.before[place, each], store.after[place, each] = last, 0
            if last == 0:
                held[key, own] = row
            else:
                store.after[last - base, each] = row
            held[key, own + 1] = row


@uncounted
def take_out(held: Any, key: int, port: int, row: int, stretches: Any, store: Any) -> None:
    """Let the first of the events that count for a port count no longer."""
    ports, aggregates, base = stretches.ports, stretches.aggregates, store.base
    held[key, ports[port, 2] + COUNTED] -= 1
    place = row - base
    for each in range(len(aggregates)):
        if aggregates[each, 6] != port or not store.present[place, each]:
            continue
        kind, is_real, own = aggregates[each, 0], aggregates[each, 1], aggregates[each, 2]
        if kind in (SUM, AVERAGE):
            held[key, own] -= 1
            if is_real:
                power = aggregates[each, 5]
                add_real(held, key, own + 1, power, store.reals[place, each], -1)
            else:
                add_integer(held, key, own + 1, store.values[place, each], -1)
        elif kind == DISTINCT:
            if store.after[place, each] == 0:
                held[key, own] -= 1
        elif kind >= LEAST and held[key, own] == row:
            behind = store.after[place, each]
            held[key, own] = behind
            if behind == 0:
                held[key, own + 1] = 0
            else:
                store.before[behind - base, each] = 0


@uncounted
def age(held: Any, key: int, time: int, stretches: Any, store: Any) -> None:
    """Move the pointers of a key past what has left the window by a time."""
    letters, times, nexts, base = store.letters, store.times, store.nexts, store.base
    edge = time - stretches.window
    row = held[key, HEAD]
    while row != 0 and times[row - base] < edge:
        row = nexts[row - base]
    held[key, HEAD] = row
    begins, bits, ends = stretches.begins, stretches.bits, stretches.ends
    if stretches.has_pointers:
        end = np.int64(0)
        for group in range(begins.size - 1):
            latest, is_complete = np.int64(0), True
            for place in range(begins[group], begins[group + 1]):
                row = held[key, POINTERS + place]
                if group > 0 and end == 0:
                    row = np.int64(0)
                while row != 0 and (times[row - base] < edge if group == 0 else row <= end):
                    row = next_of_port(letters, nexts, base, row, bits[place])
                held[key, POINTERS + place] = row
                is_complete = is_complete and row != 0
                latest = max(latest, row)
            end = latest if is_complete else np.int64(0)
            ends[group] = end
    ports = stretches.ports
    for port in range(len(ports)):
        bit, group, at = np.uint64(ports[port, 0]), ports[port, 1], ports[port, 2]
        row = held[key, at + LOW]
        if row == 0:
            continue
        if group > 0 and ends[group - 1] == 0:
            empty(held, key, port, stretches)
            continue
        while row != 0 and (times[row - base] < edge if group == 0 else row <= ends[group - 1]):
            take_out(held, key, port, row, stretches, store)
            row = next_of_port(letters, nexts, base, row, bit)
        held[key, at + LOW] = row


@uncounted
def empty(held: Any, key: int, port: int, stretches: Any) -> None:
    """Let nothing count for a port."""
    ports, aggregates = stretches.ports, stretches.aggregates
    at = ports[port, 2]
    held[key, at + LOW] = 0
    held[key, at + COUNTED] = 0
    for each in range(len(aggregates)):
        if aggregates[each, 6] == port:
            own = aggregates[each, 2]
            for register in range(own, own + 2 + aggregates[each, 4]):
                held[key, register] = 0


@uncounted
def forget(held: Any, key: int, stretches: Any) -> None:
    """Let a key remember nothing."""
    held[key, HEAD] = 0
    held[key, TAIL] = 0
    if stretches.has_pointers:
        for place in range(stretches.bits.size):
            held[key, POINTERS + place] = 0
    for group in range(stretches.ends.size):
        stretches.ends[group] = 0
    for port in range(len(stretches.ports)):
        empty(held, key, port, stretches)


@uncounted
def remember(held: Any, key: int, row: int, letter: Any, stretches: Any, store: Any) -> None:
    """Put an event behind those that a key remembers; `ends` are those from before it."""
    base, ports, ends = store.base, stretches.ports, stretches.ends
    last = held[key, TAIL]
    if last != 0:
        store.nexts[last - base] = row
    if held[key, HEAD] == 0:
        held[key, HEAD] = row
    held[key, TAIL] = row
    for port in range(len(ports)):
        group = ports[port, 1]
        if letter >> np.uint64(ports[port, 0]) & np.uint64(1) and (group == 0 or ends[group - 1]):
            take_in(held, key, port, row, stretches, store)
    if stretches.has_pointers:
        begins, bits = stretches.begins, stretches.bits
        for group in range(begins.size - 1):
            if group > 0 and ends[group - 1] == 0:
                break
            for place in range(begins[group], begins[group + 1]):
                if letter >> bits[place] & np.uint64(1) and held[key, POINTERS + place] == 0:
                    held[key, POINTERS + place] = row


@uncounted
def triggers(held: Any, key: int, each: int, stretches: Any, store: Any, program: Any) -> Any:
    """Whether a candidate triggers, given what its key remembers."""
    if stretches.rounds > 1 and held[key, stretches.ports[0, 2] + COUNTED] < stretches.rounds:
        return False
    if len(program.steps) == 0:
        return program.known_integers.size == 0 or (
            program.known_integers[0, each] != 0 and not program.errors[0, each]
        )
    return condition_holds(
        program, each, held, key, stretches.aggregates, store.values, store.reals, store.base,
        program.digits,
    )  # fmt: skip


@uncounted
def read_stretches(
    keys: Any, at: int, number: int, candidates: Any, starts: Any, done: int, stretches: Any,
    store: Any, held: Any, floors: Any, program: Any, out: Any, fired: int, replays: bool,
) -> Any:  # fmt: skip
    """Let events count, from the one at `at` on, and say which candidates trigger.

    Returns how far it came in events and in candidates, how many have triggered, and what it lacks.
    """
    aggregates, base = stretches.aggregates, store.base
    letters, times, nexts = store.letters, store.times, store.nexts
    per_event = len(aggregates)
    places = stretches.bits.size
    for row in range(at, keys.size):
        if fired == out.candidates.size:
            return row, done, fired, LACKS_ROOM
        if 2 * (store.used[0] + per_event) > store.table_keys.size:
            return row, done, fired, LACKS_TABLE
        key, reading = keys[row], number + row
        letter, time = letters[reading - base], times[reading - base]
        nexts[reading - base] = 0
        age(held, key, time, stretches, store)
        remember(held, key, reading, letter, stretches, store)
        if replays:
            continue
        has_triggered = False
        if done < candidates.size and candidates[done] == row:
            if starts[done] >= floors[key] and triggers(held, key, done, stretches, store, program):
                has_triggered = True
                out.candidates[fired] = done
                if stretches.bind_first:
                    for place in range(places):
                        out.slots[fired, place] = held[key, POINTERS + place]
                for each in range(per_event):
                    whole, real, there = aggregate(
                        held, key, aggregates, each, store.values, store.reals, base,
                        program.digits,
                    )  # fmt: skip
                    if aggregates[each, 1] or aggregates[each, 0] == AVERAGE:
                        out.reals[fired, each] = real
                    else:
                        out.values[fired, each] = whole
                    out.lacking[fired, each] = not there
                fired += 1
            done += 1
        if has_triggered and stretches.keep_none:
            floors[key] = reading + 1
            forget(held, key, stretches)
        elif (has_triggered and stretches.keep_last) or letter & stretches.unless != np.uint64(0):
            floors[key] = reading
            forget(held, key, stretches)
            remember(held, key, reading, letter, stretches, store)
    return keys.size, done, fired, DONE


@uncounted
def place_values(
    old_keys: Any, old_rows: Any, held: Any, lows: Any, table_keys: Any, table_rows: Any
) -> int:
    """Put the values that still count into another table; returns how many there are.

    `lows` has the register of the first event that counts, by number of an aggregate; a value of
    a key whose event lies before all of them counts for none.
    """
    used = 0
    for slot in range(old_keys.size):
        pair = old_keys[slot]
        if pair == np.uint64(0):
            continue
        key = np.int64(pair >> np.uint64(32)) - 1
        is_held = False
        for low in lows:
            first = held[key, low]
            is_held = is_held or (first != 0 and old_rows[slot] >= first)
        if is_held:
            place = slot_of(table_keys, pair)
            table_keys[place] = pair
            table_rows[place] = old_rows[slot]
            used += 1
    return used
