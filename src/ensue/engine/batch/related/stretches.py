"""Compiled loops: what lies in the stretches of ports, as events come, age and are forgotten.

The remembered events of a key are a list through the store of events: each knows the next of its
key. Registers point into it: the first event, for each place the first event of its port in its
stretch (`bind first`, and where the next stretch begins), and for each port with an aggregate the
first event that counts. Every pointer only moves forward, so that an event costs amortised constant
time whatever the window holds. Aggregates take an event in when it comes and out when it leaves
(`port_aggregates`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from ensue.engine.batch.related.conditions import (
    AVERAGE,
    DISTINCT,
    KIND,
    REAL,
    VALUE,
    aggregate,
    condition_holds,
)
from ensue.engine.batch.related.port_aggregates import (
    COUNTED,
    HEAD,
    LETTER,
    LOW,
    NEXT,
    NO_BITS,
    ONE,
    POINTERS,
    TAIL,
    TIME,
    empty,
    take_in,
    take_out,
)
from ensue.engine.core.jit import inlined, lowered, uncounted
from ensue.engine.core.numbering import MULTIPLIER

DONE, LACKS_ROOM, LACKS_TABLE = 0, 1, 2
FAR_AHEAD, AHEAD, NEAR = 24, 16, 8
"""How many events ahead the registers of a key, what they point to, and what comes next
are fetched."""


class CountedEvents(NamedTuple):
    """Events of a batch by their keys, the number of the first, and the matches they complete.

    `candidates` are places of events, in their order, and `starts` the first events of the matches.
    Where events are `replayed`, nothing triggers.
    """

    keys: npt.NDArray[np.int32]
    number: int
    candidates: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    replayed: bool


class CandidatesReached(NamedTuple):
    """How far the loop has come: in events, in candidates, and in triggers."""

    event: int
    candidate: int
    fired: int


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


class TriggerArrays(NamedTuple):
    """Triggers: which candidate, what is bound if that is the first events, and aggregates."""

    candidates: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float64]
    lacking: npt.NDArray[np.bool_]


@lowered
def fetch_ahead(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
    """Prefetch the memory at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To be written, with all caches on the way, as data.
        how = [ir.Constant(word, each) for each in (1, 3, 1)]
        builder.call(fetch, [builder.inttoptr(arguments[0], byte), *how])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@inlined
def look_ahead(keys: Any, row: int, number: int, stretches: Any, store: Any, held: Any) -> None:
    """Prefetch for later events: the registers of their keys, then the events these point to."""
    events, base, ports = store.events, store.base, stretches.ports
    if row + FAR_AHEAD < keys.size:
        width = 8 * held.shape[1]
        fetch_ahead(held.ctypes.data + np.int64(keys[row + FAR_AHEAD]) * width)
    if row + AHEAD < keys.size:
        key = np.int64(keys[row + AHEAD])
        width, first = 8 * events.shape[1], events.ctypes.data
        fetch_ahead(first + (held[key, TAIL] - base) * width)
        for port in range(len(ports)):
            fetch_ahead(first + (held[key, ports[port, 2] + LOW] - base) * width)
        # Mostly one event leaves as another comes, and the time of the next is asked.
        key = np.int64(keys[row + NEAR])
        for port in range(len(ports)):
            low = held[key, ports[port, 2] + LOW]
            if low != 0:
                fetch_ahead(first + (events[low - base, NEXT] - base) * width)
        key = np.int64(keys[row + AHEAD])
        aggregates, table = stretches.aggregates, store.table
        for each in range(len(aggregates)):
            if aggregates[each, KIND] == DISTINCT:
                value = events[number + row + AHEAD - base, aggregates[each, VALUE]]
                mixed = np.uint64((key + 1) << 32 | value) * MULTIPLIER
                slot = (mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(table) - 1)
                fetch_ahead(table.ctypes.data + np.int64(slot) * 16)


@inlined
def next_of_port(events: Any, base: int, row: int, bit: Any) -> Any:
    """The next event of a key behind a row that matches a port; 0 if there is none."""
    row = events[row - base, NEXT]
    while row != 0 and np.uint64(events[row - base, LETTER]) >> bit & ONE == NO_BITS:
        row = events[row - base, NEXT]
    return row


@inlined
def age(held: Any, key: int, time: int, stretches: Any, store: Any) -> None:
    """Move the pointers of a key past what has left the window by a time."""
    events, base = store.events, store.base
    edge = time - stretches.window
    begins, bits, ends = stretches.begins, stretches.bits, stretches.ends
    row = held[key, HEAD]
    while row != 0 and events[row - base, TIME] < edge:
        row = events[row - base, NEXT]
    held[key, HEAD] = row
    if stretches.has_pointers:
        end = np.int64(0)
        for group in range(begins.size - 1):
            latest, is_complete = np.int64(0), True
            for place in range(begins[group], begins[group + 1]):
                row = held[key, POINTERS + place]
                if group > 0 and end == 0:
                    row = np.int64(0)
                while row != 0 and (events[row - base, TIME] < edge if group == 0 else row <= end):
                    row = next_of_port(events, base, row, bits[place])
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
        while row != 0 and (
            events[row - base, TIME] < edge if group == 0 else row <= ends[group - 1]
        ):
            take_out(held, key, port, row, stretches, store)
            row = next_of_port(events, base, row, bit)
        held[key, at + LOW] = row


@inlined
def forget(held: Any, key: int, stretches: Any) -> None:
    """Drop all remembered events of a key."""
    held[key, HEAD] = 0
    held[key, TAIL] = 0
    if stretches.has_pointers:
        for place in range(stretches.bits.size):
            held[key, POINTERS + place] = 0
    for group in range(stretches.ends.size):
        stretches.ends[group] = 0
    for port in range(len(stretches.ports)):
        empty(held, key, port, stretches)


@inlined
def remember(held: Any, key: int, row: int, letter: Any, stretches: Any, store: Any) -> None:
    """Append an event to the remembered ones of a key; `ends` are the groups' ends before it."""
    base, ports, ends = store.base, stretches.ports, stretches.ends
    last = held[key, TAIL]
    if last != 0:
        store.events[last - base, NEXT] = row
    if held[key, HEAD] == 0:
        held[key, HEAD] = row
    held[key, TAIL] = row
    for port in range(len(ports)):
        group = ports[port, 1]
        if letter >> np.uint64(ports[port, 0]) & ONE and (group == 0 or ends[group - 1]):
            take_in(held, key, port, row, stretches, store)
    if stretches.has_pointers:
        begins, bits = stretches.begins, stretches.bits
        for group in range(begins.size - 1):
            if group > 0 and ends[group - 1] == 0:
                break
            for place in range(begins[group], begins[group + 1]):
                if letter >> bits[place] & ONE and held[key, POINTERS + place] == 0:
                    held[key, POINTERS + place] = row


@inlined
def triggers(held: Any, key: int, each: int, stretches: Any, store: Any, program: Any) -> Any:
    """Whether a candidate triggers, given what its key remembers."""
    if stretches.rounds > 1 and held[key, stretches.ports[0, 2] + COUNTED] < stretches.rounds:
        return False
    if len(program.steps) == 0:
        return program.known_integers.size == 0 or (
            program.known_integers[0, each] != 0 and not program.errors[0, each]
        )
    return condition_holds(
        program, each, held, key, stretches.aggregates, store.events, store.reals, store.base
    )


@inlined
def note(
    held: Any, key: int, each: int, stretches: Any, store: Any, program: Any, out: Any, at: int
) -> None:
    """Write down a trigger: its candidate, the first events, and what aggregates come to."""
    aggregates, base = stretches.aggregates, store.base
    out.candidates[at] = each
    if stretches.bind_first:
        for place in range(stretches.bits.size):
            out.slots[at, place] = held[key, POINTERS + place]
    for number in range(len(aggregates)):
        whole, real, there = aggregate(
            held, key, aggregates, number, store.events, store.reals, base, program.digits
        )
        if aggregates[number, REAL] or aggregates[number, KIND] == AVERAGE:
            out.reals[at, number] = real
        else:
            out.values[at, number] = whole
        out.lacking[at, number] = not there


@uncounted
def read_stretches(
    given: Any,
    reached: Any,
    stretches: Any,
    store: Any,
    held: Any,
    floors: Any,
    program: Any,
    out: Any,
) -> Any:
    """Let events count, from where the loop has come to, and say which candidates trigger.

    Returns how far it came in events and in candidates, how many have triggered, and what it lacks.
    """
    keys, number, candidates, starts, replayed = given
    at, done, fired = reached
    base, events = store.base, store.events
    per_event = len(stretches.aggregates)
    for row in range(at, keys.size):
        if fired == out.candidates.size:
            return row, done, fired, LACKS_ROOM
        if 2 * (store.used[0] + per_event) > len(store.table):
            return row, done, fired, LACKS_TABLE
        look_ahead(keys, row, number, stretches, store, held)
        key, reading = keys[row], number + row
        letter, time = np.uint64(events[reading - base, LETTER]), events[reading - base, TIME]
        events[reading - base, NEXT] = 0
        age(held, key, time, stretches, store)
        is_alone = False
        while True:
            remember(held, key, reading, letter, stretches, store)
            if replayed or is_alone:
                break
            has_triggered = False
            if done < candidates.size and candidates[done] == row:
                if starts[done] >= floors[key] and triggers(
                    held, key, done, stretches, store, program
                ):
                    has_triggered = True
                    note(held, key, done, stretches, store, program, out, fired)
                    fired += 1
                done += 1
            if has_triggered and stretches.keep_none:
                floors[key] = reading + 1
            elif (has_triggered and stretches.keep_last) or letter & stretches.unless != NO_BITS:
                floors[key] = reading
            else:
                break
            forget(held, key, stretches)
            if floors[key] > reading:
                break
            # Only the event itself is kept: it is remembered once more, as the first.
            is_alone = True
    return keys.size, done, fired, DONE


@uncounted
def age_all(held: Any, time: int, stretches: Any, store: Any) -> Any:
    """Let all keys lose what has left the window by a time; returns the first event that counts.

    It is 0 if there is none. What came before it is not asked for again.
    """
    first = np.int64(0)
    for key in range(len(held)):
        age(held, key, time, stretches, store)
        head = held[key, HEAD]
        if head == 0:
            held[key, TAIL] = 0
        elif first == 0 or head < first:
            first = head
    return first


@uncounted
def list_remembered(held: Any, events: Any, base: int, oldest: int, keys: Any, rows: Any) -> int:
    """The remembered events that came at a time or later, by key; returns how many there are."""
    count = 0
    for key in range(len(held)):
        row = held[key, HEAD]
        while row != 0:
            if events[row - base, TIME] >= oldest:
                keys[count], rows[count] = key, row
                count += 1
            row = events[row - base, NEXT]
    return count
