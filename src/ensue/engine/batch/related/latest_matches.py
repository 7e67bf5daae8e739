"""The latest match of a chain of groups for each key, carried from event to event.

In come the events of a batch; out go candidates, the matches that they complete (`link`). For each
key and each place of the chain there is a *block* of registers: the time and the number of the
first event of the match so far, the events of the groups before, and the place's own last event.
This is the algebra of latest starts, in which a start carries the events of its match. An event
goes through the groups from the last to the first, so that it never follows itself.

What a key has forgotten stays in its registers. A *floor* is the number of the first event that a
key remembers: a match that begins before it does not count, and every other match of that place
begins even earlier. `choose_triggers` moves the floors, and says which candidates trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import FAR, inlined, uncounted
from ensue.engine.core.numbering import Rows, taller
from ensue.engine.core.relating.form import ChainForm

WHEN, START, EVENTS = 0, 1, 2
"""What a block begins with: the time and the number of the first event; then the events."""


class ChainArrays(NamedTuple):
    """The chain of a rule: `bits` and `blocks` are by place, `begins` and `masks` by group.

    `ports` has the bits of the ports whose last events are bound, which are kept from `last_at` on.
    """

    begins: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint64]
    bits: npt.NDArray[np.uint64]
    blocks: npt.NDArray[np.int64]
    ports: npt.NDArray[np.uint64]
    last_at: int
    window: int


class ReadEvents(NamedTuple):
    """Events that a rule reads of a batch; `number` is that of the first as a reading."""

    letters: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    number: int


class Candidates(NamedTuple):
    """Matches that events complete: the row of the event, the first event, and the slots."""

    at: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]

    def taken(self, chosen: Rows | slice) -> Candidates:
        return Candidates(self.at[chosen], self.starts[chosen], self.slots[chosen])


@inlined
def latest_of_group(
    registers: Any, key: Any, first: Any, end: Any, begins_at: Any, blocks: Any, match: Any
) -> Any:
    """Write the latest match up to a group to `match`; False if there is none.

    What came before the group is taken from its earliest event.
    """
    earliest, block = np.int64(0), np.int64(0)
    for place in range(first, end):
        own = registers[key, blocks[place] + EVENTS + begins_at]
        if own == 0:
            return False
        if earliest == 0 or own < earliest:
            earliest, block = own, blocks[place]
        match[EVENTS + place] = own
    match[WHEN], match[START] = registers[key, block + WHEN], registers[key, block + START]
    for place in range(begins_at):
        match[EVENTS + place] = registers[key, block + EVENTS + place]
    return True


@uncounted
def link(events: Any, chain: Any, registers: Any, match: Any, found: Any) -> Any:
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
                registers[key, last_at + port] = reading
        for group in range(groups - 1, -1, -1):
            if letter & masks[group] == np.uint64(0):
                continue
            first, end = begins[group], begins[group + 1]
            if group == 0:
                match[WHEN], match[START] = time, reading
            elif not latest_of_group(
                registers, key, begins[group - 1], first, begins[group - 1], blocks, match
            ):
                continue
            is_last = group == groups - 1
            if is_last and end - first == 1:
                # Nothing comes behind it and nothing beside it, so it is not kept.
                match[EVENTS + first] = reading
            else:
                for place in range(first, end):
                    if letter >> bits[place] & np.uint64(1):
                        block = blocks[place]
                        for each in range(EVENTS + first):
                            registers[key, block + each] = match[each]
                        registers[key, block + EVENTS + first] = reading
                if not is_last or not latest_of_group(
                    registers, key, first, end, first, blocks, match
                ):
                    continue
            if match[WHEN] >= time - window:
                found_at[count], found_starts[count] = row, match[START]
                if lasting:
                    for port in range(lasting):
                        found_slots[count, port] = registers[key, last_at + port]
                else:
                    for place in range(end):
                        found_slots[count, place] = match[EVENTS + place]
                count += 1
    return count


class JudgedMatches(NamedTuple):
    """Matches that events complete, or that the clock fires, in the order of the stream.

    `numbers` has the number of that event, or of the event before which the clock fires; `holds`
    says whether the condition holds, and `starts` has the first event of each match.
    """

    numbers: npt.NDArray[np.int64]
    holds: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]


class Resets(NamedTuple):
    """Events that match a port of `unless`, in their order: their numbers and keys."""

    numbers: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]


@uncounted
def choose_triggers(
    matches: Any, resets: Any, floors: Any, keeps_all: bool, forgotten: int, out: Any
) -> int:
    """Write which matches trigger, given what triggers and `unless` make their keys forget.

    `floors` has for each key the number of the first event that is remembered. Unless a rule
    `keeps_all`, a trigger makes its key forget the events before its number, and `forgotten` more.
    Returns how many matches trigger.
    """
    numbers, holds, starts, keys = matches
    reset_numbers, reset_keys = resets
    count, reset = 0, 0
    for each in range(numbers.size):
        number, key = numbers[each], keys[each]
        while reset < reset_numbers.size and reset_numbers[reset] < number:
            floors[reset_keys[reset]] = max(floors[reset_keys[reset]], reset_numbers[reset])
            reset += 1
        if holds[each] and starts[each] >= floors[key]:
            out[count] = each
            count += 1
            if not keeps_all:
                floors[key] = number + forgotten
    while reset < reset_numbers.size:
        floors[reset_keys[reset]] = max(floors[reset_keys[reset]], reset_numbers[reset])
        reset += 1
    return count


class MatchRegisters:
    """The registers of all keys of one rule; `bit_of` gives the bit of a port in a letter."""

    def __init__(self, form: ChainForm, bit_of: Callable[[str], int]) -> None:
        self._form = form
        self._chain, width = _chain(form, bit_of)
        self._match = np.zeros(2 + len(form.places), np.int64)
        self.registers = np.zeros((0, width), np.int64)

    def __len__(self) -> int:
        """For how many keys there are registers."""
        return len(self.registers)

    def grow(self, size: int) -> None:
        self.registers = taller(self.registers, size)

    def clear(self) -> None:
        """Put all keys back to where they had read nothing."""
        self.registers[:] = 0

    def link(self, events: ReadEvents) -> Candidates:
        """The candidates of a batch."""
        size = len(events.letters)
        room = Candidates(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, len(self._chain.ports) or len(self._form.places)), np.int64),
        )
        count = link(events, self._chain, self.registers, self._match, room)
        return room.taken(slice(count))

    def readings(self, floors: Rows, oldest: int | None) -> tuple[list[Rows], list[Rows]]:
        """The readings of latest matches that count, each with its key, in no order.

        A match counts that begins at or after the floor of its key and, with `oldest`, at or after
        that time.
        """
        every_key: list[Rows] = []
        every_row: list[Rows] = []
        before = self._chain.begins
        for group in range(len(self._form.groups)):
            for place in range(before[group], before[group + 1]):
                block = self._chain.blocks[place]
                if block < 0:
                    continue
                matches = self.registers[:, block : block + EVENTS + before[group] + 1]
                counts = (matches[:, -1] > 0) & (matches[:, START] >= floors)
                if oldest is not None:
                    counts &= matches[:, WHEN] >= oldest
                keys = np.flatnonzero(counts)
                for column in range(EVENTS, matches.shape[1]):
                    every_key.append(keys)
                    every_row.append(matches[keys, column])
        return every_key, every_row

    def last_events(self) -> Iterator[Rows]:
        """For each port whose last event is bound, the number of that event by key."""
        for column in range(self._chain.last_at, self.registers.shape[1]):
            yield self.registers[:, column]


def _chain(form: ChainForm, bit_of: Callable[[str], int]) -> tuple[ChainArrays, int]:
    """The chain for the loops, and how many registers a key has."""
    begins = np.cumsum([0, *(len(group) for group in form.groups)]).astype(np.int64)
    blocks, at = [], 0
    for number, group in enumerate(form.groups):
        is_held = number < len(form.groups) - 1 or len(group) > 1
        for _ in group:
            # What comes last by itself holds nothing.
            blocks.append(at if is_held else -1)
            at += (EVENTS + int(begins[number]) + 1) if is_held else 0
    # Behind a chain that waits, the last events are those of the moment.
    binds_match = form.bind == "latest" or form.after is not None
    ports = [] if binds_match else [bit_of(port) for port in form.slots]
    masks = [sum(1 << bit_of(port) for port in set(group)) for group in form.groups]
    chain = ChainArrays(
        begins,
        np.array(masks, np.uint64),
        np.array([bit_of(port) for port in form.places], np.uint64),
        np.array(blocks, np.int64),
        np.array(ports, np.uint64),
        at,
        FAR if form.window is None else form.window,
    )
    return chain, at + len(ports)
