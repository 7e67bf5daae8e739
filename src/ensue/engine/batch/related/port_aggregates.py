"""The store of events that a rule remembers, and compiled loops: aggregates over a port's events.

A row of the store has all that loops ask of one event: when it came, its letter, and for rules with
aggregates (`stretch_registers`) the next event of its key and its values. An event is addressed by
the number of its reading, less the number of the first reading in the store.

Aggregates change as events come and leave. A sum is kept in exact limbs (`sums`), the least and the
greatest by monotone queues through the store, and the number of different values by a hash table of
pairs (key and value) with the last event of each: an event that leaves takes its value along unless
the value has come again since. Which events count is decided in `stretches`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.related.sums import add_integer, add_real, rounded_sum, whole_sum
from ensue.engine.core.jit import inlined, uncounted
from ensue.engine.core.numbering import MULTIPLIER, Rows, taller

TIME, LETTER, NEXT, PRESENT, VALUES = range(5)
"""The columns of an event: its time, its letter, the next event of its key, which values are there
(one bit for each aggregate), and the first value. Rules without aggregates have the first two."""
HEAD, TAIL, POINTERS = range(3)
"""The registers of a key: its first and its last remembered event, then the first event of each
place."""
LOW, COUNTED, PER_PORT = range(3)
"""The registers of a port with aggregates: the first event that counts, and how many do."""
PORT_BIT, PORT_GROUP, PORT_REGISTERS = range(3)
"""The columns of a port with aggregates: its bit, its group in the chain, its first register."""
COUNT, SUM, AVERAGE, DISTINCT, LEAST, GREATEST, FIRST, LAST = range(8)
"""The kinds of aggregates."""
KIND, REAL, OWN, COUNTS, LIMBS, POWER, PORT, VALUE, QUEUE, COLUMNS = range(10)
"""The columns of an aggregate: its kind, whether its values are reals, its first register, that of
the count, the limbs of its sum and their power of two, its port, and the columns of its values and
its queue in the store."""

NO_BITS, ONE = np.uint64(0), np.uint64(1)
_LARGE = 1 << 16
"""After a batch of so many events more of that size are expected, and have room at once."""
_ROOM_FOR_LARGE = 1_500_000


class EventStore:
    """A store of events, `width` numbers each; the first event has the number `base`."""

    def __init__(self, width: int, base: int) -> None:
        self.base = base
        self.rows: npt.NDArray[np.int64] = np.zeros((0, width), np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def clear(self, base: int) -> None:
        """Hold nothing, in the same memory; the next event has the number `base`."""
        self.base, self._size = base, 0

    def drop_before(self, first: int) -> None:
        """Drop the events before a number; the others move up, in the same memory."""
        cut = min(max(first - self.base, 0), self._size)
        self._size -= cut
        self.rows[: self._size] = self.rows[cut : cut + self._size]
        self.base += cut

    def add(self, letters: Any, times: Any) -> npt.NDArray[np.int64]:
        """Put events behind the others; returns their rows, to be filled in."""
        size = self._size + len(letters)
        if size > len(self.rows):
            room = max(size, 2 * self._size)
            self.rows = taller(self.rows, max(room, _ROOM_FOR_LARGE * (len(letters) >= _LARGE)))
        added = self.rows[self._size : size]
        added[:, TIME] = times
        added[:, LETTER] = letters.view(np.int64)
        self._size = size
        return added

    def letters(self, numbers: Rows) -> npt.NDArray[np.uint64]:
        return np.asarray(self.rows[numbers - self.base, LETTER], np.uint64)

    def times(self, numbers: Rows) -> npt.NDArray[np.int64]:
        return np.asarray(self.rows[numbers - self.base, TIME])


class StretchLayout(NamedTuple):
    """The places, ports and aggregates of a rule, and what makes it forget.

    `begins` and `bits` are those of the chain. `ports` and `aggregates` have a row for each, with
    the columns above. `ends` is for the loops: the event that completes each group of one key.
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


class StoreArrays(NamedTuple):
    """The remembered events, by their numbers less `base`, and the hash table of different values.

    `reals` are the numbers of `events`, read as reals. A row of `table` has a pair of key and
    value, and the last event of the pair; `used` is how many rows are taken.
    """

    events: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float64]
    table: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    base: int


@uncounted
def slot_of_pair(table: Any, pair: int) -> Any:
    """Where a pair of key and value stands in the table of values, or where it is to stand."""
    mask = np.uint64(len(table) - 1)
    mixed = np.uint64(pair) * MULTIPLIER
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while table[slot, 0] != 0 and table[slot, 0] != pair:
        slot = (slot + ONE) & mask
    return slot


@uncounted
def remove_pair(table: Any, used: Any, pair: int) -> None:
    """Remove a pair from the table of values, and move up pairs that had to stand behind it."""
    mask = np.uint64(len(table) - 1)
    hole = slot_of_pair(table, pair)
    if table[hole, 0] == 0:
        return
    used[0] -= 1
    slot = hole
    while True:
        slot = (slot + ONE) & mask
        if table[slot, 0] == 0:
            break
        mixed = np.uint64(table[slot, 0]) * MULTIPLIER
        wanted = (mixed ^ (mixed >> np.uint64(32))) & mask
        if (slot - wanted) & mask >= (slot - hole) & mask:
            table[hole, 0], table[hole, 1] = table[slot, 0], table[slot, 1]
            hole = slot
    table[hole, 0] = 0


@inlined
def add_event(registers: Any, key: int, port: int, row: int, layout: Any, store: Any) -> None:
    """Add an event to the aggregates of a port, as the last of its stretch."""
    ports, aggregates = layout.ports, layout.aggregates
    events, reals, table, base = store.events, store.reals, store.table, store.base
    at = ports[port, PORT_REGISTERS]
    if registers[key, at + LOW] == 0:
        registers[key, at + LOW] = row
    low = registers[key, at + LOW]
    registers[key, at + COUNTED] += 1
    place = row - base
    present = events[place, PRESENT]
    for each in range(len(aggregates)):
        kind, is_real, own = aggregates[each, KIND], aggregates[each, REAL], aggregates[each, OWN]
        if aggregates[each, PORT] != port or kind == COUNT or not present >> each & 1:
            continue
        value, after = aggregates[each, VALUE], aggregates[each, QUEUE]
        before = after + 1
        if kind in (SUM, AVERAGE):
            registers[key, own] += 1
            if is_real:
                add_real(registers, key, own + 1, aggregates[each, POWER], events[place, value], 1)
            else:
                add_integer(registers, key, own + 1, events[place, value], 1)
        elif kind == DISTINCT:
            pair = (np.int64(key) + 1) << 32 | events[place, value]
            slot = slot_of_pair(table, pair)
            earlier = np.int64(0)
            if table[slot, 0] == pair:
                earlier = table[slot, 1]
            else:
                table[slot, 0] = pair
                store.used[0] += 1
            table[slot, 1] = row
            events[place, after] = 0
            # An event that alone is kept (`keep last`) is added a second time.
            if low <= earlier < row:
                events[earlier - base, after] = row
            else:
                registers[key, own] += 1
        else:
            last = registers[key, own + 1]
            if kind == LAST:
                last = np.int64(0)
            while last != 0 and kind != FIRST:
                if is_real:
                    new, old = reals[place, value], reals[last - base, value]
                    is_better = new < old if kind == LEAST else new > old
                else:
                    new_whole, old_whole = events[place, value], events[last - base, value]
                    is_better = new_whole < old_whole if kind == LEAST else new_whole > old_whole
                if not is_better:
                    break
                last = events[last - base, before]
            events[place, before], events[place, after] = last, 0
            if last == 0:
                registers[key, own] = row
            else:
                events[last - base, after] = row
            registers[key, own + 1] = row


@inlined
def remove_event(registers: Any, key: int, port: int, row: int, layout: Any, store: Any) -> None:
    """Remove the first event of a port's stretch from the aggregates of the port."""
    ports, aggregates = layout.ports, layout.aggregates
    events, base = store.events, store.base
    registers[key, ports[port, PORT_REGISTERS] + COUNTED] -= 1
    place = row - base
    present = events[place, PRESENT]
    for each in range(len(aggregates)):
        kind, is_real, own = aggregates[each, KIND], aggregates[each, REAL], aggregates[each, OWN]
        if aggregates[each, PORT] != port or kind == COUNT or not present >> each & 1:
            continue
        value, after = aggregates[each, VALUE], aggregates[each, QUEUE]
        if kind in (SUM, AVERAGE):
            registers[key, own] -= 1
            if is_real:
                add_real(registers, key, own + 1, aggregates[each, POWER], events[place, value], -1)
            else:
                add_integer(registers, key, own + 1, events[place, value], -1)
        elif kind == DISTINCT:
            if events[place, after] == 0:
                registers[key, own] -= 1
                remove_pair(
                    store.table, store.used, (np.int64(key) + 1) << 32 | events[place, value]
                )
        elif registers[key, own] == row:
            behind = events[place, after]
            registers[key, own] = behind
            if behind == 0:
                registers[key, own + 1] = 0
            else:
                events[behind - base, after + 1] = 0


@inlined
def clear_stretch(registers: Any, key: int, port: int, layout: Any) -> None:
    """Empty the stretch of a port, and its aggregates."""
    ports, aggregates = layout.ports, layout.aggregates
    at = ports[port, PORT_REGISTERS]
    registers[key, at + LOW] = 0
    registers[key, at + COUNTED] = 0
    for each in range(len(aggregates)):
        if aggregates[each, PORT] == port:
            own = aggregates[each, OWN]
            for register in range(own, own + 2 + aggregates[each, LIMBS]):
                registers[key, register] = 0


@inlined
def aggregate(
    registers: Any, key: int, aggregates: Any, number: int, store: Any, digits: Any
) -> Any:
    """The value of an aggregate: as an integer, as a real, and whether it has a value."""
    kind, is_real, at = aggregates[number, KIND], aggregates[number, REAL], aggregates[number, OWN]
    if kind == COUNT:
        return registers[key, aggregates[number, COUNTS]], 0.0, True
    if kind == DISTINCT:
        return registers[key, at], 0.0, True
    if kind in (SUM, AVERAGE):
        count = registers[key, at]
        if count == 0:
            return np.int64(0), 0.0, False
        limbs, power = aggregates[number, LIMBS], aggregates[number, POWER]
        if kind == SUM and not is_real:
            total, fits = whole_sum(registers, key, at + 1, limbs, digits)
            return total, 0.0, fits
        rounded = rounded_sum(registers, key, at + 1, limbs, power, digits)
        if kind == AVERAGE:
            return np.int64(0), rounded / count, math.isfinite(rounded)
        return np.int64(0), rounded, math.isfinite(rounded)
    row = registers[key, at]
    if row == 0:
        return np.int64(0), 0.0, False
    if is_real:
        return np.int64(0), store.reals[row - store.base, aggregates[number, VALUE]], True
    return store.events[row - store.base, aggregates[number, VALUE]], 0.0, True


@uncounted
def copy_values(old: Any, registers: Any, lows: Any, table: Any) -> int:
    """Copy the pairs that still count to another table; returns how many there are.

    `lows` are registers of first events that count: what comes before all of them does not.
    """
    used = 0
    for slot in range(len(old)):
        pair = old[slot, 0]
        if pair == 0:
            continue
        key = (pair >> 32) - 1
        is_held = False
        for low in lows:
            first = registers[key, low]
            is_held = is_held or (first != 0 and old[slot, 1] >= first)
        if is_held:
            place = slot_of_pair(table, pair)
            table[place, 0], table[place, 1] = pair, old[slot, 1]
            used += 1
    return used
