"""The latest match of every key, carried from event to event in registers.

In come the events of a batch by their letters (`kernels.match_links`); out go candidates: the
matches that an event completes. A key has registers for each place of the chain: when its latest
match up to there has begun, and the readings of that match. Which candidates trigger is decided in
`correlation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.kernels import match_links
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.relating.form import Form


class LatestMatches:
    """The registers of all keys of one rule; `bit_of` gives the bit of a port in a letter."""

    def __init__(self, form: Form, bit_of: Callable[[str], int]) -> None:
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
        """Let all keys stand as if they had read nothing."""
        self.registers[:] = 0

    def link(
        self, letters: Any, times: Any, keys: Numbers, number: int
    ) -> tuple[Rows, Rows, npt.NDArray[np.int64]]:
        """The candidates of a batch: their places, first events and slots."""
        size = len(letters)
        room = match_links.Candidates(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, len(self._chain.ports) or len(self._form.places)), np.int64),
        )
        events = match_links.LinkedEvents(letters, times, keys, number)
        count = match_links.link(events, self._chain, self.registers, self._match, room)
        return room.at[:count], room.starts[:count], room.slots[:count]

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
                held = self.registers[:, block : block + match_links.EVENTS + before[group] + 1]
                is_there = held[:, -1] > 0
                is_there &= held[:, match_links.START] >= floors
                if oldest is not None:
                    is_there &= held[:, match_links.WHEN] >= oldest
                keys = np.flatnonzero(is_there)
                for column in range(match_links.EVENTS, held.shape[1]):
                    every_key.append(keys)
                    every_row.append(held[keys, column])
        return every_key, every_row

    def last_events(self) -> Iterator[Rows]:
        """For each port whose last event is bound, the number of that event by key."""
        for column in range(self._chain.last_at, self.registers.shape[1]):
            yield self.registers[:, column]


def _chain(form: Form, bit_of: Callable[[str], int]) -> tuple[match_links.ChainArrays, int]:
    """The chain for the loops, and how many registers a key has."""
    begins = np.cumsum([0, *(len(group) for group in form.groups)]).astype(np.int64)
    blocks, at = [], 0
    for number, group in enumerate(form.groups):
        is_held = number < len(form.groups) - 1 or len(group) > 1
        for _ in group:
            # What comes last by itself holds nothing.
            blocks.append(at if is_held else -1)
            at += (match_links.EVENTS + int(begins[number]) + 1) if is_held else 0
    # Behind a chain that waits, the last events are those of the moment.
    binds_match = form.bind == "latest" or form.after is not None
    ports = [] if binds_match else [bit_of(port) for port in form.slots]
    masks = [sum(1 << bit_of(port) for port in set(group)) for group in form.groups]
    chain = match_links.ChainArrays(
        begins,
        np.array(masks, np.uint64),
        np.array([bit_of(port) for port in form.places], np.uint64),
        np.array(blocks, np.int64),
        np.array(ports, np.uint64),
        at,
        FAR if form.window is None else form.window,
    )
    return chain, at + len(ports)
