"""Compiled loops: the latest match of a chain of groups, carried from event to event.

For each key and each place of the chain a *block* of registers: the time and the number of the
first event of the match so far, the events of the groups before, and the place's own last event.
This is the algebra of latest starts, in which a start carries the events of its match. An event
first closes what its key holds, from the last group to the first, so that it never follows itself.

What was forgotten is not taken out: a match whose first event lies before what is remembered is
none, and every other match of that place begins even earlier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import inlined, uncounted

WHEN, START, EVENTS = 0, 1, 2
"""What a block begins with: the time and the number of the first event; then the events."""


class ChainArrays(NamedTuple):
    """The chain of a rule: `bits` and `blocks` are by place, `begins` and `masks` by group.

    `ports` has the bits of the ports that a slot is bound to, where it is the last of each.
    """

    begins: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint64]
    bits: npt.NDArray[np.uint64]
    blocks: npt.NDArray[np.int64]
    ports: npt.NDArray[np.uint64]
    last_at: int
    window: int


class LinkedEvents(NamedTuple):
    """Events of a batch: their letters, times and keys, and the number of the first of them."""

    letters: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    number: int


class Candidates(NamedTuple):
    """Matches that an event completes: its place, the first event of the match, and the slots."""

    at: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]


@inlined
def latest_of_group(
    held: Any, key: Any, first: Any, end: Any, begins_at: Any, blocks: Any, match: Any
) -> Any:
    """Write the latest match up to a group to `match`; False if there is none.

    What came before the group is taken from its earliest event.
    """
    earliest, block = np.int64(0), np.int64(0)
    for place in range(first, end):
        own = held[key, blocks[place] + EVENTS + begins_at]
        if own == 0:
            return False
        if earliest == 0 or own < earliest:
            earliest, block = own, blocks[place]
        match[EVENTS + place] = own
    match[WHEN], match[START] = held[key, block + WHEN], held[key, block + START]
    for place in range(begins_at):
        match[EVENTS + place] = held[key, block + EVENTS + place]
    return True


class Forgetting(NamedTuple):
    """What makes keys forget: a trigger, by `keep`, and events that match a port of `unless`.

    `ends` are the places of such events, in their order. `floors` has for each key the number of
    the first event that is remembered.
    """

    ends: npt.NDArray[np.int64]
    floors: npt.NDArray[np.int64]
    keep_none: bool
    keep_last: bool


@uncounted
def link(events: Any, chain: Any, held: Any, match: Any, found: Any) -> Any:
    """Take events through the registers of their keys. Returns how many candidates there are.

    An event completes one match at most, so `found` has room for as many as there are events.
    """
    letters, times, keys, number = events
    begins, masks, bits, blocks = chain.begins, chain.masks, chain.bits, chain.blocks
    ports, last_at, window = chain.ports, chain.last_at, chain.window
    found_at, found_starts, found_slots = found.at, found.starts, found.slots
    groups, lasting, count = masks.size, ports.size, 0
    for row in range(letters.size):
        letter, key, time = letters[row], keys[row], times[row]
        reading = number + row
        for port in range(lasting):
            if letter >> ports[port] & np.uint64(1):
                held[key, last_at + port] = reading
        for group in range(groups - 1, -1, -1):
            if letter & masks[group] == np.uint64(0):
                continue
            first, end = begins[group], begins[group + 1]
            if group == 0:
                match[WHEN], match[START] = time, reading
            elif not latest_of_group(
                held, key, begins[group - 1], first, begins[group - 1], blocks, match
            ):
                continue
            is_last = group == groups - 1
            if is_last and end - first == 1:
                # Nothing comes behind it and nothing beside it, so it is not held.
                match[EVENTS + first] = reading
            else:
                for place in range(first, end):
                    if letter >> bits[place] & np.uint64(1):
                        block = blocks[place]
                        for each in range(EVENTS + first):
                            held[key, block + each] = match[each]
                        held[key, block + EVENTS + first] = reading
                if not is_last or not latest_of_group(held, key, first, end, first, blocks, match):
                    continue
            if match[WHEN] >= time - window:
                found_at[count], found_starts[count] = row, match[START]
                if lasting:
                    for port in range(lasting):
                        found_slots[count, port] = held[key, last_at + port]
                else:
                    for place in range(end):
                        found_slots[count, place] = match[EVENTS + place]
                count += 1
    return count


@uncounted
def settle(
    candidates: Any, holds: Any, starts: Any, keys: Any, number: int, forgetting: Any, out: Any
) -> int:
    """Which candidates trigger, given what triggers and `unless` make their keys forget.

    `candidates` are the places of events, `number` is that of the first event of the batch.
    """
    ends, floors, keep_none, keep_last = forgetting
    count, end = 0, 0
    for each in range(candidates.size):
        at = candidates[each]
        while end < ends.size and ends[end] < at:
            key = keys[ends[end]]
            floors[key] = max(floors[key], number + ends[end])
            end += 1
        key = keys[at]
        if holds[each] and starts[each] >= floors[key]:
            out[count] = each
            count += 1
            if keep_none:
                floors[key] = number + at + 1
            elif keep_last:
                floors[key] = number + at
    for each in range(end, ends.size):
        key = keys[ends[each]]
        floors[key] = max(floors[key], number + ends[each])
    return count
