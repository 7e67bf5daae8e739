"""Compiled loops: the stretches of ports, as events come, leave the window and are forgotten.

The remembered events of a key are a list through the store of events: each knows the next of its
key. Registers point into it: the first event, for each place the first event of its port in its
stretch (`bind first`, and where the next stretch begins), and for each port with an aggregate the
first event that counts. Every pointer only moves forward, so that an event costs amortised constant
time whatever the window holds. An event is added to aggregates when it comes and removed when it
leaves (`port_aggregates`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.related.conditions import condition_holds
from ensue.engine.batch.related.port_aggregates import (
    AVERAGE,
    COUNTED,
    DISTINCT,
    HEAD,
    KIND,
    LETTER,
    LOW,
    NEXT,
    NO_BITS,
    ONE,
    POINTERS,
    PORT_BIT,
    PORT_GROUP,
    PORT_REGISTERS,
    REAL,
    TAIL,
    TIME,
    VALUE,
    add_event,
    aggregate,
    clear_stretch,
    remove_event,
)
from ensue.engine.core.jit import inlined, prefetch, uncounted
from ensue.engine.core.numbering import MULTIPLIER

DONE, LACKS_ROOM, LACKS_TABLE = 0, 1, 2
FAR_AHEAD, AHEAD, NEAR = 24, 16, 8
"""How many events ahead the registers of a key, the events they point to, and the next of these
are prefetched."""


class CountedEvents(NamedTuple):
    """Events of a batch by their keys, the number of the first, and the matches they complete.

    `candidates` are rows of events, in their order, and `starts` the first events of the matches.
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


class ConditionProgram(NamedTuple):
    """A condition: its steps and constants, its operands for each candidate, and room to compute.

    `whole` and `real` are the registers of the steps, `digits` is for reading sums.
    """

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


@inlined
def prefetch_ahead(
    keys: Any, row: int, number: int, layout: Any, store: Any, registers: Any
) -> None:
    """Prefetch for later events: the registers of their keys, then the events these point to."""
    events, base, ports = store.events, store.base, layout.ports
    if row + FAR_AHEAD < keys.size:
        prefetch(registers, np.int64(keys[row + FAR_AHEAD]) * registers.shape[1])
    if row + AHEAD < keys.size:
        key, width = np.int64(keys[row + AHEAD]), events.shape[1]
        prefetch(events, (registers[key, TAIL] - base) * width)
        for port in range(len(ports)):
            prefetch(events, (registers[key, ports[port, PORT_REGISTERS] + LOW] - base) * width)
        # Mostly one event leaves as another comes, and the time of the next is asked.
        key = np.int64(keys[row + NEAR])
        for port in range(len(ports)):
            low = registers[key, ports[port, PORT_REGISTERS] + LOW]
            if low != 0:
                prefetch(events, (events[low - base, NEXT] - base) * width)
        key = np.int64(keys[row + AHEAD])
        aggregates, table = layout.aggregates, store.table
        for each in range(len(aggregates)):
            if aggregates[each, KIND] == DISTINCT:
                value = events[number + row + AHEAD - base, aggregates[each, VALUE]]
                mixed = np.uint64((key + 1) << 32 | value) * MULTIPLIER
                slot = (mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(table) - 1)
                prefetch(table, np.int64(slot) * 2)


@inlined
def next_of_port(events: Any, base: int, row: int, bit: Any) -> Any:
    """The next event of a key behind a row that matches a port; 0 if there is none."""
    row = events[row - base, NEXT]
    while row != 0 and np.uint64(events[row - base, LETTER]) >> bit & ONE == NO_BITS:
        row = events[row - base, NEXT]
    return row


@inlined
def expire(registers: Any, key: int, time: int, layout: Any, store: Any) -> None:
    """Move the pointers of a key past what has left the window by a time."""
    events, base = store.events, store.base
    edge = time - layout.window
    begins, bits, ends = layout.begins, layout.bits, layout.ends
    row = registers[key, HEAD]
    while row != 0 and events[row - base, TIME] < edge:
        row = events[row - base, NEXT]
    registers[key, HEAD] = row
    if layout.has_pointers:
        end = np.int64(0)
        for group in range(begins.size - 1):
            latest, is_complete = np.int64(0), True
            for place in range(begins[group], begins[group + 1]):
                row = registers[key, POINTERS + place]
                if group > 0 and end == 0:
                    row = np.int64(0)
                while row != 0 and (events[row - base, TIME] < edge if group == 0 else row <= end):
                    row = next_of_port(events, base, row, bits[place])
                registers[key, POINTERS + place] = row
                is_complete = is_complete and row != 0
                latest = max(latest, row)
            end = latest if is_complete else np.int64(0)
            ends[group] = end
    ports = layout.ports
    for port in range(len(ports)):
        bit, group = np.uint64(ports[port, PORT_BIT]), ports[port, PORT_GROUP]
        at = ports[port, PORT_REGISTERS]
        row = registers[key, at + LOW]
        if row == 0:
            continue
        if group > 0 and ends[group - 1] == 0:
            clear_stretch(registers, key, port, layout)
            continue
        while row != 0 and (
            events[row - base, TIME] < edge if group == 0 else row <= ends[group - 1]
        ):
            remove_event(registers, key, port, row, layout, store)
            row = next_of_port(events, base, row, bit)
        registers[key, at + LOW] = row


@inlined
def forget(registers: Any, key: int, layout: Any) -> None:
    """Drop all remembered events of a key."""
    registers[key, HEAD] = 0
    registers[key, TAIL] = 0
    if layout.has_pointers:
        for place in range(layout.bits.size):
            registers[key, POINTERS + place] = 0
    for group in range(layout.ends.size):
        layout.ends[group] = 0
    for port in range(len(layout.ports)):
        clear_stretch(registers, key, port, layout)


@inlined
def remember(registers: Any, key: int, row: int, letter: Any, layout: Any, store: Any) -> None:
    """Append an event to the remembered ones of a key; `ends` is as it was before the event."""
    base, ports, ends = store.base, layout.ports, layout.ends
    last = registers[key, TAIL]
    if last != 0:
        store.events[last - base, NEXT] = row
    if registers[key, HEAD] == 0:
        registers[key, HEAD] = row
    registers[key, TAIL] = row
    for port in range(len(ports)):
        group = ports[port, PORT_GROUP]
        if letter >> np.uint64(ports[port, PORT_BIT]) & ONE and (group == 0 or ends[group - 1]):
            add_event(registers, key, port, row, layout, store)
    if layout.has_pointers:
        begins, bits = layout.begins, layout.bits
        for group in range(begins.size - 1):
            if group > 0 and ends[group - 1] == 0:
                break
            for place in range(begins[group], begins[group + 1]):
                if letter >> bits[place] & ONE and registers[key, POINTERS + place] == 0:
                    registers[key, POINTERS + place] = row


@inlined
def candidate_triggers(
    registers: Any, key: int, each: int, layout: Any, store: Any, program: Any
) -> Any:
    """Whether a candidate triggers, given what its key remembers."""
    if (
        layout.rounds > 1
        and registers[key, layout.ports[0, PORT_REGISTERS] + COUNTED] < layout.rounds
    ):
        return False
    if len(program.steps) == 0:
        return program.known_integers.size == 0 or (
            program.known_integers[0, each] != 0 and not program.errors[0, each]
        )
    return condition_holds(program, each, registers, key, layout.aggregates, store)


@inlined
def write_trigger(
    registers: Any, key: int, each: int, layout: Any, store: Any, program: Any, out: Any, at: int
) -> None:
    """Write a trigger: its candidate, the first events, and what aggregates come to."""
    aggregates = layout.aggregates
    out.candidates[at] = each
    if layout.bind_first:
        for place in range(layout.bits.size):
            out.slots[at, place] = registers[key, POINTERS + place]
    for number in range(len(aggregates)):
        whole, real, there = aggregate(registers, key, aggregates, number, store, program.digits)
        if aggregates[number, REAL] or aggregates[number, KIND] == AVERAGE:
            out.reals[at, number] = real
        else:
            out.values[at, number] = whole
        out.lacking[at, number] = not there


@uncounted
def read_stretches(
    given: Any,
    reached: Any,
    layout: Any,
    store: Any,
    registers: Any,
    floors: Any,
    program: Any,
    out: Any,
) -> Any:
    """Take events into the stretches of their keys, and say which candidates trigger.

    Returns how far it came in events and in candidates, how many have triggered, and what it lacks.
    """
    keys, number, candidates, starts, replayed = given
    at, done, fired = reached
    base, events = store.base, store.events
    per_event = len(layout.aggregates)
    for row in range(at, keys.size):
        if fired == out.candidates.size:
            return row, done, fired, LACKS_ROOM
        if 2 * (store.used[0] + per_event) > len(store.table):
            return row, done, fired, LACKS_TABLE
        prefetch_ahead(keys, row, number, layout, store, registers)
        key, reading = keys[row], number + row
        letter, time = np.uint64(events[reading - base, LETTER]), events[reading - base, TIME]
        events[reading - base, NEXT] = 0
        expire(registers, key, time, layout, store)
        is_alone = False
        while True:
            remember(registers, key, reading, letter, layout, store)
            if replayed or is_alone:
                break
            has_triggered = False
            if done < candidates.size and candidates[done] == row:
                if starts[done] >= floors[key] and candidate_triggers(
                    registers, key, done, layout, store, program
                ):
                    has_triggered = True
                    write_trigger(registers, key, done, layout, store, program, out, fired)
                    fired += 1
                done += 1
            if has_triggered and layout.keep_none:
                floors[key] = reading + 1
            elif (has_triggered and layout.keep_last) or letter & layout.unless != NO_BITS:
                floors[key] = reading
            else:
                break
            forget(registers, key, layout)
            if floors[key] > reading:
                break
            # Only the event itself is kept: it is remembered once more, as the first.
            is_alone = True
    return keys.size, done, fired, DONE


@uncounted
def expire_all(registers: Any, time: int, layout: Any, store: Any) -> Any:
    """Move the pointers of all keys past what has left the window by a time.

    Returns the first event that counts, 0 if there is none. No event before it is read again.
    """
    first = np.int64(0)
    for key in range(len(registers)):
        expire(registers, key, time, layout, store)
        head = registers[key, HEAD]
        if head == 0:
            registers[key, TAIL] = 0
        elif first == 0 or head < first:
            first = head
    return first


@uncounted
def list_remembered(
    registers: Any, events: Any, base: int, oldest: int, keys: Any, rows: Any
) -> int:
    """The remembered events that came at a time or later, by key; returns how many there are."""
    count = 0
    for key in range(len(registers)):
        row = registers[key, HEAD]
        while row != 0:
            if events[row - base, TIME] >= oldest:
                keys[count], rows[count] = key, row
                count += 1
            row = events[row - base, NEXT]
    return count
